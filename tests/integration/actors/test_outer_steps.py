"""Outer steps: wrong ones are challenged without a draw, right ones upheld, and no work builds on what falls."""

from __future__ import annotations

from pathlib import Path

from assay.protocol.game.state import Outcome
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Round, Status
from assay_ledger.agents.agent import Agent
from tests.harness.actors.world import ActorWorld, SharedChain, new_world, small_work

FOUNDERS = {"first_seats": 2, "first_verifiers": 1}


def cast(stage: SharedChain, folder: Path) -> ActorWorld:
    world = new_world(stage, folder, small_work(), rounds=2)
    for name in ("ada", "mallory"):
        world.solver(name, **FOUNDERS)
    world.verifier("vera", **FOUNDERS)
    for player in world.players.values():
        player.wealth = world.wealth(player.name)
    return world


def post_false_root(world: ActorWorld) -> None:
    """Mallory is first at T7, with lists that no outer step ends in."""
    mallory = world.players["mallory"].agent
    post = world.run.outers.post_outer
    genesis = mallory.facts.genesis
    _, x, _ = mallory.chain.ask(world.run.outers.inclusion_of(0, genesis))
    mallory.send(post(0, genesis, x, b"\x01" * 32, b"\x02" * 32))


def until_t7(world: ActorWorld) -> None:
    """Time passes until the outer step of round 0 may be posted; no actor acts at that head yet."""
    while not world.state.rounds:
        world.sweep()
    t7 = world.state.rounds[0].times.t7
    while True:
        while world.sweep():
            pass
        times = [p.agent.deadline for p in world.players.values() if p.agent.deadline is not None]
        waiting = min(t for t in times if t > world.stage.chain.head().timestamp)
        world.stage.chain.rpc("evm_mine", hex(waiting))
        if waiting >= t7:
            return


def test_a_false_outer_root_is_challenged_and_the_right_one_posted_beside_it(
    stage: SharedChain, tmp_path: Path
) -> None:
    world = cast(stage, tmp_path)
    until_t7(world)
    post_false_root(world)
    state = world.settle()
    first, second = state.rounds
    games = world.verdicts()
    assert games and {g.ref.kind for g in games} == {ClaimKind.OUTER}
    assert {world.name_of(g.defender) for g in games} == {"mallory"}
    # Its own run does not end in what it claims, so it has no move that the contract takes.
    assert sum(g.convicted for g in games) == 1 and games[0].outcome is Outcome.DEFAULT
    roots = {outer.fallen: outer for outer in first.outers.values()}
    assert roots.keys() == {True, False}
    assert set(roots[False].posters.values()) == {Status.FINAL}
    # The next round stands on the root that its solvers verified; the work of all is final.
    assert {c.base for c in second.commitments.values()} == {roots[False].root}
    assert all(c.status is Status.FINAL for c in [*first.commitments.values(), *second.commitments.values()])
    price = world.run.charter.economics.price
    assert world.wealth("mallory") == world.players["mallory"].wealth - price
    assert world.wealth("ada") >= world.players["ada"].wealth
    assert world.wealth("vera") > world.players["vera"].wealth


def test_whoever_challenges_a_true_outer_step_loses_its_bond_at_the_contract(
    stage: SharedChain, tmp_path: Path
) -> None:
    world = cast(stage, tmp_path)
    until_t7(world)
    mallory = world.players["mallory"].agent
    while not world.state.rounds[0].outers:
        mallory.step()
        if not mallory.step():
            world.stage.chain.rpc("evm_mine", hex(world.stage.chain.head().timestamp + 30))
    (root,) = world.state.rounds[0].outers
    _attack(world.players["vera"].agent, world, root)
    state = world.settle()
    (game,) = world.verdicts()
    assert game.outcome is Outcome.LEAF and not game.convicted
    outer = state.rounds[0].outers[root]
    assert not outer.fallen and Status.FINAL in outer.posters.values()
    assert all(c.status is Status.FINAL for record in state.rounds for c in record.commitments.values())
    terms = world.run.charter.economics
    assert world.wealth("mallory") > world.players["mallory"].wealth
    duties = 2 * 2 * world.run.charter.training.duties
    assert world.wealth("vera") == world.players["vera"].wealth + duties * terms.wage - terms.challenge_bond


def _attack(who: Agent, world: ActorWorld, root: bytes) -> None:
    """A challenge of a true outer claim, which its maker then cannot win, however well it plays."""
    poster = world.address("mallory")
    who.send(world.run.game.challenge(ClaimRef(ClaimKind.OUTER, Round(0), party=poster, outer_root=root)))
