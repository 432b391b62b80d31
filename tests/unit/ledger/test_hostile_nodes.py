"""Nodes that hang, drip or talk nonsense: a request ends in seconds, by name, and the next one is answered."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

import pytest
import requests

from assay.protocol.errors import UnavailableError
from assay_ledger.chain.client import Chain
from assay_ledger.chain.node import Anvil
from assay_ledger.timed_session import MAX_DEPTH, AnswerRefused, TimedSession
from tests.harness.nodes import NONSENSE, SILENCES, HostileNode

T = TypeVar("T")


@pytest.fixture(scope="module")
def hostile() -> Iterator[HostileNode]:
    with Anvil() as node:
        hostile = HostileNode(node.url)
        yield hostile
        hostile.close()


@pytest.fixture
def chain(hostile: HostileNode) -> Chain:
    hostile.turn(None)
    return once_it_answers(lambda: Chain(hostile.url, retry_for_s=0.1, timeout_s=0.4))


def once_it_answers(ask: Callable[[], T]) -> T:
    """What a node says that is not hostile; on a slow machine a call or two may be too short for it."""
    end = time.monotonic() + 60
    while True:
        try:
            return ask()
        except UnavailableError:
            assert time.monotonic() < end


@pytest.mark.parametrize("how", SILENCES)
def test_a_silent_node_holds_a_call_up_for_its_seconds_and_no_longer(
    hostile: HostileNode, chain: Chain, how: str
) -> None:
    hostile.turn(how)
    start = time.monotonic()
    with pytest.raises(UnavailableError) as refused:
        chain.head()
    assert refused.value.code == "NodeUnreachable"
    assert time.monotonic() - start < 20
    hostile.turn(None)
    assert once_it_answers(chain.head).number >= 0


@pytest.mark.parametrize("how", NONSENSE)
def test_an_answer_without_sense_is_unavailable_by_name_and_passes(
    hostile: HostileNode, chain: Chain, how: str
) -> None:
    hostile.turn(how)
    with pytest.raises(UnavailableError):
        chain.head()
    hostile.turn(None)
    assert once_it_answers(chain.head).number >= 0


def test_one_silence_is_forgiven_within_a_read(hostile: HostileNode) -> None:
    hostile.turn(None)
    chain = Chain(hostile.url, retry_for_s=20.0, timeout_s=0.3)
    hostile.turn("hangs", left=2)
    start = time.monotonic()
    assert chain.head().number >= 0
    assert hostile.mistreated == 2 and time.monotonic() - start < 20


def test_calls_of_many_threads_end_each_at_its_own_time(hostile: HostileNode) -> None:
    hostile.turn("drips")
    took: dict[float, float] = {}

    def ask(seconds: float) -> None:
        start = time.monotonic()
        with pytest.raises(requests.Timeout):
            TimedSession(seconds).post(hostile.url, json={"method": "x"})
        took[seconds] = time.monotonic() - start

    threads = [threading.Thread(target=ask, args=(seconds,)) for seconds in (1.5, 0.2, 0.8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hostile.turn(None)
    assert all(seconds <= took[seconds] + 0.01 for seconds in took) and len(took) == 3
    assert took[0.2] < took[0.8] < took[1.5] < 20


def test_an_answer_without_end_is_not_kept(hostile: HostileNode, chain: Chain, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay_ledger.timed_session.MAX_ANSWER_BYTES", 999)
    monkeypatch.setitem(NONSENSE, "long", b"1" * 999)
    hostile.turn("long")
    session = TimedSession(60.0)
    assert session.post(hostile.url, json={"method": "x"}).content == b"1" * 999
    monkeypatch.setitem(NONSENSE, "long", b"1" * 1000)
    with pytest.raises(AnswerRefused):
        session.post(hostile.url, json={"method": "x"})
    with pytest.raises(UnavailableError):
        chain.head()
    hostile.turn(None)


def test_an_answer_is_read_down_to_its_depth_and_no_deeper(
    hostile: HostileNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = TimedSession(60.0)
    for depth in (MAX_DEPTH, MAX_DEPTH + 1):
        monkeypatch.setitem(NONSENSE, "nested", b"[" * depth + b"]" * depth)
        hostile.turn("nested")
        if depth == MAX_DEPTH:
            assert len(session.post(hostile.url, json={"method": "x"}).content) == 2 * depth
            continue
        with pytest.raises(AnswerRefused):
            session.post(hostile.url, json={"method": "x"})
    hostile.turn(None)
