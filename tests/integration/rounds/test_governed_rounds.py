"""Pauses, prices and the sunset of a governed run: what they stop, and what goes on, on model and contracts at once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.decisions import Decision, Verb
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.types import Address, Round, Seat
from tests.harness.rounds.governed_world import DEMOCRATIC, RESUME, SUNSET, GovernedWorld
from tests.harness.rounds.money_scenes import audited, final_round, settle, settle_findings
from tests.harness.rounds.samples import ETHER

DAY = 86_400
TERMS = DEMOCRATIC.governance
FOLLOWER = Address((0xF0110).to_bytes(20, "big"))


@pytest.fixture
def world() -> Iterator[GovernedWorld]:
    """A run that nobody has funded yet, and whose charter names governance."""
    made = GovernedWorld()
    try:
        yield made
        made.check_money()
        made.check_votes()
    finally:
        made.end()


# --- pauses


def test_a_round_under_a_pause_is_merged_audited_and_paid(world: GovernedWorld) -> None:
    people = world.start(escrow=10_000 * ETHER)
    assert world.guardian_pause() == ""
    opened = len(world.model.commitments.rounds)
    before = {who: world.vault.free_of(who) for who in people}
    r = final_round(world, people)
    assert len(world.model.commitments.rounds) == opened == r + 1
    assert world.restart() == "Paused"
    settle(world, r, people)
    e = world.charter.economics
    for who in people:
        assert world.vault.free_of(who) - before[who] == 60 * e.unit_price + e.merge_pay
    # The pause is over by itself, and anybody opens the next round.
    world.at(max(world.now, world.governor.paused_until))
    assert world.restart() == ""
    assert len(world.model.commitments.rounds) == opened + 1


def test_a_pause_ends_with_its_last_second(world: GovernedWorld) -> None:
    people = world.start(escrow=10_000 * ETHER)
    assert world.guardian_pause() == ""
    audited(world, final_round(world, people))
    opened = len(world.model.commitments.rounds)
    assert opened == 1
    world.at(world.governor.paused_until - 1)
    assert world.restart() == "Paused"
    world.tick(1)
    assert world.restart() == ""
    assert len(world.model.commitments.rounds) == opened + 1


def test_a_run_does_not_launch_under_a_pause_and_its_sponsor_cancels_it(world: GovernedWorld) -> None:
    world.gather()
    assert world.guardian_pause() == ""
    assert world.launch(world.sponsor) == "Paused"
    assert world.cancel(world.sponsor) == ""


def test_seats_and_stakes_leave_during_a_pause_and_lose_nothing(world: GovernedWorld) -> None:
    people = world.gather()
    staked = {who: world.vault.free_of(who) + world.charter.economics.seat_lock for who in people}
    fee, e = world.charter.economics.seat_fee, world.charter.economics
    assert world.launch(world.sponsor) == ""
    r = world.play_round(people)
    assert world.guardian_pause() == ""
    for who in people:
        assert world.leave_seat(who) == ""
    world.tick(world.charter.timing.challenge + 1)
    assert world.finalize(r + 1) == ""
    for seat in range(len(people)):
        assert world.close_opening(r + 1, seat) == ""
    settle(world, r, people)
    for who in people:
        assert world.release(who) == ""
        assert world.vault.free_of(who) == staked[who] + fee + 60 * e.unit_price + e.merge_pay


def test_a_guardian_pauses_as_often_as_its_charter_says_and_rests_between(world: GovernedWorld) -> None:
    world.start()
    assert world.guardian_pause(world.sponsor) == "NotTheGuardian"
    length, rest = TERMS.guardian_pause, world.governor.rest + TERMS.guardian_pause
    for left in (2, 1, 0):
        assert world.guardian_pause() == ""
        assert world.governor.pauses_left == left
        until = world.governor.paused_until
        assert until == world.now + length
        world.at(until + rest - 1)
        assert world.guardian_pause() == ("PauseTooSoon" if left else "NoPausesLeft")
        world.at(until + rest)
    assert world.guardian_pause() == "NoPausesLeft"


def test_a_vote_prolongs_a_guardians_pause_once_and_then_lets_rounds_open(world: GovernedWorld) -> None:
    people = world.owners()
    most = Decision(Verb.PAUSE, (TERMS.longest_pause,))
    for label in ("first", "second", "third"):
        assert world.propose(people[0], most, label) == ""
    world.tick(TERMS.voting_delay + 1)
    for label in ("first", "second", "third"):
        for who in people:
            assert world.vote(who, world.id_of(most, label)) == ""
    world.tick(TERMS.voting_period)
    for label in ("first", "second", "third"):
        assert world.queue(most, label) == ""
    world.tick(TERMS.timelock)
    assert world.guardian_pause() == ""
    world.at(world.governor.paused_until)
    assert world.execute(most, "first") == ""
    until = world.now + TERMS.longest_pause
    assert world.governor.paused_until == world.governor.voted_until == until
    world.at(until + world.governor.rest - 1)
    assert world.execute(most, "second") == "PauseTooSoon"
    assert world.guardian_pause() == "PauseTooSoon"
    world.tick(1)
    assert world.execute(most, "second") == ""


@pytest.mark.parametrize(
    ("length", "said"), [(0, "PauseOutOfBounds"), (1, ""), (5 * DAY, ""), (5 * DAY + 1, "PauseOutOfBounds")]
)
def test_a_vote_pauses_for_no_longer_than_the_charter_says(world: GovernedWorld, length: int, said: str) -> None:
    people = world.owners()
    assert world.decide(people, Decision(Verb.PAUSE, (length,))) == said


def test_a_vote_ends_a_pause_and_ends_none_that_is_over(world: GovernedWorld) -> None:
    people = world.owners()
    long = Decision(Verb.PAUSE, (TERMS.longest_pause,))
    assert world.propose(people[0], RESUME, "in time") == ""
    world.tick(1)
    assert world.propose(people[0], long) == ""
    assert world.propose(people[0], RESUME, "late") == ""
    world.tick(TERMS.voting_delay + 1)
    for decision, label in ((RESUME, "in time"), (long, ""), (RESUME, "late")):
        for who in people:
            assert world.vote(who, world.id_of(decision, label)) == ""
    world.tick(TERMS.voting_period)
    for decision, label in ((RESUME, "in time"), (long, ""), (RESUME, "late")):
        assert world.queue(decision, label) == ""
    world.tick(TERMS.timelock)
    assert world.execute(RESUME, "in time") == "NotPaused"
    assert world.execute(long) == ""
    world.tick(5)
    assert world.execute(RESUME, "late") == ""
    assert world.governor.paused_until == world.governor.voted_until == world.now
    world.check_votes()
    assert world.execute(RESUME, "in time") == "NotPaused"


def test_a_dismissed_guardian_pauses_no_more(world: GovernedWorld) -> None:
    people = world.owners()
    assert world.decide(people, Decision(Verb.DISMISS)) == ""
    assert world.guardian_pause() == "NotTheGuardian"


# --- prices


def test_a_lower_price_is_for_rounds_that_open_later_alone(world: GovernedWorld) -> None:
    people = world.start(escrow=10_000 * ETHER)
    first = final_round(world, people)
    settle(world, first, people)
    world.tick(world.charter.timing.vesting)
    for name in list(world.run.grants.grants):
        assert world.release_grant(name) == ""
    for who in people:
        world.delegate(who, who)
    assert world.mature(first + 1) == ""
    world.tick(TERMS.voting_delay + 1)
    dear = world.run.escrow.cost_of(4)
    assert world.decide(people, Decision(Verb.PRICE, (750_001,))) == ""
    assert world.run.escrow.cost_of(4) < dear
    opened = len(world.model.commitments.rounds)
    assert world.restart() == ""
    if len(world.model.commitments.rounds) == opened:
        assert world.restart() == ""
    assert world.run.escrow.work_pay_of(first, ETHER) == ETHER
    late = Round(len(world.model.commitments.rounds) - 1)
    assert world.run.escrow.work_pay_of(late, 10) == 7
    world.check_votes()
    before = {who: world.vault.free_of(who) for who in people}
    r = final_round(world, people)
    settle(world, r, people)
    e = world.charter.economics
    paid = 60 * e.unit_price * 750_001 // 1_000_000 + e.merge_pay
    for who in people:
        assert world.vault.free_of(who) - before[who] == paid


@pytest.mark.parametrize(
    ("ppm", "said"), [(499_999, "PriceOutOfBounds"), (500_000, ""), (1_000_000, ""), (1_000_001, "PriceOutOfBounds")]
)
def test_a_price_stays_between_the_bounds_of_the_charter(world: GovernedWorld, ppm: int, said: str) -> None:
    people = world.owners()
    assert world.decide(people, Decision(Verb.PRICE, (ppm,))) == said


# --- sunset


def test_after_a_sunset_what_was_earned_is_paid_and_the_rest_goes_back_in_proportion(world: GovernedWorld) -> None:
    more = world.add_person(10**5 * ETHER)
    assert world.fund(more, 300 * ETHER) == ""
    people = world.owners()
    assert world.decide(people, SUNSET) == ""
    assert world.decide(people, SUNSET, "again") == "AlreadySunset"
    opened = len(world.model.commitments.rounds)
    assert world.join(world.add_person(10**5 * ETHER)) == "NoRoundsLeft"
    world.restart()
    assert world.restart() in ("Paused", "RoundAlive") and len(world.model.commitments.rounds) == opened
    assert world.finish() == "RunNotOver"
    assert world.refund(more) == "WrongPhase"
    for _ in range(40):
        if not world.finish():
            break
        settle_findings(world)
        for r in range(opened):
            for seat in range(4):
                own = world.own_epoch(r)
                world.settle_work(r, seat, own)
                world.settle_opening(r + 1, ids.seat_party(Seat(seat)))
            world.settle_round(r, world.own_epoch(r))
        world.play_epoch()
    assert world.run.escrow.phase is RunPhase.OVER
    left = world.run.escrow.balance
    before = {who: world.vault.free_of(who) for who in (world.sponsor, more)}
    for who in before:
        assert world.refund(who) == ""
    got = {who: world.vault.free_of(who) - before[who] for who in before}
    assert sum(got.values()) == left
    funded = {world.sponsor: 100_000 * ETHER, more: 300 * ETHER}
    assert abs(got[more] * sum(funded.values()) - left * funded[more]) < sum(funded.values())
    for who in people:
        assert world.leave_seat(who) == ""
        assert world.release(who) == ""


def test_a_successor_is_named_once_the_run_has_ended(world: GovernedWorld) -> None:
    people = world.owners()
    successor = Decision(Verb.SUCCESSOR, (FOLLOWER,))
    assert world.decide(people, successor) == "RunNotFinished"
    world.tick(world.charter.timing.stall)
    assert world.wind_down() == ""
    world.tick(1)
    assert world.decide(people, successor, "again") == ""
    assert world.governor.successors == [FOLLOWER]
