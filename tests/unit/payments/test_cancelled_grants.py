"""Shares that a conviction cancelled are nobody's pending shares, though nobody has struck them out yet."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from assay.cli.shares_owned import NobodyOwns, check_owned, pending_of
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.payments import work_grant
from assay.protocol.rounds.terms import WorkStatus
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.bindings.grants import Cancelled, Credited, GrantFields, Vested
from assay_ledger.bindings.payments import FindingPaid, WorkPaid
from assay_ledger.bindings.tenures import TenureEnded
from assay_ledger.bindings.tickets import TicketConvictedNow
from assay_ledger.contract import Event
from assay_ledger.rounds.money_records import MoneyRecords

ADA, VERA, SHARE = Address(b"\x0a" * 20), Address(b"\x0b" * 20), Wei(10**18)


class ToldOfMoney:
    """The records of a run's money, told of one thing after the other."""

    def __init__(self) -> None:
        self.money, self._rounds = MoneyRecords(), count()

    def tell(self, event: Event, now: int = 0) -> None:
        """Of a block at a chain time."""
        self.money.fold(event, now, lambda _: Round(0))

    def work(self, tenure: int, vests_at: int) -> Digest:
        """A commitment of Ada's is settled."""
        round_ = Round(next(self._rounds))
        self.tell(WorkPaid(round_, Seat(0), tenure, WorkStatus.FINAL, Wei(1), SHARE))
        name = work_grant(round_, Seat(0))
        self.tell(Credited(name, ADA, SHARE, vests_at))
        return name

    def finding(self, ticket: int, vests_at: int) -> Digest:
        """A finding of Vera's is settled."""
        name = Digest(next(self._rounds).to_bytes(32, "big"))
        self.tell(FindingPaid(name, TicketId(ticket), Wei(1), SHARE))
        self.tell(Credited(name, VERA, SHARE, vests_at))
        return name


def test_an_actor_vests_nothing_that_a_conviction_cancelled() -> None:
    """Its transactions released nothing, and what it was shown as its own was nobody's."""
    told = ToldOfMoney()
    before, lost, other = told.work(1, 100), told.work(1, 101), told.work(2, 200)
    found, taken = told.finding(1, 200), told.finding(2, 200)
    assert told.money.pending == {ADA: 3 * SHARE, VERA: 2 * SHARE}
    told.tell(TenureEnded(1, 5, False), now=50)
    assert lost in told.money.vesting, "it left"
    told.tell(TenureEnded(1, 5, True), now=100)
    told.tell(TicketConvictedNow(TicketId(2)), now=100)
    assert set(told.money.vesting) == {before, other, found}
    assert told.money.pending == {ADA: 2 * SHARE, VERA: SHARE}
    # What is settled of it later is credited, and cancelled from the first second on.
    assert told.work(1, 300) not in told.money.vesting and told.finding(2, 300) not in told.money.vesting
    for event in (Cancelled(lost, ADA, SHARE), Cancelled(taken, VERA, SHARE), Vested(before, ADA, ADA, SHARE)):
        told.tell(event, now=400)
    assert set(told.money.vesting) == {other, found} and told.money.pending == {ADA: SHARE, VERA: SHARE}


def run_of(grants: list[GrantFields]) -> Any:
    """A run that has ended, whose contracts answer at once; its tenure 2 was convicted at 100."""
    names = {Digest(bytes([k]) * 32): grant for k, grant in enumerate(grants)}
    events = [SimpleNamespace(event=SimpleNamespace(id=name, owner=ADA)) for name in names]
    chain = SimpleNamespace(ask=lambda answer: answer, events=lambda *_: events)
    counted = sum(grant.amount for grant in grants if not grant.done)
    earner = lambda number: SimpleNamespace(convicted_at=100 * (number == 2))  # noqa: E731
    return SimpleNamespace(
        chain=chain,
        first_block=0,
        escrow=SimpleNamespace(phase=lambda: RunPhase.OVER),
        shares=SimpleNamespace(total_supply=lambda: 0),
        grants=SimpleNamespace(address=ADA, grant_of=names.get, pending_of=lambda _: Wei(counted)),
        tenures=SimpleNamespace(tenure_of=earner),
    )


def grant(tenure: int, vests_at: int, *, done: bool = False) -> GrantFields:
    """Of one share."""
    return GrantFields(ADA, vests_at, tenure, TicketId(0), SHARE, done)


def test_what_a_conviction_cancelled_is_not_said_to_be_pending() -> None:
    """The contract counts it until somebody strikes it out, which nobody need ever do."""
    grants = [grant(1, 200), grant(2, 200), grant(2, 100), grant(2, 100, done=True)]
    assert pending_of(run_of(grants), ADA) == 2 * SHARE
    assert pending_of(run_of([grant(2, 100, done=True)]), ADA) == 0


def test_cancelled_shares_make_nobody_an_owner_who_could_be_paid() -> None:
    """Attack on oneself: revenue of a run in which nothing will ever vest stays in its contract."""
    check_owned(run_of([grant(1, 200), grant(2, 200)]))
    with pytest.raises(NobodyOwns):
        check_owned(run_of([grant(2, 200)]))
