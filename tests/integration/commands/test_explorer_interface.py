"""The explorer's interface over a run that has only begun: what is asked wrongly, streamed, paged, served, escaped."""

from __future__ import annotations

import asyncio
import json
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from assay.explorer import serve
from assay.explorer.api_parts import _stream
from assay.explorer.app import make_app
from assay.explorer.codes import event_meaning
from assay.explorer.lookups import Lookups
from assay.explorer.reader import RunReader
from assay.protocol.errors import UnavailableError
from assay.protocol.types import Wei
from assay_ledger.rounds.run import Run
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import ETHER, SharedChain, actors_artifacts
from tests.harness.browser import wait_for
from tests.integration.rounds.test_index import FollowedRun


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedChain]:
    with actors_artifacts(tmp_path_factory.mktemp("artifacts")):
        stage = SharedChain()
        yield stage
        stage.close()


@pytest.fixture(scope="module")
def run(shared: SharedChain, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run that somebody funded, with one seat and one ticket."""
    begun = FollowedRun(new_whole_run(shared, tmp_path_factory.mktemp("run")))
    begun.enrol(begun.person())
    begun.fund(Wei(5 * ETHER))
    return begun.run


@pytest.fixture(scope="module")
def reader(run: Run) -> RunReader:
    return RunReader(run)


@pytest.fixture(scope="module")
def client(reader: RunReader) -> Iterator[TestClient]:
    with TestClient(make_app(reader)) as client:
        yield client


def get(client: TestClient, path: str) -> Any:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.json()


def test_what_strangers_wrote_is_escaped(run: Run, client: TestClient) -> None:
    evil = "<b onclick=x>"
    for path, query in (("/search", "q"), ("/events", "about"), ("/events", "tx")):
        answer = client.get(path, params={query: evil})
        assert answer.status_code == (404 if path == "/search" else 200)
        assert "&lt;b onclick" in answer.text and "<b onclick" not in answer.text
    answer = client.get(f"/findings/{quote(evil)}")
    assert answer.status_code == 404 and "<b onclick" not in answer.text
    named = TestClient(make_app(RunReader(run, names={run.charter.sponsor: evil})))
    text = named.get("/").text
    assert "&lt;b onclick" in text and "<b onclick" not in text


def test_a_chain_that_does_not_answer_is_a_sentence_and_not_a_trace(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = RunReader(run)

    def fail() -> None:
        raise UnavailableError("The chain does not answer.", code="NodeUnreachable", remedy="Check the node.")

    monkeypatch.setattr(reader._index, "sync", fail)
    client = TestClient(make_app(reader), raise_server_exceptions=False)
    page, data = client.get("/"), client.get("/api/v1/run")
    assert (page.status_code, data.status_code) == (503, 503)
    assert "Check the node." in page.text
    assert data.json()["error"]["code"] == "NodeUnreachable"


def test_new_events_are_streamed_from_where_a_reader_left_off(reader: RunReader) -> None:
    class ImpatientReader:
        """Hangs up after the first look."""

        looks = 0

        async def is_disconnected(self) -> bool:
            self.looks += 1
            return self.looks > 1

    with reader.reading():
        last = reader.events[-3].number
    impatient: Any = ImpatientReader()

    async def read() -> list[str]:
        return [message async for message in _stream(reader, impatient, last)]

    messages = asyncio.run(read())
    assert [m.splitlines()[0] for m in messages] == [f"id: {last + 1}", f"id: {last + 2}"]
    assert all(json.loads(m.split("data: ")[1])["contract"] for m in messages)


def test_so_many_streams_are_open_and_no_more(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("assay.explorer.api_parts.MOST_STREAMS", 2)
    with serve(run) as server:
        url = f"{server.url}api/v1/stream?after=0"
        first, second = (urllib.request.urlopen(url, timeout=10) for _ in range(2))
        with pytest.raises(HTTPError) as refused:
            urllib.request.urlopen(url, timeout=10)
        assert refused.value.code == 503 and b"2 streams are open already" in refused.value.read()
        assert urllib.request.urlopen(server.url, timeout=10).status == 200
        first.close()

        def is_open() -> bool:
            with suppress(HTTPError):
                urllib.request.urlopen(url, timeout=10).close()
                return True
            return False

        wait_for(is_open, 20, "a stream for who comes after one that has gone")
        second.close()


def test_the_page_of_events_says_what_each_means(client: TestClient) -> None:
    text = unescape(client.get("/events").text)
    for contract, name in (("tickets", "TicketRegistered"), ("escrow", "Funded")):
        assert f"{contract}.{name}" in text
        assert event_meaning(contract, name) in text


@pytest.mark.parametrize(
    "path",
    ["/rounds/99", "/rounds/x", "/games/0", "/findings/0x12", "/findings/nothing", "/tickets/0", "/tenures/99",
     "/epochs/9999", "/generations/99", "/accusations/0x12", "/actors/nobody", "/nowhere", "/rounds/-99",
     "/commitments/-1/-1", "/generations/-5", "/epochs/-1", f"/rounds/{'9' * 5000}", "/games/١", "/tickets/1e9"],
)  # fmt: skip
def test_what_is_not_there_is_a_page_that_says_so(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "text/html" in answer.headers["content-type"]


@pytest.mark.parametrize("cursor", ["-1", "9" * 400, "x", "1e3", "0x10", "", "²"])
@pytest.mark.parametrize("page", ["/events", "/findings", "/api/v1/events", "/api/v1/csv/events.csv"])
def test_a_cursor_that_is_none_is_refused_with_a_sentence(client: TestClient, page: str, cursor: str) -> None:
    answer = client.get(page, params={"cursor": cursor})
    assert answer.status_code == 422 and len(answer.text) > 20


def test_a_cursor_beyond_the_end_shows_what_there_is(client: TestClient) -> None:
    for page in ("/events", "/findings", "/api/v1/events", "/api/v1/csv/events.csv"):
        assert client.get(page, params={"cursor": (1 << 31) - 1}).status_code == 200


def test_odd_questions_are_answered_and_never_fail(client: TestClient) -> None:
    odd = ["0" * 200, "\x00", "%", "ff" * 64, "game 999999999", "-1", "٣", "0x" + "0" * 64, "' or 1=1", "ticket 0"]
    for text in odd:
        for path, name in (("/search", "q"), ("/events", "tx"), ("/events", "about"), ("/api/v1/search", "q")):
            assert client.get(path, params={name: text}).status_code < 500, (path, text)
        assert client.get(f"/api/v1/explain/{quote(text, safe='')}").status_code < 500, text
    assert client.get("/search", params={"q": "x" * 300}).status_code == 422
    stream = client.get("/api/v1/stream", headers={"Last-Event-ID": b"\xb2"}, params={"after": -2})
    assert stream.status_code == 422


# --- following


@pytest.fixture
def followed(run: Run) -> Iterator[tuple[RunReader, list[float]]]:
    """A reader that follows the run, and by how much its clock is ahead, in seconds."""
    ahead = [0.0]
    reader = RunReader(run, clock=lambda: time.monotonic() + ahead[0])
    reader.follow()
    try:
        assert reader.wait_first(60)
        yield reader, ahead
    finally:
        reader.stop()


def test_pages_are_there_at_once_though_the_node_stands_still(
    shared: SharedChain, followed: tuple[RunReader, list[float]]
) -> None:
    reader, ahead = followed
    client = TestClient(make_app(reader))
    assert "has not answered" not in client.get("/").text
    shared.node.process.send_signal(signal.SIGSTOP)
    try:
        ahead[0] = 75.0
        for path in ("/", "/money", "/events", "/style.css", "/api/v1/run", "/tenures/1", "/card", "/run"):
            began = time.monotonic()
            answer = client.get(path)
            assert answer.status_code == 200 and time.monotonic() - began < 5.0, path
        assert "has not answered for 1 min" in client.get("/").text
        assert client.get("/api/v1/run").json()["head"]["silent_s"] >= 75
    finally:
        shared.node.process.send_signal(signal.SIGCONT)
    wait_for(lambda: reader.silent_s is None, 60, "the node is heard again")
    assert "has not answered" not in client.get("/").text


def test_new_blocks_come_without_being_asked_for(shared: SharedChain, followed: tuple[RunReader, list[float]]) -> None:
    reader, _ = followed
    client, before = TestClient(make_app(reader)), reader.state.head.number
    first = client.get("/")
    again = client.get("/", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304 and again.content == b""
    assert again.headers["content-security-policy"] == first.headers["content-security-policy"]
    shared.chain.rpc("evm_mine")
    wait_for(lambda: reader.state.head.number > before, 60, "a block is read")
    wait_for(lambda: client.get("/").headers["etag"] != first.headers["etag"], 60, "the page is new")


def test_an_event_that_nobody_foresaw_ends_no_explorer(
    shared: SharedChain, followed: tuple[RunReader, list[float]], monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, _ = followed
    before = reader.state.head.number

    def fail(*_: object) -> None:
        raise AssertionError("no such vote")

    with monkeypatch.context() as patch:
        patch.setattr(reader, "take", fail)
        shared.chain.rpc("evm_mine")
        wait_for(lambda: reader.trouble is not None, 60, "the trouble is told")
        assert reader.trouble is not None and "AssertionError" in reader.trouble.message
    wait_for(lambda: reader.state.head.number > before, 60, "the block is read")


def test_a_reorganization_is_read_again_behind_what_is_shown(run: Run) -> None:
    reader = RunReader(run)
    with reader.reading():
        shown = reader.known
        count = len(reader.events)
    assert count > 0
    reader._index.begin()
    reader.is_following = True
    with reader.reading():
        assert reader.known is shown and len(reader.events) == count
    reader._index._next, reader._index._last = run.first_block, None
    reader._index.sync()
    with reader.reading():
        assert reader.known is not shown and len(reader.events) == count
        assert reader.version > (shown.version,)


def test_what_a_store_or_node_is_asked_for_is_asked_once_and_in_the_background() -> None:
    asked, gate = list[str](), threading.Event()

    def ask() -> str:
        asked.append("once")
        gate.wait(30)
        return "the answer"

    lookups = Lookups("test")
    lookups.start()
    try:
        for _ in range(3):
            with pytest.raises(UnavailableError) as caught:
                lookups.get("key", ask)
            assert caught.value.code == "BeingFetched"
            assert lookups.find("key", ask) is None
        gate.set()
        wait_for(lambda: lookups.find("key", ask) == "the answer", 30, "the answer is there")
        assert asked == ["once"] and lookups.version == 1
    finally:
        lookups.stop()


def test_a_question_that_fails_is_a_sentence_and_the_thread_lives_on() -> None:
    lookups = Lookups("test")
    lookups.start()
    try:
        lookups.find("odd", lambda: {}["nothing"])
        wait_for(lambda: lookups.version == 1, 30, "the first came back")
        with pytest.raises(UnavailableError) as caught:
            lookups.get("odd", lambda: 1)
        assert caught.value.code == "RpcError"
        wait_for(lambda: lookups.find("good", lambda: 2) == 2, 30, "the next is answered")
    finally:
        lookups.stop()


def test_it_is_served_on_a_free_port_and_gone_when_closed(run: Run) -> None:
    with (
        serve(run, names={run.charter.sponsor: "ada"}) as server,
        urllib.request.urlopen(server.url, timeout=30) as answer,
    ):
        assert b">ada</a>" in answer.read()
    with pytest.raises(OSError):
        urllib.request.urlopen(server.url, timeout=5)


def test_lists_come_page_by_page_and_every_item_once(client: TestClient, reader: RunReader) -> None:
    found, cursor, pages = [], "0", 0
    while cursor is not None:
        page = get(client, f"/api/v1/events?limit=7&cursor={cursor}")
        found += [e["number"] for e in page["items"]]
        cursor, pages = page["next_cursor"], pages + 1
    with reader.reading():
        assert found == list(range(len(reader.events)))
    assert pages == -(-len(found) // 7) > 1


def test_the_interface_describes_itself_and_refuses_nonsense(client: TestClient) -> None:
    paths = get(client, "/api/v1/openapi.json")["paths"]
    assert {"/api/v1/run", "/api/v1/games/{game}", "/api/v1/{table}", "/api/v1/search"} <= paths.keys()
    assert client.get("/api/v1/events?limit=100000").status_code == 422
    assert client.get("/api/v1/events?cursor=x").status_code == 422
    assert client.get("/api/v1/secrets").status_code == 404
    assert client.get("/api/v1/games/999").status_code == 404
