"""No more rounds of pay are unsettled than a ticket's stake outweighs, however fast they end: contracts and model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from assay.protocol.economics.run_bounds import audit_terms, most_unsettled
from assay.protocol.economics.run_times import until_final
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Round, Wei
from assay_ledger.agents.waiting import Wait, waits
from tests.harness.rounds.chain import PERIOD
from tests.harness.rounds.charters import HOUR, RUN, changed
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.run_limits import staked
from tests.harness.rounds.samples import ETHER
from tests.harness.rounds.told_money import ToldMoneyWorld

TICKETS: Final = 14


def run_of(**timing: int) -> RunCharter:
    """Three seats and long rounds, so that few of them are unsettled at once; B is the least that there may be."""
    c = changed(changed(RUN, "training", seats=3), "launch", seats=3)
    lengths = {"commit": 4 * HOUR, "epoch": 8 * HOUR + 1200, "challenge": 5 * HOUR, "rescue": 5 * HOUR} | timing
    c = changed(changed(changed(c, "economics", capacity=1), "clocks", replay=4 * HOUR), "timing", **lengths)
    return staked(changed(c, "timing", seasoning=40 * HOUR), merge_pay=Wei(ETHER // 100), seat_fee=Wei(ETHER // 2))


AUDITED: Final = run_of()
"""Audits last longer than merges and challenges."""

CHALLENGED: Final = run_of(challenge=60 * HOUR)
"""Generations are final later than audits are over."""


@pytest.fixture
def world(request: pytest.FixtureRequest) -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld(request.param)
    yield made
    made.check_money()
    made.end()


def told(world: ToldMoneyWorld) -> Wait | None:
    return {wait.code: wait for wait in waits(world.view(world.sponsor))}.get("PayUnsettled")


def unsettled(world: MoneyWorld) -> int:
    """Rounds that began and are not due, be it for their audits or for what could still be challenged."""
    last = [world.view(world.sponsor).commit_until(Round(r)) for r in range(len(world.model.commitments.rounds))]
    audited = [
        world.run.duties.over_after(at) != 0 and world.now > at + until_final(world.charter.timing) for at in last
    ]
    return audited.count(False)


def keep_epochs(world: MoneyWorld, until: int) -> None:
    """Every epoch is seeded, answered and closed as soon as it can be, up to a second."""
    while True:
        newest = world.run.duties.epochs[-1]
        if newest.seed is not None and newest.deadline < until:
            world.close_epoch()
        elif newest.seed is None and newest.start + world.charter.timing.seed_delay + PERIOD < until:
            world.seed()
            world.answer()
        else:
            return


def begin(world: MoneyWorld) -> list[Address]:
    """The sponsor opens the run in an epoch that began when it should."""
    people = world.gather(solvers=3, tickets=TICKETS)
    keep_epochs(world, world.now)
    assert world.launch(world.sponsor) == ""
    return people


def play_at_once(world: MoneyWorld, people: list[Address]) -> None:
    """A round that ends within seconds, since all seats do what they do as soon as they can."""
    r = world.round
    for who in people:
        assert world.commit(who) == ""
    world.hold_all(people)
    world.merge(people, ("root", r))


@pytest.mark.parametrize("world", [AUDITED], indirect=True)
def test_who_ends_rounds_at_once_has_no_more_unsettled_than_a_stake_outweighs(world: ToldMoneyWorld) -> None:
    people, most = begin(world), most_unsettled(AUDITED)
    assert most == audit_terms(AUDITED).unsettled, "B is the least that there may be"
    waited = seen = 0
    while (count := len(world.model.commitments.rounds)) < 3 * most:
        assert unsettled(world) <= most
        seen = max(seen, unsettled(world))
        play_at_once(world, people)
        while len(world.model.commitments.rounds) == count:
            wait = told(world)
            assert wait is not None and f"round {count - most}'s is due once its audits are over" in wait.text
            assert wait.until is not None and wait.until > world.now and world.restart() == "Paused"
            if world.run.duties.epochs[-1].seed is None:
                world.seed()
                world.answer()
            world.close_epoch()
            waited += 1
            if told(world) is None:
                assert world.restart() == ""
    assert seen == most and waited > 4


@pytest.mark.parametrize("world", [CHALLENGED], indirect=True)
def test_a_round_opens_when_a_base_may_be_final_and_not_a_second_before(world: ToldMoneyWorld) -> None:
    people, most = begin(world), most_unsettled(CHALLENGED)
    for _ in range(most):
        play_at_once(world, people)
    last = world.view(world.sponsor).commit_until(Round(0))
    due = last + until_final(CHALLENGED.timing) + 1
    keep_epochs(world, due)
    assert world.run.duties.over_after(last)
    world.at(due - 1)
    wait = told(world)
    assert wait is not None and wait.until == due and world.restart() == "Paused"
    world.at(due)
    assert told(world) is None and world.restart() == ""


@pytest.mark.long
@pytest.mark.parametrize("world", [AUDITED, CHALLENGED], indirect=True)
def test_rounds_as_long_as_the_charter_says_wait_for_nothing(world: ToldMoneyWorld) -> None:
    people, timing = begin(world), world.charter.timing
    for r in range(2 * most_unsettled(world.charter)):
        assert len(world.model.commitments.rounds) == r + 1, "the merge before opened it"
        start = world.view(world.sponsor).round_of(Round(r)).t0
        keep_epochs(world, start + timing.commit)
        world.at(max(world.now, start + timing.commit))
        world.play_round(people)
