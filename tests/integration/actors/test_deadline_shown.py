"""The nearest deadline among a process's metrics: that of a game, whatever its loop does meanwhile."""

from __future__ import annotations

import pytest

from assay.observing.metrics import ProcessMetrics
from tests.harness.actors.disputed import Puppet, aside
from tests.harness.actors.scraping import one, samples_of
from tests.harness.actors.shown import SteppedClock
from tests.harness.actors.whole_run import WholeRun

pytestmark = pytest.mark.long


def test_a_clock_that_runs_in_a_game_is_shown_though_the_loop_does_not_turn(disputed: WholeRun) -> None:
    """Who computes, or hangs, after a challenge has seen its head once, and what it waited for before is over."""
    with aside(disputed):
        agent, clock = disputed.players["ada"].agent, SteppedClock()
        metrics = ProcessMetrics("solver", clock=clock)

        def left() -> float:
            return one(samples_of(metrics.text()), "assay_next_deadline_seconds")

        game_id = Puppet(disputed).challenge()
        view = agent.see()
        clock_s = view.games[game_id].deadline - view.now
        for waited_for in (view.now + clock_s + 1000, view.now - 1, None):
            metrics.turned(view, waited_for)
            assert left() == clock_s
        metrics.turned(view, view.now + 5)
        assert left() == 5
        metrics.turned(view, None)
        clock.now += clock_s
        assert left() == 0
        metrics.turned(view, None)
        assert left() == 0, "the head is the same"
