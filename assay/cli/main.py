"""The `assay` command: nouns and verbs, one exit code per kind of error."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from assay.cli.endings import run_to_its_end
from assay.protocol.errors import ExitCode

app = typer.Typer(
    name="assay",
    no_args_is_help=True,
    # A traceback with local variables would print passwords.
    pretty_exceptions_show_locals=False,
    pretty_exceptions_enable=False,
    help="Train models on computers that nobody trusts, and prove what was computed.",
    epilog="Exit codes: " + ", ".join(f"{int(code)} {code.meaning}" for code in ExitCode) + ".",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"assay {version('assay')}")
        raise typer.Exit


@app.callback()
def root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Nouns are listed below; `assay NOUN --help` lists verbs."""


def _add_commands() -> None:
    """Each noun is a module of this package; heavy imports happen inside its verbs."""
    from assay.cli import (
        actors,
        bench,
        bench_dispute,
        bundle,
        config,
        conformance,
        data,
        demo,
        dispute,
        doctor,
        economics,
        explain,
        gateway,
        govern,
        inference,
        key,
        ledger,
        model,
        node,
        program,
        run,
        service,
        status,
        store,
        train,
        watch,
    )

    app.command("demo", epilog=demo.EPILOG)(demo.demo)
    app.add_typer(node.app, name="node")
    app.add_typer(run.app, name="run")
    app.add_typer(actors.solver, name="solver")
    app.add_typer(actors.verifier, name="verifier")
    app.add_typer(actors.whistleblower, name="whistleblower")
    app.add_typer(key.app, name="key")
    app.add_typer(config.app, name="config")
    app.add_typer(ledger.app, name="ledger")
    app.add_typer(gateway.app, name="gateway")
    app.add_typer(govern.app, name="govern")
    app.add_typer(bundle.app, name="bundle")
    app.add_typer(dispute.app, name="dispute")
    app.add_typer(model.app, name="model")
    app.add_typer(inference.app, name="inference")
    app.add_typer(program.app, name="program")
    app.add_typer(data.app, name="data")
    app.add_typer(store.app, name="store")
    app.add_typer(train.app, name="train")
    app.add_typer(bench.app, name="bench")
    bench.app.command("dispute", epilog=bench_dispute.EPILOG)(bench_dispute.dispute)
    app.add_typer(economics.app, name="economics")
    app.add_typer(service.app, name="service")
    app.command("status", epilog=status.EPILOG)(status.status)
    app.command("watch", epilog=watch.EPILOG)(watch.watch)
    app.command("explain", epilog=explain.EPILOG)(explain.explain)
    app.command("doctor", epilog=doctor.EPILOG)(doctor.doctor)
    app.command("conformance", epilog=conformance.EPILOG)(conformance.conformance)


@cache
def command_tree() -> Callable[..., Any]:
    """All nouns and verbs. Made once in a process: typer takes longer to read their signatures than most verbs take."""
    _add_commands()
    return typer.main.get_command(app)


@cache
def _end_at_once() -> None:
    """At its end Python looks through all that it holds for what is unused: of torch that takes most of a second."""
    atexit.register(gc.freeze)


def main() -> None:
    """Entry point: runs a command and turns errors into a sentence and an exit code."""
    # Before torch is loaded: threads that spin while they wait cost actors who share a machine ten times the time.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    _end_at_once()
    # Nothing ends because a terminal lacks a sign; Python sees to that on stderr alone.
    if sys.stdout is None:  # closed by whoever started this
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    sys.exit(run_to_its_end(lambda: command_tree()(prog_name="assay", standalone_mode=False)))
