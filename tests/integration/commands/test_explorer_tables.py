"""What the explorer lists and counts: columns and types that do not change with what happened, and who lost what."""

from __future__ import annotations

import csv
import io
from itertools import islice

import pytest
from starlette.testclient import TestClient

from assay.bench.imagined_run import ImaginedRun, imagined_events
from assay.explorer.app import make_app
from assay.explorer.people import LATEST
from assay.explorer.reader import RunReader
from assay.explorer.story import became, story_document
from assay.protocol.digests import ZERO
from assay.protocol.game.state import NO_FAMILY, Outcome, Verdict
from assay.protocol.game.table import Side
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import NO_ADDRESS, ClaimKind, ClaimRef
from assay.protocol.types import Address, Round, Seat
from assay_ledger.bindings.game import GameOpened
from assay_ledger.bindings.game import Verdict as VerdictSaid
from assay_ledger.chain.client import Head
from assay_ledger.index.records import GameRecord
from tests.harness.rounds.samples import ETHER

COUNTED = {
    "rounds": ("commitments", "holds", "generation.openings"),
    "generations": ("openings",),
    "tickets": ("calls",),
    "epochs": ("called", "findings", "accusations", "fined"),
}


def reader_until(kind: type) -> RunReader:
    """A run up to its first event of a kind."""
    reader = RunReader(ImaginedRun(4))
    for told in islice(imagined_events(reader.run, 10_000), 10_000):
        reader.take(reader.known, [told], Head(told[1].block, told[2]))
        if isinstance(told[1].event, kind):
            break
    reader.is_following = True
    reader.gas_of = lambda tx_hash: None  # type: ignore[method-assign]
    return reader


def rows(reader: RunReader, table: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(TestClient(make_app(reader)).get(f"/api/v1/csv/{table}.csv").text)))


@pytest.fixture(scope="module")
def reader() -> RunReader:
    return reader_until(VerdictSaid)


def test_a_game_has_the_same_columns_before_its_verdict_and_after(reader: RunReader) -> None:
    (before,), (after,) = rows(reader_until(GameOpened), "games"), rows(reader, "games")
    assert list(before) == list(after) and "verdict" not in before
    assert before["verdict.loser"] == "" != after["verdict.loser"]


@pytest.mark.parametrize("table", COUNTED)
def test_what_is_counted_is_a_number_also_where_there_is_none(reader: RunReader, table: str) -> None:
    found = rows(reader, table)
    for name in COUNTED[table]:
        assert all(row[name].isdigit() for row in found), name


def refuted(number: int, challenger: Address, defender: Address, loser: Address) -> GameRecord:
    ref = ClaimRef(ClaimKind.ATTESTATION, Round(0), Seat(1), 1, NO_ADDRESS, ZERO)
    game = GameRecord(number, ZERO, ref, challenger, defender, b"")
    side = Side.DEFENDER if loser == defender else Side.CHALLENGER
    game.verdict = Verdict(loser, side, Outcome.DEFAULT, NO_FAMILY, 0, 0, 0, 0, 0)
    return game


def test_who_lost_several_games_and_tickets_is_told_of_each_as_it_was() -> None:
    """Of a liar that also accused falsely only the games in which it was refuted itself prove its lie."""
    reader = reader_until(GameOpened)
    tickets = reader.state.books.registry.tickets
    liar, honest = tickets[TicketId(1)].owner, tickets[TicketId(3)].owner
    reader.shelves.tickets_of.put(liar, TicketId(2))
    for number in (1, 2):
        tickets[TicketId(number)].convicted_at = 5
    reader.money.of(liar).lost = 171_693 * ETHER + 7 * 10**17
    assert became(reader, liar) == "lost 171 693.70 tokens and 2 tickets"
    reader.shelves.games[:] = [refuted(1, liar, honest, liar), refuted(2, honest, liar, liar)]
    (cheat,) = story_document(reader)["cheats"]
    assert (cheat["games"], cheat["more"]) == ([2], 1) and cheat["did"].startswith("said a falsehood about part 1")


def test_whoever_lost_more_games_than_a_page_shows_is_told_with_the_newest() -> None:
    """Attack: thousands of games that are lost by silence, each a line of their loser's page."""
    reader = reader_until(GameOpened)
    tickets = reader.state.books.registry.tickets
    loser, honest = tickets[TicketId(1)].owner, tickets[TicketId(3)].owner
    for number in range(2, 2 + LATEST + 7):
        game = refuted(number, loser, honest, loser)
        reader.state.games[number] = game
        reader.shelves.games_of.put(loser, game)
    page = TestClient(make_app(reader)).get(f"/actors/0x{loser.hex()}").text
    assert page.count("as its challenger: its clock ran out.") == LATEST
    assert page.count(f"The newest {LATEST} of {LATEST + 7}.") == 2, "of those lost, and of all"
