"""A coalition loses its own true outer step on purpose, after others have built on it: the honest uphold it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from assay.protocol.game.state import Outcome
from assay.protocol.program.trace import Trace
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Digest, Round, Status
from assay_ledger.agents.actions import Action, Play, PostOuter
from assay_ledger.agents.agent import Agent
from assay_ledger.index.games import Game
from assay_ledger.index.records import GameRecord, OuterRecord, RunState
from assay_ledger.index.view import RunView
from assay_solver.lies import Lie, is_computed
from tests.harness.actors.world import COMPUTE, ActorWorld, SharedChain, new_world, small_work, with_economics
from tests.integration.actors.test_outer_steps import until_t7

FOUNDERS = {"first_seats": 3, "first_verifiers": 1}
HONEST, CROOKS = ("ada", "vera"), ("mallory", "trudy")
ROUNDS = 3


def cast(stage: SharedChain, folder: Path) -> ActorWorld:
    """Two honest participants and two crooks, in a run that pays."""
    world = new_world(stage, folder, small_work(), rounds=ROUNDS, change=with_economics(pays=True))
    for name in ("ada", *CROOKS):
        world.solver(name, **FOUNDERS)
    world.verifier("vera", **FOUNDERS)
    for player in world.players.values():
        player.wealth = world.wealth(player.name)
    return world


def gain(world: ActorWorld, *names: str) -> int:
    return sum(world.wealth(name) - world.players[name].wealth for name in names)


def refuse(agent: Agent, unwanted: Callable[[Action, RunView], bool]) -> None:
    """From now on the agent leaves some actions out."""
    before = agent.candidates

    def candidates(view: RunView) -> Iterator[Action]:
        return (action for action in before(view) if not unwanted(action, view))

    agent.candidates = candidates  # type: ignore[method-assign]


class GarbledTrace:
    """A true end after a false trace: every opening of the changed node is garbage."""

    def __init__(self, true: Trace, false: Trace) -> None:
        self.true, self.false = true, false

    def state_root(self, step: int) -> Digest:
        return self.true.state_root(step)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.false, name)


def garble(agent: Agent) -> None:
    """The agent opens garbage in its own games on outer steps."""

    def trace_of(game: Game, view: RunView) -> Any:
        job, _, _ = agent._disputed(game.ref, view)  # type: ignore[attr-defined]
        node = next(k for k in range(len(job.program.nodes)) if is_computed(job.program, k))
        lie = Lie({(1, node): lambda data: bytes([data[0] ^ 1]) + data[1:]})
        true = COMPUTE.trace(job.program, job.lists, job.steps)
        return GarbledTrace(true, COMPUTE.trace(job.program, job.lists, job.steps, lie))

    agent.trace_of = trace_of  # type: ignore[attr-defined]


def mallory_posts_first(world: ActorWorld) -> OuterRecord:
    """The true root of round 0, with mallory alone behind it."""
    until_t7(world)
    mallory = world.players["mallory"].agent
    while not world.state.rounds[0].outers:
        if not mallory.step():
            world.stage.chain.rpc("evm_mine", hex(world.stage.chain.head().timestamp + 30))
    (outer,) = world.state.rounds[0].outers.values()
    assert set(outer.posters) == {world.address("mallory")}
    return outer


def attack(world: ActorWorld, by: str, on: str, root: Digest) -> None:
    """A participant challenges an outer claim of round 0, true or not."""
    agent = world.players[by].agent
    ref = ClaimRef(ClaimKind.OUTER, Round(0), party=world.address(on), outer_root=root)
    agent.send(world.run.game.challenge(ref))


def rounds_open(count: int) -> Callable[[RunState], bool]:
    return lambda state: len(state.rounds) == count


def game_of(world: ActorWorld, defender: str) -> GameRecord:
    (game,) = (g for g in world.verdicts() if g.defender == world.address(defender))
    return game


def assert_upheld(world: ActorWorld, root: Digest, lost: int) -> None:
    """All work is final and paid, the coalition poorer by `lost` than if it had been honest, no other party touched."""
    state, terms = world.state, world.run.charter.economics
    outer = state.rounds[0].outers[root]
    assert not outer.fallen
    for name in HONEST:
        assert outer.posters[world.address(name)] is Status.FINAL
    commitments = [c for record in state.rounds for c in record.commitments.values()]
    assert len(commitments) == 3 * ROUNDS and all(c.status is Status.FINAL for c in commitments)
    assert all(record.settled for record in state.rounds)
    assert gain(world, "ada") == ROUNDS * terms.price
    assert gain(world, "vera") == 3 * ROUNDS * world.run.charter.training.duties * terms.wage
    assert gain(world, *CROOKS) == 2 * ROUNDS * terms.price - lost


def test_an_outer_step_lost_by_silence_and_again_by_its_rescuer_is_upheld(stage: SharedChain, tmp_path: Path) -> None:
    """Two rescue at once, and one of them is the loser's friend."""
    world = cast(stage, tmp_path)
    root = mallory_posts_first(world).root
    for name in CROOKS:
        refuse(world.players[name].agent, lambda action, view: isinstance(action, Play) and _defends(action, view))
    world.settle(rounds_open(3))
    attack(world, "trudy", "mallory", root)
    trudy = world.address("trudy")
    world.settle(lambda state: trudy in state.rounds[0].outers[root].posters)
    attack(world, "mallory", "trudy", root)
    world.settle()
    for name in CROOKS:
        assert game_of(world, name).convicted and game_of(world, name).outcome is Outcome.DEFAULT
    terms = world.run.charter.economics
    assert_upheld(world, root, 2 * (terms.price - terms.price * terms.bounty_ppm // 1_000_000))


def _defends(action: Play, view: RunView) -> bool:
    return view.state.games[action.game_id].defender == view.me


def test_an_outer_step_lost_by_garbage_beside_a_false_one_is_upheld(stage: SharedChain, tmp_path: Path) -> None:
    """The false root is posted just before round 2, so that one of round 0 stands when the true one falls."""
    world = cast(stage, tmp_path)
    root = mallory_posts_first(world).root
    mallory, trudy = (world.players[name].agent for name in CROOKS)
    garble(mallory)
    refuse(mallory, lambda action, view: isinstance(action, Play) and len(view.state.rounds) < 3)
    refuse(trudy, lambda action, view: isinstance(action, PostOuter) and action.round == 0)
    world.settle(lambda state: len(state.rounds) == 2 and state.head.timestamp >= state.rounds[1].times.leaves_until)
    genesis = mallory.facts.genesis
    _, x = world.state.rounds[0].inclusions[genesis]
    trudy.send(world.run.outers.post_outer(0, genesis, x, b"\x01" * 32, b"\x02" * 32))
    attack(world, "trudy", "mallory", root)
    (false_root,) = (outer.root for outer in world.settle(_two_roots).rounds[0].outers.values() if outer.root != root)
    state = world.settle(lambda state: state.rounds[0].outers[root].fallen)
    assert len(state.rounds) == 3 and not state.rounds[0].outers[false_root].fallen
    assert game_of(world, "mallory").outcome is Outcome.LEAF
    state = world.settle()
    assert state.rounds[0].outers[false_root].fallen
    terms = world.run.charter.economics
    burnt = terms.price - terms.price * terms.bounty_ppm // 1_000_000
    # The challenger of the false root has its bounty.
    (hunter,) = (g.challenger for g in world.verdicts() if g.ref.outer_root == false_root and g.bounty)
    world.players[world.name_of(hunter)].wealth += terms.price - burnt
    assert_upheld(world, root, burnt + terms.price)


def _two_roots(state: RunState) -> bool:
    return len(state.rounds[0].outers) == 2


def test_a_false_root_claimed_from_two_bases_is_challenged_at_the_true_base(stage: SharedChain, tmp_path: Path) -> None:
    world = cast(stage, tmp_path)
    until_t7(world)
    mallory, trudy = (world.players[name].agent for name in CROOKS)
    inclusion, post = world.run.outers.inclusion_of, world.run.outers.post_outer
    genesis = mallory.facts.genesis
    false_lists = b"\x01" * 32, b"\x02" * 32
    trudy.send(post(0, genesis, trudy.chain.ask(inclusion(0, genesis))[1], *false_lists))
    state = world.settle(lambda state: len(state.rounds) == 2 and state.head.timestamp >= state.rounds[1].times.t7)
    (false_base,) = (root for root, outer in state.rounds[0].outers.items() if outer.parameters == false_lists[0])
    true_base = mallory.see().verified_base(state.rounds[1].number)
    false_lists = b"\x03" * 32, b"\x04" * 32
    for liar, base in ((trudy, false_base), (mallory, true_base)):
        liar.send(post(1, base, liar.chain.ask(inclusion(1, base))[1], *false_lists))
    state = world.settle()
    (false_root,) = (outer for outer in state.rounds[1].outers.values() if outer.parameters == false_lists[0])
    assert false_root.base == false_base and false_root.fallen
    assert false_root.posters == {trudy.me: Status.VOID, mallory.me: Status.CONVICTED}
    commitments = [c for record in state.rounds for c in record.commitments.values()]
    assert len(commitments) == 3 * ROUNDS and all(c.status is Status.FINAL for c in commitments)
    assert gain(world, "ada") >= ROUNDS * world.run.charter.economics.price
