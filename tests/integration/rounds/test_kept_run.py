"""A run whose events are kept, on a real node that takes blocks back, and with real processes that are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from assay.cli.seeing import events_kept, sight
from assay.cli.service import EXPLORER
from assay.explorer import serve
from assay.explorer.reader import RunReader
from assay.settings import Settings
from assay_ledger.chain.client import Chain
from assay_ledger.index import kept_events
from assay_ledger.index.event_rows import EventRows
from assay_ledger.index.kept_events import SETTLED
from assay_ledger.rounds.index import KeepsEvents, RunIndex
from assay_ledger.rounds.run import Run
from tests.harness.actors.kept_run import KeptRun, told
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain, actors_artifacts
from tests.harness.browser import wait_for
from tests.harness.providers import ProviderNode


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedChain]:
    with actors_artifacts(tmp_path_factory.mktemp("artifacts")):
        stage = SharedChain()
        yield stage
        stage.close()


@pytest.fixture
def kept(stage: SharedChain, tmp_path: Path) -> KeptRun:
    return KeptRun(new_whole_run(stage, tmp_path), tmp_path)


def test_a_start_asks_for_no_history(kept: KeptRun) -> None:
    kept.enrol()
    kept.settle()
    kept.start().close()
    top = kept.rows()
    with ProviderNode(kept.chain.url) as node:
        index = RunIndex(Run(Chain(node.url), kept.run.address, kept.run.first_block), keeps=kept.keeps)
        node.turn()
        assert len(index.sync().books.tenures.tenures) == 1
        ranges = [p[0] for method, p in node.asked if method == "eth_getLogs" and "fromBlock" in p[0]]
        assert all(int(asked["fromBlock"], 16) > top for asked in ranges)
        index.close()


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize("freeze_after", [1, 1 << 30], ids=["from-a-state", "from-events"])
def test_blocks_that_were_taken_back_leave_the_rows_too(
    kept: KeptRun, monkeypatch: pytest.MonkeyPatch, freeze_after: int
) -> None:
    monkeypatch.setattr(kept_events, "FREEZE_EVENTS", freeze_after)
    kept.enrol()
    kept.settle()
    index = kept.start()
    snapshot = kept.chain.rpc("evm_snapshot")
    kept.enrol()
    # Several blocks at once are read by a range, which is asked for again when it lies deep.
    for _ in range(2 * SETTLED + 2):
        index.sync()
        kept.chain.rpc("evm_mine")
    index.sync()
    before = kept.chain.head().number
    assert len(index.state.books.tenures.tenures) == 2
    index.close()
    assert kept.rows() == before
    assert kept.chain.rpc("evm_revert", snapshot)
    kept.start().close()
    while kept.chain.head().number <= before:
        kept.chain.rpc("evm_mine")
    index = kept.start()
    assert len(index.state.books.tenures.tenures) == 1
    kept.enrol()
    index.sync()
    index.close()
    assert len(kept.start().state.books.tenures.tenures) == 2


def test_a_reader_of_all_contracts_hears_every_event_at_each_start(kept: KeptRun, tmp_path: Path) -> None:
    kept.enrol()
    kept.settle()
    keeps = KeepsEvents(f"sqlite:///{tmp_path / 'readers.sqlite'}", "reader")
    heard = []
    for _ in range(2):
        reader = RunReader(kept.run, keeps=keeps)
        with reader.reading():
            heard.append(list(reader.events))
        reader.close()
    assert heard[0] == heard[1] and len(heard[0]) > 3


def test_an_explorer_that_starts_again_asks_for_no_history(kept: KeptRun, tmp_path: Path) -> None:
    kept.enrol()
    kept.settle()
    keeps, told = KeepsEvents(f"sqlite:///{tmp_path / 'explorer.sqlite'}", EXPLORER), list[bytes]()
    for start in range(2):
        with ProviderNode(kept.chain.url) as node:
            run = Run(Chain(node.url), kept.run.address, kept.run.first_block)
            node.turn()
            with serve(run, keeps=keeps) as server, urllib.request.urlopen(f"{server.url}events") as answer:
                wait_for(lambda server=server: not server.reader.is_reading, 60, "the run is read")  # type: ignore[misc]
                told.append(answer.read())
            ranges = [p[0] for method, p in node.asked if method == "eth_getLogs" and "fromBlock" in p[0]]
            is_history = any(int(asked["fromBlock"], 16) <= kept.run.first_block + 1 for asked in ranges)
            assert is_history is (start == 0), "and whoever ended let go of the rows"
    assert told[0] == told[1]


def test_an_actor_keeps_events_in_its_folder_and_lets_them_go(kept: KeptRun) -> None:
    kept.settle()
    agent = kept.made.solver("ada", index_url=kept.keeps.url)
    agent.see()
    agent.close()
    again = kept.made.solver("bob", index_url=kept.keeps.url)
    again.see()
    again.close()


def test_a_command_that_looks_once_asks_for_nothing_that_an_actor_here_keeps(kept: KeptRun, tmp_path: Path) -> None:
    kept.enrol()
    last, settings = kept.chain.head().number, Settings(data_dir=tmp_path)
    kept.settle()
    agent = kept.made.solver("cleo", index_url=kept.keeps.url)
    agent.see()
    with ProviderNode(kept.chain.url) as node:
        run = Run(Chain(node.url), kept.run.address, kept.run.first_block)
        node.turn()
        # The actor is at work meanwhile.
        seen = sight(run, settings)
        ranges = [p[0] for method, p in node.asked if method == "eth_getLogs" and "fromBlock" in p[0]]
    assert len(seen.books.tenures.tenures) == 1
    assert all(int(asked["fromBlock"], 16) > last for asked in ranges)
    assert told(RunIndex(kept.run, keeps=events_kept(settings))) == told(RunIndex(kept.run))
    agent.see()
    agent.close()


def test_what_no_actor_here_keeps_is_read_from_the_chain(kept: KeptRun, tmp_path: Path) -> None:
    nowhere = Settings(index_url=f"sqlite:///{tmp_path / 'none.sqlite'}")
    assert sight(kept.run, nowhere).books.tenures.tenures == {}
    assert not (tmp_path / "none.sqlite").exists()


WRITES = """
import sys
from assay_ledger.index.event_rows import EventRows, FrozenState
from assay_ledger.index.kept_blocks import KeptBlock
from tests.unit.ledger.test_kept_events import name
rows = EventRows(sys.argv[1], name())
print("ready", flush=True)
k = rows.top
while True:
    made = []
    for _ in range(5):
        k += 1
        logs = tuple((n, 0, b"t" * 32, b"d" * 200, b"x" * 32) for n in range(40))
        made.append(KeptBlock(k, k.to_bytes(32, "big"), k + 1, logs))
    rows.add(made)
    if k % 50 == 4:
        rows.freeze(FrozenState(k, b"v", b"s" * 100_000))
"""


def test_a_process_that_is_killed_leaves_whole_blocks(tmp_path: Path) -> None:
    from tests.unit.ledger.test_kept_events import name

    url, top = f"sqlite:///{tmp_path / 'events.sqlite'}", -1
    for k in range(0, 8, 2):
        command = [sys.executable, "-c", WRITES, url]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            time.sleep(0.05 + 0.037 * k)
            process.send_signal(signal.SIGKILL)
        rows = EventRows(url, name())
        blocks = list(rows.blocks(-1, 1 << 40))
        assert [block.number for block in blocks] == list(range(rows.top + 1)) and rows.top >= top
        assert all(len(block.logs) == 40 for block in blocks) and (rows.top + 1) % 5 == 0
        top = rows.top
        rows.close()
    assert top > 0
