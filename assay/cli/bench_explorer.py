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
        typer.Option("--pause", min=0.0, help="Seconds that a reader stays with a page, on average; 5 and 0."),
    ] = None,
    runs: Annotated[int, typer.Option("--runs", min=1, help="Of each load; the median counts.")] = 3,
    as_json: JsonOption = False,
) -> None:
    """Serve a run of so many events that goes on growing, and let readers read it from another process.

    A reader opens a page, reads it for some seconds while the page's script asks for it again, and follows a link.
    Without a pause readers ask for one page after another: what the explorer can do at most. Nothing is listened to but
    this machine. A million events take about a minute to fold and 1.2 GB of memory.
    """
    from assay.bench.explorer import ReadingTerms, measure

    found = measure(ReadingTerms(events, readers, seconds, tuple(pause or [5.0, 0.0]), runs), talk.print)
    if as_json:
        print_json(found)
        return
    for load in found["loads"]:
        rows = [
            [r["kind"], r["answers"], f"{r['p50_s']:.3f}", f"{r['p99_s']:.3f}", f"{r['worst_s']:.3f}"]
            for r in load["kinds"]
        ]
        title = f"{readers} readers, {load['pause_s']} s a page: {load['pages_per_s']} pages/s"
        print_table(title, ["page", "answers", "p50 s", "p99 s", "worst s"], rows)
    talk.print(f"{found['events']:,} events; {found['memory_mb_peak']} MB at most.")
