"""When a solver takes a seat, and when it takes no other one though a seat and its stake are free."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Round
from assay_solver import strategy
from assay_solver.actions import TakeSeat
from assay_solver.pace import OwnPace
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.told_money import ToldMoneyWorld


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld()
    yield made
    made.check_money()
    made.end()


def takes_seat(world: ToldMoneyWorld, who: Address, leaving: bool = False) -> bool:
    own = strategy.OwnRounds(OwnPace(0.0), lead=0, leaving=leaving)
    return TakeSeat() in strategy.candidates(world.view(who), own, [])


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
