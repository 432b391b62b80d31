"""What somebody who leaves is told, and that nobody leaves beside a process of the same key."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from eth_account import Account

from assay.amounts import Currency
from assay.cli.leaving import (
    ALIVE_WITHIN_S,
    LATER_S,
    ActorRunning,
    TellsWaits,
    command,
    lines,
    refuse_beside_another,
    say_what_is_left,
)
from assay.protocol.errors import UnavailableError
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.types import Address, Digest, Wei
from assay.status.locks import LockEnd, OwnLock
from assay_ledger.agents.heartbeat import Activity, HeartbeatWriter
from assay_ledger.chain.client import address_of
from assay_ledger.rounds.money_records import GrantRecord
from assay_ledger.store.blobs import BlobStore, open_store
from assay_solver.agent import Solver
from assay_verifier.agent import ReplayingAgent
from tests.harness.clocks import MovedClock

RUN = Address(b"\x07" * 20)
USDC, TOKEN = Currency(6), 10**6


class LaterClock(MovedClock):
    """A clock that a sleep moves, and on which another process lives as long as it is told."""

    def __init__(self, writer: HeartbeatWriter, lives: bool) -> None:
        super().__init__()
        self.writer, self.lives = writer, lives

    def sleep(self, seconds: float) -> None:
        self.now += seconds
        if self.lives:
            self.writer.beat()


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return open_store(tmp_path)


@pytest.mark.parametrize(
    ("activity", "lives", "is_refused"),
    [(Activity.IDLE, True, True), (Activity.IDLE, False, False), (Activity.DONE, True, False)],
)
def test_who_leaves_is_refused_while_a_process_of_its_key_lives(
    activity: Activity, lives: bool, is_refused: bool, store: BlobStore
) -> None:
    account = Account.create()
    clock = LaterClock(HeartbeatWriter(store, account, RUN, "verifier", lambda: clock.now), lives)
    clock.writer.report(7, activity, 1000, "waiting")
    clock.writer.beat()
    if is_refused:
        with pytest.raises(ActorRunning, match="verifier of this key"):
            refuse_beside_another(store, RUN, address_of(account), clock, clock.sleep)
    else:
        refuse_beside_another(store, RUN, address_of(account), clock, clock.sleep)
    # One that was killed is waited for as long as a living one may be silent, one that said its last word not at all.
    assert (clock.now >= ALIVE_WITHIN_S) == (activity is Activity.IDLE and not lives)
    refuse_beside_another(store, RUN, address_of(Account.create()), clock, clock.sleep)


class DarkStore:
    """Answers so many times, and never again."""

    def __init__(self, store: BlobStore, answers: int) -> None:
        self._store, self.left = store, answers

    def _ask(self) -> BlobStore:
        self.left -= 1
        if self.left < 0:
            raise UnavailableError("The store does not answer.", code="StoreUnreachable", remedy="Wait.")
        return self._store

    def read_slot(self, *given: Any) -> Any:
        return self._ask().read_slot(*given)

    def list_slots(self, *given: Any) -> Any:
        return self._ask().list_slots(*given)


@pytest.mark.parametrize(("answers", "waits"), [(0, False), (2, True)])
def test_a_store_that_is_dark_keeps_nobody_from_leaving(
    answers: int, waits: bool, store: BlobStore, capsys: pytest.CaptureFixture[str]
) -> None:
    account = Account.create()
    clock = LaterClock(HeartbeatWriter(store, account, RUN, "verifier", lambda: clock.now), lives=False)
    clock.writer.report(7, Activity.IDLE, 1000, "waiting")
    clock.writer.beat()
    dark = DarkStore(store, answers)
    refuse_beside_another(dark, RUN, address_of(account), clock, clock.sleep)  # type: ignore[arg-type]
    assert (clock.now >= ALIVE_WITHIN_S) is waits
    assert dark.left < 0
    assert ("cannot be seen" in capsys.readouterr().err) is not waits


def ticket(number: int, waits: str = "its epochs", at: int | None = 200) -> OwnLock:
    name, end = Digest(number.to_bytes(32, "big")), LockEnd(waits_for=waits, not_before=at)
    return OwnLock(name, "ticket", number, f"ticket {number}", 3 * TOKEN, end)


def test_locks_that_wait_for_the_same_are_said_in_one_line() -> None:
    seat = OwnLock(Digest(bytes(32)), "seat", 9, "seat 4", TOKEN // 2, LockEnd(waits_for="its audits"))
    free = replace(seat, what="ticket 5", kind="ticket", end=LockEnd(ends_at=90))
    assert [text for text, _ in lines([ticket(1), seat, ticket(2), ticket(3, at=90), free], 100, USDC)] == [
        "ticket 1, ticket 2 (6 tokens): waits for its epochs; in 1 min 40 s (chain time 200) at the earliest",
        "seat 4 (0.5 tokens): waits for its audits",
        "ticket 3 (3 tokens): waits for its epochs",
        "ticket 5 (0.5 tokens): can end now",
    ]
    roles = [command(lock, role) for lock in (seat, free) for role in ("solver", "verifier", "whistleblower")]
    assert roles == ["solver", "solver", "solver", "verifier", "verifier", "whistleblower"]


def test_a_wait_is_said_once_until_it_is_another_or_much_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    locked: list[OwnLock] = []
    owed, said = [False], list[str]()
    monkeypatch.setattr("assay.cli.leaving.still_locked", lambda *_: locked)
    monkeypatch.setattr("assay.cli.leaving.is_owed", lambda _: owed[0])
    view = type("Seen", (), {"now": 100, "facts": SimpleNamespace(currency=USDC)})()
    tells = TellsWaits(said.append)

    def count(*now: OwnLock) -> int:
        locked[:], before = now, len(said)
        tells(view)
        return len(said) - before

    assert [count(ticket(1)), count(ticket(1)), count(ticket(1, at=200 + LATER_S))] == [1, 0, 0]
    assert [count(ticket(1, at=201 + LATER_S)), count(ticket(1, at=150)), count(ticket(1, "its calls", None))] == [
        1,
        0,
        1,
    ]
    owed[0] = True
    assert [count(ticket(1, "its calls", None)), count(), count()] == [0, 1, 0]
    assert "`assay ledger unstake`" in said[-1] and "wages" in said[-1]


@pytest.mark.parametrize(("is_left", "is_owed"), [(False, False), (True, True), (True, False)])
def test_an_auditor_of_a_run_that_is_over_leaves_while_its_shares_vest(
    is_left: bool, is_owed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: shares vest for days, and the stake of every ticket was locked as long."""
    me = Address(b"\x08" * 20)
    money = SimpleNamespace(is_ended=True, phase=RunPhase.OVER, vesting={1: GrantRecord(me, Wei(1), 200)})
    duties = SimpleNamespace(attestations=SimpleNamespace(accusations={}))
    tickets = [] if is_left else [(1, SimpleNamespace(convicted_at=0))]
    view: Any = SimpleNamespace(
        me=me,
        state=SimpleNamespace(money=money),
        books=SimpleNamespace(duties=duties),
        is_over=True,
        tickets_of=lambda _: tickets,
        open_games=list,
    )
    auditor: Any = SimpleNamespace(leaving=False, me=me, deadline=200)
    assert ReplayingAgent._is_leaving(auditor, view)
    # It stays for its shares, and for what its tickets are owed.
    assert not ReplayingAgent.is_finished(auditor, view)
    monkeypatch.setattr("assay_verifier.agent.is_owed", lambda _: is_owed)
    auditor.deadline = None
    assert ReplayingAgent.is_finished(auditor, view) == (is_left and not is_owed)


