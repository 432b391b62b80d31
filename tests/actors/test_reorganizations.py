"""The chain takes back what everybody saw: each stretch of a round and of a game is mined, undone, and mined again.

The actors live on through it with all that they remember of blocks that are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from assay.ledger.records import Fate, RunState
from assay.protocol.game_state import Outcome
from assay.solver.cheats import cheat_named
from tests.actors.world import Stage, World, new_world, small_work

FOUNDERS = {"first_seats": 2, "first_verifiers": 2}

Milestone = Callable[[RunState], bool]

MILESTONES: dict[str, Milestone] = {
    "the round opened": lambda s: bool(s.rounds),
    "a solver committed": lambda s: bool(s.rounds[0].commitments),
    "both solvers committed": lambda s: len(s.rounds[0].commitments) == 2,
    "the seed was drawn": lambda s: s.rounds[0].seed is not None,
    "somebody attested": lambda s: bool(s.rounds[0].attendance),
    "somebody showed its draw": lambda s: any(a.y for a in s.rounds[0].attendance.values()),
    "leaves were revealed": lambda s: any(a.leaves for a in s.rounds[0].attendance.values()),
    "a game was opened": lambda s: bool(s.games),
    "a digest was pointed at": lambda s: any(len(g.moves) > 2 for g in s.games.values()),
    "a node was opened": lambda s: any(len(g.moves) > 5 for g in s.games.values()),
    "there was a verdict": lambda s: any(g.is_over for g in s.games.values()),
    "the round was settled": lambda s: s.rounds[0].settled,
}
"""Each is reached twice: what happened since the one before it is undone in between."""


def cast(stage: Stage, folder: Path) -> World:
    """An honest solver, a bit-flipper, two verifiers."""
    world = new_world(stage, folder, small_work(), rounds=1)
    world.solver("ada", **FOUNDERS)
    world.solver("mallory", cheat=cheat_named("bit-flip", 1), **FOUNDERS)
    world.verifier("vera", **FOUNDERS)
    world.verifier("viktor", **FOUNDERS)
    for player in world.players.values():
        player.wealth = world.wealth(player.name)
    return world


def settle_until(world: World, milestone: Milestone) -> None:
    """Everybody acts until the milestone is reached."""

    def reached(state: RunState) -> bool:
        return bool(state.rounds) and milestone(state)

    assert reached(world.settle(reached))


def reorganize(world: World, snapshot: object) -> int:
    """The chain goes back to the snapshot and on by a block of its own; returns how many blocks are gone."""
    chain = world.stage.chain
    gone = chain.rpc("eth_getBlockByNumber", "latest", False)
    assert chain.rpc("evm_revert", snapshot)
    kept = chain.head()
    chain.rpc("evm_mine", hex(kept.timestamp + 1))
    assert gone["hash"] != chain.rpc("eth_getBlockByNumber", "latest", False)["hash"]
    return int(gone["number"], 16) - kept.number


def test_every_stretch_of_a_round_and_of_its_game_is_undone_once_and_ends_as_if_it_were_not(
    stage: Stage, tmp_path: Path
) -> None:
    world = cast(stage, tmp_path)
    undone = 0
    snapshot = world.stage.chain.rpc("evm_snapshot")
    for milestone in MILESTONES.values():
        settle_until(world, milestone)
        undone += reorganize(world, snapshot)
        settle_until(world, milestone)
        snapshot = world.stage.chain.rpc("evm_snapshot")
    world.settle()
    check(world)
    assert undone > 30


def check(world: World) -> None:
    """The run ended as it does on a chain that never forgets."""
    (record,) = world.state.rounds
    fates = {world.name_of(c.solver): c.fate for c in record.commitments.values()}
    assert fates == {"ada": Fate.FINAL, "mallory": Fate.CONVICTED}
    games = world.verdicts()
    assert {g.outcome for g in games} == {Outcome.LEAF}
    assert {world.name_of(g.defender) for g in games} == {"mallory"} and all(g.convicted for g in games)
    duties = 2 * world.run.charter.training.duties
    assert {len(a.leaves) for a in record.attendance.values()} == {duties}
    assert record.settled and all(a.settled for a in record.attendance.values())
    terms = world.run.charter.economics
    for name in ("vera", "viktor"):
        assert world.wealth(name) >= world.players[name].wealth + duties * terms.wage
    assert world.wealth("ada") == world.players["ada"].wealth
    assert world.wealth("mallory") < world.players["mallory"].wealth


@pytest.mark.parametrize("milestone", ["a game was opened", "a node was opened", "there was a verdict"])
def test_killed_in_the_reorganization_everybody_finishes_the_game_that_is_left(
    stage: Stage, tmp_path: Path, milestone: str
) -> None:
    world = cast(stage, tmp_path)
    settle_until(world, MILESTONES["leaves were revealed"])
    snapshot = world.stage.chain.rpc("evm_snapshot")
    settle_until(world, MILESTONES[milestone])
    reorganize(world, snapshot)
    for name in world.players:
        world.restart(name)
    world.settle()
    check(world)


@pytest.mark.parametrize("milestone", ["the seed was drawn", "somebody attested"])
def test_a_seed_that_is_drawn_again_is_another_draw_and_nobody_holds_on_to_the_first(
    stage: Stage, tmp_path: Path, milestone: str
) -> None:
    world = cast(stage, tmp_path)
    settle_until(world, lambda s: len(s.rounds[0].commitments) == 2)
    snapshot = world.stage.chain.rpc("evm_snapshot")
    settle_until(world, MILESTONES[milestone])
    while world.sweep() and not world.state.rounds[0].attendance:
        pass
    first = world.state.rounds[0].seed
    reorganize(world, snapshot)
    settle_until(world, MILESTONES["the seed was drawn"])
    assert world.state.rounds[0].seed != first
    world.settle()
    check(world)
