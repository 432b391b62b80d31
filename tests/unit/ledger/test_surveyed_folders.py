"""Listings of everything that lies in a store, whatever the time for a page: whoever deletes by them misses nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from assay_ledger.store import blobs, folder
from assay_ledger.store.blobs import BlobStore, StoreSilent, open_store

NAMES = [f"lists/{n:064x}" for n in range(60)] + ["lists", "lists-old/a", "lists/0", "marks", "a.b/c", "a/b", "a-b/c"]


@pytest.fixture
def filled(tmp_path: Path) -> BlobStore:
    store = open_store(tmp_path / "store")
    for n, name in enumerate(NAMES):
        for k in range(3):
            store.put(f"{n} {k}".encode(), name)
    (tmp_path / "store" / "names" / "a" / ".new").write_bytes(b"half of something")
    (tmp_path / "store" / "names" / "link").symlink_to(tmp_path)
    return store


def whole(root: Path, top: str) -> list[str]:
    files = (path for path in (root / top).rglob("*") if path.is_file() and not path.name.startswith("."))
    return sorted(str(path.relative_to(root)) for path in files)


@pytest.mark.parametrize("top", ["names", "objects"])
def test_every_path_is_listed_once_and_in_order_however_many_fit_a_page(
    filled: BlobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str
) -> None:
    wanted = whole(tmp_path / "store", top)
    for page in (1, 7, 64, 1 << 16):
        monkeypatch.setattr(blobs, "PAGE", page)
        assert [path for path, _ in filled.entries(top)] == wanted
    assert all((tmp_path / "store" / path).stat().st_size == size for path, size in filled.entries(top))


def ticking(monkeypatch: pytest.MonkeyPatch, step: float) -> None:
    """A clock that goes on by so many seconds whenever somebody looks at it: a disk that is far away."""
    count: Callable[[], int] = itertools.count().__next__
    monkeypatch.setattr(folder, "time", SimpleNamespace(monotonic=lambda: step * count()))


@pytest.mark.parametrize("top", ["names", "objects"])
def test_a_page_that_time_cuts_short_goes_on_where_it_was_and_leaves_nothing_out(
    filled: BlobStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, top: str
) -> None:
    """Bad luck: more names than a slow disk lists in a minute. Of some the survey showed nothing, and an object that
    one of those promised was deleted under another."""
    ticking(monkeypatch, 2.0)
    assert [path for path, _ in filled.entries(top)] == whole(tmp_path / "store", top)


def test_a_disk_that_lists_nothing_in_time_is_no_empty_store(
    filled: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticking(monkeypatch, 60.0)
    with pytest.raises(StoreSilent):
        list(filled.entries("names"))
