"""`assay economics simulate`: populations with each strategy, their incomes, and where cheating begins to pay."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.common import print_json, print_table, talk
from assay.cli.options import JsonOption

if TYPE_CHECKING:
    from assay.simulation.experiments import StrategyRow
    from assay.simulation.incomes import Estimate

EPILOG = (
    "Example: assay economics simulate --seeds 8 --json  ->  "
    '{"model", "terms": {...}, "rows": [{"strategy", "income": {"mean", "half"}, "honest", "turns_at", "bound", ...}]}'
)
MODEL = "events of docs/adr/0033"
"""What is played until the executable model of the contracts is whole."""


def simulate(
    epochs: Annotated[int, typer.Option("--epochs", min=20, help="Epochs of audits in a play.")] = 200,
    seeds: Annotated[int, typer.Option("--seeds", min=4, help="Plays of each population, with seeds from 1.")] = 24,
    plots: Annotated[Path | None, typer.Option("--plots", metavar="DIR", help="Write curves there as PNG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Play each strategy among honest strangers at the second round's rules, half a minute in all.

    Incomes are in W with 95 % intervals, at what work costs. A turning point is the parameter below which (for v, above
    which) a strategy pays, as if work cost nothing, beside the bound that the formulas set. The rules are played in
    events: no bytes, no gas, no other formulas.
    """
    from assay.simulation.experiments import default_lab, strategies
    from assay.simulation.pictures import pictures

    lab = default_lab(epochs, seeds)
    rows = []
    for row in strategies(lab):
        rows.append(row)
        talk.print(row.strategy)
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
        for name, picture in pictures(lab).items():
            (plots / name).write_bytes(picture)
    if as_json:
        document = [asdict(row) | {"is_deterred": row.is_deterred} for row in rows]
        print_json({"model": MODEL, "terms": asdict(lab.terms), "prices": asdict(lab.prices), "rows": document})
        return
    columns = ["strategy", "income in W, honest work's", "pays", "bound"]
    print_table(f"Incomes by {MODEL}", columns, [_cells(row) for row in rows])


def _cells(row: StrategyRow) -> list[str]:
    """A row of the table."""
    honest = "" if row.honest is None else f" ({row.honest:.3g})"
    side = "above" if row.pays_above else "below"
    return [
        row.strategy,
        f"{_shown(row.income)} a {row.unit}{honest}" if row.income else "",
        f"{row.parameter} {side} {_shown(row.turns_at)}" if row.turns_at else "" if row.is_deterred else "pays",
        "" if row.bound is None else f"{row.bound:.3g}",
    ]


def _shown(estimate: Estimate | None) -> str:
    """A mean with half of its interval."""
    return "" if estimate is None else f"{estimate.mean:.3g} +- {estimate.half:.2g}"
