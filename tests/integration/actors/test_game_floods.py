"""Many false challenges of one true commitment at once: its solver executes it once, and no clock runs out.

The hardware is as slow as its clocks allow: an execution of the commitment takes exactly the `replay` that the charter
grants for it, in chain time. Every puppet lies in another node, so that nothing below the lists is shared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from tests.harness.actors.floods import flooded
from tests.harness.actors.world import SharedChain


@pytest.mark.parametrize("count", (4, pytest.param(48, marks=pytest.mark.long)))
def test_games_in_lockstep_on_one_claim_cost_one_execution_and_none_is_lost(
    stage: SharedChain, tmp_path: Path, count: int
) -> None:
    """On this hardware a run per reply lost the fourth game."""
    claims, compute, flood = flooded(stage, tmp_path, count)
    charter, ada = claims.made.run.charter, claims.ada
    passes = steps = used = 0
    while flood.select():
        before = sum(executor.steps for executor in compute.slow)
        sent = 0
        while ada.step():
            sent += ada._doing.startswith("play")
        # One list for all that wait for it, then the short replies; below the lists everything at once.
        assert sent <= 2
        passes += 1
        steps = max(steps, sum(executor.steps for executor in compute.slow) - before)
        used = max([used, *(charter.clocks.budget - game.state.budget_left[0] for game in flood.games())])
        assert passes < 50
    for number in range(1, count + 1):
        found = claims.made.run.games.verdict(number)
        assert found is not None
        assert (found[0].side, found[0].outcome) == (Side.CHALLENGER, Outcome.LEAF)
    print(
        f"{count} games: {passes} passes, {compute.slow[0].steps} steps run, {steps} at most in a pass, {used} s used"
    )
    assert len(compute.slow) == 1
    assert steps <= claims.steps
    # Beyond the extension for one execution only blocks are waited for.
    assert used < charter.clocks.replay // 2
    assert claims.lock_of("ada") == charter.economics.seat_lock
