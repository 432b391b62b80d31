"""Pages of a run that is long, that strangers fill, or that is not read to its end yet."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.bench.imagined_run import ImaginedRun, ToldEvent, imagined_events
from assay.explorer import api_parts, work_documents
from assay.explorer.app import make_app
from assay.explorer.page_parts import ROWS
from assay.explorer.reader import RunReader
from assay.explorer.tables import TABLES, to_csv
from assay.explorer.words import number, when
from assay.protocol.rounds.duty_types import DutyKind
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Wei
from assay_ledger.bindings.duties import DutyLeftOut, EpochBegan
from assay_ledger.bindings.escrow import Funded
from assay_ledger.chain.client import Head

STRANGERS = 3 * ROWS


def take(reader: RunReader, told: list[ToldEvent]) -> None:
    reader.take(reader.known, told, Head(told[-1][1].block, told[-1][2]))


@pytest.fixture(scope="module")
def reader() -> RunReader:
    """A run of 4 seats in which every ticket was called more often than a page shows, as nobody asks its node."""
    reader = RunReader(ImaginedRun(4))
    source = imagined_events(reader.run, 100_000)
    while len(reader.shelves.calls_of_ticket[TicketId(1)]) <= ROWS:
        take(reader, list(islice(source, 2_000)))
    reader.is_following = True
    return reader


def test_a_ticket_s_page_shows_its_newest_calls(reader: RunReader) -> None:
    calls = sorted(reader.shelves.calls_of_ticket[TicketId(1)])
    page = TestClient(make_app(reader)).get("/tickets/1").text
    assert f"epoch {calls[-1]}</a>" in page and f"epoch {calls[0]}</a>" not in page
    assert f"The newest {ROWS} of {len(calls)}" in page


def test_what_a_ticket_left_out_by_name_is_no_duty_that_it_answered(reader: RunReader) -> None:
    contract, found, at = next(t for t in imagined_events(reader.run, 10_000) if isinstance(t[1].event, EpochBegan))
    epoch = max(reader.shelves.calls_of_ticket[TicketId(1)])

    def said() -> list[tuple[int, int]]:
        client = TestClient(make_app(reader))
        (called,) = (c for c in client.get(f"/api/v1/epochs/{epoch}").json()["called"] if c["ticket"] == 1)
        (call,) = (c for c in client.get("/api/v1/tickets/1").json()["calls"] if c["epoch"] == epoch)
        return [(made["answered"], made["left_out"]) for made in (called, call)]

    (answered, left_out), again = said()
    assert left_out == 0 and again == (answered, 0)
    named = DutyLeftOut(epoch, TicketId(1), int(DutyKind.WORK), Digest(bytes(32)))
    reader.take(reader.known, [(contract, replace(found, event=named), at)], None)
    assert said() == [(answered, 1)] * 2
    for page in (f"/epochs/{epoch}", "/tickets/1"):
        assert "left out by name" in TestClient(make_app(reader)).get(page).text


def test_strangers_who_fund_a_run_with_next_to_nothing_hide_nobody(reader: RunReader) -> None:
    """Attack: a unit of the token from each of many addresses, which sort before the sponsor's."""
    contract, found, at = next(told for told in imagined_events(reader.run, 100) if isinstance(told[1].event, Funded))
    assert isinstance(found.event, Funded)
    sponsor = found.event.funder
    strangers = [Address(bytes(16) + k.to_bytes(4, "big")) for k in range(1, STRANGERS)]
    for who in strangers:
        reader.take(reader.known, [(contract, replace(found, event=Funded(who, Wei(1))), at)], None)
    page = TestClient(make_app(reader)).get("/money").text
    funders = page[page.index("<caption>Funders") : page.index("</table>", page.index("<caption>Funders"))]
    assert funders.count("<tr>") == 1 + ROWS and "0x" + sponsor.hex() in funders
    assert f"{STRANGERS - ROWS} others" in page


def test_a_run_that_is_still_being_read_is_shown_as_of_its_newest_event() -> None:
    reader = RunReader(ImaginedRun(4))
    told = list(islice(imagined_events(reader.run, 4_000), 1_500))
    reader.take(reader.known, told, None)
    reader.is_following = True
    reader.node.start()
    client = TestClient(make_app(reader))
    _, newest, at = told[-1]
    page = client.get("/").text
    assert "still being read: 1 500 events" in page
    assert f"Block {number(newest.block)}, chain time {when(at)} UTC" in page and "not begun" not in page
    times = client.get("/rounds/2").text
    assert "a commitment is paid</td>" in times and '<span class="soft">in ' not in times, "its times are over"
    reader.stop()


def test_rounds_are_listed_by_as_many_as_their_commitments_allow(
    reader: RunReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: one question for 500 rounds of 300 seats, while nobody else's page is made."""
    monkeypatch.setattr(api_parts, "MOST_LISTED", 5 * 4)
    client, found = TestClient(make_app(reader)), list[int]()
    cursor: str | None = "0"
    while cursor is not None:
        listed = client.get(f"/api/v1/rounds?limit=500&cursor={cursor}").json()
        assert len(listed["items"]) <= 5
        found, cursor = [*found, *(item["round"] for item in listed["items"])], listed["next_cursor"]
    assert found == list(range(len(reader.state.books.commitments.rounds)))


def test_a_table_of_rounds_keeps_none_of_their_commitments(reader: RunReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: the table that the first page links to, of a long run, until the memory is full."""
    kept, turns, reading = list[dict[str, Any]](), list[None](), RunReader.reading

    def written(rows: list[dict[str, Any]]) -> str:
        kept.extend(rows)
        return to_csv(rows)

    def counted(of: RunReader) -> Any:
        turns.append(None)
        return reading(of)

    wanted = [(len(row["commitments"]), row["settled"]) for row in TABLES["rounds"].rows(reader)]
    monkeypatch.setattr(api_parts, "to_csv", written)
    monkeypatch.setattr(work_documents, "work_document", lambda *_: pytest.fail("a commitment is written out"))
    monkeypatch.setattr(RunReader, "reading", counted)
    rounds = len(reader.state.books.commitments.rounds)
    text = TestClient(make_app(reader)).get("/api/v1/csv/rounds.csv").text
    assert text.count("\n") == 1 + rounds == 1 + len(kept) and ",commitments," in text
    assert not any(isinstance(value, list | dict) for row in kept for value in row.values())
    assert [(row["commitments"], row["settled"]) for row in kept] == wanted
    assert len(turns) >= rounds * 4 / api_parts.SLICE_ROWS
