"""`assay solver|verifier|whistleblower start|status`: the actors as processes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import platformdirs
import typer

from assay.amounts import parse_amount, tokens
from assay.cli.common import (
    check_run_code,
    open_blobs,
    open_run,
    parse_address,
    print_fields,
    print_json,
    talk,
    unlock_key,
)
from assay.cli.options import KEY, STORED_RUN, JsonOption, with_settings
from assay.protocol.errors import ExitCode, UsageError
from assay.protocol.types import SEATS, Address, Wei
from assay.settings import Settings

if TYPE_CHECKING:
    from assay_ledger.agents.agent import Agent
    from assay_ledger.index.run import Run

solver = typer.Typer(no_args_is_help=True, help="Train, commit, defend.")
verifier = typer.Typer(no_args_is_help=True, help="Replay drawn intervals, attest, challenge.")
whistleblower = typer.Typer(no_args_is_help=True, help="Re-audit what verifiers attested.")

DEMO_PANEL = "For demonstrations"
StakeOption = Annotated[
    str | None,
    typer.Option(
        "--stake", metavar="AMOUNT", help="Tokens to register with, at least the run's bond; the bond unless given."
    ),
]
FirstSeats = Annotated[
    int, typer.Option("--first-seats", min=1, max=SEATS, help="Open the first round only with so many seats taken.")
]
FirstVerifiers = Annotated[
    int, typer.Option("--first-verifiers", min=1, help="Open the first round only with so many verifiers registered.")
]
EXAMPLE = "Example: assay {role} start --run 0xabc... --key {role}-1 --data-dir ./{role}-1"


@solver.command("start", epilog=EXAMPLE.format(role="solver"))
@with_settings(*STORED_RUN, *KEY, "data_dir", "allow_code")
def start_solver(
    settings: Settings,
    first_seats: FirstSeats = 1,
    first_verifiers: FirstVerifiers = 1,
    cheat: Annotated[
        str, typer.Option(help="Cheat in this way and lose the lock.", rich_help_panel=DEMO_PANEL)
    ] = "none",
) -> None:
    """Take a seat, train every round, publish, commit and defend, until the run is over or you stop it."""
    _serve(
        settings,
        "solver",
        lambda: _solver(cheat),
        lambda agent, run, parts: agent(
            run,
            *parts,
            first_seats=first_seats,
            first_verifiers=first_verifiers,
        ),
    )


@verifier.command("start", epilog=EXAMPLE.format(role="verifier"))
@with_settings(*STORED_RUN, *KEY, "data_dir", "allow_code")
def start_verifier(
    settings: Settings,
    stake: StakeOption = None,
    first_seats: FirstSeats = 1,
    first_verifiers: FirstVerifiers = 1,
    lazy: Annotated[
        bool, typer.Option(help="Attest without replaying and lose the bond.", rich_help_panel=DEMO_PANEL)
    ] = False,
) -> None:
    """Register, check that everything is published, replay drawn duties, attest, challenge what differs."""
    _serve(
        settings,
        "verifier",
        lambda: _verifier(lazy),
        lambda agent, run, parts: agent(
            run,
            *parts,
            stake=_stake(run, stake),
            first_seats=first_seats,
            first_verifiers=first_verifiers,
        ),
    )


@whistleblower.command("start", epilog=EXAMPLE.format(role="whistleblower"))
@with_settings(*STORED_RUN, *KEY, "data_dir", "allow_code")
def start_whistleblower(settings: Settings, stake: StakeOption = None) -> None:
    """Register, replay a drawn share of what verifiers attested, challenge what is false."""
    _serve(
        settings,
        "whistleblower",
        _whistleblower,
        lambda agent, run, parts: agent(run, *parts, stake=_stake(run, stake)),
    )


Made = Callable[..., "Agent"]
"""An actor's class, whose options are those of its role."""


def _solver(cheat: str) -> Made:
    """Loading it takes seconds, as it does for the others."""
    if cheat != "none":
        from assay_solver.cheating import CheatingSolver

        return partial(CheatingSolver, cheat=cheat)
    from assay_solver.agent import SolverAgent

    return SolverAgent


