"""Pages that are kept: rendered once, new when what they are about has changed, and never old without a word."""

from __future__ import annotations

import asyncio
import gzip
import threading
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

from assay.bench.imagined_run import ImaginedRun, ToldEvent, imagined_events
from assay.bench.page_readers import read_pages
from assay.explorer import cache, work_documents
from assay.explorer.app import make_app
from assay.explorer.reader import SILENT_S, RunReader
from assay.explorer.server import serve_reader
from assay.explorer.touched import subject_of
from assay_ledger.bindings.commitments import WorkCommitted
from assay_ledger.chain.client import Head

SEATS, EVENTS = 4, 2_000
"""Enough for the first dispute and accusation."""


class TurnedClock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


class GrowingRun:
    """A reader of an imagined run whose node answers, by a clock that a test turns."""

    def __init__(self, clock: TurnedClock) -> None:
        self.reader = RunReader(ImaginedRun(SEATS), clock=clock.monotonic)
        self.source = imagined_events(self.reader.run, EVENTS + 10_000)
        self.take(list(islice(self.source, EVENTS)))
        self.reader.is_following = True
        for lookups in (self.reader.node, self.reader.replays, self.reader.files):
            lookups.start()
        self.client = TestClient(make_app(self.reader))

    def take(self, told: list[ToldEvent]) -> None:
        self.reader.take(self.reader.known, told, Head(told[-1][1].block, told[-1][2]))
        self.reader.heard()

    def grow(self, kind: type) -> ToldEvent:
        """Events up to the next of a kind."""
        for told in self.source:
            self.take([told])
            if isinstance(told[1].event, kind):
                return told
        raise AssertionError("the run has ended")

    def tag(self, path: str) -> str:
        answer = self.client.get(path)
        assert answer.status_code == 200, path
        return answer.headers["etag"]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> TurnedClock:
    turned = TurnedClock()
    monkeypatch.setattr(cache, "time", turned)
    return turned


