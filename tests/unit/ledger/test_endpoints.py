"""Several nodes of one chain behind one client: each fails, stalls, lags or lies in its way, and the client goes on.

Real nodes, and real servers in front of them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import requests
from web3 import Web3
from web3.exceptions import Web3Exception
from web3.types import RPCEndpoint

from assay.protocol.errors import UnavailableError
from assay_ledger.chain import answers, endpoints
from assay_ledger.chain.client import Chain
from assay_ledger.chain.endpoint import REST_MOST_S, REST_S
from assay_ledger.chain.endpoints import AllEndpointsDropped, EndpointPool
from assay_ledger.chain.node import Anvil
from tests.harness.nodes import HostileNode
from tests.harness.providers import BODIES, ERRORS, ProviderNode, Reply, Twist, refused, said

SOMEBODY = "0x" + "11" * 20
FAILED = (requests.RequestException, OSError, Web3Exception)
RETRY_FORMS = ["seconds", "a date", "an old date"]
OTHER_HASH = "0x" + "ab" * 32


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        running.rpc("anvil_mine", hex(200))
        yield running


class Nodes:
    """Three providers of one chain, and a pool over them whose time is told."""

    def __init__(self, url: str, stack: ExitStack, count: int = 3) -> None:
        self.providers = [stack.enter_context(ProviderNode(url)) for _ in range(count)]
        self.now, self.waits = 1000.0, list[float]()

    @property
    def urls(self) -> list[str]:
        return [provider.url for provider in self.providers]

    def pool(self, **options: Any) -> EndpointPool:
        return EndpointPool(self.urls, 5.0, sleep=self.waits.append, clock=lambda: self.now, **options)

    def chain(self) -> Chain:
        return Chain(",".join(self.urls), sleep=self.waits.append)

    def counts(self) -> list[int]:
        """Requests to each since this was asked last."""
        found = [len(provider.asked) for provider in self.providers]
        for provider in self.providers:
            provider.asked.clear()
        return found


@pytest.fixture
def nodes(node: Anvil) -> Iterator[Nodes]:
    with ExitStack() as stack:
        yield Nodes(node.url, stack)


def head_of(pool: EndpointPool) -> int:
    return int(Web3(pool).eth.block_number)


def behind(blocks: int) -> Twist:
    """A node that is so many blocks behind."""

    def answer(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
        if params and params[0] == "latest":
            head = int(ask("latest", False)["number"], 16)
            return said(ask(hex(head - blocks), False))
        return None

    return answer


def forked(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
    """A node with a history of its own, after the first block."""
    found = ask(*params)
    if params[0] == "0x0" or not isinstance(found, dict):
        return None
    return said(found | {"hash": OTHER_HASH})


def test_the_first_node_is_asked_and_the_others_only_compared(nodes: Nodes) -> None:
    pool = nodes.pool()
    head_of(pool)
    nodes.counts()
    for _ in range(5):
        assert head_of(pool) >= 200
    assert nodes.counts() == [5, 0, 0]


@pytest.mark.gate_takes(8)
@pytest.mark.parametrize("name", [*BODIES, *ERRORS])
def test_what_one_node_does_not_answer_the_next_one_does(nodes: Nodes, name: str) -> None:
    chain = nodes.chain()
    right = chain.head().number
    nodes.providers[0].turn({**BODIES, **ERRORS}[name], methods=["eth_getBlockByNumber"])
    assert chain.head().number == right
    assert sum(nodes.waits) <= REST_S and nodes.providers[1].asked


@pytest.mark.parametrize("how", ["hangs", "drips", "closes"])
def test_a_node_that_stalls_costs_one_request(node: Anvil, how: str) -> None:
    with closing(HostileNode(node.url)) as stalls, ProviderNode(node.url) as good:
        chain = Chain(f"{stalls.url},{good.url}", timeout_s=0.5)
        chain.head()
        stalls.turn(how)
        for _ in range(4):
            chain.code_at(SOMEBODY)
        assert stalls.mistreated == 1


def test_a_node_that_fails_rests_twice_as_long_each_time_and_comes_back(nodes: Nodes) -> None:
    pool, first = nodes.pool(), nodes.providers[0]
    head_of(pool)
    first.turn(Reply(b"", 503))
    for failures in range(1, 12):
        rests = min(REST_S * 2 ** (failures - 1), REST_MOST_S)
        first.asked.clear()
        head_of(pool)
        assert len(first.asked) == 1
        nodes.now += rests - 0.01
        head_of(pool)
        assert len(first.asked) == 1
        nodes.now += 0.02
    first.turn()
    head_of(pool)
    nodes.counts()
    head_of(pool)
    assert nodes.counts() == [1, 0, 0]


def test_a_node_that_is_away_is_said_once_and_once_when_it_is_asked_again(
    nodes: Nodes, caplog: pytest.LogCaptureFixture
) -> None:
    """Bad luck: while all are away each is asked at each look, and each was said to be left out every time."""
    pool = nodes.pool()
    with caplog.at_level(logging.WARNING, "assay.rpc"):
        head_of(pool)
        for provider in nodes.providers:
            provider.turn(Reply(b"", 503))
        for _ in range(5):
            nodes.now += 1.0
            with pytest.raises(FAILED):
                head_of(pool)
        nodes.providers[0].turn()
        nodes.now += 2 * REST_MOST_S
        head_of(pool)
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert [sum(text.startswith(f"the node at {url} does not serve") for text in said) for url in nodes.urls] == [1] * 3
    assert said[3:] == [f"the node at {nodes.urls[0]} is asked again"]


@pytest.mark.parametrize("form", ["%d", "%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT"], ids=RETRY_FORMS)
def test_a_node_that_asks_for_time_is_left_alone_so_long(nodes: Nodes, form: str) -> None:
    until = (datetime.now(UTC) + timedelta(seconds=100)).strftime(form)
    headers = {"Retry-After": "100" if form == "%d" else until}
    pool, first = nodes.pool(), nodes.providers[0]
    head_of(pool)
    first.turn(Reply(b"", 429, headers))
    head_of(pool)
    first.turn()
    nodes.now += 97
    head_of(pool)
    assert not first.asked
    nodes.now += 4
    head_of(pool)
    assert first.asked


@pytest.mark.parametrize("word", ["soon", "Fri, 99 Jan 2027 00:00:00 GMT", "-5", "9" * 400, ""])
def test_a_time_that_is_none_asks_for_none(nodes: Nodes, word: str) -> None:
    pool, first = nodes.pool(), nodes.providers[0]
    first.turn(Reply(b"", 429, {"Retry-After": word}))
    head_of(pool)
    nodes.now += REST_S + 0.1
    first.turn()
    head_of(pool)
    assert first.asked


def test_all_nodes_are_asked_though_all_should_rest(nodes: Nodes) -> None:
    chain = nodes.chain()
    for provider in nodes.providers:
        provider.turn(Reply(b"", 503), 2)
    assert chain.head().number >= 200 and nodes.waits


def test_when_no_node_answers_it_is_said_of_all_without_their_keys(nodes: Nodes) -> None:
    urls = [f"{url}/v2/secretsecret{k}" for k, url in enumerate(nodes.urls)]
    chain = Chain(",".join(urls), sleep=nodes.waits.append)
    for provider in nodes.providers:
        provider.turn(Reply(b"", 503))
    with pytest.raises(UnavailableError) as said_of:
        chain.head()
    assert all(url in said_of.value.message for url in nodes.urls) and "secret" not in said_of.value.explain()


def test_a_quota_spreads_requests_and_skips_none(nodes: Nodes) -> None:
    pool = nodes.pool(per_second=10.0)
    for _ in range(40):
        head_of(pool)
    asked = sum(len(provider.asked) for provider in nodes.providers[:1])
    # Of the time that is told none passes, so each wait is a tenth of a second longer than the last.
    assert nodes.waits == pytest.approx([0.1 * k for k in range(1, len(nodes.waits) + 1)])
    assert len(nodes.waits) == asked - 10
    nodes.now += 1000
    nodes.waits.clear()
    head_of(pool)
    assert not nodes.waits


def test_two_connections_to_a_node_keep_one_quota(nodes: Nodes) -> None:
    pool = nodes.pool(per_second=100.0)
    other = nodes.pool(quotas=pool.quotas)
    for each in (pool, other) * 10:
        head_of(each)
    left = 100 - len(nodes.providers[0].asked)
    assert not nodes.waits
    for _ in range(left + 1):
        head_of(other)
    assert nodes.waits
    nodes.waits.clear()
    head_of(pool)
    assert nodes.waits


def test_a_node_that_is_behind_is_passed_over_until_it_has_what_was_seen(nodes: Nodes) -> None:
    pool, (first, second, third) = nodes.pool(), nodes.providers
    right = head_of(pool)
    second.turn(behind(3), methods=["eth_getBlockByNumber"])
    first.turn(Reply(b"", 503))
    nodes.counts()
    assert head_of(pool) == right
    assert third.asked and ("eth_blockNumber", []) not in second.asked


def test_nothing_goes_back_when_only_a_node_is_left_that_is_behind(nodes: Nodes) -> None:
    chain = nodes.chain()
    right = chain.head().number
    for provider in nodes.providers[1:]:
        provider.turn(behind(1), methods=["eth_getBlockByNumber"])
    nodes.providers[0].turn(Reply(b"", 503))
    with pytest.raises(UnavailableError):
        chain.head()
    nodes.providers[2].turn()
    assert chain.head().number == right


def test_a_head_that_nobody_else_reaches_is_given_up_in_the_end(nodes: Nodes) -> None:
    """Attack: a node names a head far ahead and falls silent, so that all others seem to be behind."""
    pool, first = nodes.pool(), nodes.providers[0]
    first.turn(said(hex(1 << 40)), methods=["eth_blockNumber"])
    assert head_of(pool) == 1 << 40
    first.turn(Reply(b"", 503))
    nodes.now += endpoints.SEEN_FOR_S - 1
    with pytest.raises(FAILED):
        head_of(pool)
    nodes.now += 2
    assert 200 <= head_of(pool) < 1 << 40


@pytest.mark.parametrize("chain_id", [31337, 5], ids=["of the same number", "of another number"])
def test_a_node_of_another_chain_is_named_and_never_asked(
    node: Anvil, caplog: pytest.LogCaptureFixture, chain_id: int
) -> None:
    with Anvil(chain_id=chain_id) as other, ProviderNode(node.url) as good, ProviderNode(other.url) as wrong:
        other.rpc("anvil_mine", hex(700))
        chain = Chain(f"{good.url},{wrong.url}", sleep=lambda _: None)
        good.turn(Reply(b"", 503))
        with caplog.at_level(logging.ERROR, "assay.rpc"), pytest.raises(UnavailableError):
            chain.head()
        assert wrong.url in caplog.text
        assert {method for method, _ in wrong.asked} <= {"eth_chainId", "eth_getBlockByNumber"}
        good.turn()
        assert chain.head().number < 700


@pytest.mark.parametrize("liar", [0, 1, 2])
def test_whoever_differs_from_the_others_at_a_final_block_is_dropped(
    nodes: Nodes, caplog: pytest.LogCaptureFixture, liar: int
) -> None:
    """Also the first, which is asked until it is found out."""
    pool = nodes.pool()
    head_of(pool)
    nodes.providers[liar].turn(forked, methods=["eth_getBlockByNumber"])
    nodes.now += endpoints.COMPARED_S
    with caplog.at_level(logging.ERROR, "assay.rpc"):
        assert head_of(pool) >= 200
    assert nodes.urls[liar] in caplog.text and OTHER_HASH in caplog.text
    nodes.counts()
    nodes.now += 10_000
    head_of(pool)
    counts = nodes.counts()
    assert counts[liar] == 0 and sum(map(bool, counts)) == 2
    assert [standing.is_used for standing in pool.survey()] == [k != liar for k in range(3)]


def test_of_two_that_differ_the_first_is_believed(node: Anvil) -> None:
    with ExitStack() as stack:
        nodes = Nodes(node.url, stack, 2)
        pool = nodes.pool()
        nodes.providers[1].turn(forked, methods=["eth_getBlockByNumber"])
        head_of(pool)
        nodes.providers[0].turn(Reply(b"", 503))
        with pytest.raises(FAILED):
            head_of(pool)
        assert [standing.is_used for standing in pool.survey()] == [False, False]


def test_a_node_that_was_away_is_dropped_for_a_final_block_of_its_own(nodes: Nodes) -> None:
    pool, second = nodes.pool(), nodes.providers[1]
    second.turn(Reply(b"", 503))
    head_of(pool)
    second.turn(forked, methods=["eth_getBlockByNumber"])
    nodes.now += 10
    for k in (0, 2):
        nodes.providers[k].turn(Reply(b"", 503))
    with pytest.raises(FAILED):
        head_of(pool)
    assert ("eth_blockNumber", []) not in second.asked
    assert not pool.survey()[1].is_used


def test_when_all_are_dropped_it_is_said_and_nothing_is_asked(nodes: Nodes) -> None:
    pool = nodes.pool()
    head_of(pool)
    for endpoint in pool._endpoints:
        endpoint.is_dropped = True
    with pytest.raises(AllEndpointsDropped) as said_of:
        head_of(pool)
    assert all(url in said_of.value.message for url in nodes.urls)


def test_a_block_that_one_node_lacks_is_asked_of_the_next(nodes: Nodes) -> None:
    chain = nodes.chain()
    newest = chain.newest()
    nodes.providers[0].turn(said(None), methods=["eth_getBlockByHash"])
    assert chain.block(bytes(newest["hash"]))["number"] == newest["number"]
    assert sum(nodes.waits) < answers.LAGGING_FOR_S


def test_a_payment_over_nodes_that_fail_is_made_once(node: Anvil, nodes: Nodes) -> None:
    from eth_account import Account

    account = Account.from_key(node.dev_keys[0])
    chain = Chain(",".join(nodes.urls))
    before = int(chain.w3.eth.get_balance(SOMEBODY))
    nodes.providers[0].turn(Reply(b"", 502), methods=["eth_sendRawTransaction", "eth_getTransactionReceipt"])
    receipt = chain.transfer(account, SOMEBODY, 10**15)
    assert receipt["status"] == 1
    assert int(chain.w3.eth.get_balance(SOMEBODY)) == before + 10**15


TOO_MUCH = {
    "a proxy's": Reply(b"<html>too large</html>", 413),
    "nested too deeply": Reply(b"[" * 64 + b"]" * 64),
    "an error": refused(-32000, "response size exceeded"),
}


@pytest.mark.parametrize("name", TOO_MUCH)
def test_a_node_that_says_of_everything_that_it_is_too_much_is_left(nodes: Nodes, name: str) -> None:
    """Attack: of a search less is asked for, so that such a node was never passed over, whatever it was asked."""
    nodes.providers[0].turn(TOO_MUCH[name])
    chain = nodes.chain()
    assert chain.head().number >= 200
    assert chain.logs([SOMEBODY], 0, 5) == []
    nodes.counts()
    assert chain.head().number >= 200
    assert nodes.counts()[0] == 0, "it rests"


def test_a_node_that_gives_less_at_once_is_asked_for_less_and_keeps_its_place(nodes: Nodes) -> None:
    pool = nodes.pool()
    head_of(pool)
    nodes.providers[0].turn(TOO_MUCH["a proxy's"], methods=["eth_getLogs"])
    nodes.counts()
    with pytest.raises(requests.HTTPError):
        pool.make_request(RPCEndpoint("eth_getLogs"), [{"fromBlock": "0x0", "toBlock": "0x5"}])
    head_of(pool)
    assert nodes.counts() == [2, 0, 0]