@pytest.mark.parametrize("fallen", [False, True])
def test_a_solver_that_leaves_waits_for_the_root_that_it_backed(fallen: bool) -> None:
    """Bad luck: a root's window outlasts the seat; it said that nothing is left, and S was locked."""
    me, other = Address(b"\x08" * 20), Address(b"\x09" * 20)
    roots = {(2, who): SimpleNamespace(node=2, party=who, backer=who) for who in (me, other)}
    openings = {name: SimpleNamespace(fallen=fallen and name[1] == me) for name in roots}
    money = SimpleNamespace(is_ended=False, phase=RunPhase.FUNDING)
    view: Any = SimpleNamespace(
        me=me,
        state=SimpleNamespace(money=money, unclosed=roots),
        books=SimpleNamespace(generations=SimpleNamespace(openings=openings)),
        is_over=False,
        tenures_of=lambda _: [(1, SimpleNamespace(released=True, convicted_at=0))],
        open_games=list,
    )
    solver: Any = SimpleNamespace(leaving=True, me=me, deadline=None)
    assert Solver.is_finished(solver, view) is fallen
    del roots[2, me]
    assert Solver.is_finished(solver, view)


def test_who_is_stopped_is_told_of_shares_that_vest_and_stake_that_leaves(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    owed = [True]
    monkeypatch.setattr("assay.cli.leaving.still_locked", lambda _: [])
    monkeypatch.setattr("assay.cli.leaving.is_owed", lambda _: owed[0])
    me, other = Address(b"\x08" * 20), Address(b"\x09" * 20)
    grants = {n: GrantRecord(who, Wei(n * 10**18), 100 + n) for n, who in ((20, me), (5, me), (7, other))}
    money = SimpleNamespace(vesting=grants)
    view = SimpleNamespace(now=100, state=SimpleNamespace(money=money), tickets_of=lambda _: [])
    asked = {"free": 0, "exiting": (0, 0)}
    vault = SimpleNamespace(free=lambda _: "free", exiting=lambda _: "exiting")
    run: Any = SimpleNamespace(chain=SimpleNamespace(ask=asked.get), vault=vault, currency=USDC)
    agent: Any = SimpleNamespace(me=me, see=lambda: view)
    say_what_is_left(agent, run, "solver")
    told = capsys.readouterr().err
    assert "25 shares vest, the last of them in 20 s (chain time 120): `assay ledger claim`, then" in told
    assert "a part of a bounty are still to be paid" in told and "`assay verifier leave`" in told
    grants.clear()
    owed[0] = False
    say_what_is_left(agent, run, "solver")
    told = capsys.readouterr().err
    assert "shares" not in told and "bounty" not in told and "nothing of yours is in the run's vault" in told
    asked["exiting"] = (3 * TOKEN, 160)
    say_what_is_left(agent, run, "solver")
    told = capsys.readouterr().err
    assert "nothing of yours" not in told
    assert "3 tokens were asked out: `assay ledger withdraw`, in 1 min 1 s (chain time 161)" in told
