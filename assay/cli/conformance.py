"""`assay conformance`: known answers of the protocol against this machine's implementations."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import JsonOption, print_json, print_table
from assay.protocol.errors import NumericsError

EPILOG = (
    'Example: assay conformance --json  ->  [{"implementation", "group", "cases", "wrong", "first", "skipped"}, ...]'
)


def conformance(
    vectors: Annotated[
        Path | None, typer.Option("--vectors", metavar="DIR", help="Folder of the known answers; the checkout's own.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Compare every executor here, reference and curves with the known answers; exit code 7 when one differs."""
    from assay.conformance import check_all, default_vectors

    tallies = check_all(vectors or default_vectors())
    if as_json:
        print_json([asdict(tally) for tally in tallies])
    else:
        rows = [
            [t.implementation, t.group, t.cases, t.wrong]
            if t.skipped is None
            else [t.implementation, t.skipped, "-", "-"]
            for t in tallies
        ]
        print_table("", ["implementation", "group, or why it is skipped", "cases", "wrong"], rows)
    wrong = next((t for t in tallies if t.wrong), None)
    if wrong is not None:
        raise NumericsError(
            f"{wrong.implementation} differs in {wrong.wrong} of {wrong.cases} {wrong.group}; first {wrong.first}.",
            code="NotConformant",
            remedy="Do not take part with this machine: what it computes would be refuted.",
        )
