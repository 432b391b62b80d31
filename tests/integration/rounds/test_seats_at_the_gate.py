"""Nobody takes a seat that the run could not carry, else no round opens for those who work: contracts and model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds.ticket_types import TicketId
from assay_ledger.agents.money_keeper import carries_another
from assay_solver import strategy
from assay_solver.actions import TakeSeat
from assay_solver.pace import OwnPace
from tests.harness.rounds.charters import RUN, changed
from tests.harness.rounds.money_chain import DENSE
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.told_money import ToldMoneyWorld
from tests.integration.rounds.test_tenures import leave

WITH_FREE_SEATS = changed(DENSE, "training", seats=RUN.training.seats)
"""As many seats an epoch as tickets count."""


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld(WITH_FREE_SEATS)
    yield made
    made.check_money()
    made.end()


def takes_seat(w: ToldMoneyWorld) -> bool:
    """Whether a solver with stake enough takes a seat; as the contract would let it."""
    view = w.view(w.add_person(10**5 * ETHER))
    takes = TakeSeat() in strategy.candidates(view, strategy.OwnRounds(OwnPace(0.0), lead=0), [])
    assert takes == carries_another(view)
    return takes


def test_seats_taken_before_a_round_opens_do_not_shut_the_gate_on_others(world: ToldMoneyWorld) -> None:
    """Attack: take all free seats and wait: no round opens, so none is missed, until anybody winds the run down."""
    w = world
    people = w.start(solvers=3, tickets=6)
    squatters = [w.add_person(10**22) for _ in range(5)]
    w.commit_all(people)
    assert [w.join(who) for who in squatters] == [""] * 3 + ["NoRoomForSeat"] * 2
    assert not takes_seat(w)
    w.hold_all(people)
    w.merge(people, ("root", 0))
    w.play_epoch()
    assert w.restart() == "" and w.model.commitments.rounds[1].seated == 6
    # Who leaves has room made, for the round after.
    assert leave(w, squatters[0]) == "" and takes_seat(w) and w.join(squatters[3]) == ""
    assert w.join(squatters[4]) == "NoRoomForSeat"


def test_a_seat_is_taken_from_the_second_on_in_which_its_ticket_counts(world: ToldMoneyWorld) -> None:
    w = world
    w.start(solvers=6, tickets=6)
    late = w.add_person(10**5 * ETHER)
    ticket = w.add_ticket(w.add_person(10**5 * ETHER))
    counts_from = w.run.tickets.tickets[TicketId(ticket)].from_
    w.at(counts_from - 1)
    assert not takes_seat(w) and w.join(late) == "NoRoomForSeat"
    w.at(counts_from)
    assert takes_seat(w) and w.join(late) == ""


def test_a_seat_is_taken_from_the_last_wei_on_that_pays_a_round_with_it(world: ToldMoneyWorld) -> None:
    w = world
    cost = w.run.escrow.cost_of
    w.start(solvers=3, tickets=6, escrow=cost(3) + cost(4) - 1)
    late = w.add_person(10**5 * ETHER)
    assert not takes_seat(w) and w.join(late) == "NoRoomForSeat"
    assert w.fund(w.sponsor, 1) == ""
    assert takes_seat(w) and w.join(late) == ""
    assert not takes_seat(w)


def test_before_the_launch_anybody_joins_and_after_a_stop_nobody(world: ToldMoneyWorld) -> None:
    w = world
    first, *_ = people = [w.add_person(10**5 * ETHER) for _ in range(8)]
    assert [w.join(who) for who in people] == [""] * 8, "no ticket counts yet, and nothing is funded"
    assert leave(w, first) == "" and takes_seat(w)
    assert w.cancel(w.sponsor) == ""
    assert w.join(first) == "NoRoomForSeat"
