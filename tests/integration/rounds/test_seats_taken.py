"""When a solver takes a seat, and when it takes no other one though a seat and its stake are free."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.cli.acting import TellsNoSeat
from assay.protocol.digests import ZERO
from assay.protocol.rounds.clock import commit_until
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Round
from assay_solver import strategy
from assay_solver.actions import LeaveTenure, TakeSeat, TrainUnit
from assay_solver.pace import OwnPace
from assay_solver.seats import SLOWED, why_no_seat
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.told_money import ToldMoneyWorld
from tests.integration.rounds.test_tenures import evict


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld()
    yield made
    made.check_money()
    made.end()


def takes_seat(
    world: ToldMoneyWorld, who: Address, leaving: bool = False, forgiven: int = 0, free: int | None = None
) -> bool:
    own = strategy.OwnRounds(OwnPace(0.0), lead=0, leaving=leaving, forgiven=forgiven, free=free)
    return TakeSeat() in strategy.candidates(world.view(who), own, [])


def evict_idle(world: ToldMoneyWorld, who: Address, others: list[Address]) -> None:
    """Rounds go by without somebody's work, until anybody may evict it."""
    for _ in range(4):
        last = world.play_round(others)
        world.at(max(world.now, commit_until(world.terms, world.model.commitments.rounds[last]) + 1))
        if evict(world, who, others[0], last) == "":
            return
        world.play_epoch()
        assert world.restart() in ("", "RoundAlive")
    raise AssertionError("it stays")


def test_who_was_convicted_takes_no_other_seat_and_others_do(world: ToldMoneyWorld) -> None:
    """A machine that errs would err again: the next stake would be lost like the first."""
    people = world.start(tickets=8)
    stranger, erred = world.add_person(10**5 * ETHER), people[0]
    assert not takes_seat(world, stranger), "no seat is free"
    world.commit_all(people)
    world.prepare_work(Round(0), world.seat(erred))
    ref = (int(ClaimKind.INTERVAL), 0, world.seat(erred), 0, bytes(20), ZERO)
    assert world.open_verdict(ref, stranger) == ""
    assert not takes_seat(world, erred)
    world.tick(1)
    world.end_verdict(ref, True, False, stranger)
    view = world.view(erred)
    assert view.tenure is None and view.free_seats == 1
    assert world.vault.free_of(erred) > world.charter.economics.seat_lock + world.charter.economics.seat_fee
    assert takes_seat(world, stranger) and not takes_seat(world, stranger, leaving=True)
    assert not takes_seat(world, erred)


def test_who_was_evicted_and_never_worked_takes_another_seat_when_told_to(world: ToldMoneyWorld) -> None:
    """A machine that cannot work in time would lose the fee of one seat after the other."""
    w = world
    gone, *others = w.start(tickets=8)
    assert w.vault.free_of(gone) > w.charter.economics.seat_lock + w.charter.economics.seat_fee
    evict_idle(w, gone, others)
    view, stranger = w.view(gone), w.add_person(10**5 * ETHER)
    assert view.tenure is None and view.free_seats == 1 and takes_seat(w, stranger)
    first = w.tenures[gone]
    fee = view.facts.currency.brief(w.charter.economics.seat_fee)
    assert f"evicted from seat {view.tenures_of(gone)[0][1].seat}" in why_no_seat(view) and fee in why_no_seat(view)
    assert not takes_seat(w, gone) and not takes_seat(w, gone, forgiven=first - 1)
    assert takes_seat(w, gone, forgiven=first) and why_no_seat(view, first) == ""
    told = list[str]()
    says = TellsNoSeat(told.append)
    for _ in range(2):
        for seen, forgiven in ((w.view(stranger), 0), (view, first), (view, 0), (view, 0)):
            says(seen, forgiven)
    assert told == [f"takes no seat: {why_no_seat(view)}"] * 2
    # What it was told of the first eviction says nothing of a second.
    assert w.join(gone) == "" and not takes_seat(w, gone), "it has one"
    assert why_no_seat(w.view(stranger)) == f"all {w.charter.training.seats} seats are taken"
    evict_idle(w, gone, others)
    assert not takes_seat(w, gone, forgiven=first)


def test_who_worked_once_and_was_evicted_takes_a_seat_again_by_itself(world: ToldMoneyWorld) -> None:
    """Its machine can: what was away was a node, a store or a power line."""
    w = world
    gone, *others = w.start(tickets=8)
    w.play_round([gone, *others])
    w.play_epoch()
    evict_idle(w, gone, others)
    assert takes_seat(w, gone) and why_no_seat(w.view(gone)) == ""


def test_who_lost_its_gpu_keeps_the_seat_that_it_has_and_takes_no_other(world: ToldMoneyWorld) -> None:
    w = world
    gone, *others = w.start(tickets=8)
    slowed = strategy.OwnRounds(OwnPace(0.0), lead=0, lost_gpu=True)
    view = w.view(gone)
    assert view.tenure is not None
    assert any(isinstance(found, TrainUnit) for found in strategy.candidates(view, slowed, [])), "it works on"
    assert not any(isinstance(found, LeaveTenure) for found in strategy.candidates(view, slowed, []))
    w.play_round([gone, *others])
    w.play_epoch()
    evict_idle(w, gone, others)
    assert takes_seat(w, gone) and TakeSeat() not in strategy.candidates(w.view(gone), slowed, [])
    assert why_no_seat(w.view(gone), lost_gpu=True) == SLOWED


def test_whose_stake_is_locked_or_gone_is_told_what_a_seat_lacks_and_tries_none(world: ToldMoneyWorld) -> None:
    """Bad luck: away for some rounds, evicted, and the lock of the old seat waits for its commitments."""
    w = world
    gone, *others = w.start(tickets=8)
    w.play_round([gone, *others])
    w.play_epoch()
    evict_idle(w, gone, others)
    view, money = w.view(gone), w.view(gone).facts.currency
    price = w.charter.economics.seat_lock + w.charter.economics.seat_fee
    assert takes_seat(w, gone, free=price) and not takes_seat(w, gone, free=price - 1)
    told = list[str]()
    says = TellsNoSeat(told.append)
    for free in (price - ETHER, price - ETHER, price):
        says(view, 0, free)
    assert told == [f"takes no seat: {why_no_seat(view, 0, price - ETHER)}"]
    assert money.show(price) in told[0] and "`assay ledger stake 1`" in told[0]
