"""The chain as actors reach it: what goes wrong has a name, and a slow chain ends no actor."""

from __future__ import annotations

import pytest
from eth_account import Account
from eth_utils.address import to_checksum_address
from web3.types import LogReceipt

from assay.protocol.errors import UnavailableError
from assay_ledger.chain.client import Chain, Head
from assay_ledger.chain.node import Anvil
from assay_ledger.chain.pace import LEAST_S, PollPace
from assay_ledger.contract import Event, Logged
from assay_ledger.index.follower import Follower


class NothingKept(Follower):
    """A follower of no contract."""

    def begin(self) -> None:
        """See Follower."""

    def apply(self, found: Logged[Event], log: LogReceipt) -> None:
        """See Follower."""

    def reached(self, head: Head) -> None:
        """See Follower."""


def test_a_transaction_that_is_not_mined_is_unavailable_and_counts_once_it_is() -> None:
    with Anvil() as node:
        chain = Chain(node.url, receipt_for_s=0.3)
        payer, payee = Account.from_key(node.dev_keys[0]), Account.from_key(b"\x05" * 32)
        node.rpc("evm_setAutomine", False)
        with pytest.raises(UnavailableError) as caught:
            chain.transfer(payer, payee.address, 7)
        assert caught.value.code == "TransactionPending"
        node.rpc("evm_mine")
        assert chain.w3.eth.get_balance(payee.address) == 7


def test_who_follows_events_asks_as_often_as_blocks_come() -> None:
    with Anvil() as node:
        chain, now = Chain(node.url), 0.0
        chain.pace = PollPace(lambda: now)
        follower = NothingKept(chain, {}, first_block=0)
        follower.follow()
        assert chain.pace.period == LEAST_S
        node.rpc("evm_mine")
        now = 8.0
        follower.follow()
        assert chain.pace.period == pytest.approx(1.0)


def test_logs_are_those_that_web3_gives() -> None:
    # PUSH 7, PUSH 0, MSTORE, two topics, LOG2 of 32 bytes; then the same with no topic and no bytes.
    code = bytes.fromhex("6007600052602a602b60206000a260006000a000")
    deployer = bytes.fromhex(f"60{len(code):02x}600c60003960{len(code):02x}6000f3") + code
    with Anvil() as node:
        chain, account = Chain(node.url), Account.from_key(node.dev_keys[0])
        sent = {"from": account.address, "data": "0x" + deployer.hex(), "gas": hex(200_000)}
        made = chain.w3.eth.wait_for_transaction_receipt(node.rpc("eth_sendTransaction", sent))
        there = to_checksum_address(str(made["contractAddress"]))
        for _ in range(2):
            called = node.rpc("eth_sendTransaction", {"from": account.address, "to": there, "gas": hex(100_000)})
            chain.w3.eth.wait_for_transaction_receipt(called)
        last = chain.head().number
        asked = {"address": [there], "fromBlock": 0, "toBlock": last}
        theirs, ours = chain.w3.eth.get_logs(asked), chain.logs([there], 0, last)  # type: ignore[arg-type]
        assert len(ours) == len(theirs) == 4 and [len(log["topics"]) for log in ours] == [2, 0, 2, 0]
        used = ("data", "topics", "blockNumber", "blockHash", "logIndex", "transactionHash")
        assert [[log[name] for name in used] for log in ours] == [[log[name] for name in used] for log in theirs]
        assert [bytes.fromhex(log["address"][2:]) for log in ours] == [bytes.fromhex(there[2:])] * 4
        assert chain.logs([account.address], 0, last) == [] == chain.logs([there], 0, 0)
