"""The explorer's interface over a run that has only begun: what is asked wrongly, streamed, paged, served, escaped."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from collections.abc import Iterator
from html import unescape
from typing import Any
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from assay.explorer import serve
from assay.explorer.api_parts import _stream
from assay.explorer.app import make_app
from assay.explorer.codes import event_meaning
from assay.explorer.reader import RunReader
from assay.protocol.errors import UnavailableError
from assay.protocol.types import Wei
from assay_ledger.rounds.run import Run
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import ETHER, SharedChain, actors_artifacts
from tests.integration.rounds.test_index import FollowedRun


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """A run that somebody funded, with one seat and one ticket."""
    with actors_artifacts(tmp_path_factory.mktemp("artifacts")):
        stage = SharedChain()
        try:
            begun = FollowedRun(new_whole_run(stage, tmp_path_factory.mktemp("run")))
            begun.enrol(begun.person())
            begun.fund(Wei(5 * ETHER))
            yield begun.run
        finally:
            stage.close()


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


def test_the_page_of_events_says_what_each_means(client: TestClient) -> None:
    text = unescape(client.get("/events").text)
    for contract, name in (("tickets", "TicketRegistered"), ("escrow", "Funded")):
        assert f"{contract}.{name}" in text
        assert event_meaning(contract, name) in text


@pytest.mark.parametrize(
    "path",
    ["/rounds/99", "/rounds/x", "/games/0", "/findings/0x12", "/findings/nothing", "/tickets/0", "/tenures/99",
     "/epochs/9999", "/generations/99", "/accusations/0x12", "/actors/nobody", "/nowhere"],
)  # fmt: skip
def test_what_is_not_there_is_a_page_that_says_so(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "text/html" in answer.headers["content-type"]


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
