"""`assay run show` of a run that is long or large: figures in one piece, the newest lines, counted in one pass."""

from __future__ import annotations

import math
from itertools import islice
from typing import Any

import pytest

from assay.amounts import TEST_MONEY
from assay.bench.imagined_run import ImaginedRun, imagined_events
from assay.cli import run_documents
from assay.cli.common import print_fields, print_json, print_table
from assay.cli.run_documents import progress, show_progress
from assay.explorer.reader import RunReader
from assay.planning.outlook import outlook_of_run
from assay.protocol.types import Round
from assay_ledger.bindings.duties import EpochClosed
from assay_ledger.chain.client import Head
from assay_ledger.rounds.view import RunView
from tests.harness.rounds.imagined_groups import GROUP, SEATS, grouped_events, grouped_run

ROUNDS = 12


@pytest.fixture(scope="module")
def view() -> RunView:
    reader = RunReader(ImaginedRun(4))
    for told in islice(imagined_events(reader.run, 10_000), 10_000):
        reader.take(reader.known, [told], Head(told[1].block, told[2]))
        event = told[1].event
        if isinstance(event, EpochClosed) and event.epoch == ROUNDS:
            break
    return reader.view


def shown(document: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> str:
    show_progress(document, TEST_MONEY)
    return capsys.readouterr().out


def test_no_time_and_no_address_is_broken_on_a_terminal_of_eighty_columns(
    view: RunView, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    document = progress(view)
    text = shown(document, capsys)
    assert max(map(len, text.splitlines())) <= 80
    for entry in document["rounds_opened"]:
        assert str(entry["began"]) in text
    for entry in document["tickets"]:
        assert str(entry["counts_from"]) in text and entry["owner"][:10] in text


def test_who_posts_a_run_and_who_looks_at_it_are_told_the_same_of_its_rounds() -> None:
    """A round's seconds were 600 in what `run post` says and 660 in `run show`, under one name."""
    run = ImaginedRun(4)
    whole, posted = outlook_of_run(run.charter).to_document(), run_documents.describe(run)
    assert {name: posted[name] for name in posted if name in whole} == {n: whole[n] for n in whole if n in posted}


def test_where_there_is_no_room_for_them_figures_are_broken_and_not_cut(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    print_table("", ("a", "b", "c"), [("1" * 20, "2" * 20, "3" * 20)])
    text = capsys.readouterr().out
    assert [text.count(digit) for digit in "123"] == [20, 20, 20]


@pytest.mark.parametrize("model", ["tiny", "examples.own_run:factory", "a" * 20, "b" * 60])
def test_a_long_name_takes_lines_before_an_address_or_a_heading_does(
    model: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`assay run list` broke addresses, or its headings letter by letter, where a model has a long name."""
    monkeypatch.setenv("COLUMNS", "80")
    print_table("", ("run", "model", "rounds", "block"), [("0x" + "ab" * 20, model, 3, 12)])
    text = capsys.readouterr().out
    assert "0x" + "ab" * 20 in text and all(f" {name} " in text for name in ("rounds", "block", "12"))
    assert sum(map(text.count, set(model))) >= len(model), "nothing is cut"


def test_json_has_null_for_what_is_no_number(capsys: pytest.CaptureFixture[str]) -> None:
    """Bad luck: a training diverged, and no reader of JSON took the document for one."""
    print_json({"loss": math.nan, "rows": [1.5, -math.inf, "NaN", b"\x01"]})
    assert capsys.readouterr().out == '{"loss": null, "rows": [1.5, null, "NaN", "0x01"]}\n'


def test_a_field_without_a_value_has_a_dash(capsys: pytest.CaptureFixture[str]) -> None:
    print_fields({"deadline": None, "wei": 0})
    assert capsys.readouterr().out.splitlines() == ["deadline  -", "wei       0"]


def test_of_a_long_run_the_newest_lines_are_shown_and_the_others_counted(
    view: RunView, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_documents, "SHOWN", 5)
    document = progress(view)
    text = shown(document, capsys)
    assert len(document["rounds_opened"]) == ROUNDS and f"The newest 5 of {ROUNDS}: --json has all" in text
    began = [str(entry["began"]) in text for entry in document["rounds_opened"]]
    assert began == [k >= ROUNDS - 5 for k in range(ROUNDS)]


def test_what_tickets_answered_is_counted_in_one_pass(view: RunView, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: none; of 300 tickets and thousands of epochs each pass takes seconds."""
    passes = 0

    class PassesCounted(dict[Any, Any]):
        def items(self) -> Any:
            nonlocal passes
            passes += 1
            return super().items()

    duties = view.books.duties
    monkeypatch.setattr(duties, "answers", PassesCounted(duties.answers))
    tickets = progress(view)["tickets"]
    assert passes == 1
    assert [t["calls_opened"] for t in tickets] == [t["findings"] for t in tickets] == [ROUNDS] * 4


def test_above_64_seats_it_is_counted_of_how_many_updates_a_generation_is_made() -> None:
    reader = RunReader(grouped_run())
    for told in grouped_events(reader.run, 2):  # type: ignore[arg-type]
        reader.take(reader.known, [told], Head(told[1].block, told[2]))
    entries = [run_documents.round_entry(reader.view, Round(number)) for number in range(2)]
    assert [entry["counted"] for entry in entries] == [SEATS, SEATS - GROUP]


def test_of_tickets_that_end_no_time_and_no_heading_is_broken_on_eighty_columns(
    view: RunView, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    document = progress(view)
    document["tickets"] = [entry | {"until": 1_796_087_208} for entry in document["tickets"]]
    text = shown(document, capsys)
    assert max(map(len, text.splitlines())) <= 80
    for entry in document["tickets"]:
        assert str(entry["counts_from"]) in text and str(entry["until"]) in text
    words = {word for line in text.splitlines() for word in line.split()}
    assert {"counted", "status", "ticket", "counts", "calls", "opened", "findings", "guilty", "may", "fine"} <= words
