"""Games on whole commitments, played by both sides from what they kept of their own runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay.protocol.program.trace import Tamper
from assay.training.long_runs import LongRun
from assay.training.long_trace import LongTrace
from assay.training.rounds import TorchCompute
from assay_ledger.store.progress import ProgressFolder
from tests.harness.games import ETHER, GameWorld, Log, address, play_out, player
from tests.harness.programs import mlp_step
from tests.harness.training.counting import CountingCompute

UNIT, UNITS = 3, 7
EXAMPLE = mlp_step()
SOLVER, AUDITOR = address("solver"), address("auditor")
LOCK = 30 * ETHER


def flip(step: int, node: int, data: bytes) -> bytes:
    """A lie in one step of the fifth unit, in a value that parameters are computed from."""
    return bytes(len(data)) if (step, node) == (UNIT * 4 + 2, EXAMPLE.program.input_nodes[0][0] + 40) else data


def trained(folder: Path, compute: TorchCompute, room: int, tamper: Tamper | None = None) -> LongTrace:
    """A run of all units, its process gone; the trace that a later one makes of what it kept."""
    state = EXAMPLE.program, EXAMPLE.state
    run = LongRun(compute, *state, UNIT, ProgressFolder(folder), room=room, tamper=tamper)
    for _ in range(UNITS):
        run.advance()
    return LongTrace(compute, *state, UNIT * UNITS, ProgressFolder(folder), tamper)


@pytest.mark.parametrize("room", [0, 1 << 20], ids=["last-state", "all-states"])
@pytest.mark.parametrize("is_lie", [True, False], ids=["lie", "truth"])
def test_a_game_on_a_commitment_ends_in_one_element_for_who_is_right(tmp_path: Path, is_lie: bool, room: int) -> None:
    true = trained(tmp_path / "true", TorchCompute(), room)
    false = trained(tmp_path / "false", TorchCompute(), room, flip)
    claimed, doubted = (false, true) if is_lie else (true, false)
    world = GameWorld(EXAMPLE.program)
    ref = world.claim(claimed, SOLVER, LOCK)
    game = world.challenge(ref, AUDITOR)
    log = Log()
    end = play_out(world, game, player(Side.DEFENDER, claimed), player(Side.CHALLENGER, doubted), log=log)
    assert end.verdict is not None and end.verdict.outcome is Outcome.LEAF
    assert end.verdict.side is (Side.DEFENDER if is_lie else Side.CHALLENGER)
    assert end.step == UNIT * 4 + 2


def test_a_defence_runs_a_commitment_once_more_and_then_only_the_disputed_part(tmp_path: Path) -> None:
    compute = CountingCompute()
    liar = trained(tmp_path / "false", compute, 1 << 20, flip)
    world = GameWorld(EXAMPLE.program)
    game = world.challenge(world.claim(liar, SOLVER, LOCK), AUDITOR)
    compute.traced.clear()
    true = trained(tmp_path / "true", TorchCompute(), 1 << 20)
    play_out(world, game, player(Side.DEFENDER, liar), player(Side.CHALLENGER, true))
    # The states between its marks, once each; no step of another part twice.
    assert sum(compute.traced) <= UNIT * UNITS + UNIT
    compute.traced.clear()
    again = LongTrace(compute, EXAMPLE.program, EXAMPLE.state, UNIT * UNITS, ProgressFolder(tmp_path / "false"), flip)
    second = world.challenge(ref := world.claim(again, SOLVER, LOCK, number=2), address("another"))
    assert ref.duty == 2
    play_out(world, second, player(Side.DEFENDER, again), player(Side.CHALLENGER, true))
    # What the first game noted is not computed for the next: one part, from its mark.
    assert compute.traced == [UNIT]
