"""An honest solver in a game whose node hangs, drips or talks nonsense for a while: it moves once it is answered."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.game.table import Side
from assay_ledger.agents.agent import Agent
from assay_ledger.chain.client import Chain
from assay_ledger.rounds.run import Run
from tests.harness.actors.disputed import Puppet, again, aside
from tests.harness.actors.whole_run import WholeRun
from tests.harness.nodes import NONSENSE, SILENCES, HostileNode

T = TypeVar("T")

CALL_S = 2.0
"""Of the node's silence; on a slow machine an answer may take longer, and is asked for again."""

MOVED_IN_S = 300.0


@dataclass
class DefendedGame:
    """A game that ada defends, over a node of her own."""

    made: WholeRun
    run: Run
    node: HostileNode
    game_id: int

    def restarted(self) -> Agent:
        """Her process starts anew."""
        return once_it_answers(lambda: again(self.made, "ada", run=self.run))


def once_it_answers(ask: Callable[[], T]) -> T:
    """What a node says that is not hostile, in as many calls as a slow machine takes."""
    until = time.monotonic() + MOVED_IN_S
    while True:
        try:
            return ask()
        except UnavailableError:
            assert time.monotonic() < until


@pytest.fixture(scope="module")
def played(disputed: WholeRun) -> Iterator[DefendedGame]:
    node = HostileNode(disputed.stage.node.url)
    chain = once_it_answers(lambda: Chain(node.url, retry_for_s=0.1, timeout_s=CALL_S))
    with aside(disputed):
        game = Puppet(disputed).challenge()
        run = Run(chain, disputed.run.address, disputed.run.first_block)
        yield DefendedGame(disputed, run, node, game)
        node.turn(None)
    node.close()


def seconds_to_move(played: DefendedGame) -> float:
    """As `ActorLoop.run` does it: what is unavailable is asked for again, anything else ends the actor."""
    agent, start = played.made.players["ada"].agent, time.monotonic()
    while played.made.run.games.game(played.game_id).state.turn is Side.DEFENDER:
        try:
            agent.step()
        except UnavailableError:
            time.sleep(0.01)
        assert time.monotonic() - start < MOVED_IN_S, "no move"
    return time.monotonic() - start


OFTEN = ("hangs", "drips", "HTML", "an object", "deep brackets")
SELDOM = [pytest.param(how, marks=pytest.mark.long) for how in (*SILENCES, *NONSENSE) if how not in OFTEN]


@pytest.mark.parametrize("how", [*OFTEN, *SELDOM])
@pytest.mark.gate_takes(3)
def test_a_node_that_is_hostile_for_a_while_in_a_game_costs_no_more_than_the_while(
    played: DefendedGame, how: str
) -> None:
    with aside(played.made):
        played.restarted()
        played.node.turn(how, left=4)
        seconds = seconds_to_move(played)
        assert played.node.mistreated == 4
        print(f"{how}: {seconds:.1f} s, of which at most {4 * CALL_S:.1f} are the node's")


@pytest.mark.parametrize("method", ["eth_getLogs", "eth_call", "eth_getBlockByNumber"])
@pytest.mark.parametrize("how", ["a list of objects", pytest.param("an object", marks=pytest.mark.long)])
def test_what_fails_in_the_middle_of_reading_leaves_nothing_half_read(
    played: DefendedGame, how: str, method: str
) -> None:
    with aside(played.made):
        agent = played.restarted()
        played.node.turn(how, left=1, method=method)
        with suppress(UnavailableError):
            agent.step()
        assert played.node.mistreated == 1
        seconds_to_move(played)
        # As if it had not been: the records are those of a node that answered at once.
        state, other = once_it_answers(lambda: agent.see().state), played.made.view.state  # type: ignore[attr-defined]
        assert (state.works, state.games, state.merged) == (other.works, other.games, other.merged)


@pytest.mark.parametrize(
    "method", ["eth_estimateGas", "eth_getTransactionCount", "eth_sendRawTransaction", "eth_getTransactionReceipt"]
)
@pytest.mark.parametrize("how", ["closes", "an object"])
@pytest.mark.gate_takes(4)
def test_what_fails_in_the_middle_of_a_move_is_tried_again(played: DefendedGame, how: str, method: str) -> None:
    with aside(played.made):
        played.restarted()
        played.node.turn(how, left=1, method=method)
        seconds_to_move(played)
        assert played.node.mistreated
