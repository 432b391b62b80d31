"""`assay status --watch`: what changes is shown once, and a node that is silent for a while ends nothing."""

from __future__ import annotations

import json
import os
import pty
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from assay.cli.status import document_at, lines
from assay.cli.watching import PulseReader, fitted, round_lines, screen_for, watch
from assay.explorer.reader import REFRESH_S, RunReader
from assay.protocol.errors import AssayError, RejectedError
from assay.protocol.types import Round, Wei
from assay_ledger.agents.heartbeat import DEAD_AFTER_S, Activity, HeartbeatWriter
from assay_ledger.chain.client import Chain
from assay_ledger.store.blobs import BlobStore, open_store
from tests.harness.actors.desk import open_desk
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.rounds.samples import ETHER


class Looks:
    """Between looks something happens; after the last it is over."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps = list(steps)

    def wait(self, timeout: float | None = None) -> bool:
        if not self._steps:
            return True
        self._steps.pop(0)()
        return False


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeRun]:
    """A run before its first round: a solver has its seat."""
    with open_desk(tmp_path_factory.mktemp("desk")) as desk:
        found = new_whole_run(desk.stage, tmp_path_factory.mktemp("run"), rounds=1)
        for name in ("ada", "bob"):
            found.solver(name)
        found.auditor("vera", tickets=5)
        found.enrol()
        found.fund()
        yield found


def watched(made: WholeRun, name: str, slots: BlobStore | None, looks: Looks, *, as_json: bool = False) -> None:
    who = made.players[name].agent.me
    watch(made.run, who, slots, looks, partial(document_at, run=made.run, who=who), lines, as_json=as_json)


def test_lines_are_printed_once_until_they_say_something_else(
    made: WholeRun, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    ada, store = made.players["ada"].agent, open_store(tmp_path)
    writer = HeartbeatWriter(store, ada.account, made.run.address, "solver", lambda: 0.0)
    said: list[str] = []

    def tell(block: int, doing: str) -> None:
        said.append(capsys.readouterr().out)
        writer.report(block, Activity.BUSY, None, doing)
        writer.beat()

    def pass_time() -> None:
        said.append(capsys.readouterr().out)
        made.chain.rpc("evm_mine", hex(made.chain.head().timestamp + 1))

    def ask_out() -> None:
        said.append(capsys.readouterr().out)
        made.chain.send(ada.account, made.run.vault.request_exit(Wei(ETHER)))

    rest = partial(time.sleep, 1.1 * REFRESH_S)  # the reader reads no more often
    looks = Looks(lambda: tell(7, "training round 0"), pass_time, rest, ask_out, rest)
    watched(made, "ada", store, looks)
    said.append(capsys.readouterr().out)
    first, told, passed, asked = said[0], said[1], said[2], "".join(said[3:])
    assert "Stake" in first and "Now: no actor of this key has spoken" in first
    assert told == "Now: solver, busy: training round 0 (block 7)\n"
    assert passed == "", "time alone is no news"
    assert "asked out" in asked and "Locks" not in asked


def test_a_round_that_was_worked_in_is_among_the_last(made: WholeRun, capsys: pytest.CaptureFixture[str]) -> None:
    made.launch()
    holder = lambda view, work: view.books.tenures.existing(work.tenure).holder  # noqa: E731
    made.settle(lambda view: any(holder(view, work) == made.address("ada") for work in view.works(Round(0))))
    watched(made, "ada", None, Looks(), as_json=True)
    found = json.loads(capsys.readouterr().out)
    (row,) = found["last_rounds"]
    assert (row["round"], row["settled"], row["update"]) == (0, False, "open") and row["units"] > 0
    assert "its update waits for the others' word" in " ".join(round_lines([row]))
    assert found["doing"] == "not known without --store" and found["fault"] is None


def test_a_node_is_asked_for_one_block_while_nothing_happens(
    made: WholeRun, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls: list[str] = []
    read = Chain.read

    def count(chain: Chain, *given: Any) -> Any:
        calls.append("read")
        return read(chain, *given)

    monkeypatch.setattr(Chain, "read", count)
    counts: list[int] = []
    note = lambda: counts.append(len(calls))  # noqa: E731
    watched(made, "bob", None, Looks(note, note, note, note))
    capsys.readouterr()
    assert [b - a for a, b in pairwise(counts)] == [1, 1, 1]


def test_an_actor_that_says_nothing_new_for_too_long_is_called_silent(made: WholeRun, tmp_path: Path) -> None:
    ada, store, now = made.players["ada"].agent, open_store(tmp_path), [100.0]
    writer = HeartbeatWriter(store, ada.account, made.run.address, "solver", lambda: now[0])
    pulse = PulseReader(store, made.run.address, ada.me, lambda: now[0])
    writer.report(7, Activity.IDLE, 1000, "waiting")
    writer.beat()
    assert "solver, idle: waiting" in pulse.line()
    now[0] += DEAD_AFTER_S + 1
    assert "SILENT" in pulse.line()
    writer.beat()
    assert "SILENT" not in pulse.line()


def test_what_time_alone_makes_due_is_told_where_lines_are_printed(
    made: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    ada = made.players["ada"].agent
    _, not_before = made.chain.ask(made.run.vault.exiting(ada.me))
    said: list[str] = []

    def pass_delay() -> None:
        said.append(capsys.readouterr().out)
        made.chain.rpc("evm_mine", hex(not_before + 1))

    watched(made, "ada", None, Looks(pass_delay, partial(time.sleep, 1.1 * REFRESH_S)))
    assert f"can be withdrawn in 4 d 17 h (chain time {not_before + 1})" in said[0]
    assert "can be withdrawn now" in capsys.readouterr().out


def test_a_look_that_a_node_refuses_is_said_and_ends_no_watching(
    made: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    who = made.players["ada"].agent.me
    refusals: list[AssayError] = [RejectedError("The node knows no such contract yet.", code="NotARun")]

    def look(reader: RunReader) -> Any:
        if refusals:
            raise refusals.pop()
        return document_at(reader, made.run, who)

    watch(made.run, who, None, Looks(lambda: None, lambda: None), look, lines)
    said = capsys.readouterr().out
    assert "The node knows no such contract yet." in said and "Stake" in said
    assert said.count("The node answers again.") == 1


def test_a_first_look_that_fails_is_said_where_documents_are_asked_for(
    made: WholeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """Bad luck: a program that waits for the first document of a node that is down heard nothing, for ever."""
    who = made.players["ada"].agent.me
    refusals = 2 * [RejectedError("The node knows no such contract yet.", code="NotARun")]

    def look(reader: RunReader) -> Any:
        if refusals:
            raise refusals.pop()
        return document_at(reader, made.run, who)

    nothing = lambda: None  # noqa: E731
    watch(made.run, who, None, Looks(nothing, nothing, nothing), look, lines, as_json=True)
    said = capsys.readouterr()
    assert said.err == "The node refuses to say: The node knows no such contract yet.\n"
    assert json.loads(said.out)["fault"] is None


def on_terminal(monkeypatch: pytest.MonkeyPatch, show: Callable[[], None], *, rows: int, kind: str) -> str:
    """What a terminal of so many rows, and 80 columns, is sent."""
    mine, theirs = pty.openpty()
    sent: list[bytes] = []

    def keep() -> None:
        with suppress(OSError):  # the other end is closed
            while chunk := os.read(mine, 65536):
                sent.append(chunk)

    reader = threading.Thread(target=keep)
    reader.start()
    for name, value in (("COLUMNS", "80"), ("LINES", str(rows)), ("TERM", kind)):
        monkeypatch.setenv(name, value)
    with os.fdopen(theirs, "w", closefd=True) as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        show()
    reader.join(120)
    os.close(mine)
    return b"".join(sent).decode()


def test_a_terminal_that_is_too_low_says_how_much_it_does_not_show(monkeypatch: pytest.MonkeyPatch) -> None:
    def show() -> None:
        with screen_for(as_json=False) as shown:
            shown.show([f"line {n}" for n in range(30)], [""] * 30)

    sent = on_terminal(monkeypatch, show, rows=12, kind="xterm")
    picture = sent.split("\x1b[2K")[0]
    assert "line 9" in picture and "line 11" not in picture
    assert "20 more rows: a higher terminal shows them" in picture


def test_a_terminal_that_cannot_move_its_cursor_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    def show() -> None:
        with screen_for(as_json=False) as shown:
            shown.show(["a seat is held"], ["a seat is held"])
            shown.show(["a seat is held", "another"], ["a seat is held", "another"])

    sent = on_terminal(monkeypatch, show, rows=24, kind="dumb")
    assert sent.split() == ["a", "seat", "is", "held", "another"]


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_line_wider_than_a_terminal_breaks_between_words_and_goes_on_further_in(width: int) -> None:
    line = "  fee of seat 0  2  waits for the seat to be left (`assay solver leave`, or its actor once the run is over)"
    first, *rest = rows = fitted(line, width)
    assert max(map(len, rows)) <= width and " ".join([first, *(row.strip() for row in rest)]) == line
    assert first.startswith("  fee of seat 0  2  ") and all(row.startswith(" " * 6) for row in rest)
    assert bool(rest) is (width < len(line)) and fitted("", width) == [""]
