"""`assay economics simulate`: populations with each strategy, their incomes, and where cheating begins to pay."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.common import print_json, print_table, talk
from assay.cli.options import JsonOption

if TYPE_CHECKING:
    from assay.simulation.blind_audits import BlindRow
    from assay.simulation.experiments import StrategyRow
    from assay.simulation.incomes import Estimate

EPILOG = (
    "Example: assay economics simulate --seeds 8 --json  ->  "
    '{"model", "terms": {...}, "rows": [{"strategy", "income": {"mean", "half"}, "honest", "turns_at", "bound", ...}], '
    '"blind": [{"terms": {...}, "accused": {"mean", "half"}, "convicted", "expected", ...}]}'
)


def simulate(
    epochs: Annotated[int, typer.Option("--epochs", min=20, help="Epochs of audits in a play.")] = 200,
    seeds: Annotated[int, typer.Option("--seeds", min=4, help="Plays of each population, with seeds from 1.")] = 24,
    on_contracts: Annotated[
        bool,
        typer.Option("--on-contracts", help="Play on the contracts' executable model: 20 times slower at 40 epochs."),
    ] = False,
    blind_runs: Annotated[
        int, typer.Option("--blind-runs", min=0, help="Runs of each population with one blind auditor; 0: none.")
    ] = 40,
    plots: Annotated[Path | None, typer.Option("--plots", metavar="DIR", help="Write curves there as PNG.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Play each strategy among honest strangers at the rules of rounds and audits, a minute in all.

    Incomes are in W with 95 % intervals, at what work costs. A turning point is the parameter below which (for v, above
    which) a strategy pays, as if work cost nothing, beside the bound that the formulas set. The rules are played in
    events, or on the executable model of the contracts: no bytes, no gas, no other formulas.

    One blind auditor among the honest is always played on the executable model: in how many epochs it is accused, and
    convicted by a game of one epoch, beside the number that follows from the rates.
    """
    from assay.simulation.blind_audits import blind_rows
    from assay.simulation.experiments import LabStage, default_lab, strategies
    from assay.simulation.pictures import blind_audits, pictures

    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)
    lab = default_lab(epochs, seeds, LabStage.CONTRACTS if on_contracts else LabStage.EVENTS)
    rows = []
    for row in strategies(lab):
        rows.append(row)
        talk.print(row.strategy)
    blind = []
    for found in blind_rows(blind_runs) if blind_runs else ():
        blind.append(found)
        talk.print(f"blind auditor: {_blind_cells(found)[0]}")
    if plots is not None:
        drawn = pictures(lab) | ({"economics-blind.png": blind_audits(blind)} if blind else {})
        for name, picture in drawn.items():
            (plots / name).write_bytes(picture)
    if as_json:
        document = [asdict(row) | {"is_deterred": row.is_deterred} for row in rows]
        shown = [asdict(row) | {"is_as_expected": row.is_as_expected} for row in blind]
        model, terms, prices = lab.stage.value, asdict(lab.terms), asdict(lab.prices)
        print_json({"model": model, "terms": terms, "prices": prices, "rows": document, "blind": shown})
        return
    columns = ["strategy", "income in W, honest work's", "pays", "bound"]
    print_table(f"Incomes by {lab.stage.value}", columns, [_cells(row) for row in rows])
    if blind:
        columns = ["one blind auditor", "accused after epochs", "by formula", "convicted"]
        print_table(f"On {LabStage.CONTRACTS.value}, {blind_runs} runs each", columns, [_blind_cells(r) for r in blind])


def _blind_cells(row: BlindRow) -> list[str]:
    """A row of the table."""
    t = row.terms
    name = f"p {t.audit:g}, q {t.reaudit:g}, {t.tickets} tickets, c {t.capacity}, {t.commitments} seats"
    expected = f"{row.expected:.3g}" + ("" if row.is_as_expected else " (outside)")
    return [name, _shown(row.accused), expected, _shown(row.convicted)]


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
