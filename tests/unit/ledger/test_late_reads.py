"""Reads of a slow folder that outlast whoever asked: how long they are kept, and that threads disturb no other."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from assay_ledger.deadline import waiting_at_most
from assay_ledger.store import folder, late_reads
from assay_ledger.store.blobs import BlobStore, StoreSilent, open_store
from assay_ledger.store.late_reads import LARGE, LateRead


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that were read; a large one takes 0.3 s."""
    names, read = list[str](), folder.read_version

    def slow(name: str, *asked: Any) -> Any:
        names.append(name)
        found = read(name, *asked)
        time.sleep(0.3 if len(found[0]) >= LARGE else 0)
        return found

    monkeypatch.setattr(folder, "read_version", slow)
    return names


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return open_store(tmp_path)


def test_what_came_late_and_is_not_asked_for_again_is_let_go(
    store: BlobStore, begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a model that another store gave meanwhile was held in memory as long as the process lived."""
    late, small = store.put(os.urandom(LARGE)), store.put(b"small")
    with pytest.raises(StoreSilent), waiting_at_most(0.1):
        store.get(late, LARGE)
    time.sleep(0.5)
    monkeypatch.setattr(late_reads, "KEPT_S", 0.0, raising=False)
    store.get(small, 5)
    store.get(late, LARGE)
    assert len(begun) == 3, "it was not read again"


def test_reads_of_two_threads_that_are_cut_short_at_once_disturb_none(
    store: BlobStore, begun: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a mirror's thread and the actor's read a slow folder, and one of them ended by a RuntimeError."""
    reads: Any = store._backend._reads  # type: ignore[attr-defined]

    class Meddled(LateRead):
        """While its size is asked for, another thread keeps one."""

        @property
        def size(self) -> int:  # type: ignore[override]
            reads._late.setdefault(f"of another thread, {len(reads._late)}", LateRead())
            return LARGE

        @size.setter
        def size(self, _: int) -> None:
            pass

    monkeypatch.setattr(late_reads, "LateRead", Meddled)
    for digest in [store.put(os.urandom(LARGE)) for _ in range(3)]:
        with pytest.raises(StoreSilent), waiting_at_most(0.1):
            store.get(digest, LARGE)
    assert len(begun) == 3
