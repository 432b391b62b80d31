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
from assay_ledger.rounds.run import Run
from tests.harness.actors.disputed import Puppet, again, aside
from tests.harness.actors.whole_run import WholeRun
from tests.harness.mempool import GWEI, Held, Mempool


@dataclass
class Siege:
    """One game against an honest solver behind a public node."""

    pool: Mempool
    made: WholeRun
    puppet: Puppet
    game_id: int

    @property
    def ada(self) -> Agent:
        """The defender."""
        return self.made.players["ada"].agent

    def restarted(self) -> Agent:
        """The defender's process starts anew, with a connection of its own."""
        run = Run(Chain(self.pool.url), self.made.run.address, self.made.run.first_block)
        return again(self.made, "ada", run=run)

    def on_reply(self, act: Callable[[Held], None]) -> None:
        """`act` is told of every transaction of the defender that the pool takes."""
        who = self.ada.account.address.lower()
        self.pool.on_taken = lambda held: act(held) if held.sender == who else None

    def play(self) -> None:
        """To the end; chain time moves on to what the defender waits for. The defender must not lose."""
        games = self.made.run.games
        for _ in range(60):
            if not self.puppet.select(self.game_id):
                break
            # Where blocks come fast the defender may not come to rest before its other side has moved.
            while self.ada.step():
                self.puppet.select(self.game_id)
            state = games.game(self.game_id).state
            if not state.is_over and state.turn is Side.DEFENDER:
                assert self.ada.deadline is not None
                self.pool.mine_until(self.ada.deadline)
        found = games.verdict(self.game_id)
        assert found is not None
        assert (found[0].side, found[0].outcome) == (Side.CHALLENGER, Outcome.LEAF)


@pytest.fixture(scope="module")
def opened(disputed: WholeRun) -> Iterator[tuple[WholeRun, Puppet, int]]:
    """A stranger has opened a game on the honest solver's work."""
    with aside(disputed):
        puppet = Puppet(disputed)
        yield disputed, puppet, puppet.challenge()


@pytest.fixture
def siege(opened: tuple[WholeRun, Puppet, int]) -> Iterator[Siege]:
    made, puppet, game_id = opened
    node, before = made.stage.node, made.stage.chain
    with aside(made):
        made.players["ada"].agent.close()
        outbox = made.folder / "ada" / "outbox.jsonl"
        outbox.unlink(missing_ok=True)
        with Mempool(node, every_s=0.005, only_asked=True) as pool:
            pool.mine()
            made.stage.chain = Chain(pool.url)
            besieged = Siege(pool, made, puppet, game_id)
            besieged.restarted()
            try:
                yield besieged
            finally:
                pool.is_mining = False
                made.stage.chain = before
                node.rpc("anvil_setBlockTimestampInterval", 1)
                node.rpc("evm_setAutomine", True)
        made.players["ada"].agent.close()
        outbox.unlink(missing_ok=True)


@pytest.mark.parametrize("factor", (2.5, 8))
def test_a_base_fee_that_rises_while_a_reply_waits_convicts_nobody_honest(siege: Siege, factor: float) -> None:
    siege.on_reply(lambda held: setattr(siege.pool, "base", int(factor * GWEI)))
    siege.play()
    assert siege.made.chain.head().base_fee > 2 * GWEI


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
    cap = siege.made.run.charter.chain.fee_cap
    siege.on_reply(lambda held: setattr(siege.pool, "base", 3 * cap))
    siege.play()
    game = siege.made.view.games[siege.game_id]
    assert game.deferrals[Side.DEFENDER] == DEFERRALS


def test_a_transaction_that_waits_for_a_lower_fee_stands_in_no_replys_way(siege: Siege) -> None:
    cap, pool = siege.made.run.charter.chain.fee_cap, siege.pool
    patient = Payload(Account.create().address.lower(), b"", 1)
    box = siege.ada.chain.outbox(siege.ada.account)

    def rise(_: Held) -> None:
        pool.base, pool.is_mining, pool.mines_empty = 2 * cap, True, True

    pool.is_mining = False
    siege.on_reply(rise)
    (error,) = box.send([patient], cap)
    assert isinstance(error, AssayError) and error.code == "FeeAboveLimit" and len(box.in_flight) == 1
    siege.on_reply(lambda _: None)
    # The patient transaction keeps blocks coming, 12 s of chain time each: slowly, or the stranger's clock runs out.
    pool.every_s = 0.1
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


@pytest.mark.long
def test_a_defender_that_is_restarted_with_a_stuck_reply_outbids_itself(siege: Siege) -> None:
    ada, pool = siege.ada, siege.pool
    siege.puppet.select(siege.game_id)
    pool.is_mining = False
    siege.on_reply(lambda held: setattr(pool, "base", 8 * GWEI))
    ada.chain.outbox(ada.account)._receipt_for_s = 0.2
    ada.step()
    (stuck,) = pool.pool.values()
    anew = siege.restarted()
    assert list(anew.chain.outbox(anew.account).in_flight) == [stuck.nonce]
    siege.on_reply(lambda _: None)
    pool.is_mining = True
    siege.play()
    assert pool.taken[1].nonce == stuck.nonce


def balance(siege: Siege, who: str) -> int:
    """Wei of the chain's coin."""
    return int(str(siege.pool.node.rpc("eth_getBalance", who, "latest")), 16)
