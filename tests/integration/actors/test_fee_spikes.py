"""A base fee above the cap inside a game: both sides wait, then defer, and neither loses by its clock."""

from __future__ import annotations

import pytest

from assay.protocol.game.clock import DEFERRALS
from assay.protocol.game.table import Side
from tests.harness.actors.disputed import aside, check_judged, is_judged
from tests.harness.actors.whole_run import WholeRun


@pytest.mark.long
def test_actors_wait_and_defer_above_the_fee_cap_and_the_truth_still_wins(disputed: WholeRun) -> None:
    chain, cap = disputed.chain, disputed.run.charter.chain.fee_cap
    with aside(disputed):
        first = min(disputed.settle(lambda view: bool(view.games)).games)
        opened = chain.head().timestamp
        # The fee falls by an eighth with every empty block: some twenty are above the cap.
        chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(15 * cap))
        chain.rpc("evm_mine")
        view = disputed.settle(is_judged)
        check_judged(disputed, view)
        game = view.games[first]
        # By the challenger's turn the fee may have fallen.
        assert game.deferrals[Side.DEFENDER] == DEFERRALS
        assert chain.head().timestamp - opened <= disputed.run.charter.timing.longest_dispute
