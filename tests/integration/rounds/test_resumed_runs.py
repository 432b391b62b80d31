"""Runs that stood still and go on, on model and contracts: what opens late has as long as what opened in time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds.escrow import cost_of
from assay.protocol.types import Address
from assay_ledger.agents.money_keeper import winds_down_at
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
    people = w.start(escrow=cost_of(w.charter, 4) + 5 * w.charter.economics.wage)
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
