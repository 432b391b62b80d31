"""Pages of a run above 64 seats, whose updates are summed by groups before they are merged."""

from __future__ import annotations

from html import unescape
from typing import Any

import pytest
from starlette.testclient import TestClient

from assay.cli.watching import weight_of
from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.explorer.words import ranges
from assay.protocol.types import Round, Seat
from assay.sponsor.model_cards import model_card
from assay_ledger.bindings.grouped_generations import NodeSealed
from assay_ledger.chain.client import Head
from assay_ledger.rounds.view import RunView
from tests.harness.rounds.imagined_groups import GROUP, LEFT_OUT, SEATS, grouped_events, grouped_run

LEFT = range(LEFT_OUT * GROUP, (LEFT_OUT + 1) * GROUP)
"""Seats of the group whose sum is no part of generation 2."""


def reader_of(rounds: int, until: type | None = None) -> RunReader:
    """A run of so many rounds, or up to the first event of a kind."""
    reader = RunReader(grouped_run())
    for told in grouped_events(reader.run, rounds):  # type: ignore[arg-type]
        reader.take(reader.known, [told], Head(told[1].block, told[2]))
        if until is not None and isinstance(told[1].event, until):
            break
    reader.is_following = True
    return reader


@pytest.fixture(scope="module")
def reader() -> RunReader:
    return reader_of(3)


@pytest.fixture(scope="module")
def client(reader: RunReader) -> TestClient:
    return TestClient(make_app(reader))


def test_watching_says_that_the_sum_of_a_group_was_left_out(reader: RunReader) -> None:
    def weight(view: RunView, round_: int, seat: int) -> str:
        return weight_of(view, view.state.works[Round(round_), Seat(seat)])

    for seat in (LEFT[0], LEFT[-1]):
        assert weight(reader.view, 1, seat) == "unsummed" and weight(reader.view, 0, seat) == "counted"
    assert weight(reader.view, 1, LEFT[0] - 1) == weight(reader.view, 1, LEFT[-1] + 1) == "counted"
    while_sums_are_made = reader_of(1, NodeSealed).view
    assert weight(while_sums_are_made, 0, LEFT[0]) == "open"


def told(client: TestClient, path: str) -> Any:
    answer = client.get("/api/v1" + path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_work_of_a_group_whose_sum_was_left_out_is_part_of_no_merge(reader: RunReader, client: TestClient) -> None:
    """Bad luck: the auditors of a group are away; its updates are held, and go nowhere."""
    for seat in (LEFT[0], LEFT[-1]):
        assert told(client, f"/commitments/1/{seat}")["counted"] is False
        page = unescape(client.get(f"/commitments/1/{seat}").text)
        assert "the sum of its group was left out. <span" in page and "GroupLeftOut: Nothing" in page
    assert told(client, f"/commitments/1/{LEFT[-1] + 1}")["counted"] is True
    assert told(client, f"/commitments/0/{LEFT[0]}")["counted"] is True
    made = told(client, "/rounds/1")
    assert made["counted"] == {"seats": [s for s in range(SEATS) if s not in LEFT], "is_closed": True}
    assert len(made["counted"]["seats"]) == model_card(reader.view).generations[2].updates
    assert f"seats 0 to {LEFT[0] - 1}, {LEFT[-1] + 1} to {SEATS - 1}." in client.get("/rounds/1").text
    assert told(client, "/explain/GroupLeftOut")["kind"] == "code"


def test_before_the_sums_of_groups_are_known_it_is_open_which_updates_count() -> None:
    client = TestClient(make_app(reader_of(1, until=NodeSealed)))
    assert told(client, "/rounds/0")["phase"] == "sums of groups"
    assert told(client, "/rounds/0")["counted"]["is_closed"] is False
    assert told(client, "/commitments/0/5")["counted"] is None
    assert "or merge the sums of groups." in client.get("/commitments/0/5").text
    assert "as things stand those of seats 0 to" in client.get("/rounds/0").text
    assert {s["counts"] for s in told(client, "/generations/1")["sums"]} == {None}


def test_sums_of_groups_stand_with_the_generation_and_the_round(reader: RunReader, client: TestClient) -> None:
    sums = told(client, "/generations/2")["sums"]
    assert [s["counts"] for s in sums] == [group != LEFT_OUT for group in range(len(sums))]
    assert sums[LEFT_OUT]["root"] is None and sums[0]["opened"] == reader.run.charter.training.positions // 3
    for path in ("/generations/2", "/rounds/1"):
        page = client.get(path).text
        assert "<caption>Sums of groups</caption>" in page and f"group {LEFT_OUT}</th>" in page
    assert told(client, "/rounds/1")["sums_until"] is not None
    assert "a sum of a group can count" in client.get("/rounds/1").text


def test_who_opens_a_root_above_64_seats_is_a_ticket_and_no_backer(client: TestClient) -> None:
    openings = told(client, "/generations/1")["openings"]
    assert [o["ticket"] for o in openings] == list(range(1, len(openings) + 1))
    assert all(o["seat"] is None for o in openings)
    page = client.get("/generations/1").text
    assert ">backer<" not in page and '<a href="/tickets/1">ticket 1</a>' in page


def test_positions_are_those_of_their_group(client: TestClient) -> None:
    page = client.get("/rounds/0").text
    assert '<th scope="col">group</th><th scope="col">position</th>' in page
    assert f"<td>1</td><td>0</td><td>{GROUP} to {2 * GROUP - 1}</td>" in page


def test_numbers_that_follow_each_other_are_written_as_one() -> None:
    assert [ranges(values) for values in ([], [3], [0, 1], [0, 1, 2], [0, 1, 2, 5, 7, 8, 9])] == [
        "",
        "3",
        "0, 1",
        "0 to 2",
        "0 to 2, 5, 7 to 9",
    ]
