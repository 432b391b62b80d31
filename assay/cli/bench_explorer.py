"""`assay bench explorer`: how long readers of a long run wait for its pages."""

from __future__ import annotations

from typing import Annotated

import typer

from assay.cli.common import print_json, print_table, talk
from assay.cli.options import JsonOption

EPILOG = (
    "Example: assay bench explorer --events 100000 --json"
    '  ->  {"events", "readers", "memory_mb_peak", "loads": [{"pause_s", "pages_per_s", "p99_s", "met", ...}]}'
)


def explorer(
    events: Annotated[int, typer.Option("--events", min=1_000, help="Events of the run.")] = 1_000_000,
    readers: Annotated[int, typer.Option("--readers", min=1, help="Readers at the same time.")] = 200,
    seconds: Annotated[float, typer.Option("--seconds", min=1.0, help="Of each load.")] = 20.0,
    pause: Annotated[
        list[float] | None,
        typer.Option("--pause", min=0.0, help="Seconds between two pages of a reader, on average; 1 and 0."),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Serve a run of so many events that goes on growing, and let readers read it from another process.

    Nothing is listened to but this machine. A million events take about two minutes to fold and 2 GB of memory.
    """
    from assay.bench.explorer import ReadingTerms, measure

    found = measure(ReadingTerms(events, readers, seconds, tuple(pause or [1.0, 0.0])), talk.print)
    if as_json:
        print_json(found)
        return
    for load in found["loads"]:
        rows = [
            [r["kind"], r["answers"], f"{r['p50_s']:.3f}", f"{r['p99_s']:.3f}", f"{r['worst_s']:.3f}"]
            for r in load["kinds"]
        ]
        title = f"{readers} readers, {load['pause_s']} s between pages: {load['pages_per_s']} pages/s"
        print_table(title, ["page", "answers", "p50 s", "p99 s", "worst s"], rows)
    talk.print(f"{found['events']:,} events; {found['memory_mb_peak']} MB at most.")
