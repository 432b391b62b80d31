"""A node whose searches are not whole, or refuse a single block, is left out for a while and has its place back later.

Real nodes, and real servers in front of them. Once, one search that was cut short cost a node its place for good.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

import pytest
from web3 import Web3

from assay_ledger.chain import endpoint, endpoints
from assay_ledger.chain.client import Chain
from assay_ledger.chain.endpoint import SEARCHES_NOTED, NotedSearches
from assay_ledger.chain.endpoints import EndpointPool
from assay_ledger.chain.log_ranges import RangeRefused
from assay_ledger.chain.node import Anvil
from tests.harness.providers import ProviderNode, Reply, Twist, changed, refused, said

TELLS = Web3.to_checksum_address("0x" + "77" * 20)
EVENTS = 5
CUT: Twist = changed(lambda logs: logs[:-1])
REFUSES = refused(-32005, "query returned more than 0 results")
WHY = "its searches leave out events"


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    """A chain with five events deep below its head."""
    with Anvil() as running:
        running.rpc("anvil_setCode", TELLS, "0x60006000a000")  # an event without topics or data, whoever calls
        (sender, *_) = running.rpc("eth_accounts")
        for _ in range(EVENTS):
            running.rpc("eth_sendTransaction", {"from": sender, "to": TELLS})
        running.rpc("anvil_mine", hex(200))
        yield running


class Several:
    """Providers of one chain and a pool over them, whose time is told."""

    def __init__(self, url: str, stack: ExitStack, count: int = 3) -> None:
        self.providers = [stack.enter_context(ProviderNode(url)) for _ in range(count)]
        self.now = 1000.0
        self.pool = EndpointPool([one.url for one in self.providers], 5.0, sleep=lambda _: None, clock=lambda: self.now)

    def find(self) -> int:
        """How many events the node that is asked finds, in two searches."""
        criteria = [{"fromBlock": hex(low), "toBlock": hex(low + 49), "address": TELLS} for low in (0, 50)]
        answers = [self.pool.make_request("eth_getLogs", [one]) for one in criteria]  # type: ignore[arg-type]
        return sum(len(answer["result"]) for answer in answers)

    def refuse(self) -> None:
        """What a reader does that has counted."""
        assert self.pool.refuse(self.pool.turn, WHY)

    def wait(self, seconds: float) -> None:
        """Time passes; nodes are compared, those that may come back by their searches."""
        self.now += seconds
        self.ask()
        if (thread := self.pool._probation.thread) is not None:
            thread.join(30)
            assert not thread.is_alive()

    def ask(self) -> int:
        """The head; the number of the node that named it, 0 for the first."""
        for one in self.providers:
            one.asked.clear()
        assert int(Web3(self.pool).eth.block_number) >= 200
        (by,) = [k for k, one in enumerate(self.providers) if ("eth_blockNumber", []) in one.asked]
        return by


@pytest.fixture
def several(node: Anvil) -> Iterator[Several]:
    with ExitStack() as stack:
        yield Several(node.url, stack)


def test_a_node_whose_search_was_cut_once_has_its_place_back(
    several: Several, caplog: pytest.LogCaptureFixture
) -> None:
    first = several.providers[0]
    first.turn(CUT, times=1, methods=["eth_getLogs"])
    assert several.find() == EVENTS - 1
    with caplog.at_level(logging.WARNING, "assay.rpc"):
        several.refuse()
        assert several.find() == EVENTS and several.ask() == 1
        several.wait(endpoint.ASIDE_S - 1)
        assert several.ask() == 1
        several.wait(endpoints.COMPARED_S)
        assert several.ask() == 0 and several.find() == EVENTS
    assert f"{first.url} is set aside" in caplog.text and f"{first.url} searches as the others do" in caplog.text


@pytest.mark.parametrize("answer", [CUT, REFUSES, Reply(b"{}"), said(None)], ids=["cut", "refused", "{}", "null"])
def test_a_node_that_still_does_not_search_waits_twice_as_long(several: Several, answer: Twist | Reply) -> None:
    first = several.providers[0]
    several.find()
    several.refuse()
    for times in range(3):
        half = endpoint.ASIDE_S * 2**times / 2
        first.turn()
        several.wait(half)
        assert several.ask() == 1 and not [call for call in first.asked if call[0] == "eth_getLogs"]
        first.turn(answer, methods=["eth_getLogs"])
        several.wait(half)
        assert several.ask() == 1 and first.answered
    first.turn()
    several.wait(endpoint.ASIDE_S * 2**3)
    assert several.ask() == 0


def test_a_node_is_judged_by_no_other_that_is_set_aside(several: Several) -> None:
    """Attack: two nodes that leave out alike vouch for each other."""
    for one in several.providers[:2]:
        one.turn(CUT, methods=["eth_getLogs"])
        assert several.find() == EVENTS - 1
        several.refuse()
    several.providers[2].turn(Reply(b"", 503))
    several.wait(endpoint.ASIDE_S)
    assert several.ask() == 0, "nobody else serves"
    several.wait(endpoints.COMPARED_S)
    several.providers[2].turn()
    several.wait(endpoint.REST_MOST_S)
    assert several.ask() == 2 and several.find() == EVENTS


def test_a_node_that_was_set_aside_serves_when_no_other_does(several: Several) -> None:
    """A clock may run out meanwhile, and whoever needs nothing old is served."""
    several.find()
    several.refuse()
    for other in several.providers[1:]:
        other.turn(Reply(b"", 503), 2)
    with pytest.raises(Exception, match="503"):
        several.ask()
    assert not [call for call in several.providers[0].asked if call[0] == "eth_blockNumber"], "one failure passes"
    for other in several.providers[1:]:
        other.turn(Reply(b"", 503))
    assert several.ask() == 0
    several.now += endpoint.REST_MOST_S
    for other in several.providers[1:]:
        other.turn()
    assert several.ask() == 1


def test_a_history_of_its_own_drops_a_node_that_is_set_aside(several: Several) -> None:
    several.find()
    several.refuse()
    several.providers[0].turn(
        changed(lambda block: block | {"hash": "0x" + "ab" * 32}), methods=["eth_getBlockByNumber"]
    )
    several.wait(endpoints.COMPARED_S)
    several.providers[0].turn()
    several.wait(10 * endpoint.ASIDE_MOST_S)
    assert several.ask() == 1 and not several.providers[0].asked
    assert [one.is_used for one in several.pool.survey()] == [False, True, True]


def test_the_only_node_is_never_set_aside(node: Anvil) -> None:
    with ExitStack() as stack:
        alone = Several(node.url, stack, 1)
        alone.find()
        assert not alone.pool.refuse(alone.pool.turn, WHY)
        assert alone.ask() == 0


def test_what_one_node_refuses_to_search_the_next_one_finds(node: Anvil) -> None:
    with ProviderNode(node.url) as first, ProviderNode(node.url) as second:
        chain = Chain(f"{first.url},{second.url}", sleep=lambda _: None)
        first.turn(REFUSES, methods=["eth_getLogs"])
        assert len(chain.logs([TELLS], 0, 60)) == EVENTS
        (block, *_) = {bytes(log["blockHash"]) for log in chain.logs([TELLS], 0, 60)}
        assert len(chain.logs_of([TELLS], block)) == 1
        second.turn(REFUSES, methods=["eth_getLogs"])
        with pytest.raises(RangeRefused):
            chain.logs([TELLS], 0, 60)


def test_a_few_searches_of_the_last_reading_are_noted_over_all_of_it() -> None:
    noted = NotedSearches()

    def read(count: int) -> list[int]:
        for k in range(count):
            search: dict[str, Any] = {"fromBlock": hex(100 * k), "toBlock": hex(100 * k + 99)}
            noted.note(search)
            noted.note({"blockHash": "0x" + "00" * 32})
        return [low // 100 for _, low, _ in noted.upto(1 << 62)]

    assert read(SEARCHES_NOTED) == list(range(SEARCHES_NOTED))
    for count in (100, 1000):
        found = read(count)
        assert found[0] == 0 and len(found) <= SEARCHES_NOTED and len({b - a for a, b in pairwise(found)}) == 1
        assert found[-1] >= count * (1 - 2 / SEARCHES_NOTED)
    assert [high for *_, high in noted.upto(50)] == [50]
