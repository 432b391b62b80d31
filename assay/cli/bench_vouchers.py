"""`assay bench vouchers`: how many vouchers a gateway checks and has on disk in a second."""

from __future__ import annotations

import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import print_fields, print_json
from assay.cli.options import JsonOption

EPILOG = 'Example: assay bench vouchers --json  ->  {"signed", "checked", "kept_alone", "kept_together", ...}'


def vouchers(
    count: Annotated[int, typer.Option("--count", min=1, max=1_000_000, help="Vouchers of each measurement.")] = 1000,
    at_once: Annotated[int, typer.Option("--at-once", min=1, max=256, help="Requests at once.")] = 16,
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="On the disk that is meant; the one of temporary files."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Sign, check and keep vouchers as a gateway does, each synced to disk; per second."""
    from assay.bench.vouchers import measure

    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as place:
        rates = asdict(measure(Path(place), count, at_once))
    if as_json:
        print_json(rates)
        return
    print_fields({name: round(value, 4) if name == "start_s" else round(value) for name, value in rates.items()})
