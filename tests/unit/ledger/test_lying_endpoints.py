"""One of several nodes is hostile or broken and answers all the same: it leaves out, stands still, swallows, pretends.

Real nodes, and real servers in front of them. Each of these attacks worked once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from random import Random
from typing import Any

import pytest
from eth_account import Account
from hypothesis import assume, given
from hypothesis import strategies as st
from web3 import Web3
from web3.exceptions import Web3Exception

from assay_ledger.chain import endpoints
from assay_ledger.chain.client import Chain
from assay_ledger.chain.endpoint import REST_MOST_S
from assay_ledger.chain.endpoint_votes import final_heights
from assay_ledger.chain.endpoints import EndpointPool
from assay_ledger.chain.node import Anvil
from tests.harness.nodes import HostileNode
from tests.harness.providers import ProviderNode, Reply, Twist, refused, said

OTHER_HASH = "0x" + "ab" * 32
SOMEBODY = "0x" + "11" * 20
COUNTS = pytest.mark.parametrize("count", [2, 3], ids=["two", "three"])


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        running.rpc("anvil_mine", hex(200))
        yield running


class Time:
    """A clock that is told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def pool_of(providers: list[ProviderNode], time_: Time) -> EndpointPool:
    return EndpointPool([p.url for p in providers], 5.0, sleep=lambda _: None, clock=time_)


def head_of(pool: EndpointPool) -> int:
    return int(Web3(pool).eth.block_number)


