"""`assay status --watch`: what changes is shown once, and a node that is silent for a while ends nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from assay.cli.status import document_at, lines
from assay.cli.watching import PulseReader, fitted, round_lines, watch
from assay.explorer.reader import REFRESH_S
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


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_line_wider_than_a_terminal_breaks_between_words_and_goes_on_further_in(width: int) -> None:
    line = "  fee of seat 0  2  waits for the seat to be left (`assay solver leave`, or its actor once the run is over)"
    first, *rest = rows = fitted(line, width)
    assert max(map(len, rows)) <= width and " ".join([first, *(row.strip() for row in rest)]) == line
    assert first.startswith("  fee of seat 0  2  ") and all(row.startswith(" " * 6) for row in rest)
    assert bool(rest) is (width < len(line)) and fitted("", width) == [""]
