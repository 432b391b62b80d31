"""`assay service`: the explorer of a run, served from this machine."""

from __future__ import annotations

import signal
import threading
from typing import Annotated

import typer

from assay.cli.common import open_blobs, open_round_run, print_json, talk
from assay.cli.options import SHOWN, STORED_RUN, JsonOption, with_settings
from assay.cli.showing import showing
from assay.settings import Settings

app = typer.Typer(no_args_is_help=True, help="The explorer: pages, JSON and tables of a run.")

DEFAULT_PORT = 8080


@app.callback()
def _group() -> None:
    """The explorer: pages, JSON and tables of a run."""


@app.command("start", epilog='Example: assay service start --port 0 --json  ->  {"url"}, then serves until Ctrl-C')
@with_settings(*STORED_RUN, *SHOWN)
def start(
    settings: Settings,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 shows it to the network.")] = "127.0.0.1",
    as_json: JsonOption = False,
) -> None:
    """Serve the explorer until Ctrl-C. Without a store there is no loss curve, and all else is there."""
    from assay.explorer.server import serve

    the_run = open_round_run(settings)
    blobs = open_blobs(settings) if settings.store is not None else None
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    with showing(settings, "explorer") as shown, serve(the_run, blobs, port, host=host) as server:
        shown.follow(the_run, blobs)
        if as_json:
            print_json({"url": server.url})
        else:
            typer.echo(server.url)
            talk.print("Ctrl-C ends it.")
        stop.wait()