@pytest.fixture
def grown(clock: TurnedClock) -> GrowingRun:
    return GrowingRun(clock)


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rounds of which documents were made."""
    made, make = list[int](), work_documents.round_document

    def count(reader: RunReader, round_: Any) -> Any:
        made.append(int(round_))
        return make(reader, round_)

    monkeypatch.setattr("assay.explorer.api.round_document", count)
    return made


def test_events_of_other_rounds_leave_a_round_as_it_is(
    grown: GrowingRun, clock: TurnedClock, rendered: list[int]
) -> None:
    first = grown.tag("/rounds/0")
    for _ in range(5):
        grown.grow(WorkCommitted)
        clock.now += cache.LONGEST_S / 10
        assert grown.tag("/rounds/0") == first
    assert rendered == [0]
    clock.now += cache.LONGEST_S
    grown.tag("/rounds/0")
    assert rendered == [0, 0], "what the clock alone changes is no older"


def test_a_page_is_new_once_an_event_is_about_it(grown: GrowingRun, clock: TurnedClock) -> None:
    _, found, _ = grown.grow(WorkCommitted)
    assert isinstance(found.event, WorkCommitted)
    path, seen = f"/rounds/{found.event.round}", set[str]()
    for _ in range(SEATS - found.event.seat):
        clock.now += cache.LONGEST_S / 10
        seen.add(grown.tag(path))
        grown.grow(WorkCommitted)
    assert len(seen) == SEATS - found.event.seat


def test_a_kept_page_says_at_once_that_the_node_is_silent(grown: GrowingRun, clock: TurnedClock) -> None:
    for path in ("/", "/rounds/0", "/events?cursor=100", "/api/v1/run"):
        assert "has not answered" not in grown.client.get(path).text
    clock.now += SILENT_S + 1
    for path in ("/", "/rounds/0", "/events?cursor=100"):
        assert "has not answered for 10 s" in grown.client.get(path).text, path
    grown.reader.heard()
    assert "has not answered" not in grown.client.get("/rounds/0").text


def test_what_was_being_asked_for_is_shown_as_soon_as_it_is_there(grown: GrowingRun, clock: TurnedClock) -> None:
    game = grown.reader.shelves.games[0]
    path = f"/api/v1/actors/0x{game.defender.hex()}"
    assert grown.client.get(path).json()["games"][0]["gas"] is None
    for name in {game.opened_tx, *(move.tx_hash for move in game.moves)}:
        grown.reader.node._keep(("gas", name), 7)
    grown.reader.node.version += 1
    clock.now += 2 * cache.LEAST_S
    assert grown.client.get(path).json()["games"][0]["gas"] > 0


def test_a_page_is_compressed_for_whoever_reads_that_and_known_by_either_name(grown: GrowingRun) -> None:
    plain = grown.client.get("/money", headers={"Accept-Encoding": "identity"})
    with grown.client.stream("GET", "/money", headers={"Accept-Encoding": "gzip"}) as answer:
        packed = b"".join(answer.iter_raw())
    assert (answer.headers["content-encoding"], answer.headers["vary"]) == ("gzip", "accept-encoding")
    assert int(answer.headers["content-length"]) == len(packed) < len(plain.content) / 3
    assert gzip.decompress(packed) == plain.content and "content-encoding" not in plain.headers
    for tag in (plain.headers["etag"], answer.headers["etag"]):
        again = grown.client.get("/money", headers={"If-None-Match": tag})
        assert again.status_code == 304 and not again.content


def test_pages_kept_take_no_more_than_they_may(grown: GrowingRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_BYTES", 300_000)
    layer: Any = make_app(grown.reader).build_middleware_stack()
    while not isinstance(layer, cache.PageCache):
        layer = layer.app
    client = TestClient(layer)
    for cursor in range(100, 1_500, 50):
        client.get(f"/events?cursor={cursor}", headers={"Accept-Encoding": "gzip"})
        assert layer._bytes == sum(answer.size for answer in layer._kept.values()) <= 300_000
    assert len(layer._kept) > 1


@pytest.mark.parametrize(
    ("path", "subject"),
    [("/rounds/7", ("round", 7)), ("/api/v1/rounds/7", ("round", 7)), ("/commitments/7/3", ("round", 7)),
     ("/generations/8", ("round", 7)), ("/games/2", ("game", 2)), ("/epochs/2", ("epoch", 2)),
     ("/tickets/2", ("ticket", 2)), ("/tenures/2", ("tenure", 2)), ("/actors/0x" + "aB" * 20, bytes([0xAB] * 20)),
     ("/", None), ("/money", None), ("/rounds/x", None), ("/rounds/7/x", None),
     ("/generations/8/card", None), ("/revenue/8", None), ("/gateways/0x" + "aB" * 20, None),
     ("/games/2/bundle.json", None)],
)  # fmt: skip
def test_a_page_knows_what_it_is_about(path: str, subject: object) -> None:
    assert subject_of(path) == subject


# --- served


@pytest.fixture
def served() -> Iterator[tuple[GrowingRun, str]]:
    clock = TurnedClock()
    grown = GrowingRun(clock)
    with serve_reader(grown.reader) as server:
        yield grown, server.url


def test_pages_are_answered_while_the_node_is_being_asked(
    served: tuple[GrowingRun, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    grown, url = served
    asked, gate = threading.Event(), threading.Event()

    def newest() -> None:
        asked.set()
        gate.wait(60)

    monkeypatch.setattr(grown.reader.run.chain, "newest", newest, raising=False)
    grown.reader.follow()
    try:
        assert asked.wait(30)
        with httpx.Client(base_url=url, timeout=20) as client:
            for path in ("/", "/rounds/0", "/money", "/style.css"):
                assert client.get(path).status_code == 200, path
    finally:
        gate.set()


def test_a_long_table_lets_pages_have_their_turn(grown: GrowingRun, monkeypatch: pytest.MonkeyPatch) -> None:
    turns, reading = list[float](), RunReader.reading

    def counted(reader: RunReader) -> Any:
        turns.append(time.monotonic())
        return reading(reader)

    monkeypatch.setattr(RunReader, "reading", counted)
    text = grown.client.get("/api/v1/csv/events.csv").text
    assert len(turns) >= EVENTS / 200 and text.count("\n") == 1 + len(grown.reader.events)


def test_zeros_in_events_are_no_link(grown: GrowingRun) -> None:
    end = next(k for k, row in enumerate(grown.reader.events) if row.name == "Transfer") + 1
    text = grown.client.get(f"/events?cursor={end}").text
    assert "<code>0x000000…0000</code>" in text and "q=0x000000" not in text


def test_what_stands_between_work_and_pay_reads_no_sources(grown: GrowingRun, monkeypatch: pytest.MonkeyPatch) -> None:
    def read() -> None:
        raise AssertionError("a page reads the sources of the program")

    monkeypatch.setattr("assay.explorer.codes._python_codes", read)
    grown.grow(WorkCommitted)
    who = grown.reader.shelves.tenures_of
    for address in who:
        text = grown.client.get(f"/actors/0x{address.hex()}").text
        assert "NotAuditedYet" in text or address != next(iter(who))


def test_readers_follow_links_look_again_and_are_sent_on(served: tuple[GrowingRun, str]) -> None:
    grown, url = served
    work = grown.reader.shelves.works[0]
    paths = {"front": ["/"], "search": [f"/search?q=0x{work.digest.hex()}"]}
    took = asyncio.run(read_pages(url, paths, readers=4, seconds=2.0, pause=0.0))
    assert {"front", "search"} < took.keys(), "and some came by links"
