"""`assay bench goodput`: the share of seats' time that ends in a final base, in compressed chain time."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.common import print_json, print_table
from assay.cli.options import JsonOption

EPILOG = (
    "Example: assay bench goodput --rounds 20 --json"
    '  ->  {"goodput": 0.98, "training_seconds", "solvers", "rows": [...], "bytes_per_parameter": {"f32": {...}, ...}}'
)


def goodput(
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Rounds of each measurement.")] = 20,
    seats: Annotated[int, typer.Option("--seats", min=2, max=64, help="Solvers, each in one seat.")] = 8,
    commit: Annotated[
        list[int] | None, typer.Option("--commit", metavar="SECONDS", help="C, training time of a round; 3600, 7200.")
    ] = None,
    spread: Annotated[
        float, typer.Option("--spread", min=0.0, max=0.5, help="How unequal units are, as a share of the plan's time.")
    ] = 0.03,
    as_json: JsonOption = False,
) -> None:
    """Let solvers decide through whole rounds, as a rule and with every transaction kept out for F.

    Units take the plan's time, a transaction 12 s or F = 600 s; nothing is trained.
    """
    from assay.bench.goodput import GoodputTerms
    from assay.bench.goodput_report import COMMITS, report

    document = report(GoodputTerms(seats=seats, rounds=rounds, spread=spread), commit or COMMITS)
    if as_json:
        print_json(document)
        return
    names = ("commit_s", "inclusion_s", "goodput", "bar", "training_seconds", "chain_seconds", "rounds")
    print_table(
        "Goodput",
        ["C, s", "inclusion, s", "goodput", "bar", "training, s", "chain, s", "rounds"],
        [["" if row[name] is None else row[name] for name in names] for row in document["rows"]],
    )
    for wire, roles in document["bytes_per_parameter"].items():
        print_table(f"Bytes a parameter and round, {wire}", list(roles), [list(roles.values())])