def standing_at(number: int) -> Twist:
    """A node that has all blocks and names an old one as the newest."""

    def answer(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
        if not params:
            return said(hex(number))
        return said(ask(hex(number), False)) if params[0] == "latest" else None

    return answer


def claiming(number: int) -> Twist:
    """A node that names any block as its newest."""
    head, named = said({"number": hex(number), "hash": OTHER_HASH}), said(hex(number))
    return lambda params, _ask: named if not params else head if params[0] == "latest" else None


HEADS = ["eth_getBlockByNumber", "eth_blockNumber"]


@COUNTS
def test_a_first_node_whose_head_stands_still_is_left_for_one_whose_moves(node: Anvil, count: int) -> None:
    """Attack: a node shows its user no newer block, and the challenges in them run out unanswered."""
    with ExitStack() as stack:
        providers = [stack.enter_context(ProviderNode(node.url)) for _ in range(count)]
        time_ = Time()
        pool = pool_of(providers, time_)
        stuck = head_of(pool)
        providers[0].turn(standing_at(stuck), methods=HEADS)
        for _ in range(3):
            node.rpc("anvil_mine", hex(6))
            time_.now += endpoints.COMPARED_S
            head_of(pool)
        assert head_of(pool) == stuck + 18
        providers[0].turn()
        time_.now += REST_MOST_S
        head_of(pool)
        assert providers[0].asked, "a node that is right again is asked again"


def test_a_first_node_far_behind_all_others_is_left_though_it_moves(node: Anvil) -> None:
    """A node that is syncing, or lies slowly."""
    with ExitStack() as stack:
        providers = [stack.enter_context(ProviderNode(node.url)) for _ in range(3)]
        time_, behind = Time(), endpoints.FINAL_BEHIND + 6
        for k in range(3):
            head = int(node.rpc("eth_blockNumber"), 16)  # type: ignore[call-overload]
            providers[0].turn(standing_at(head - behind), methods=HEADS)
            if not k:
                pool = pool_of(providers, time_)
            head_of(pool)
            node.rpc("anvil_mine", hex(1))
            time_.now += endpoints.COMPARED_S
        assert head_of(pool) == int(node.rpc("eth_blockNumber"), 16)  # type: ignore[call-overload]


def calling_its_head_final(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
    """A node that has every block, and says of the newest that it can no longer change."""
    return said(ask("latest", False)) if params[:1] == ["finalized"] else None


@pytest.mark.parametrize("liar", [0, 1, 2])
def test_one_node_that_calls_its_head_final_has_nobody_dropped_by_a_reorganization(node: Anvil, liar: int) -> None:
    """Attack: what it calls final is replaced, as newest blocks are; then every node differs from what was final."""
    with ExitStack() as stack:
        providers = [stack.enter_context(ProviderNode(node.url)) for _ in range(3)]
        time_ = Time()
        providers[liar].turn(calling_its_head_final, methods=["eth_getBlockByNumber"])
        pool, snapshot = pool_of(providers, time_), node.rpc("evm_snapshot")
        node.rpc("evm_mine")
        time_.now += endpoints.COMPARED_S
        gone = head_of(pool)
        assert node.rpc("evm_revert", snapshot)
        node.rpc("anvil_setNextBlockBaseFeePerGas", hex(7 * 10**9))
        node.rpc("anvil_mine", hex(3))
        time_.now += endpoints.COMPARED_S
        # All fail once, and are looked at anew before they are asked again: against what was final.
        for provider in providers:
            provider.turn(Reply(b"", 503), times=1)
        with suppress(OSError):
            head_of(pool)
        time_.now += REST_MOST_S
        assert head_of(pool) > gone
        assert [one.is_used for one in pool.survey()] == [True, True, True]


@given(st.lists(st.integers(0, 300), min_size=1, max_size=5), st.lists(st.integers(0, 300), max_size=4), st.randoms())
def test_no_minority_chooses_a_height_that_no_honest_node_calls_final(
    honest: list[int], lies: list[int], order: Random
) -> None:
    assume(len(lies) < len(honest))
    said = {f"honest {k}": final for k, final in enumerate(honest)} | {f"liar {k}": lie for k, lie in enumerate(lies)}
    nodes = list(said)
    order.shuffle(nodes)
    heights = final_heights(said, nodes)
    if len(nodes) > 2 or nodes[0].startswith("honest"):
        assert all(height <= max(honest) for height in heights)
        # Nor does it keep what all honest ones call final from being compared.
        assert heights and heights[-1] >= min(honest)


@pytest.mark.parametrize(("lie", "expected"), [(0, [0, 100]), (900, [100])], ids=["nothing is final", "its head is"])
def test_while_one_of_three_is_down_the_first_says_what_is_compared(lie: int, expected: list[int]) -> None:
    assert final_heights({"first": 100, "liar": lie}, ["first", "down", "liar"]) == expected


def test_one_node_that_runs_ahead_of_two_displaces_nobody(node: Anvil) -> None:
    """Attack: a node whose head alone moves wants to be asked in place of those that are right."""
    with ExitStack() as stack:
        providers = [stack.enter_context(ProviderNode(node.url)) for _ in range(3)]
        time_ = Time()
        pool = pool_of(providers, time_)
        right = head_of(pool)
        for k in range(4):
            providers[2].turn(claiming(right + 100 * (k + 1)), methods=HEADS)
            time_.now += endpoints.COMPARED_S
            assert head_of(pool) == right


@COUNTS
@pytest.mark.parametrize("final", ["0x0", "0x5"], ids=["the first", "an early one"])
def test_a_liar_that_calls_only_an_old_block_final_is_found_out(
    node: Anvil, caplog: pytest.LogCaptureFixture, count: int, final: str
) -> None:
    """Attack: blocks are compared at the height that all call final; a liar with a history of its own calls none
    final that it has changed."""

    def forked(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
        if params[0] == "finalized":
            return said(ask(final, False))
        found = ask(*params)
        old = params[0] not in ("latest",) and int(params[0], 16) <= int(final, 16)
        return None if old or not isinstance(found, dict) else said(found | {"hash": OTHER_HASH})

    with ExitStack() as stack:
        providers = [stack.enter_context(ProviderNode(node.url)) for _ in range(count)]
        time_ = Time()
        pool = pool_of(providers, time_)
        head_of(pool)
        liar = count - 1
        providers[liar].turn(forked, methods=["eth_getBlockByNumber"])
        time_.now += endpoints.COMPARED_S
        with caplog.at_level(logging.ERROR, "assay.rpc"):
            head_of(pool)
        assert providers[liar].url in caplog.text and OTHER_HASH in caplog.text
        assert [standing.is_used for standing in pool.survey()] == [k != liar for k in range(count)]


def test_a_liar_that_has_no_block_to_compare_is_not_believed(node: Anvil) -> None:
    """Attack: the same, with nothing for an answer where blocks are compared."""
    silent: Twist = lambda p, ask: said(None) if p[0] not in ("latest", "0x0") else None  # noqa: E731
    with ExitStack() as stack:
        providers = [stack.enter_context(ProviderNode(node.url)) for _ in range(2)]
        time_ = Time()
        pool = pool_of(providers, time_)
        head_of(pool)
        providers[0].turn(silent, methods=["eth_getBlockByNumber"])
        time_.now += endpoints.COMPARED_S
        head_of(pool)
        providers[1].asked.clear()
        head_of(pool)
        assert ("eth_blockNumber", []) in providers[1].asked


def test_transactions_that_the_first_node_swallows_are_mined_all_the_same(node: Anvil) -> None:
    """Attack: a node takes every move of a game with thanks and passes none on; its clock convicts an honest player."""
    account = Account.from_key(node.dev_keys[0])
    swallowing: Twist = lambda p, ask: said("0x" + Web3.keccak(hexstr=p[0]).hex())  # noqa: E731
    with ProviderNode(node.url) as first, ProviderNode(node.url) as second:
        first.turn(swallowing, methods=["eth_sendRawTransaction"])
        chain = Chain(f"{first.url},{second.url}", receipt_for_s=8.0)
        assert chain.transfer(account, SOMEBODY, 1)["status"] == 1


def test_a_second_node_that_hangs_delays_no_transaction(node: Anvil) -> None:
    account = Account.from_key(node.dev_keys[0])
    with closing(HostileNode(node.url)) as hangs, ProviderNode(node.url) as first:
        chain = Chain(f"{first.url},{hangs.url}")
        hangs.turn("hangs")
        began = time.monotonic()
        for _ in range(3):
            assert chain.transfer(account, SOMEBODY, 1)["status"] == 1
        assert time.monotonic() - began < endpoints.PROBE_S


@pytest.mark.parametrize("words", ["rate limit exceeded", "try again, overloaded", "header not found"])
def test_a_contract_that_reverts_in_the_words_of_a_busy_node_rests_none(node: Anvil, words: str) -> None:
    """Attack: a stranger's contract chooses what it says, and by it which node its user asks."""
    reverts = refused(3, f"execution reverted: {words}")
    with ProviderNode(node.url) as first, ProviderNode(node.url) as second:
        chain = Chain(f"{first.url},{second.url}", sleep=lambda _: None)
        first.turn(reverts, methods=["eth_call"])
        second.turn(reverts, methods=["eth_call"])
        with pytest.raises(Web3Exception):
            chain.w3.eth.call({"to": Web3.to_checksum_address(SOMEBODY)})
        assert not [call for call in second.asked if call[0] == "eth_call"]
