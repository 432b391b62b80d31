"""How runs end, on model and contracts: wages of the last duties, what stands still, and what it holds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.protocol.types import Address, Seat
from tests.harness.rounds.money_scenes import (
    LAST_ROUND,
    audited_after_misses,
    final_round,
    leave,
    settle,
    settle_findings,
    slow_epoch,
)
from tests.harness.rounds.money_world import MoneyWorld


@pytest.fixture
def world() -> Iterator[MoneyWorld]:
    """A run of one round."""
    made = MoneyWorld(LAST_ROUND)
    yield made
    made.check_money()
    made.end()


def finished(world: MoneyWorld) -> list[Address]:
    """Everything is settled, and the run over."""
    people = world.start()
    settle(world, final_round(world, people), people)
    settle_findings(world)
    assert world.finish() == ""
    return people


def test_a_run_does_not_end_before_every_wage_of_its_last_duties_is_paid(world: MoneyWorld) -> None:
    people = world.start()
    settle(world, final_round(world, people), people)
    last = world.run.duties.last_epoch
    assert 0 < last < world.epoch and not world.run.escrow.live_rounds
    made = world.run.duties.attestations.attestations
    assert max(finding.epoch for finding in made.values()) <= last
    open_ = list(made.keys() - world.run.payments.findings)
    # Attack: end the run with wages unpaid, and have them back as its funder.
    assert world.finish() == "RunNotOver"
    paid = 0
    for name in open_[:-1]:
        owner = world.run.tickets.tickets[made[name].ticket].owner
        before = world.vault.free_of(owner)
        assert world.settle_duty(name) == ""
        paid += world.vault.free_of(owner) - before
        assert world.finish() == "RunNotOver"
    assert world.settle_duty(open_[-1]) == ""
    assert paid == world.charter.economics.wage * (len(open_) - 1)
    assert world.finish() == ""
    assert world.call("Attestations", "findings") == world.call("Payments", "findingsSettled") == len(made)


def test_one_wage_more_than_is_left_does_not_keep_a_run_from_its_end() -> None:
    """Missed work is drawn again at rate three, which can cost more than the expected wages twice over."""
    world = MoneyWorld(LAST_ROUND)
    wage, spare = world.charter.economics.wage, world.charter.economics.wage // 2
    people = world.start(escrow=cost_of(world.charter, 4) + spare)
    r = final_round(world, people)
    own = audited_after_misses(world, r)
    for seat in range(4):
        assert world.settle_work(r, seat, own) == world.settle_opening(r + 1, ids.seat_party(Seat(seat))) == ""
    assert 0 < world.run.duties.last_epoch < world.epoch
    names = list(world.run.duties.attestations.attestations)
    reserved = world.run.escrow.reserved[r].wages // wage
    assert len(names) >= reserved + 2
    for name in names[:reserved]:
        assert world.settle_duty(name) == ""
    # What is not settled may still free a reserve.
    assert world.settle_duty(names[reserved]) == "EscrowShort"
    assert world.finish() == "RunNotOver"
    assert world.settle_round(r, own) == ""
    books, shares = world.run.duties.attestations.attestations, world.run.grants.grants
    for name, left in zip(names[reserved:], [spare, *[0] * len(names)], strict=False):
        owner = world.run.tickets.tickets[books[name].ticket].owner
        before = world.vault.free_of(owner)
        assert world.settle_duty(name) == ""
        assert world.vault.free_of(owner) - before == left
        assert shares[name].amount == world.charter.economics.shares_per_duty
    assert world.finish() == ""
    world.check_money()
    world.end()


def test_a_run_whose_rounds_are_settled_does_not_end_while_duties_can_be_drawn() -> None:
    world = MoneyWorld(LAST_ROUND)
    people = world.start()
    r = final_round(world, people)
    own = world.own_epoch(r)
    while world.run.duties.last_epoch == 0 or world.epoch <= world.run.duties.last_epoch:
        assert world.finish() == "RunNotOver"
        world.play_epoch()
    assert world.run.duties.last_epoch <= own + 4
    world.check_money()
    world.end()


# --- runs that stand still


def test_a_run_that_is_over_is_not_wound_down_while_its_epochs_close(world: MoneyWorld) -> None:
    people = world.start()
    final_round(world, people)
    final_at, stall = world.model.generations.final_at, world.charter.timing.stall
    while world.now <= final_at + stall:
        slow_epoch(world, world.now + stall // 2)
    # Attack: void the last round's pay since no generation is left to become final, while its disputes go on.
    assert world.wind_down() == "RunMoves"
    closed_at = world.run.duties.epochs[-1].start
    world.at(closed_at + stall)
    assert world.wind_down() == "RunMoves"
    world.tick(1)
    assert world.wind_down() == ""


def test_a_last_generation_that_is_not_final_still_has_to_become_so(world: MoneyWorld) -> None:
    people = world.start()
    world.play_round(people)
    stall = world.charter.timing.stall
    slow_epoch(world, world.now + stall // 2)
    world.at(world.run.escrow.launched_at + stall)
    assert world.wind_down() == "RunMoves"
    world.tick(1)
    assert world.wind_down() == ""


def test_epochs_that_somebody_closes_for_ever_hold_nothing_for_ever(world: MoneyWorld) -> None:
    people = world.start()
    final_round(world, people)
    timing = world.charter.timing
    while not world.run.duties.last_epoch or not world.run.duties.over_since(world.run.duties.last_epoch + 1):
        world.play_epoch()
    undrawn = world.run.duties.over_since(world.run.duties.last_epoch + 1)
    # Nobody settles: the escrow is short, say. All disputes must be over by then, and the stall has passed since.
    until = undrawn + timing.longest_dispute + timing.stall
    while world.run.duties.epochs[-1].start < until - timing.stall // 2:
        slow_epoch(world, world.now + timing.stall // 2)
    world.at(until)
    assert world.run.duties.epochs[-1].start > undrawn + timing.longest_dispute
    assert world.wind_down() == "RunMoves"
    world.tick(1)
    assert world.wind_down() == ""


def test_stakes_of_a_run_that_is_over_come_back_though_its_beacon_ended(world: MoneyWorld) -> None:
    finished(world)
    assert world.reclaim(1) == "TicketServes"
    assert world.wind_down() == "RunMoves"
    closed_at, stall = world.run.duties.epochs[-1].start, world.charter.timing.stall
    world.at(closed_at + stall)
    assert world.wind_down() == "RunMoves"
    world.tick(1)
    # Attack: none; without this the stakes of who had not retired in time are held for ever.
    assert world.wind_down() == ""
    assert world.run.escrow.phase is RunPhase.WOUND_DOWN
    for ticket in list(world.run.tickets.tickets):
        assert world.reclaim(ticket) == ""
    assert world.refund(world.sponsor) == ""
    assert world.wind_down() == "WrongPhase"


# --- who has left


def test_a_finding_is_paid_to_who_made_it_though_its_ticket_has_left(world: MoneyWorld) -> None:
    people = world.start()
    final_round(world, people)
    while not world.run.duties.attestations.attestations:
        world.play_epoch()
    name, made = next(iter(world.run.duties.attestations.attestations.items()))
    owner = leave(world, made.ticket)
    assert made.ticket not in world.run.tickets.tickets
    before, e = world.vault.free_of(owner), world.charter.economics
    assert world.settle_duty(name) == ""
    assert world.vault.free_of(owner) - before == e.wage
    assert world.run.grants.grants[name].owner == owner
    assert world.run.grants.grants[name].amount == e.shares_per_duty
