"""A base fee above the cap inside a game: both sides wait, then defer, and neither loses by its clock."""

from __future__ import annotations

from pathlib import Path

from assay.protocol.game.clock import DEFERRALS
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from tests.harness.actors.world import SharedChain, new_world, small_work

FOUNDERS = {"first_seats": 2, "first_verifiers": 2}


def test_actors_wait_and_defer_above_the_fee_cap_and_the_truth_still_wins(stage: SharedChain, tmp_path: Path) -> None:
    world = new_world(stage, tmp_path, small_work(), rounds=1)
    world.solver("ada", **FOUNDERS)
    world.solver("mallory", cheat="wrong-data", **FOUNDERS)
    for name in ("vera", "viktor"):
        world.verifier(name, **FOUNDERS)
    world.settle(lambda state: bool(state.games))
    opened = world.stage.chain.head().timestamp
    cap = world.run.charter.chain.fee_cap
    # The fee falls by an eighth with every empty block: some twenty are above the cap.
    stage.chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(15 * cap))
    stage.chain.rpc("evm_mine")
    state = world.settle(lambda state: all(g.is_over for g in state.games.values()))
    # The second verifier opens a game of its own while the first one waits.
    for game in state.games.values():
        assert game.verdict is not None
        assert (game.verdict.side, game.verdict.outcome) == (Side.DEFENDER, Outcome.LEAF)
        assert world.name_of(game.verdict.loser) == "mallory"
    first = state.games[1]
    assert first.deferrals[Side.DEFENDER] == DEFERRALS
    assert first.deferrals[Side.CHALLENGER] > 0
    assert stage.chain.head().timestamp - opened <= world.run.charter.windows.longest_dispute
