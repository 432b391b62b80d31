"""The chain takes back what everybody saw: each stretch of a round and of a game is mined, undone, and mined again.

The actors live on through it with all that they remember of blocks that are gone.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from assay.protocol.game.state import Outcome
from assay.protocol.types import Role, Round, Status, Wei
from assay_ledger.index.records import RunState
from tests.harness.actors.world import (
    ETHER,
    ActorWorld,
    SharedChain,
    new_world,
    small_work,
    with_a_bit_flipper,
    with_economics,
)

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
    "a digest was selected": lambda s: any(len(g.moves) > 2 for g in s.games.values()),
    "a node was opened": lambda s: any(len(g.moves) > 5 for g in s.games.values()),
    "there was a verdict": lambda s: any(g.is_over for g in s.games.values()),
    "the round was settled": lambda s: s.rounds[0].settled,
}
"""Each is reached twice: what happened since the one before it is undone in between."""


def settle_until(world: ActorWorld, milestone: Milestone) -> None:
    """Everybody acts until the milestone is reached."""

    def reached(state: RunState) -> bool:
        return bool(state.rounds) and milestone(state)

    assert reached(world.settle(reached))


def reorganize(world: ActorWorld, snapshot: object) -> int:
    """The chain goes back to the snapshot and on by a block of its own; returns how many blocks are gone."""
    chain = world.stage.chain
    gone = chain.rpc("eth_getBlockByNumber", "latest", False)
    assert chain.rpc("evm_revert", snapshot)
    kept = chain.head()
    chain.rpc("evm_mine", hex(kept.timestamp + 1))
    assert gone["hash"] != chain.rpc("eth_getBlockByNumber", "latest", False)["hash"]
    return int(gone["number"], 16) - kept.number


def test_a_reorganization_at_any_point_of_round_and_game_changes_no_outcome(stage: SharedChain, tmp_path: Path) -> None:
    world = with_a_bit_flipper(stage, tmp_path)
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


def check(world: ActorWorld) -> None:
    """The run ended as it does on a chain that never forgets."""
    (record,) = world.state.rounds
    endings = {world.name_of(c.solver): c.status for c in record.commitments.values()}
    assert endings == {"ada": Status.FINAL, "mallory": Status.CONVICTED}
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
    stage: SharedChain, tmp_path: Path, milestone: str
) -> None:
    world = with_a_bit_flipper(stage, tmp_path)
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
    stage: SharedChain, tmp_path: Path, milestone: str
) -> None:
    world = with_a_bit_flipper(stage, tmp_path)
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


# --- what was bound under a seed that is gone, and is mined once more


def of_drawn_auditors(stage: SharedChain, folder: Path) -> ActorWorld:
    """Honest people, and auditors who draw most duties and not all: another seed is other duties."""
    change = with_economics(audit_ppm=1_400_000, whistle_ppm=800_000, verifier_bond=Wei(200 * ETHER))
    world = new_world(stage, folder, small_work(), rounds=1, change=change)
    founders = {"first_seats": 2, "first_verifiers": 2}
    for name in ("ada", "bob"):
        world.solver(name, **founders)
    for name in ("vera", "viktor"):
        world.verifier(name, **founders)
    world.whistleblower("wilma")
    world.enrol()
    for player in world.players.values():
        player.wealth = world.wealth(player.name)
    return world


def mine_again(world: ActorWorld, snapshot: object, first: int) -> list[int]:
    """The chain goes back, and every transaction since is block `first` is mined once more, in its order.

    Returns their statuses.
    """
    chain = world.stage.chain
    blocks = [chain.rpc("eth_getBlockByNumber", hex(n), False) for n in range(first + 1, chain.head().number + 1)]
    busy = [block for block in blocks if block["transactions"]]
    raw = [chain.rpc("eth_getRawTransactionByHash", h) for block in busy for h in block["transactions"]]
    assert chain.rpc("evm_revert", snapshot)
    chain.rpc("evm_mine", busy[0]["timestamp"])
    hashes = [chain.rpc("eth_sendRawTransaction", r) for r in raw]
    return [chain.w3.eth.wait_for_transaction_receipt(h, timeout=30)["status"] for h in hashes]


def roots_bound(state: RunState, role: Role) -> int:
    """How many auditors of a role are bound in the first round."""
    return sum(a.role is role for a in state.rounds[0].attendance.values())


STRETCHES: dict[Role, tuple[Milestone, Milestone]] = {
    Role.VERIFIER: (
        lambda s: len(s.rounds[0].commitments) == 2 and all(c.complete for c in s.rounds[0].commitments.values()),
        lambda s: roots_bound(s, Role.VERIFIER) == 2,
    ),
    Role.WHISTLEBLOWER: (
        lambda s: sum(a.y is not None for a in s.rounds[0].attendance.values()) == 2,
        lambda s: roots_bound(s, Role.WHISTLEBLOWER) == 1,
    ),
}
"""Per role: what stands before its seed, and what is bound under it."""


@pytest.mark.parametrize("role", STRETCHES, ids=lambda role: role.name.lower())
def test_a_root_bound_under_a_seed_that_is_gone_is_refused_and_bound_anew(
    stage: SharedChain, tmp_path: Path, role: Role
) -> None:
    world = of_drawn_auditors(stage, tmp_path)
    before, after = STRETCHES[role]
    settle_until(world, before)
    snapshot = world.stage.chain.rpc("evm_snapshot")
    kept = world.stage.chain.head().number
    settle_until(world, after)
    gone = seeds(world)
    statuses = mine_again(world, snapshot, kept)
    (record,) = world.settle().rounds
    assert seeds(world) != gone
    terms = world.run.charter.economics
    for name in ("vera", "viktor", "wilma"):
        mine, memory = record.attendance[world.address(name)], world.players[name].agent.memory
        drawn = {(duty.seat, duty.number) for duty in memory.duties[Round(0)]}
        assert drawn and set(mine.leaves) == drawn and mine.settled
        assert world.wealth(name) == world.players[name].wealth + len(drawn) * terms.wage
    assert not world.state.games
    assert sorted(statuses) == [0] * (len(statuses) - 1) + [1], "the seed was drawn again and no root was taken"


def seeds(world: ActorWorld) -> tuple[object, object]:
    """Both seeds of the first round."""
    record = world.state.rounds[0]
    return record.seed, record.whistle_seed
