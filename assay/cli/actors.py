"""`assay solver|verifier|whistleblower start|leave|status`: the actors as processes."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from assay.cli.actor_folders import actor_folder
from assay.cli.common import (
    check_run_code,
    open_blobs,
    open_chain,
    open_round_run,
    parse_address,
    print_fields,
    print_json,
    talk,
    unlock_key,
)
from assay.cli.options import (
    EVENTS,
    HEADS,
    KEY,
    RELAYS,
    SHOWN,
    STORED_RUN,
    DeviceOption,
    JsonOption,
    typed_amount,
    with_settings,
)
from assay.protocol.errors import ExitCode
from assay.protocol.types import Address
from assay.settings import Settings

if TYPE_CHECKING:
    from assay.cli.acting import MakeAgent
    from assay.cli.ranks import RankPlace
    from assay.cli.showing import Showing
    from assay_ledger.keys.keystore import ActorKeys
    from assay_ledger.rounds.run import Run

solver = typer.Typer(no_args_is_help=True, help="Train, commit, defend.")
verifier = typer.Typer(no_args_is_help=True, help="Replay what tickets are drawn for, and accuse what differs.")
whistleblower = typer.Typer(no_args_is_help=True, help="Audit as a verifier does, and report what others left undone.")

DEMO_PANEL = "For demonstrations"
EXAMPLE = (
    "Example: assay {role} start --run 0xabc... --key {role}-1 --data-dir ./{role}-1; --json prints at the end what is "
    'left: {{"free", "locked": [...]}}'
)
EXAMPLE_LEAVE = (
    "Example: assay {role} leave --run 0xabc... --key {role}-1 --data-dir ./{role}-1 --json  ->  "
    '{{"free", "locked": [{{"what", "amount", "waits_for", "not_before"}}]}}, then assay ledger unstake, withdraw'
)

DepositOption = Annotated[
    str | None,
    typer.Option(
        "--deposit",
        metavar="AMOUNT",
        callback=typed_amount,
        help="Tokens to have in the run's vault, locked ones counted: what is missing of them is deposited first. "
        "12500000wei: so many of their smallest unit.",
    ),
]
StandbyOption = Annotated[
    bool, typer.Option("--standby", help="Wait while another process of this key lives, and go on in its place.")
]
TicketsOption = Annotated[int, typer.Option("--tickets", min=1, help="Tickets to hold, each with its stake.")]
AuditCheatOption = Annotated[str, typer.Option(help="Audit falsely in this way.", rich_help_panel=DEMO_PANEL)]


@solver.command("start", epilog=EXAMPLE.format(role="solver"))
@with_settings(*STORED_RUN, *KEY, *RELAYS, *EVENTS, *HEADS, *SHOWN, "data_dir", "allow_code", "sponsor")
def start_solver(
    settings: Settings,
    deposit: DepositOption = None,
    standby: StandbyOption = False,
    again: Annotated[
        bool, typer.Option("--again", help="Take a seat although this key was evicted from its last one without work.")
    ] = False,
    cheat: Annotated[
        str, typer.Option(help="Cheat in this way and lose the lock.", rich_help_panel=DEMO_PANEL)
    ] = "none",
    as_json: JsonOption = False,
    _device: DeviceOption = None,
) -> None:
    """Take a seat, train every round, publish, commit and defend, until the run is over or you stop it."""
    from assay.cli import acting

    bring = partial(acting.bring, amount=deposit, seats=1)
    _serve(settings, "solver", lambda: acting.load_solver(cheat, again=again), bring, standby=standby, as_json=as_json)


@verifier.command("start", epilog=EXAMPLE.format(role="verifier"))
@with_settings(*STORED_RUN, *KEY, *RELAYS, *EVENTS, *HEADS, *SHOWN, "data_dir", "allow_code", "sponsor")
def start_verifier(
    settings: Settings,
    tickets: TicketsOption = 1,
    deposit: DepositOption = None,
    standby: StandbyOption = False,
    cheat: AuditCheatOption = "none",
    as_json: JsonOption = False,
    _device: DeviceOption = None,
) -> None:
    """Stake tickets, replay what they are drawn for, open the results in time, accuse what differs and pursue it."""
    _serve_auditor(settings, "verifier", tickets, deposit, cheat, standby=standby, as_json=as_json)


@whistleblower.command("start", epilog=EXAMPLE.format(role="whistleblower"))
@with_settings(*STORED_RUN, *KEY, *RELAYS, *EVENTS, *HEADS, *SHOWN, "data_dir", "allow_code", "sponsor")
def start_whistleblower(
    settings: Settings,
    tickets: TicketsOption = 1,
    deposit: DepositOption = None,
    standby: StandbyOption = False,
    cheat: AuditCheatOption = "none",
    as_json: JsonOption = False,
    _device: DeviceOption = None,
) -> None:
    """Do what a verifier does, and have others fined for what they left undone."""
    _serve_auditor(settings, "whistleblower", tickets, deposit, cheat, standby=standby, as_json=as_json)


def _serve_auditor(
    settings: Settings, role: str, tickets: int, deposit: str | None, cheat: str, *, standby: bool, as_json: bool
) -> None:
    from assay.cli import acting

    reports = role == "whistleblower"
    load = partial(acting.load_auditor, cheat, tickets, reports=reports)
    bring = partial(acting.bring, amount=deposit, tickets=tickets)
    _serve(settings, role, load, bring, standby=standby, as_json=as_json)


@solver.command("leave", epilog=EXAMPLE_LEAVE.format(role="solver"))
@with_settings(*STORED_RUN, *KEY, *RELAYS, *EVENTS, *HEADS, "data_dir", "allow_code")
def leave_solver(settings: Settings, as_json: JsonOption = False, _device: DeviceOption = None) -> None:
    """Give the seat up once that costs no fee, do what is still owed, and get both locks back."""
    from assay.cli import acting

    _serve(settings, "solver", lambda: acting.load_solver("none"), acting.bring_nothing, leave=True, as_json=as_json)


def _leave_of(role: str) -> Callable[..., None]:
    """The command by which an auditor leaves."""

    @with_settings(*STORED_RUN, *KEY, *RELAYS, *EVENTS, *HEADS, "data_dir", "allow_code")
    def leave(settings: Settings, as_json: JsonOption = False, _device: DeviceOption = None) -> None:
        """Retire all tickets, answer what they are still called for, and get their stakes back."""
        from assay.cli import acting

        load = partial(acting.load_auditor, "none", 1, reports=role == "whistleblower")
        _serve(settings, role, load, acting.bring_nothing, leave=True, as_json=as_json)

    return leave


for _role, _app in (("verifier", verifier), ("whistleblower", whistleblower)):
    _app.command("leave", epilog=EXAMPLE_LEAVE.format(role=_role))(_leave_of(_role))


def _status_of(role: str) -> Callable[..., None]:
    """The command that lists the actors of a role."""

    @with_settings(*STORED_RUN)
    def status(
        settings: Settings,
        address: Annotated[str | None, typer.Option("--address", metavar="ADDRESS", help="One actor's only.")] = None,
        as_json: JsonOption = False,
    ) -> None:
        """What the actors of this role say they are doing; needs no key."""
        _say_status(settings, role, address, as_json=as_json)

    return status


def _say_status(settings: Settings, role: str, address: str | None, *, as_json: bool) -> None:
    from assay_ledger.agents.heartbeat import read_heartbeats
    from assay_ledger.rounds.index import RunIndex

    wanted = None if address is None else Address(parse_address(address))
    the_run = open_round_run(settings)
    known = {wanted} if wanted is not None else RunIndex(the_run).sync().participants()
    beats = read_heartbeats(open_blobs(settings), the_run.address, known)
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


for _role, _app in (("solver", solver), ("verifier", verifier), ("whistleblower", whistleblower)):
    _app.command(
        "status", epilog=f'Example: assay {_role} status --json  ->  [{{"actor", "activity", "deadline", ...}}]'
    )(_status_of(_role))


def _serve(
    settings: Settings,
    role: str,
    load: Callable[[], MakeAgent],
    bring: Callable[[Run, ActorKeys, Path], None],
    *,
    leave: bool = False,
    standby: bool = False,
    as_json: bool = False,
) -> None:
    """Runs an agent until it is done, exit code 0, or until Ctrl-C or SIGTERM; a started transaction is finished.

    `load` gives the role's class with its options, `bring` puts its stake into the vault. `leave`: it takes on nothing
    new, and ends when nothing of its own is locked. `standby`: it waits while another process of this key lives.
    """
    from assay.cli import ranks
    from assay.cli.showing import showing

    place = ranks.place()
    if place is not None and place.rank:
        ranks.follow(place)
        return
    with showing(settings, role) as shown:
        _act(settings, role, load, bring, place, shown, leave=leave, standby=standby, as_json=as_json)


def _act(
    settings: Settings,
    role: str,
    load: Callable[[], MakeAgent],
    bring: Callable[[Run, ActorKeys, Path], None],
    place: RankPlace | None,
    shown: Showing,
    *,
    leave: bool,
    standby: bool,
    as_json: bool,
) -> None:
    from assay.cli import acting, leaving, ranks
    from assay.cli.beacons import WORDS
    from assay.cli.noted_settings import note_settings
    from assay.cli.sponsors import check_sponsor
    from assay.cli.standby import stand_by
    from assay_ledger.agents.heartbeat import HeartbeatWriter
    from assay_ledger.agents.journal import Journal
    from assay_ledger.chain.announced import announced
    from assay_ledger.chain.client import RETRY_FOR_S
    from assay_ledger.deployment.places import beacon_name
    from assay_ledger.processes.turns import take_long_turns

    store, chain = open_blobs(settings), open_chain(settings, RETRY_FOR_S)
    run, keys = open_round_run(settings, chain), unlock_key(settings)
    shown.follow(run, store, keys)
    check_run_code(run, settings)
    if leave:
        leaving.refuse_beside_another(store, run.address, keys.address)
    else:
        check_sponsor(run, settings)
        acting.check_store(run, keys, store)
    folder = actor_folder(settings, role, keys.name, run.address)
    talk.print(f"{role} {keys.account.address} in run 0x{run.address.hex()}; journal in {folder}")
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    if standby and not stand_by(store, run.address, keys.address, stop):
        raise typer.Exit(int(ExitCode.INTERRUPTED))
    with closing(Journal(folder)) as journal:  # one process at a time works there: the second pays nothing in
        # The training framework takes seconds to load; the process that moves chain time waits for those it knows.
        with HeartbeatWriter(store, keys.speaker, run.address, role, time.monotonic).beating():
            kind = load()
            lost_gpu = place is None and acting.use_cpu_where_gpu_is_gone(run, keys)
            bring(run, keys, folder)
            from assay.engine.runtime.executor import how_programs_run
            from assay.engine.runtime.memory_bound import bounded_here

            talk.print(how_programs_run(), markup=False, soft_wrap=True)
            talk.print(f"what is drawn comes from {WORDS[beacon_name(run.charter.beacon)]}", markup=False)
        take_long_turns()
        with bounded_here(), ranks.leading(place) as compute:
            on_rest = leaving.TellsWaits() if leave else None
            agent, live = acting.make(
                *(kind, run, keys, store, folder, settings.relays, compute, on_rest),
                index_url=settings.index_url,
                journal=journal,
            )
            note_settings(folder, settings)
            agent.leaving, agent.lost_gpu = leave, lost_gpu
            shown.watch(agent)
            with live, announced(run.chain, settings.ws_url):
                agent.run(stop)
    # Whatever the signal was, and whoever sent it: a service must not take a role that was ended in the middle of a
    # game, by a guard of the machine's memory say, for one that has nothing left to do.
    is_interrupted = stop.is_set()
    if is_interrupted:
        talk.print(f"stopped; the same command goes on where it was, as long as {folder} is there", soft_wrap=True)
    else:
        talk.print("done: nothing is left to do in this run")
    left = leaving.say_what_is_left(agent, run, role)
    if as_json:
        print_json(left)
    if is_interrupted:
        raise typer.Exit(int(ExitCode.INTERRUPTED))
