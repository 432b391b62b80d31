"""The journal: on disk before it is relied upon, whole lines only, one process at a time."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assay.protocol.run.claims import AttestationLeaf, ClaimKind, ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.agents.journal import FILE, Journal, JournalInUse
from assay_ledger.agents.memory import Recorder
from assay_ledger.index.view import Leaf, OuterStep, Trained


def digest(n: int) -> Digest:
    return Digest(bytes([n]) * 32)


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


def test_a_memory_is_rebuilt_from_its_journal(tmp_path: Path) -> None:
    recorder = Recorder(Journal(tmp_path))
    ref = ClaimRef(ClaimKind.OUTER, Round(3), party=Address(b"p" * 20), outer_root=digest(9))
    recorder.result(digest(1), digest(2), digest(3))
    recorder.outer(digest(4), OuterStep(digest(5), digest(6)))
    recorder.trained(Round(1), Trained(digest(7), (digest(1), digest(2)), (digest(3),) * 3, digest(8)))
    recorder.leaves(Round(2), digest(7), (Leaf(Seat(4), AttestationLeaf(digest(1), 5, digest(2), digest(3))),))
    recorder.committed(ref, digest(1), digest(2))
    recorder.committed(ClaimRef(ClaimKind.UPDATE, Round(0)), digest(1), digest(2))
    recorder.uncommitted(ClaimRef(ClaimKind.UPDATE, Round(0)))
    recorder.released("work", Round(0))
    recorder.journal.close()
    again = Recorder(Journal(tmp_path)).memory
    assert again == recorder.memory
    assert again.committed.keys() == {ref} and again.results == {(digest(1), digest(2)): digest(3)}
