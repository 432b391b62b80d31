"""Scenes that tests of money begin with: a final round, its audits, all that it earned settled."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Round, Seat
from tests.harness.rounds.money_chain import DENSE
from tests.harness.rounds.money_world import MoneyWorld

LAST_ROUND = replace(DENSE, rounds=1)
"""One round, and the run is over."""


@contextmanager
def with_work_prepared(made: MoneyWorld, merged: bool = False) -> Iterator[None]:
    """Four seats and eight tickets: round 0 has taken its commitments, prepared for games, and is merged if asked for.

    In the end every wei has its place, and the chain is as it was before.
    """
    people = made.start(tickets=8)
    if merged:
        made.play_round(people)
    else:
        made.commit_all(people)
    for seat in range(len(people)):
        made.prepare_work(Round(0), Seat(seat))
    try:
        yield
        made.check_money()
    finally:
        made.end()


def final_round(world: MoneyWorld, people: list[Address]) -> Round:
    """A round that everybody trains; its generation is final and its openings are closed."""
    r = world.play_round(people)
    world.tick(world.charter.timing.challenge + 1)
    assert world.finalize(r + 1) == ""
    for seat in range(len(people)):
        assert world.close_opening(r + 1, seat) == ""
    return r


def audited(world: MoneyWorld, round_: int, more: int = 0) -> int:
    """Epochs until nothing about a round can be drawn; its own."""
    for _ in range(20):
        own = world.own_epoch(round_)
        if world.run.duties.number > own and world.run.duties.over_since(own + more):
            return own
        world.play_epoch()
    raise AssertionError("epochs do not end")


def audited_after_misses(world: MoneyWorld, round_: Round) -> int:
    """The same where every ticket shows its secret in the round's own epoch, and no result: at rate three, it is drawn
    again for more than wages were set aside for."""
    while world.own_epoch(round_) != world.epoch:
        world.play_epoch()
    world.seed()
    for ticket in world.chains:
        assert world.open_call(ticket, results=False) == ""
    world.close_epoch()
    return audited(world, round_, more=5)


def slow_epoch(world: MoneyWorld, closes: int) -> None:
    """An epoch that somebody closes at a time."""
    world.seed()
    for ticket in world.chains:
        if world.run.duties._is_called(ticket, world.run.duties.epochs[-1], world.now):  # type: ignore[arg-type]
            assert world.open_call(ticket) == ""
    world.at(max(world.now, closes))
    world.close_epoch()


def settle(world: MoneyWorld, round_: Round, people: list[Address]) -> None:
    """Work, openings and the reserve of a round, once all that belongs to it is over."""
    own = audited(world, round_, more=5)
    for seat in range(len(people)):
        assert world.settle_work(round_, seat, own) == ""
        assert world.settle_opening(round_ + 1, ids.seat_party(Seat(seat))) == ""
    assert world.settle_round(round_, own) == ""


def settle_findings(world: MoneyWorld) -> None:
    """Every finding that was made, as its window ends."""
    books = world.run.duties.attestations.attestations
    for _ in range(20):
        for name in books.keys() - world.run.payments.findings:
            if world.run.duties.attestations.window_of(name):
                assert world.settle_duty(name) == ""
        if books.keys() == world.run.payments.findings:
            return
        world.play_epoch()
    raise AssertionError("findings stay open")


def leave(world: MoneyWorld, ticket: TicketId) -> Address:
    """A ticket retires, and takes its stake back once it may; its owner."""
    owner = world.run.tickets.tickets[ticket].owner
    retire = lambda: world.run.tickets.retire(owner, ticket, world.now)  # noqa: E731
    assert world.do(retire, "Tickets", "retire", ticket, who=owner) == ""
    for _ in range(20):
        if not world.reclaim(ticket):
            return owner
        world.play_epoch()
    raise AssertionError("a ticket cannot leave")
