"""`assay service`: the explorer of a run alone, or any set of roles from one file, and the systemd unit around them."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.bonding import gates_of
from assay.cli.common import configure_log, never_waiting, open_blobs, open_round_run, print_json, talk
from assay.cli.options import EVENTS, SHOWN, STORED_RUN, DeviceOption, JsonOption, with_settings
from assay.protocol.errors import ExitCode, UsageError
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.service.config import ServiceFile

app = typer.Typer(no_args_is_help=True, help="The explorer of a run, or several roles as one service.")

DEFAULT_PORT = 8080

EXPLORER = "explorer"
"""Whose the rows are in a database of events: an explorer reads more than an actor does."""

ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Run the roles of this file (docs/operating.md) instead."),
]


@app.callback()
def _group() -> None:
    """The explorer of a run, or several roles as one service."""


@app.command(
    "start",
    epilog='Examples: assay service start --port 0 --json  ->  {"url"}, then serves until Ctrl-C; '
    'assay service start --config service.toml --json  ->  {"status", "roles": {NAME: [WORD, ...]}}, then keeps them',
)
@with_settings(*STORED_RUN, *EVENTS, *SHOWN)
def start(
    settings: Settings,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes a free one.")] = DEFAULT_PORT,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 shows it to the network.")] = "127.0.0.1",
    config: ConfigOption = None,
    bonds: Annotated[
        str | None,
        typer.Option("--bonds", metavar="ADDRESS", help="Contract of bonded gateways to show, as `gateway bond` said."),
    ] = None,
    gateway: Annotated[
        list[str] | None,
        typer.Option("--gateway", metavar="URL", help="A gateway whose price is shown; may be said again."),
    ] = None,
    _device: DeviceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the explorer until Ctrl-C; with --config keep all roles of a file running, until SIGTERM stops them.

    Without a store the explorer has no loss curve, and all else is there. With a database of events (--index-url) a
    start reads them from there instead of the chain.
    """
    if config is not None:
        with never_waiting():
            _keep(settings, config, as_json=as_json)
        return
    from assay.cli.showing import showing
    from assay.explorer.prices import gateway_urls
    from assay.explorer.server import serve
    from assay_ledger.rounds.index import KeepsEvents

    the_run = open_round_run(settings)
    gates, urls = None if bonds is None else gates_of(the_run, bonds), gateway_urls(gateway or ())
    blobs = open_blobs(settings) if settings.store is not None else None
    keeps = None if settings.index_url is None else KeepsEvents(settings.index_url, EXPLORER)
    stop = _stopped_by_signals()
    with (
        showing(settings, "explorer") as shown,
        serve(the_run, blobs, port, host=host, keeps=keeps, bonds=gates, gateways=urls) as server,
    ):
        shown.follow(the_run, blobs)
        if as_json:
            print_json({"url": server.url})
        else:
            typer.echo(server.url)
            talk.print("Ctrl-C ends it.")
        stop.wait()


@app.command("check", epilog="Example: assay service check --config service.toml --json  ->  {NAME: [WORD, ...]}")
def check(config: Annotated[Path, typer.Option("--config", metavar="FILE")], as_json: JsonOption = False) -> None:
    """Read the file of a service and say which commands it would run; starts nothing, and asks for no password."""
    from assay.service.config import read_service_file

    rows = _rows_of(read_service_file(config))
    if as_json:
        print_json(rows)
        return
    for name, row in rows.items():
        typer.echo(f"{name}: {' '.join(row)}")


@app.command("unit", epilog="Example: assay service unit --config /etc/assay/service.toml > assay.service")
def unit(
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="The file that the service reads.")],
    credentials: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of root's with a file for each password_credential.")
    ] = Path("/etc/assay/credentials"),
    as_json: JsonOption = False,
) -> None:
    """Print a systemd unit for a service file, which may do what the service needs and nothing else."""
    from assay.service.config import read_service_file
    from assay.service.unit import unit_of

    program = Path(sys.argv[0]).absolute()
    if program.name != "assay":
        program = Path(sys.executable).absolute().parent / "assay"
    text = unit_of(read_service_file(config), config.absolute(), program, credentials)
    if as_json:
        print_json({"unit": text})
        return
    typer.echo(text, nl=False)


def _rows_of(file: ServiceFile) -> dict[str, list[str]]:
    """The command of each role by its name."""
    from assay.service.config import arguments_of

    return {entry.name: ["assay", *arguments_of(entry)] for entry in file.roles}


def _keep(settings: Settings, config: Path, *, as_json: bool) -> None:
    from assay.observing.server import StatusServer
    from assay.service.backoff import ChildState
    from assay.service.config import read_service_file
    from assay.service.keeping import Children
    from assay.service.status import ServiceStatus

    found = read_service_file(config)
    if settings.metrics is not None and found.status is not None and settings.metrics != found.status:
        raise UsageError(
            "--metrics and `status` of the file differ.", code="OptionsClash", remedy="Leave one of them out."
        )
    configure_log(settings.model_copy(update={"log_format": found.log_format}))
    stop = _stopped_by_signals()
    children = Children(found)
    place = found.status or settings.metrics
    server = None if place is None else StatusServer(place, ServiceStatus(children))
    try:
        if server is not None:
            talk.print(f"health of all at {server.place}", markup=False)
        if as_json:
            print_json({"status": None if server is None else f"http://{server.place}", "roles": _rows_of(found)})
        children.run(stop)
    finally:
        if server is not None:
            server.close()
    given_up = [child for child in children.all if child.state is ChildState.GIVEN_UP]
    for child in given_up:
        talk.print(f"{child.entry.name} was given up: {child.why}", markup=False)
    if given_up:
        raise typer.Exit(int(ExitCode.ERROR))
    if stop.is_set():
        # As an actor ends: who was ended from outside must not look as one whose roles are done.
        raise typer.Exit(int(ExitCode.INTERRUPTED))


def _stopped_by_signals() -> threading.Event:
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    return stop
