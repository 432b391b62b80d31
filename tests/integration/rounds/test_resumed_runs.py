"""Runs that stood still and go on, on model and contracts: what opens late has as long as what opened in time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.cli.acting import TellsStanding
from assay.protocol.economics.run_times import until_final
from assay.protocol.rounds.escrow import cost_of
from assay.protocol.types import Address, Round
from assay_ledger.agents.stalls import winds_down_at
from assay_ledger.agents.waiting import waits
from assay_solver import strategy
from assay_solver.actions import TrainUnit
from assay_solver.pace import OwnPace
from tests.harness.rounds.money_scenes import slow_epoch
from tests.harness.rounds.told_money import ToldMoneyWorld

HOUR = 3600


@pytest.fixture
def world() -> Iterator[ToldMoneyWorld]:
    made = ToldMoneyWorld()
    yield made
    made.check_money()
    made.end()


def stood_still(w: ToldMoneyWorld) -> tuple[list[Address], int]:
    """A run whose escrow paid for one round, an hour before it may be wound down; and when that may be."""
    timing = w.charter.timing
    people = w.start(tickets=12, escrow=cost_of(w.charter, 4) + 5 * w.charter.economics.wage)
    w.play_round(people)
    w.tick(timing.challenge + 1)
    assert w.finalize(1) == ""
    ends = w.now + timing.stall + 1
    for part in range(1, 4):
        slow_epoch(w, w.now + part * timing.stall // 8)
    w.at(ends - HOUR)
    assert winds_down_at(w.view(w.sponsor)) == ends and w.restart() == "Paused"
    return people, ends


def test_a_round_that_late_money_opens_has_as_long_as_any(world: ToldMoneyWorld) -> None:
    """Attack: pay for a round in the last hour before a run may be wound down, and have its work for nothing."""
    w = world
    people, ends = stood_still(w)
    assert w.fund(w.sponsor, cost_of(w.charter, 4)) == ""
    assert w.restart() == ""
    opened = w.now
    w.commit_all(people)
    w.at(ends)
    assert w.wind_down() == "RunMoves"
    assert winds_down_at(w.view(w.sponsor)) == opened + w.charter.timing.stall + 1


def test_rounds_that_are_void_hold_nothing_for_ever(world: ToldMoneyWorld) -> None:
    """Attack: open one round after another in which nobody works, so that no stake and no money ever comes back."""
    w = world
    _, ends = stood_still(w)
    assert w.fund(w.sponsor, 2 * cost_of(w.charter, 4)) == ""
    assert w.restart() == ""
    last = ends + w.charter.timing.stall
    slow_epoch(w, last - 2 * HOUR)
    assert w.restart() == ""
    w.at(last - 1)
    assert w.wind_down() == "RunMoves" and winds_down_at(w.view(w.sponsor)) == last
    w.tick(1)
    assert w.wind_down() == ""


def trains(w: ToldMoneyWorld, who: Address, done: int = 0) -> bool:
    """Whether an honest solver begins a unit of the newest round now, of which it has done some."""
    view, base = w.view(who), w.view(who).round_of(w.round).base
    own = strategy.OwnRounds(OwnPace(0.0), lead=0, units={(w.round, w.seat(who), base): done})
    return any(isinstance(action, TrainUnit) for action in strategy.candidates(view, own, []))


@pytest.mark.parametrize("early", [True, False])
def test_nobody_trains_a_round_that_would_be_wound_down_with_it(world: ToldMoneyWorld, early: bool) -> None:
    """Attack: two stalls without money but hours, a round that is paid for then, and its work is had for nothing."""
    w, timing = world, world.charter.timing
    people, ends = stood_still(w)
    assert w.fund(w.sponsor, 2 * cost_of(w.charter, 4)) == ""
    needs = timing.commit + w.charter.chain.inclusion_delay + until_final(timing) + 1
    slow_epoch(w, ends + timing.stall - needs - early)
    assert w.restart() == "" and winds_down_at(w.view(people[0])) == ends + timing.stall
    assert w.view(people[0]).commit_until(Round(1)) + until_final(timing) + 1 + early == ends + timing.stall
    assert trains(w, people[0]) is early
    told, said = {wait.code: wait for wait in waits(w.view(w.sponsor))}, list[str]()
    TellsStanding(said.append)(w.view(people[0]))
    assert (list(told), len(said)) == ((["Training"], 0) if early else (["InVain"], 1))
    if not early:
        assert told["InVain"].until == ends + timing.stall and "would be void" in said[0]
        # Attack: several such rounds, so that whoever does not train loses its seat and its fee.
        w.at(w.view(people[0]).commit_until(Round(1)) + 1)
        assert w.restart() == "" and w.round == 2 and winds_down_at(w.view(people[0])) == ends + timing.stall > w.now
        assert trains(w, people[0]) and not trains(w, people[0], done=w.terms.min_units)


@pytest.mark.parametrize("early", [True, False])
def test_nobody_trains_where_no_epoch_closes_before_a_wind_down(world: ToldMoneyWorld, early: bool) -> None:
    """A beacon that ended: its generations become final, and no work is audited, so that none is paid."""
    w, timing = world, world.charter.timing
    people = w.start(tickets=12, escrow=cost_of(w.charter, 4))
    w.play_round(people)
    w.tick(timing.challenge + 1)
    assert w.finalize(1) == ""
    w.at(w.run.escrow.launched_at + 2 * timing.stall - timing.epoch - early)
    assert w.fund(w.sponsor, cost_of(w.charter, 4)) == "" and w.restart() == ""
    assert trains(w, people[0]) is early
