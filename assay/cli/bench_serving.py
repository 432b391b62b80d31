"""`assay bench serving`: what vouchers, HTTP and statements cost a gateway beside the model."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import print_fields, print_json
from assay.cli.options import JsonOption

EPILOG = 'Example: assay bench serving --json  ->  {"cpu_ratio", "wall_ratio", "paid_per_s", "p50_ms", "p99_ms", ...}'


def serving(
    model: Annotated[str, typer.Option("--model", help="gpt-4x384, gpt-4x128 or gpt-2x96.")] = "gpt-4x384",
    rows: Annotated[
        int, typer.Option("--rows", min=1, max=32, help="Texts at once; twice as many payers ask for one.")
    ] = 8,
    tokens: Annotated[int, typer.Option("--tokens", min=1, max=1024, help="Tokens of each answer.")] = 64,
    rounds: Annotated[int, typer.Option("--rounds", min=2, max=1000, help="Of 4 answers a payer and side.")] = 10,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="On the disk that is meant; the one of temporary files."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Answer paid requests by HTTP and the same ones bare, in one alternating run, and compare what a token costs."""
    from assay.bench.serving import measure

    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        found = asdict(measure(Path(place), model, rows, tokens, rounds))
    if as_json:
        print_json(found)
    else:
        print_fields(found)
