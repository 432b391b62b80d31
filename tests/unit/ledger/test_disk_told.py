"""What an actor says of a disk that is full: once of each kind of file, and once when it takes as much again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from eth_account import Account

from assay.protocol.types import Digest
from assay_ledger.agents.journal import Journal
from assay_ledger.chain.sent import SentFile
from assay_ledger.disk_told import DiskTold
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.progress import ProgressFolder
from tests.harness.full_disks import writing_nothing

WriteNumber = Callable[[int], object]


def journal(folder: Path) -> WriteNumber:
    """Results of replays."""
    kept = Journal(folder)
    return lambda number: kept.note("a", n=number)


def copies(folder: Path) -> WriteNumber:
    """What was published or fetched."""
    kept = LocalCache(folder)
    return lambda number: kept.put(f"lists/{number}", bytes(999))


def progress(folder: Path) -> WriteNumber:
    """Roots and states of long runs, which have a folder for each round."""

    def write(number: int) -> None:
        kept = ProgressFolder(folder / str(number))
        kept.note({number: Digest(bytes(32))})
        kept.put(number, bytes(99))

    return write


def transactions(folder: Path) -> WriteNumber:
    """What is in flight."""
    kept = SentFile(Account.create(), 1, folder / "outbox.jsonl")
    return lambda number: kept.add(bytes([number]) * 99)


@pytest.fixture(autouse=True)
def nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """What folders of progress say is known to the whole process: an earlier test may have left its disk full."""
    monkeypatch.setattr("assay_ledger.store.progress._TOLD", DiskTold(logging.getLogger("assay.progress")))


@pytest.mark.parametrize("kind", [journal, copies, progress, transactions])
def test_a_full_disk_is_said_once_and_once_when_it_is_well_again(
    kind: Callable[[Path], WriteNumber], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Bad luck: some thirty lines a round, for days, among which nobody finds the one that says what else is wrong."""
    write = kind(tmp_path)
    for incident in (0, 100):
        caplog.clear()
        with writing_nothing():
            for number in range(30):
                write(incident + number)
        (said,) = (r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING)
        assert "File too large" in said
        caplog.clear()
        for number in range(30, 40):
            write(incident + number)
        (said,) = (r.getMessage() for r in caplog.records)
        assert str(tmp_path) in said and "takes what is written to it again" in said


def test_a_disk_is_not_well_again_by_a_file_that_is_smaller(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Bad luck: a disk that is nearly full takes every small copy between two that it refuses."""
    kept = LocalCache(tmp_path)
    for number in range(10):
        with writing_nothing(beyond=100):
            kept.put(f"lists/{number}", bytes(5000))
            kept.put(f"digests/{number}", bytes(50))
    assert [record.levelno for record in caplog.records if record.levelno >= logging.WARNING] == [logging.WARNING]
    kept.put("lists/0", bytes(5000))
    assert "takes what is written to it again" in caplog.records[-1].getMessage()
