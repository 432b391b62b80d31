"""The journal: on disk before it is relied upon, whole lines only, one process at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assay_ledger.agents.journal import FILE, Journal, JournalInUse


def test_entries_are_there_after_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    journal = Journal(tmp_path)
    journal.append("salt", value=b"\x01\x02", numbers=[1, b"\x03"])
    assert len(synced) == 1
    journal.close()
    assert list(Journal(tmp_path).entries("salt")) == [{"kind": "salt", "value": "0102", "numbers": [1, "03"]}]


@pytest.mark.parametrize("torn", [b'{"kind": "a", "n"', b"\x00\x00", b"[]\n", b'{"kind": 5}\n'])
def test_what_a_crash_left_of_a_line_is_dropped_and_written_over(tmp_path: Path, torn: bytes) -> None:
    journal = Journal(tmp_path)
    journal.append("a", n=1)
    journal.close()
    with (tmp_path / FILE).open("ab") as file:
        file.write(torn)
    journal = Journal(tmp_path)
    journal.append("a", n=2)
    journal.close()
    assert [e["n"] for e in Journal(tmp_path).entries("a")] == [1, 2]


def test_a_folder_has_one_journal_at_a_time(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalInUse):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()
