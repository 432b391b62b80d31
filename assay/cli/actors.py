"""`assay solver|verifier|whistleblower start|status`: the actors as processes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import platformdirs
import typer

from assay.amounts import parse_amount, tokens
from assay.cli import round_actors
from assay.cli.common import (
    check_run_code,
    open_any_run,
    open_blobs,
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
from assay_ledger.index.run import Run
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import RoundRun

if TYPE_CHECKING:
    from assay_ledger.agents.agent import Agent
    from assay_ledger.agents.round_agent import RoundAgent

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


DepositOption = Annotated[
    str | None, typer.Option("--deposit", metavar="AMOUNT", help="Tokens to put into the run's vault first.")
]
TicketsOption = Annotated[
    int, typer.Option("--tickets", min=1, help="Tickets to hold in a run of the second round, each with its stake.")
]
AuditCheatOption = Annotated[
    str, typer.Option(help="Audit falsely in this way, in a run of the second round.", rich_help_panel=DEMO_PANEL)
]


@solver.command("start", epilog=EXAMPLE.format(role="solver"))
@with_settings(*STORED_RUN, *KEY, "data_dir", "allow_code")
def start_solver(
    settings: Settings,
    first_seats: FirstSeats = 1,
    first_verifiers: FirstVerifiers = 1,
    deposit: DepositOption = None,
    cheat: Annotated[
        str, typer.Option(help="Cheat in this way and lose the lock.", rich_help_panel=DEMO_PANEL)
    ] = "none",
) -> None:
    """Take a seat, train every round, publish, commit and defend, until the run is over or you stop it."""
    first = {"first_seats": first_seats, "first_verifiers": first_verifiers}
    _serve(
        settings,
        "solver",
        lambda run: partial(_solver(cheat), **first),
        lambda: round_actors.load_solver(cheat),
        lambda run, keys: round_actors.put_in(run, keys, deposit, seats=1),
    )


@verifier.command("start", epilog=EXAMPLE.format(role="verifier"))
@with_settings(*STORED_RUN, *KEY, "data_dir", "allow_code")
def start_verifier(
    settings: Settings,
    stake: StakeOption = None,
    first_seats: FirstSeats = 1,
    first_verifiers: FirstVerifiers = 1,
    tickets: TicketsOption = 1,
    deposit: DepositOption = None,
    lazy: Annotated[
        bool, typer.Option(help="Attest without replaying and lose the bond.", rich_help_panel=DEMO_PANEL)
    ] = False,
    cheat: AuditCheatOption = "none",
) -> None:
    """Register, check that everything is published, replay drawn duties, attest, challenge what differs."""
    first = {"first_seats": first_seats, "first_verifiers": first_verifiers}
    _serve(
        settings,
        "verifier",
        lambda run: partial(_verifier(lazy), stake=_stake(run, stake), **first),
        lambda: round_actors.load_auditor("blind" if lazy else cheat, tickets, reports=False),
        lambda run, keys: round_actors.put_in(run, keys, deposit, tickets=tickets),
    )


@whistleblower.command("start", epilog=EXAMPLE.format(role="whistleblower"))
@with_settings(*STORED_RUN, *KEY, "data_dir", "allow_code")
def start_whistleblower(
    settings: Settings, stake: StakeOption = None, tickets: TicketsOption = 1, deposit: DepositOption = None
) -> None:
    """Register, replay a drawn share of what verifiers attested, challenge what is false, report what is undone."""
    _serve(
        settings,
        "whistleblower",
        lambda run: partial(_whistleblower(), stake=_stake(run, stake)),
        lambda: round_actors.load_auditor("none", tickets, reports=True),
        lambda run, keys: round_actors.put_in(run, keys, deposit, tickets=tickets),
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
    from assay_ledger.rounds.round_index import RoundIndex

    the_run = open_any_run(settings)
    wanted = None if address is None else Address(parse_address(address))
    index = RoundIndex(the_run) if isinstance(the_run, RoundRun) else Index(the_run)
    known = {wanted} if wanted is not None else index.sync().participants()
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
    settings: Settings,
    role: str,
    load: Callable[[Run], Made],
    load_round: Callable[[], round_actors.MakeRoundAgent],
    prepare: Callable[[RoundRun, ActorKeys], None],
) -> None:
    """Runs an agent until it is done, Ctrl-C or SIGTERM; a started transaction is always finished.

    `load` gives the role's class, with its options, for a run of the first design, `load_round` for one of the second,
    whose actors put their stake in with `prepare`.
    """
    from assay_ledger.agents.heartbeat import HeartbeatWriter

    store, run, keys = open_blobs(settings), open_any_run(settings), unlock_key(settings)
    check_run_code(run, settings)
    if isinstance(run, Run) and role != "solver" and keys.bls is None:
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
        made: Callable[..., Agent | RoundAgent]
        if isinstance(run, Run):
            made = partial(load(run), run)
        else:
            made = partial(round_actors.make, load_round(), run)
            prepare(run, keys)
        from assay.engine.runtime.executor import how_programs_run

        talk.print(how_programs_run(), markup=False, soft_wrap=True)
    made(keys, store, folder).run(stop)
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
