"""What more than half of the seats can do together, which the threat model says: contracts and model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Seat
from tests.harness.rounds.duty_rows import duty_tuple
from tests.harness.rounds.money_scenes import audited
from tests.harness.rounds.money_world import MoneyWorld


@pytest.fixture
def world() -> Iterator[MoneyWorld]:
    made = MoneyWorld()
    yield made
    made.check_money()
    made.end()


def play_alone(world: MoneyWorld, present: list[Address], speakers: list[Address]) -> None:
    """A round of those who have its base; who cannot fetch the updates says so, or nothing."""
    r = world.round
    world.commit_all(present)
    world.hold_all(speakers)
    world.at(world.model.commitments.hold_until(r, 0) + 1)
    for who in speakers:
        assert world.seal(who, ("root", r)) == ""
    world.tick(world.charter.timing.grace + 1)
    for who in speakers:
        assert world.open(who, ("root", r), r) == ""


def test_three_of_four_seats_are_paid_for_work_that_nobody_else_can_replay(world: MoneyWorld) -> None:
    """Known, and not defended: who was not shown a base cannot prove it, and more than half is a majority."""
    people = world.start(tickets=8)
    hiding, honest = people[:3], people
    play_alone(world, honest, hiding)
    play_alone(world, hiding, hiding)
    world.tick(world.charter.timing.challenge + 1)
    assert world.finalize(1) == ""
    while world.own_epoch(1) > world.epoch:
        world.play_epoch()
    world.seed()
    duties = {ticket: [duty for duty in world.drawn(ticket) if duty.round == 1] for ticket in world.chains}
    for ticket in world.chains:
        assert world.open_call(ticket, results=False) == ""
    epoch = world.epoch
    world.close_epoch()
    stakes = world.run.tickets
    missed = next((ticket, found[0]) for ticket, found in duties.items() if found)
    fined = lambda: world.run.duties.miss(hiding[0], TicketId(missed[0]), epoch, epoch, missed[1], world.now)  # noqa: E731
    before = world.vault.free_of(hiding[0])
    said = world.do(fined, "Duties", "miss", missed[0], epoch, epoch, duty_tuple(missed[1]), who=hiding[0])
    assert said == "" and world.vault.free_of(hiding[0]) - before == 3 * world.charter.economics.wage // 2
    assert stakes.tickets[TicketId(missed[0])].short_since
    own = audited(world, 1)
    before = world.vault.free_of(hiding[0])
    assert world.settle_work(1, Seat(0), own) == ""
    assert world.vault.free_of(hiding[0]) - before == world.charter.price
