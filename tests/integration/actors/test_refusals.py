"""What an actor does about a refusal where no block comes: it tries again by the clock, less and less often."""

from __future__ import annotations

from pathlib import Path

from assay_ledger.agents.loop import BLOCK_S
from assay_solver.actions import TakeSeat
from assay_solver.agent import Solver
from tests.harness.actors.whole_run import GAMES, new_whole_run
from tests.harness.actors.world import SharedChain
from tests.harness.clocks import MovedClock


def test_a_refused_action_is_tried_again_by_the_clock_though_no_block_comes(stage: SharedChain, tmp_path: Path) -> None:
    made, clock = new_whole_run(stage, tmp_path), MovedClock()
    e = made.run.charter.economics
    poor = made.add("poor", Solver, 1 - GAMES * (e.challenge_bond + e.challenge_deposit), clock=clock)
    head, times = made.chain.head(), []
    for wait in (BLOCK_S, 2 * BLOCK_S, 4 * BLOCK_S):
        assert poor.step() and not poor.step(), "it asks for a seat once, and is refused for want of stake"
        times.append(poor._parked[TakeSeat()].times)
        clock.now += wait - 0.01
        assert not poor.step()
        clock.now += 0.02
    assert times == [1, 2, 3] and made.chain.head() == head
    assert poor._doing == "waiting", "nothing holds up those who move time"
