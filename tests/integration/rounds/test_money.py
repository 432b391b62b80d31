"""What a run pays, when it opens and how it ends, on its model and its contracts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.protocol.types import Address, Round, Seat
from tests.harness.rounds.money_chain import DENSE
from tests.harness.rounds.money_scenes import LAST_ROUND, audited, final_round, settle, settle_findings
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.samples import ETHER

DAY = 86_400


@pytest.fixture
def world() -> Iterator[MoneyWorld]:
    """A run that nobody has funded yet."""
    made = MoneyWorld()
    try:
        yield made
        made.check_money()
    finally:
        made.end()


# --- paying


def test_final_work_findings_and_openings_are_paid_and_the_rest_is_freed(world: MoneyWorld) -> None:
    people = world.start()
    before = {who: world.vault.free_of(who) for who in people}
    r = final_round(world, people)
    world.check_money()
    assert world.settle_work(r, 0, world.own_epoch(r)) == "NotAudited"
    own = audited(world, r)
    assert world.settle_work(r, 0, own + 1) == "NotAudited"
    for seat in range(len(people)):
        assert world.settle_work(r, seat, own) == ""
        assert world.settle_work(r, seat, own) == "AlreadySettled"
    assert world.settle_round(r, own) == "RoundUnsettled"
    for seat in range(len(people)):
        assert world.settle_opening(r + 1, ids.seat_party(Seat(seat))) == ""
        assert world.settle_opening(r + 1, ids.seat_party(Seat(seat))) == "AlreadySettled"
    e = world.charter.economics
    for who in people:
        assert world.vault.free_of(who) - before[who] == 60 * e.unit_price + e.merge_pay
        assert world.run.grants.pending[who] == 60 * e.shares_per_unit
    names = list(world.run.duties.attestations.attestations)
    assert names
    audited(world, r, more=5)
    for name in names:
        assert world.settle_duty(name) == ""
        assert world.settle_duty(name) == "AlreadySettled"
    assert world.run.escrow.reserved[r].total > 0
    assert world.settle_round(r, own) == ""
    assert world.settle_round(r, own) == "AlreadySettled"
    assert r not in world.run.escrow.reserved


def test_a_finding_is_paid_when_its_window_is_over_and_not_before(world: MoneyWorld) -> None:
    people = world.start()
    r = final_round(world, people)
    while not world.run.duties.attestations.attestations:
        world.play_epoch()
    name, made = next(iter(world.run.duties.attestations.attestations.items()))
    assert world.settle_duty(bytes(32)) == "FindingNotFound"  # type: ignore[arg-type]
    while not world.run.duties.attestations.window_of(name):
        assert world.settle_duty(name) == "FindingOpen"
        world.play_epoch()
    owner = world.run.tickets.tickets[made.ticket].owner
    before = world.vault.free_of(owner)
    assert world.settle_duty(name) == ""
    assert world.vault.free_of(owner) - before == world.charter.economics.wage
    assert r == 0


# --- launch


def test_nobody_but_the_sponsor_opens_a_run_before_its_time(world: MoneyWorld) -> None:
    people = world.gather()
    world.at(world.charter.launch.open_from - 1)
    assert world.launch(people[0]) == "LaunchTooEarly"
    world.at(world.charter.launch.open_from)
    assert world.launch(people[0]) == ""
    assert world.launch(world.sponsor) == "WrongPhase"


def test_least_numbers_that_are_bought_do_not_open_an_escrow_worth_more(world: MoneyWorld) -> None:
    e = world.charter.economics
    staked = 6 * e.ticket_bond + 4 * e.seat_lock
    people = world.gather(escrow=staked)
    world.at(world.charter.launch.open_from)
    assert world.fund(people[0], 1) == ""
    assert world.launch(people[0]) == "StakesBelowEscrow"
    world.add_ticket(people[0])
    assert world.launch(people[0]) == "StakesBelowEscrow"
    world.tick(world.charter.timing.seasoning)
    assert world.launch(people[0]) == ""


@pytest.mark.parametrize(("solvers", "tickets", "opens"), [(3, 5, True), (2, 5, False), (3, 4, False)])
def test_a_run_opens_alone_with_its_least_numbers_and_not_below(solvers: int, tickets: int, opens: bool) -> None:
    world = MoneyWorld()
    people = world.gather(solvers=solvers, tickets=tickets, escrow=100 * ETHER)
    world.at(world.charter.launch.open_from)
    assert world.launch(people[0]) == ("" if opens else "TooFewToLaunch")
    world.check_money()
    world.end()


def test_a_run_that_cannot_pay_a_round_does_not_open_even_for_its_sponsor(world: MoneyWorld) -> None:
    cost = cost_of(world.charter, 4)
    world.gather(escrow=cost - 1)
    assert world.launch(world.sponsor) == "Paused"
    assert world.run.escrow.phase is RunPhase.FUNDING
    assert world.fund(world.sponsor, 1) == ""
    assert world.launch(world.sponsor) == ""
    assert world.run.escrow.reserved_total == cost == world.call("Escrow", "costOf", 4)


# --- the gate


def test_a_gate_that_is_shut_by_one_wei_delays_the_next_round_and_no_majority(world: MoneyWorld) -> None:
    cost = cost_of(world.charter, 4)
    people = world.start(escrow=2 * cost - 1, tickets=8)
    r = world.play_round(people)
    assert world.run.rounds.generations.votes[r + 1].root is not None
    assert len(world.model.commitments.rounds) == 1
    assert world.restart() == "Paused"
    assert world.fund(people[0], 1) == ""
    assert world.restart() == ""


def test_rounds_wait_where_tickets_on_call_have_no_room_for_their_duties(world: MoneyWorld) -> None:
    people = world.start(tickets=7)
    # Twice p / (1 - q) duties for each of four seats, against four answers of each of seven tickets.
    world.play_round(people)
    assert len(world.model.commitments.rounds) == 1
    assert world.restart() == "Paused"
    world.add_ticket(people[0])
    world.tick(world.charter.timing.seasoning)
    assert world.restart() == ""


def test_a_new_epoch_makes_room_for_more_rounds(world: MoneyWorld) -> None:
    people = world.start(tickets=7)
    world.play_round(people)
    assert world.restart() == "Paused"
    world.play_epoch()
    assert world.restart() == ""


# --- ends


def test_who_funded_a_cancelled_run_and_who_staked_gets_everything_back(world: MoneyWorld) -> None:
    people = world.gather(escrow=10 * ETHER + 1)
    assert world.fund(people[0], 5 * ETHER) == ""
    assert world.cancel(people[0]) == "NotTheSponsor"
    assert world.refund(people[0]) == "WrongPhase"
    assert world.cancel(world.sponsor) == ""
    for funder, amount in ((people[0], 5 * ETHER), (world.sponsor, 10 * ETHER + 1)):
        before = world.vault.free_of(funder)
        assert world.refund(funder) == ""
        assert world.vault.free_of(funder) - before == amount
        assert world.refund(funder) == "NothingToRefund"
    assert world.fund(people[0], 1) == "WrongPhase"
    assert world.launch(world.sponsor) == "WrongPhase"
    tenure = world.tenures[people[0]]
    assert (
        world.do(lambda: world.model.tenures.leave(people[0], tenure), "Tenures", "leave", tenure, who=people[0]) == ""
    )
    assert world.release(people[0]) == ""
    assert world.reclaim(1) == ""


def test_anybody_cancels_what_nobody_opened_before_its_expiry(world: MoneyWorld) -> None:
    people = world.gather(escrow=10 * ETHER)
    world.at(world.charter.expiry)
    assert world.cancel(people[0]) == "NotTheSponsor"
    world.tick(1)
    assert world.launch(people[0]) == "Paused"
    assert world.cancel(people[0]) == ""
    assert world.refund(world.sponsor) == ""
    assert world.run.escrow.balance == 0


def test_a_sponsor_cannot_cancel_what_it_has_opened(world: MoneyWorld) -> None:
    world.start()
    assert world.cancel(world.sponsor) == "WrongPhase"


def wound_down(world: MoneyWorld) -> None:
    """A run that stands still ends."""
    world.at(max(world.now, world.run.escrow.launched_at) + world.charter.timing.stall + 1)
    while (said := world.wind_down()) == "RunMoves":
        world.tick(world.charter.timing.stall)
    assert said == ""


def back(world: MoneyWorld, funder: Address) -> int:
    """What a refund gives."""
    before = world.vault.free_of(funder)
    assert world.refund(funder) == ""
    return world.vault.free_of(funder) - before


def spend(world: MoneyWorld, people: list[Address]) -> int:
    """Pay all work of one round; what it was, in wei."""
    r, before = final_round(world, people), world.run.escrow.balance
    own = audited(world, r)
    for seat in range(len(people)):
        assert world.settle_work(r, seat, own) == ""
    return before - world.run.escrow.balance


def test_what_was_there_at_the_launch_is_spent_in_proportion_to_the_wei(world: MoneyWorld) -> None:
    people = world.gather(escrow=50 * ETHER + 1)
    assert world.fund(people[0], 30 * ETHER) == ""
    assert world.fund(people[1], 20 * ETHER - 1) == ""
    assert world.fund(people[0], 5) == ""
    assert world.launch(world.sponsor) == ""
    spent = spend(world, people)
    assert spent > 0
    wound_down(world)
    total = 100 * ETHER + 5
    assert back(world, people[1]) == (total - spent) * (20 * ETHER - 1) // total
    rest = back(world, people[0]) + back(world, world.sponsor)
    assert world.refund(people[0]) == "NothingToRefund"
    assert rest == total - spent - (total - spent) * (20 * ETHER - 1) // total
    assert world.run.escrow.balance == 0


def test_who_funds_late_pays_nothing_that_was_spent_before(world: MoneyWorld) -> None:
    people = world.start(escrow=60 * ETHER)
    spent = spend(world, people)
    assert spent > 0
    assert world.fund(people[0], 7) == ""
    assert world.fund(people[1], 60 * ETHER) == ""
    assert world.fund(people[0], 5) == ""
    wound_down(world)
    assert back(world, people[1]) == 60 * ETHER
    assert [back(world, people[0]) for _ in range(2)] == [5, 7]
    assert world.refund(people[0]) == "NothingToRefund"
    assert back(world, world.sponsor) == 60 * ETHER - spent
    assert world.run.escrow.balance == 0


def test_money_is_spent_in_the_order_in_which_it_came_to_the_last_wei(world: MoneyWorld) -> None:
    """What the launch had is gone to the wei, and of what came next all but one wei."""
    cost = cost_of(world.charter, 4)
    people = world.start(escrow=cost)
    first = final_round(world, people)
    own = audited(world, first)
    for seat in range(len(people)):
        assert world.settle_work(first, seat, own) == ""
    paid = cost - world.run.escrow.balance
    assert world.fund(people[0], cost - (cost - paid) + 1) == ""
    assert world.fund(people[1], 3) == ""
    assert world.run.escrow.paid_in - world.run.escrow.balance == paid < cost
    wound_down(world)
    assert back(world, people[0]) == paid + 1
    assert back(world, people[1]) == 3
    assert back(world, world.sponsor) == cost - paid


def test_no_run_opens_before_its_audits_begin() -> None:
    """A sponsor would else train unaudited, stand still, and wind its run down unpaid."""
    began = replace(DENSE.timing, audits_from=DENSE.launch.open_from)
    late = MoneyWorld(replace(DENSE, timing=began))
    people = late.gather()
    late.at(late.charter.timing.audits_from - 1)
    for who in (late.sponsor, people[0]):
        assert late.launch(who) == "LaunchTooEarly"
    late.tick(1)
    assert late.launch(late.sponsor) == ""
    late.check_money()
    late.end()


def test_a_run_that_stands_still_is_wound_down_at_its_last_second_and_not_before(world: MoneyWorld) -> None:
    people = world.start()
    assert world.commit(people[0]) == ""
    stall = world.charter.timing.stall
    launched = world.run.escrow.launched_at
    world.at(launched + stall)
    assert world.wind_down() == "RunMoves"
    world.tick(1)
    assert world.wind_down() == ""
    assert world.settle_work(0, 0, 0) == "RunStopped"
    tenure = world.tenures[people[0]]
    assert world.release(people[0]) == "TenureLasts"
    assert (
        world.do(lambda: world.model.tenures.leave(people[0], tenure), "Tenures", "leave", tenure, who=people[0]) == ""
    )
    assert world.release(people[0]) == ""
    assert world.reclaim(1) == ""
    assert world.refund(world.sponsor) == ""
    assert world.run.escrow.balance == 0


def test_a_generation_or_an_epoch_alone_does_not_keep_a_run_alive(world: MoneyWorld) -> None:
    people = world.start()
    final_round(world, people)
    launched = world.run.escrow.launched_at
    # A generation became final, and no epoch has closed since the launch.
    world.at(launched + world.charter.timing.stall)
    assert world.wind_down() == "RunMoves"
    world.tick(1)
    assert world.wind_down() == ""


def test_an_open_game_holds_its_lock_through_a_wind_down(world: MoneyWorld) -> None:
    people = world.start()
    assert world.commit(people[0]) == ""
    assert world.commit(people[1]) == ""
    world.at(world.model.commitments.rounds[0].t0 + 5000)
    world.prepare_work(Round(0), Seat(0))
    ref = (1, 0, 0, 0, bytes(20), bytes(32))
    assert world.open_verdict(ref, people[2]) == ""
    world.at(world.run.escrow.launched_at + world.charter.timing.stall + 1)
    assert world.wind_down() == ""
    tenure = world.tenures[people[0]]
    assert (
        world.do(lambda: world.model.tenures.leave(people[0], tenure), "Tenures", "leave", tenure, who=people[0]) == ""
    )
    assert world.release(people[0]) == "TenureObliged"
    world.end_verdict(ref, True, False, people[2])
    assert world.release(people[0]) == ""
    assert world.model.tenures.tenures[tenure].convicted_at


def test_a_run_ends_when_all_is_settled() -> None:
    short = MoneyWorld(LAST_ROUND)
    people = short.start()
    r = final_round(short, people)
    assert short.finish() == "RunNotOver"
    settle(short, r, people)
    settle_findings(short)
    assert short.finish() == ""
    assert short.settle_duty(next(iter(short.run.duties.attestations.attestations))) == "AlreadySettled"
    assert short.refund(short.sponsor) == ""
    short.check_money()
    short.end()