def _verifier(lazy: bool) -> Made:
    if lazy:
        from assay_verifier.cheats import LazyVerifier

        return LazyVerifier
    from assay_verifier.agent import VerifierAgent

    return VerifierAgent


def _whistleblower() -> Made:
    from assay_whistleblower.agent import WhistleblowerAgent

    return WhistleblowerAgent


@with_settings(*STORED_RUN)
def _status(
    settings: Settings,
    address: Annotated[str | None, typer.Option("--address", metavar="ADDRESS", help="One actor's only.")] = None,
    as_json: JsonOption = False,
) -> None:
    """What the actors of this role say they are doing; needs no key."""
    from assay_ledger.agents.heartbeat import read_heartbeats
    from assay_ledger.index.indexer import Index

    the_run = open_run(settings)
    wanted = None if address is None else Address(parse_address(address))
    known = {wanted} if wanted is not None else Index(the_run).sync().participants()
    beats = read_heartbeats(open_blobs(settings), the_run.address, known)
    role = typer_role()
    rows = [
        {
            "actor": "0x" + beat.actor.hex(),
            "role": beat.role,
            "activity": beat.activity.value,
            "doing": beat.doing,
            "head": beat.head,
            "deadline": beat.deadline,
        }
        for beat in beats.values()
        if beat.role == role and wanted in (None, beat.actor)
    ]
    if as_json:
        print_json(rows)
        return
    if not rows:
        talk.print(f"No {role} of this run has spoken yet.")
    for row in rows:
        print_fields(row)


def typer_role() -> str:
    """The noun under which the command was called."""
    import click

    context = click.get_current_context()
    return str(context.parent.info_name if context.parent is not None else context.info_name)


for _app in (solver, verifier, whistleblower):
    _app.command(
        "status", epilog='Example: assay verifier status --json  ->  [{"actor", "activity", "deadline", ...}]'
    )(_status)


def _serve(
    settings: Settings, role: str, load: Callable[[], Made], make: Callable[[Made, Run, tuple[Any, ...]], Agent]
) -> None:
    """Runs an agent until it is done, Ctrl-C or SIGTERM; a started transaction is always finished.

    `load` gives the role's class; `make` gets it, the run, and (keys, store, data folder).
    """
    from assay_ledger.agents.heartbeat import HeartbeatWriter

    store, run, keys = open_blobs(settings), open_run(settings), unlock_key(settings)
    check_run_code(run, settings)
    if role != "solver" and keys.bls is None:
        raise UsageError(
            f"The key {keys.name} has no drawing key, which a {role} needs.",
            code="DrawingKeyMissing",
            remedy=f"Make one with `assay key new NAME`, and start the {role} with that key.",
        )
    folder = settings.data_dir or default_data_dir(role, keys.name)
    talk.print(f"{role} {keys.account.address} in run 0x{run.address.hex()}; journal in {folder}")
    stop = threading.Event()
    received: list[int] = []

    def on_signal(number: int, _: object) -> None:
        received.append(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, on_signal)
    # The training framework takes seconds to load; the process that moves chain time waits for those it knows.
    with HeartbeatWriter(store, keys.account, run.address, role, time.monotonic).beating():
        agent_class = load()
        from assay.engine.runtime.executor import how_programs_run

        talk.print(how_programs_run(), markup=False, soft_wrap=True)
    make(agent_class, run, (keys, store, folder)).run(stop)
    if signal.SIGINT in received:
        raise typer.Exit(int(ExitCode.INTERRUPTED))


def _stake(run: Run, amount: str | None) -> Wei:
    """What to register with. Raises UsageError (StakeBelowBond)."""
    bond = run.charter.economics.verifier_bond
    if amount is None:
        return bond
    wei = Wei(parse_amount(amount))
    if wei < bond:
        raise UsageError(
            f"{amount} tokens are below the run's bond of {tokens(bond)}.",
            code="StakeBelowBond",
            remedy="Give a larger --stake, or leave it out.",
        )
    return wei


def default_data_dir(role: str, name: str) -> Path:
    return platformdirs.user_data_path("assay") / "actors" / f"{role}-{name}"
