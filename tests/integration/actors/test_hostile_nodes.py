"""An honest solver in a game whose node hangs, drips or talks nonsense for a while: it moves once it is answered."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.game.table import Side
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.chain.client import Chain
from assay_ledger.index.run import Run
from assay_solver.agent import SolverAgent
from tests.harness.actors.claims import ClaimsRun, aside
from tests.harness.actors.world import COMPUTE, ActorWorld, SharedChain, new_world, small_work
from tests.harness.nodes import NONSENSE, SILENCES, HostileNode

CALL_S = 0.5


@dataclass
class DefendedGame:
    """A game that ada defends, over a node of her own."""

    world: ActorWorld
    claims: ClaimsRun
    node: HostileNode
    game_id: int


@pytest.fixture(scope="module")
def played(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> Iterator[DefendedGame]:
    node = HostileNode(stage.node.url)
    world = new_world(stage, tmp_path_factory.mktemp("nodes"), small_work(), rounds=1)

    def make(keys: object, folder: object) -> SolverAgent:
        run = Run(Chain(node.url, retry_for_s=CALL_S, timeout_s=CALL_S), world.run.address)
        return SolverAgent(run, keys, world.store, folder, compute=COMPUTE)  # type: ignore[arg-type]

    world.add("ada", make)
    world.verifier("vera")
    claims = ClaimsRun(world, world.keys("stranger"))
    world.settle(lambda state: bool(state.rounds) and any(a.leaves for a in state.rounds[0].attendance.values()))
    game = claims.challenge_as_third_party(ClaimRef(ClaimKind.INTERVAL, Round(0), Seat(0), 1), Digest(b"\x55" * 32))
    yield DefendedGame(world, claims, node, game)
    node.close()


def seconds_to_move(played: DefendedGame) -> float:
    """As `Agent.run` does it: what is unavailable is asked for again, anything else ends the actor."""
    agent, start = played.world.players["ada"].agent, time.monotonic()
    while played.world.run.games.game(played.game_id).state.turn is Side.DEFENDER:
        try:
            agent.step()
        except UnavailableError:
            time.sleep(0.01)
        assert time.monotonic() - start < 30, "no move"
    return time.monotonic() - start


OFTEN = ("hangs", "drips", "HTML", "an object", "deep brackets")
SELDOM = [pytest.param(how, marks=pytest.mark.long) for how in (*SILENCES, *NONSENSE) if how not in OFTEN]


@pytest.mark.parametrize("how", [*OFTEN, *SELDOM])
def test_a_node_that_is_hostile_for_a_while_in_a_game_costs_no_more_than_the_while(
    played: DefendedGame, how: str
) -> None:
    with aside(played.claims):
        played.world.restart("ada")
        played.node.turn(how, left=4)
        seconds = seconds_to_move(played)
        assert played.node.mistreated == 4
        print(f"{how}: {seconds:.1f} s, of which at most {4 * CALL_S:.1f} are the node's")


@pytest.mark.parametrize("method", ["eth_getLogs", "eth_call", "eth_getBlockByNumber"])
@pytest.mark.parametrize("how", ["a list of objects", pytest.param("an object", marks=pytest.mark.long)])
def test_what_fails_in_the_middle_of_reading_leaves_nothing_half_read(
    played: DefendedGame, how: str, method: str
) -> None:
    with aside(played.claims):
        agent = played.world.restart("ada")
        played.node.turn(how, left=1, method=method)
        with pytest.raises(UnavailableError):
            agent.step()
        assert played.node.mistreated == 1
        seconds_to_move(played)
        # As if it had not been: the records are those of a node that answered at once.
        assert agent.state.rounds == played.world.players["vera"].agent._index.sync().rounds


@pytest.mark.parametrize(
    "method", ["eth_estimateGas", "eth_getTransactionCount", "eth_sendRawTransaction", "eth_getTransactionReceipt"]
)
@pytest.mark.parametrize("how", ["closes", "an object"])
def test_what_fails_in_the_middle_of_a_move_is_tried_again(played: DefendedGame, how: str, method: str) -> None:
    with aside(played.claims):
        played.world.restart("ada")
        played.node.turn(how, left=1, method=method)
        seconds_to_move(played)
        assert played.node.mistreated
