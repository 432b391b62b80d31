"""`assay bench index`: events a second from a node's answers to committed rows, and how long a start takes then."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from assay.cli.common import print_fields, print_json, talk
from assay.cli.options import JsonOption

EPILOG = (
    "Example: assay bench index --events 1000000 --json"
    '  ->  {"events_per_second", "in_memory_events_per_second", "restart_seconds", "bytes_per_event", ...}'
)


def index(
    events: Annotated[int, typer.Option("--events", min=1000, help="Events of the run.")] = 100_000,
    url: Annotated[
        str | None, typer.Option("--index-url", metavar="URL", help="An empty database; a SQLite file is made.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Read a run from recorded answers into a database, start again from it, and fold the same answers in memory."""
    from assay.bench.index import measure

    talk.print(f"{events} events are made first ...")
    with tempfile.TemporaryDirectory(prefix="assay-index-") as folder:
        document = measure(events, Path(folder), url)
    if as_json:
        print_json(document)
        return
    print_fields({name: value for name, value in document.items() if name != "bars"})
