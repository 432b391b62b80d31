"""Two honest challengers open games on one false claim at once, and the agents play both to the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.errors import RejectedError
from assay.protocol.game.state import Outcome
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Status
from assay_ledger.agents.actions import Challenge
from assay_ledger.agents.agent import Agent
from assay_solver.cheats import cheat_named
from assay_verifier import attesting
from tests.harness.actors.world import ActorWorld, SharedChain, new_world, small_work

FOUNDERS = {"first_seats": 2, "first_verifiers": 2}
ACCUSERS = ("vera", "viktor")


def disputed(stage: SharedChain, folder: Path) -> ActorWorld:
    """A round in which one solver lied and both verifiers know it; there is no challenge yet."""
    world = new_world(stage, folder, small_work(), rounds=1)
    world.solver("ada", **FOUNDERS)
    world.solver("mallory", cheat=cheat_named("bit-flip", 1), **FOUNDERS)
    for name in ACCUSERS:
        world.verifier(name, **FOUNDERS)
    for player in world.players.values():
        player.wealth = world.wealth(player.name)
    while not all(knows(world.players[name].agent) for name in ACCUSERS):
        step_until_revealed(world)
    assert not world.state.games
    return world


def knows(agent: Agent) -> list[ClaimRef]:
    """The claims that an auditor's own revealed results contradict."""
    return [ref for _, _, refs in attesting.false_claims(agent.see()) for ref in refs]


def step_until_revealed(world: ActorWorld) -> None:
    """Everybody acts, but a verifier that has revealed its leaves waits for the other."""
    acted = False
    for name, player in world.players.items():
        if name not in ACCUSERS or not knows(player.agent):
            acted |= player.agent.step()
    if not acted:
        now = world.stage.chain.head().timestamp
        times = [p.agent.deadline for p in world.players.values() if p.agent.deadline is not None]
        world.stage.chain.rpc("evm_mine", hex(min((t for t in times if t > now), default=now + 1)))


def gain(world: ActorWorld, name: str) -> int:
    """What an actor's wealth in the vault has changed by."""
    return world.wealth(name) - world.players[name].wealth


def test_both_win_their_own_game_and_both_are_made_whole(stage: SharedChain, tmp_path: Path) -> None:
    world = disputed(stage, tmp_path)
    for name in ACCUSERS:
        agent = world.players[name].agent
        agent.perform(Challenge(knows(agent)[0]), agent.see())
    world.settle()
    games = world.verdicts()
    assert {world.name_of(g.challenger) for g in games} == set(ACCUSERS) and len(games) == 2
    assert all(g.convicted and g.outcome is Outcome.LEAF for g in games)
    terms = world.run.charter.economics
    # One lock is taken once: what it burns is burned once, and the bounty pays for both defences.
    assert sorted(g.burned for g in games) == [0, terms.claim_lock - terms.claim_lock * terms.bounty_ppm // 1_000_000]
    wages = 2 * world.run.charter.training.duties * terms.wage
    assert all(gain(world, name) >= wages for name in ACCUSERS)
    assert any(gain(world, name) > wages for name in ACCUSERS)
    assert gain(world, "ada") == 0 and gain(world, "mallory") < 0
    (record,) = world.state.rounds
    endings = {world.name_of(c.solver): c.status for c in record.commitments.values()}
    assert endings == {"ada": Status.FINAL, "mallory": Status.CONVICTED}


def test_a_defender_withdrawing_in_mid_dispute_leaves_its_lock_to_the_verdict(
    stage: SharedChain, tmp_path: Path
) -> None:
    world = disputed(stage, tmp_path)
    vera, mallory = world.players["vera"].agent, world.players["mallory"].agent
    vera.perform(Challenge(knows(vera)[0]), vera.see())
    vault = world.run.vault
    free = world.stage.chain.ask(vault.free(mallory.me))
    with pytest.raises(RejectedError) as refused:
        mallory.send(vault.request_exit(free + 1))
    assert refused.value.code == "InsufficientFree"
    mallory.send(vault.request_exit(free))
    world.settle()
    (game,) = world.verdicts()
    assert game.convicted and game.outcome is Outcome.LEAF
    terms = world.run.charter.economics
    assert game.taken == terms.claim_lock
    # Refunds of its replies came from the challenger's bond: an empty purse defends itself as well.
    assert gain(world, "vera") > 0
    amount, _ = world.stage.chain.ask(vault.exiting(mallory.me))
    assert amount == free and world.stage.chain.ask(vault.free(mallory.me)) < terms.claim_lock
