"""Blocks that a node announces over a WebSocket: whoever waits is woken, and waits no longer than ever if it is not."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from assay_ledger.chain import announced as announcing
from assay_ledger.chain.announced import HeadSubscription, announced
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import Anvil
from assay_ledger.chain.pace import PollPace
from tests.harness.browser import wait_for
from tests.harness.buckets import eventually
from tests.harness.nodes import HostileNode
from tests.harness.tcp_relay import TcpRelay

LONG_S = 60.0
"""Nobody waits so long in these tests but for a failure."""


@pytest.fixture(scope="module")
def node() -> Iterator[Anvil]:
    with Anvil() as running:
        yield running


@pytest.fixture(autouse=True)
def _short_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "REST_S", 0.02)
    monkeypatch.setattr(announcing, "REST_MOST_S", 0.1)


@pytest.fixture
def relay(node: Anvil) -> Iterator[TcpRelay]:
    with TcpRelay(node.port) as relay:
        yield relay


class Waiter(threading.Thread):
    """Looks at the head, and waits for the next block with a patience that only an announcement ends."""

    def __init__(self, chain: Chain) -> None:
        super().__init__(daemon=True)
        self.chain, self.seen, self.is_over = chain, chain.head().number, False
        self.start()

    def run(self) -> None:
        while not self.is_over:
            self.chain.pace.wait(LONG_S, lambda: self.is_over)
            self.seen = self.chain.head().number

    def end(self) -> None:
        self.is_over = True
        self.join()


def mine_until_seen(node: Anvil, waiter: Waiter) -> None:
    """The first announcements may be lost on a connection that is being made."""

    def mined() -> bool:
        head = int(node.rpc("evm_mine") and node.rpc("eth_blockNumber"), 16)  # type: ignore[arg-type]
        return eventually(lambda: waiter.seen >= head, 3.0)

    wait_for(mined, 90, "a block that is announced is looked at")


def test_whoever_waits_is_woken_by_a_block_that_is_announced(node: Anvil) -> None:
    chain = Chain(node.url)
    waiter = Waiter(chain)
    with announced(chain, node.url.replace("http", "ws")):
        mine_until_seen(node, waiter)
        waiter.end()
    assert "assay-heads" not in {thread.name for thread in threading.enumerate()}


def test_a_subscription_that_is_cut_is_made_anew(
    node: Anvil, relay: TcpRelay, caplog: pytest.LogCaptureFixture
) -> None:
    chain = Chain(node.url)
    waiter = Waiter(chain)
    with caplog.at_level(logging.INFO, "assay.rpc"), announced(chain, f"ws://127.0.0.1:{relay.port}"):
        for cut in range(2):
            mine_until_seen(node, waiter)
            relay.cut()
            wait_for(lambda cut=cut: relay.taken > cut + 1, 90, "it connects again")  # type: ignore[misc]
        mine_until_seen(node, waiter)
        waiter.end()
    assert "announces no blocks" in caplog.text and "announces blocks again" in caplog.text


def test_a_subscription_that_falls_silent_is_made_anew(
    node: Anvil, relay: TcpRelay, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(announcing, "SILENT_S", 0.3)
    heard: list[int] = []
    with closing(HeadSubscription(f"ws://127.0.0.1:{relay.port}", 31337, heard.append)):
        wait_for(lambda: relay.taken > 2, 90, "each silence ends a connection")
        assert not heard


def test_a_silent_or_dead_subscription_delays_nobody(node: Anvil, relay: TcpRelay) -> None:
    chain = Chain(node.url)
    with announced(chain, f"ws://127.0.0.1:{relay.port}"):
        waiter = Waiter(chain)
        mine_until_seen(node, waiter)
        waiter.end()
        relay.hush()
        for silence in (relay.hush, relay.cut):
            silence()
            node.rpc("evm_mine")
            began = time.monotonic()
            chain.pace.wait(chain.pace.period)
            # The longest that is ever waited, and what a loaded machine adds.
            assert time.monotonic() - began < 2.0 + 5.0
            assert chain.head().number == int(node.rpc("eth_blockNumber"), 16)  # type: ignore[call-overload]


@pytest.mark.parametrize("answer", [None, "HTML", "hangs", "drips", "closes", "zero bytes"])
def test_what_is_no_subscription_is_said_once_and_holds_nobody_up(
    node: Anvil, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, answer: str | None
) -> None:
    monkeypatch.setattr(announcing, "OPEN_S", 0.2)
    chain = Chain(node.url)
    with closing(HostileNode(node.url)) as server, caplog.at_level(logging.INFO, "assay.rpc"):
        server.turn(answer)
        url = server.url.replace("http", "ws") + "/v3/0123456789abcdef"
        with announced(chain, url):
            wait_for(lambda: "announces no blocks" in caplog.text, 90, "it is said")
            time.sleep(0.3)
            assert chain.head().number >= 0
    assert caplog.text.count("announces no blocks") == 1 and "0123456789abcdef" not in caplog.text


def test_a_node_of_another_chain_announces_nothing(node: Anvil, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[int] = []
    told = caplog.at_level(logging.WARNING, "assay.rpc")
    with told, closing(HeadSubscription(node.url.replace("http", "ws"), 1, heard.append)):
        wait_for(lambda: "announces no blocks" in caplog.text, 90, "it is refused")
        node.rpc("evm_mine")
        time.sleep(0.2)
    assert not heard


@pytest.mark.parametrize("number", [11, 1 << 256], ids=["the next", "any"])
def test_a_flood_of_announcements_wakes_once_for_each_head_that_is_seen(number: int) -> None:
    """Attack: a stranger's server has its user ask the node without end."""
    pace = PollPace()
    pace.saw(10)
    is_over = threading.Event()

    def flood() -> None:
        while not is_over.wait(0.001):
            pace.announce(number)

    threading.Thread(target=flood, daemon=True).start()
    began, looks = time.monotonic(), 0
    while time.monotonic() - began < 0.5:
        pace.wait(0.1)
        looks += 1
    is_over.set()
    assert looks <= 7, "one is believed; all other looks come when they would have come"


def test_a_block_that_was_seen_already_wakes_nobody() -> None:
    pace = PollPace()
    pace.saw(10)
    pace.announce(10)
    began = time.monotonic()
    pace.wait(0.2)
    assert time.monotonic() - began >= 0.2
    pace.announce(11)
    pace.wait(LONG_S)
    pace.saw(11)
    pace.announce(12)
    pace.wait(LONG_S)


def test_a_waiter_that_shall_end_does_so_soon() -> None:
    stop, pace = threading.Event(), PollPace()
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    pace.wait(LONG_S, stop.is_set)
    assert time.monotonic() - began < LONG_S / 2
