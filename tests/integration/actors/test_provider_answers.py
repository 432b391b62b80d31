"""An actor's loop over a provider: whatever it answers for a while, the loop goes on, and the move is made."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from assay.protocol.game.table import Side
from assay_ledger.agents.agent import Agent
from assay_ledger.chain.client import Chain
from assay_ledger.rounds.run import Run
from tests.harness.actors.disputed import Puppet, again, aside
from tests.harness.actors.whole_run import WholeRun
from tests.harness.providers import BODIES, ERRORS, ProviderNode, Reply, Twist, changed, every, refused, said

MOVED_IN_S = 300.0
"""For a loop that does not go on at all; a turn has 600 of chain time, which stands still while the loop does."""


@dataclass
class ProvidedGame:
    """A game that ada defends, over a provider of her own."""

    made: WholeRun
    provider: ProviderNode
    game_id: int

    def begin(self) -> Agent:
        """Her process starts anew, with nothing in flight that a test before this one took back."""
        self.made.players["ada"].agent.close()
        (self.made.folder / "ada" / "outbox.jsonl").unlink(missing_ok=True)
        # What is asked of a client is that it waits; that it waits in real time is tested elsewhere.
        chain = Chain(self.provider.url, sleep=lambda seconds: time.sleep(min(seconds, 0.005)))
        return again(self.made, "ada", run=Run(chain, self.made.run.address, self.made.run.first_block))

    @property
    def is_answered(self) -> bool:
        """Whether she has moved."""
        return self.made.run.games.game(self.game_id).state.turn is not Side.DEFENDER


@pytest.fixture(scope="module")
def defended(disputed: WholeRun) -> Iterator[ProvidedGame]:
    with ProviderNode(disputed.stage.node.url) as provider, aside(disputed):
        game = Puppet(disputed).challenge()
        yield ProvidedGame(disputed, provider, game)
        provider.turn()


class RunningLoop:
    """`Agent.run` in a thread of its own, and what it ended with."""

    def __init__(self, agent: Agent) -> None:
        self.agent, self.stop, self.error = agent, threading.Event(), list[BaseException]()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            self.agent.run(self.stop)
        except BaseException as error:
            self.error.append(error)

    def __enter__(self) -> RunningLoop:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        self.thread.join(MOVED_IN_S)
        assert not self.thread.is_alive()


def check_moves(defended: ProvidedGame, answer: Twist | Reply, times: int, methods: tuple[str, ...] = ()) -> None:
    """Ada's loop begins, the provider answers so for so many calls, and she moves all the same."""
    with aside(defended.made):
        defended.provider.turn()
        agent = defended.begin()
        older_than[0] = defended.made.chain.head().number
        defended.provider.turn(answer, times, methods)
        start, asked = time.monotonic(), 0
        with RunningLoop(agent) as loop:
            # The chain may show her move before she has asked for its receipt.
            while not (defended.is_answered and defended.provider.answered):
                assert not loop.error, f"the loop ended: {loop.error[0]!r}"
                assert time.monotonic() - start < MOVED_IN_S, "no move"
                # What a node refused is tried again at a later block: which comes once the loop has asked anew, or the
                # turn would be over before a slow machine has computed the move.
                if asked < (asked := len(defended.provider.asked)):
                    defended.made.chain.rpc("evm_mine")
                loop.stop.wait(0.1)
        assert not loop.error
        defended.provider.turn()


OFTEN = ("HTML for JSON", "429 with Retry-After", "a result that is {}", "limit exceeded", "header not found")
WHILE = [
    pytest.param(reply, id=name, marks=() if name in OFTEN else pytest.mark.long)
    for name, reply in {**BODIES, **ERRORS}.items()
]


@pytest.mark.parametrize("reply", WHILE)
@pytest.mark.gate_takes(3)
def test_a_loop_outlives_a_provider_that_answers_nothing_else_for_a_while(defended: ProvidedGame, reply: Reply) -> None:
    check_moves(defended, reply, 40)


def older(params: list[Any], ask: Any) -> Reply:
    """What a node says that is two blocks behind."""
    return said(ask(*params[:-1], hex(int(older_than[0]) - 2)))


older_than = [0]
"""The head when the test begins."""


def no_fields(found: Any) -> Any:
    """A block or logs of which only every second field is left."""
    cut = lambda entry: dict(list(entry.items())[::2]) if isinstance(entry, dict) else entry  # noqa: E731
    return [cut(entry) for entry in found] if isinstance(found, list) else cut(found)


def small_ranges(params: list[Any], ask: Any) -> Reply | None:
    """No more than two blocks at once."""
    wanted = params[0]
    if "blockHash" in wanted or int(wanted["toBlock"], 16) - int(wanted["fromBlock"], 16) < 2:
        return None
    return refused(-32005, "query returned more than 10000 results")


SOMETIMES: dict[str, tuple[Twist | Reply, int, tuple[str, ...]]] = {
    "every third call is one too many": (every(3, ERRORS["rate limit with Retry-After"]), 1 << 30, ()),
    "every fourth call is HTML": (every(4, BODIES["HTML for JSON"]), 1 << 30, ()),
    "two blocks of logs at once": (small_ranges, 1 << 30, ("eth_getLogs",)),
    "blocks with half their fields": (changed(no_fields), 3, ("eth_getBlockByNumber",)),
    "logs with half their fields": (changed(no_fields), 3, ("eth_getLogs",)),
    "an unknown block for logs": (refused(-32000, "unknown block"), 12, ("eth_getLogs",)),
    "a call without a state": (ERRORS["missing trie node"], 20, ("eth_call", "eth_estimateGas")),
    "a call on a block without the contract": (said("0x"), 6, ("eth_call",)),
    "a call refused on an older block": (refused(3, "execution reverted"), 4, ("eth_call", "eth_estimateGas")),
    "every second call on an older block": (every(2, older), 1 << 30, ("eth_call",)),
    "an aborted estimate": (ERRORS["execution aborted"], 4, ("eth_estimateGas",)),
    "a limit on sending": (ERRORS["limit exceeded"], 5, ("eth_sendRawTransaction",)),
    "a transaction that is underpriced": (
        refused(-32000, "replacement transaction underpriced"),
        2,
        ("eth_sendRawTransaction",),
    ),
    "a receipt that is []": (said([]), 5, ("eth_getTransactionReceipt",)),
    "a nonce from an older block": (said("0x0"), 3, ("eth_getTransactionCount",)),
    "a senseless fee history": (said({"baseFeePerGas": [{}], "reward": "x"}), 1 << 30, ("eth_feeHistory",)),
}


@pytest.mark.parametrize("name", SOMETIMES)
@pytest.mark.gate_takes(8)
def test_a_loop_goes_on_over_a_provider_that_fails_now_and_then(defended: ProvidedGame, name: str) -> None:
    answer, times, methods = SOMETIMES[name]
    check_moves(defended, answer, times, methods)
