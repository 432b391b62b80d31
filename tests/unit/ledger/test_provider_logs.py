"""Logs as providers give them: in ranges that are too large, from nodes that are behind, with fields missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from eth_account import Account
from eth_utils.address import to_checksum_address
from web3.types import LogReceipt

from assay.protocol.errors import ExitCode, UnavailableError
from assay.protocol.types import Address
from assay_ledger.chain.client import ASKED_IN_TURN, Chain, Head
from assay_ledger.chain.log_ranges import GROW_AFTER, LogRanges, RangeRefused
from assay_ledger.chain.node import Anvil
from assay_ledger.contract import Contract, Event, Logged, Search
from assay_ledger.index.follower import TAIL, Follower
from tests.harness.providers import ProviderNode, Reply, Twist, changed, refused, said

# PUSH 7, PUSH 0, MSTORE, one topic, LOG1 of 32 bytes.
CODE = bytes.fromhex("6007600052602b60206000a100")


class Ringing(Event):
    """What the contract below logs."""

    ABI = "Ringing(uint256 times)"

    @classmethod
    def topic(cls) -> Any:
        """See Event."""
        return (0x2B).to_bytes(32, "big")

    @classmethod
    def decode(cls, log: LogReceipt) -> Ringing:
        """See Event."""
        if int.from_bytes(log["data"], "big") != 7:
            raise ValueError("no such log")
        return Ringing()


class Bell(Contract):
    """A contract that logs once a call."""

    EVENTS = (Ringing,)


class Listening(Follower):
    """Keeps the blocks that logs were in."""

    heard: tuple[int, ...] = ()
    begun = 0

    def begin(self) -> None:
        """See Follower."""
        self.heard = ()
        self.begun += 1

    def apply(self, found: Logged[Event], log: LogReceipt) -> None:
        """See Follower."""
        self.heard += (found.block,)

    def reached(self, head: Head) -> None:
        """See Follower."""
        self.head = head.number


class RungBell:
    """A bell on a node behind a provider, and who listens."""

    def __init__(self, node: Anvil, provider: ProviderNode) -> None:
        self.node, self.provider, self.waits = node, provider, list[float]()
        self.ringer = Account.from_key(node.dev_keys[0]).address
        deployer = bytes.fromhex(f"60{len(CODE):02x}600c60003960{len(CODE):02x}6000f3") + CODE
        sent = {"from": self.ringer, "data": "0x" + deployer.hex(), "gas": hex(200_000)}
        self.chain = Chain(provider.url, sleep=self.waits.append)
        made = self.chain.w3.eth.wait_for_transaction_receipt(node.rpc("eth_sendTransaction", sent))  # type: ignore[arg-type]
        self.address = to_checksum_address(str(made["contractAddress"]))
        self.bell = Bell(Address(bytes.fromhex(self.address[2:])))
        self.first = int(made["blockNumber"])
        self.rung: list[int] = []

    def ring(self, times: int = 1) -> None:
        """So many blocks with a log each."""
        for _ in range(times):
            sent = {"from": self.ringer, "to": self.address, "gas": hex(100_000)}
            name = self.node.rpc("eth_sendTransaction", sent)
            rung = self.chain.w3.eth.wait_for_transaction_receipt(name, poll_latency=0.005)  # type: ignore[arg-type]
            self.rung.append(int(rung["blockNumber"]))

    def listener(self) -> Listening:
        """Who begins now."""
        return Listening(self.chain, {"bell": self.bell}, self.first)


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        yield running


@pytest.fixture
def bell(node: Anvil) -> Iterator[RungBell]:
    with ProviderNode(node.url) as provider:
        yield RungBell(node, provider)


# --- ranges


def at_most(blocks: int, refusal: Reply) -> Twist:
    """Logs of so many blocks at once."""

    def answer(params: list[Any], ask: Any) -> Reply:
        wanted = params[0]
        if "blockHash" not in wanted and int(wanted["toBlock"], 16) - int(wanted["fromBlock"], 16) >= blocks:
            return refusal
        return said(ask(*params))

    return answer


TOO_MUCH = {
    "geth": refused(-32005, "query returned more than 10000 results"),
    "infura": refused(-32005, "query returned more than 10000 results. Try with this block range [0x1, 0x2]."),
    "alchemy": refused(-32600, "Under the Free tier plan, you can make requests with up to a 10 block range", 400),
    "alchemy's size": refused(-32602, "Log response size exceeded. You can make requests with up to a 2K block range"),
    "quicknode": refused(-32614, "eth_getLogs is limited to a 10,000 range of blocks", 413),
    "ankr": refused(-32600, "block range is too wide"),
    "erigon": refused(-32000, "query exceeds max block range 1000"),
    "nodereal": refused(-32005, "exceed maximum block range: 50000"),
    "an answer too large for the proxy": Reply(b"<html>too large</html>", 413),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_range_that_is_too_large_is_asked_for_in_parts(bell: RungBell, name: str) -> None:
    bell.ring(11)
    whole = bell.chain.logs([bell.address], bell.first, bell.rung[-1])
    bell.provider.turn(at_most(3, TOO_MUCH[name]), methods=["eth_getLogs"])
    assert bell.chain.logs([bell.address], bell.first, bell.rung[-1]) == whole
    found = bell.chain.events(Search(bell.bell.address, Ringing, (Ringing.topic(),)), bell.first)
    assert [logged.block for logged in found] == bell.rung
    assert bell.waits == [], "nothing is gained by waiting"
    # What was refused once is not asked for at every step again.
    bell.provider.turn(at_most(3, TOO_MUCH[name]), methods=["eth_getLogs"])
    bell.chain.logs([bell.address], bell.rung[0], bell.rung[2])
    assert len(bell.provider.asked) <= 2


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_block_that_is_too_large_is_said_and_asked_for_once(bell: RungBell, name: str) -> None:
    bell.ring(2)
    bell.provider.turn(TOO_MUCH[name], methods=["eth_getLogs"])
    with pytest.raises(RangeRefused) as said_of:
        bell.chain.logs([bell.address], bell.first, bell.rung[-1])
    assert said_of.value.exit_code is ExitCode.NETWORK and bell.provider.url in said_of.value.message
    assert len(bell.provider.asked) <= 3


def test_ranges_shrink_to_what_is_given_and_grow_again() -> None:
    sizes: list[int] = []
    most = 4

    def ask(low: int, high: int) -> list[int]:
        sizes.append(high - low + 1)
        if high - low >= most:
            raise RangeRefused("so many")
        return list(range(low, high + 1))

    ranges = LogRanges()
    assert ranges.read(ask, 5, 104) == list(range(5, 105))
    assert sizes[:6] == [100, 50, 25, 12, 6, 3]
    assert max(sizes[6:]) == 6, "now and then more is tried"
    most, sizes[:] = 1000, []
    assert ranges.read(ask, 0, 999) == list(range(1000))
    assert len(sizes) < 8 * GROW_AFTER and max(sizes) > 90
    assert ranges.read(ask, 7, 6) == []


# --- nodes that are behind


def behind(by: int, *, every: int = 1) -> Twist:
    """Every so manieth call is answered by a node that lacks the newest blocks, as geth answers it."""
    calls = iter(range(1 << 30))

    def answer(params: list[Any], ask: Any) -> Reply:
        result = ask(*params)
        if next(calls) % every:
            return said(result)
        wanted = params[0]
        if "blockHash" in wanted:
            is_new = result and int(result[0]["blockNumber"], 16) > head[0] - by
            return refused(-32000, "unknown block") if is_new else said(result)
        return said([log for log in result if int(log["blockNumber"], 16) <= head[0] - by])

    head = [0]
    answer.head = head  # type: ignore[attr-defined]
    return answer


def test_logs_of_a_node_that_is_behind_are_waited_for_and_none_is_lost(bell: RungBell) -> None:
    bell.ring(2)
    follower = bell.listener()
    follower.follow()
    for new in (1, 2, TAIL):
        bell.ring(new)
        lagging = behind(new, every=2)
        lagging.head[0] = bell.rung[-1]  # type: ignore[attr-defined]
        bell.provider.turn(lagging, methods=["eth_getLogs"])
        follower.follow()
        assert list(follower.heard) == bell.rung and bell.waits
    bell.ring()
    bell.provider.turn(lagging_for_good := behind(1), methods=["eth_getLogs"])
    lagging_for_good.head[0] = bell.rung[-1]  # type: ignore[attr-defined]
    with pytest.raises(UnavailableError) as said_of:
        follower.follow()
    assert said_of.value.code == "NodeUnreachable"
    bell.provider.turn()
    follower.follow()
    assert list(follower.heard) == bell.rung
    assert follower.begun == 0, "nothing was read twice"


def test_a_head_that_goes_back_now_and_then_costs_no_second_reading(bell: RungBell) -> None:
    bell.ring(5)
    follower = bell.listener()
    follower.follow()

    def older(params: list[Any], ask: Any) -> Reply:
        return said(ask(hex(bell.rung[-1] - 2), False) if params[0] == "latest" else ask(*params))

    bell.provider.turn(older, 1, ["eth_getBlockByNumber"])
    follower.follow()
    assert follower.head == bell.rung[-1] and list(follower.heard) == bell.rung and follower.begun == 0
    assert not any(method == "eth_getLogs" for method, _ in bell.provider.asked)
    bell.ring()
    follower.follow()
    assert list(follower.heard) == bell.rung and follower.begun == 0


def test_a_last_block_that_only_one_of_several_nodes_has_is_found(bell: RungBell) -> None:
    newest = bytes(bell.chain.newest()["hash"])
    bell.provider.turn(said(None), ASKED_IN_TURN - 1, ["eth_getBlockByHash"])
    assert bell.chain.has_block(newest)
    bell.provider.turn(said(None), ASKED_IN_TURN, ["eth_getBlockByHash"])
    assert not bell.chain.has_block(newest)


# --- fields missing


def without(field: str) -> Twist:
    def edit(logs: list[dict[str, Any]]) -> None:
        for log in logs:
            del log[field]

    return changed(edit)


def with_value(field: str, value: object) -> Twist:
    def edit(logs: list[dict[str, Any]]) -> None:
        for log in logs:
            log[field] = value

    return changed(edit)


MALFORMED: dict[str, Twist | Reply] = {
    **{f"no {name}": without(name) for name in ("data", "topics", "address", "blockNumber", "logIndex", "blockHash")},
    "no transaction": without("transactionHash"),
    "no address": with_value("address", None),
    "topics that are null": with_value("topics", None),
    "a number for data": with_value("data", 7.5),
    "a pending log": with_value("blockNumber", None),
    "a log of another block": with_value("blockNumber", "0x0"),
    "data cut short": with_value("data", "0x"),
    "an object for the list": said({}),
    "null for the list": said(None),
    "a list of lists": said([[]]),
    "a list of words": said(["later"]),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_logs_without_sense_are_asked_for_again_and_leave_nothing_behind(bell: RungBell, name: str) -> None:
    bell.ring(3)
    follower = bell.listener()
    bell.provider.turn(MALFORMED[name], methods=["eth_getLogs"])
    with pytest.raises(UnavailableError) as said_of:
        follower.follow()
    assert said_of.value.exit_code is ExitCode.NETWORK and "\n" not in said_of.value.explain()
    bell.provider.turn()
    follower.follow()
    assert list(follower.heard) == bell.rung


@pytest.mark.parametrize("topics", [[], ["0x" + "00" * 32]])
def test_a_log_without_our_topic_is_nobodys(bell: RungBell, topics: list[str]) -> None:
    bell.ring()
    follower = bell.listener()
    bell.provider.turn(with_value("topics", topics), methods=["eth_getLogs"])
    follower.follow()
    assert follower.heard == ()


@pytest.mark.parametrize("field", ["number", "hash", "parentHash", "timestamp"])
def test_a_block_with_a_field_missing_is_waited_out(bell: RungBell, field: str) -> None:
    bell.ring(2)
    follower = bell.listener()
    bell.provider.turn(changed(lambda block: block.pop(field) and None), 1, ["eth_getBlockByNumber"])
    follower.follow()
    assert list(follower.heard) == bell.rung and len(bell.waits) == 1
