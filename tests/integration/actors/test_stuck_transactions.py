"""An honest defender's clock runs while its transactions meet a pool that holds, loses and outprices them.

The pool is a public node's (`tests/harness/mempool.py`); the contracts, the game and the agents are the real ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from eth_account import Account

from assay.protocol.errors import AssayError
from assay.protocol.game.clock import DEFERRALS
from assay.protocol.game.state import Outcome
from assay.protocol.game.table import Side
from assay_ledger.agents.agent import Agent
from assay_ledger.chain.client import Chain
from assay_ledger.chain.sent import Payload
from tests.harness.actors.game_floods import Flood, flooded
from tests.harness.actors.world import ActorWorld, SharedChain
from tests.harness.mempool import GWEI, Held, Mempool


@dataclass
class Siege:
    """One game against an honest solver behind a public node."""

    pool: Mempool
    world: ActorWorld
    flood: Flood

    @property
    def ada(self) -> Agent:
        """The defender."""
        return self.world.players["ada"].agent

    def on_reply(self, act: Callable[[Held], None]) -> None:
        """`act` is told of every transaction of the defender that the pool takes."""
        who = self.ada.account.address.lower()
        self.pool.on_taken = lambda held: act(held) if held.sender == who else None

    def play(self) -> None:
        """To the end; chain time moves on to what the defender waits for. The defender must not lose."""
        chain = self.world.stage.chain
        for _ in range(60):
            if not self.flood.select():
                break
            while self.ada.step():
                pass
            (game,) = list(self.flood.games()) or [None]
            if game is not None and game.state.turn is Side.DEFENDER:
                assert self.ada.deadline is not None
                now = chain.head().timestamp
                if self.ada.deadline > now:
                    chain.rpc("evm_mine", hex(self.ada.deadline))
        found = self.world.run.games.verdict(1)
        assert found is not None
        assert (found[0].side, found[0].outcome) == (Side.CHALLENGER, Outcome.LEAF)


@pytest.fixture(scope="module")
def opened(stage: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> tuple[ActorWorld, Flood]:
    """A round up to where a puppet has opened a game on the honest solver's work."""
    world, _, flood = flooded(stage, tmp_path_factory.mktemp("run"), 1)
    return world, flood


@pytest.fixture
def siege(stage: SharedChain, opened: tuple[ActorWorld, Flood]) -> Iterator[Siege]:
    world, flood = opened
    before, snapshot = stage.chain, stage.chain.rpc("evm_snapshot")
    with Mempool(stage.node, every_s=0.005) as pool:
        pool.mine()
        besieged = Siege(pool, world, flood)
        stage.chain = Chain(pool.url)
        restarted(besieged)
        try:
            yield besieged
        finally:
            pool.is_mining = False
            stage.chain = world.run.chain = world.run.games.chain = before
            stage.node.rpc("anvil_setBlockTimestampInterval", 1)
            stage.node.rpc("evm_setAutomine", True)
    assert stage.chain.rpc("evm_revert", snapshot)
    world.players["ada"].agent.close()
    (world.folder / "ada" / "outbox.jsonl").unlink(missing_ok=True)


def restarted(siege: Siege) -> Agent:
    """The defender's process starts anew, with a connection of its own."""
    run = siege.world.run
    run.chain = run.games.chain = Chain(siege.pool.url)
    return siege.world.restart("ada")


@pytest.mark.parametrize("factor", (2.5, 8))
def test_a_base_fee_that_rises_while_a_reply_waits_convicts_nobody_honest(siege: Siege, factor: float) -> None:
    siege.on_reply(lambda held: setattr(siege.pool, "base", int(factor * GWEI)))
    siege.play()
    assert siege.world.stage.chain.head().base_fee > 2 * GWEI


def test_replies_that_the_pool_loses_are_sent_again(siege: Siege) -> None:
    lost: list[Held] = []

    def lose(held: Held) -> None:
        siege.pool.mines_empty = True
        if held.nonce not in {h.nonce for h in lost}:
            lost.append(held)
            siege.pool.lose_everything()

    siege.on_reply(lose)
    siege.play()
    assert len(lost) >= 4


def test_above_the_cap_the_defender_waits_and_defers_and_then_moves_at_any_fee(siege: Siege) -> None:
    cap = siege.world.run.charter.chain.fee_cap
    siege.on_reply(lambda held: setattr(siege.pool, "base", 3 * cap))
    siege.play()
    game = siege.world.state.games[1]
    assert game.deferrals[Side.DEFENDER] == DEFERRALS


def test_a_transaction_that_waits_for_a_lower_fee_stands_in_no_replys_way(siege: Siege) -> None:
    cap, pool = siege.world.run.charter.chain.fee_cap, siege.pool
    patient = Payload(Account.create().address.lower(), b"", 1)
    box = siege.ada.chain.outbox(siege.ada.account)

    def rise(_: Held) -> None:
        pool.base, pool.is_mining, pool.mines_empty = 2 * cap, True, True

    pool.is_mining = False
    siege.on_reply(rise)
    (error,) = box.send([patient], cap)
    assert isinstance(error, AssayError) and error.code == "FeeAboveLimit" and len(box.in_flight) == 1
    siege.on_reply(lambda _: None)
    siege.play()
    assert balance(siege, str(patient.to)) == 0 and not box.in_flight


def test_another_process_with_the_same_key_delays_a_reply_and_no_more(siege: Siege) -> None:
    payee, ada = Account.create().address, siege.ada.account.address.lower()
    paid: list[Held] = []

    def interfere(held: Held) -> None:
        # The same nonce, for twice as much: what the defender sent is gone from the pool.
        if held.sender == ada and len(paid) < 3 and held.nonce not in {h.nonce for h in paid}:
            paid.append(held)
            fields = {"chainId": 31337, "type": 2, "nonce": held.nonce, "to": payee, "value": 1, "gas": 21_000}
            fees = {"maxFeePerGas": 2 * held.most, "maxPriorityFeePerGas": 2 * held.tip}
            raw = siege.ada.account.sign_transaction({**fields, **fees}).raw_transaction
            siege.pool.answer("eth_sendRawTransaction", ["0x" + bytes(raw).hex()])
        siege.pool.mine()

    siege.pool.is_mining = False
    siege.pool.on_taken = interfere
    siege.play()
    assert balance(siege, payee) == len(paid) == 3


def test_a_defender_that_is_restarted_with_a_stuck_reply_outbids_itself(siege: Siege) -> None:
    ada, pool = siege.ada, siege.pool
    siege.flood.select()
    pool.is_mining = False
    siege.on_reply(lambda held: setattr(pool, "base", 8 * GWEI))
    ada.chain.outbox(ada.account)._receipt_for_s = 0.2
    ada.step()
    (stuck,) = pool.pool.values()
    again = restarted(siege)
    assert list(again.chain.outbox(again.account).in_flight) == [stuck.nonce]
    siege.on_reply(lambda _: None)
    pool.is_mining = True
    siege.play()
    assert pool.taken[1].nonce == stuck.nonce


def balance(siege: Siege, who: str) -> int:
    """Wei of the chain's coin."""
    return int(str(siege.pool.node.rpc("eth_getBalance", who, "latest")), 16)
