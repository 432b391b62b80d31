"""The pool that tests put before a node: what it says of a block is what the node has mined."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from eth_account import Account

from assay_ledger.chain.node import Anvil
from tests.harness.mempool import GWEI, Mempool


@pytest.fixture
def pool() -> Iterator[Mempool]:
    with Anvil(accounts=1) as node, Mempool(node) as made:
        made.is_mining = False
        yield made


def paid(pool: Mempool, most: int) -> str:
    """A transaction in the pool that pays at most `most` wei a gas: its hash."""
    account = Account.create()
    pool.node.rpc("anvil_setBalance", account.address, hex(10**18))
    fields = {
        "nonce": 0,
        "gas": 21_000,
        "to": account.address,
        "value": 0,
        "chainId": int(str(pool.node.rpc("eth_chainId")), 16),
    }
    signed = account.sign_transaction(fields | {"maxFeePerGas": most, "maxPriorityFeePerGas": 1})
    return str(pool.answer("eth_sendRawTransaction", [signed.raw_transaction.to_0x_hex()]))


@pytest.mark.parametrize(("first", "then", "is_mined"), [(GWEI, 8 * GWEI, True), (8 * GWEI, GWEI, False)])
def test_a_block_takes_what_pays_its_own_base_fee_though_the_next_has_changed(
    pool: Mempool, monkeypatch: pytest.MonkeyPatch, first: int, then: int, is_mined: bool
) -> None:
    sent, rpc = paid(pool, 2 * GWEI), pool.node.rpc
    pool.base = first

    def changing(method: str, *params: object) -> object:
        """The test's own thread changes the fee while the block is made."""
        answer = rpc(method, *params)
        if method == "anvil_setNextBlockBaseFeePerGas":
            pool.base = then
        return answer

    monkeypatch.setattr(pool.node, "rpc", changing)
    assert [held.hash for held in pool.mine()] == [sent] * is_mined
    assert (rpc("eth_getTransactionReceipt", sent) is not None) is is_mined
    # What has not been mined waits on.
    assert [held.hash for held in pool.pool.values()] == [sent] * (not is_mined)
