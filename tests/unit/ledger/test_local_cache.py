"""An actor's own copies: of the rounds that matter, never believed, and put back where the store lost them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store.blobs import BlobStore, ObjectMismatch, ObjectMissing, StoreUnreachable, open_store
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects
from assay_ledger.store.progress import ProgressFolder
from tests.harness.full_disks import writing_nothing

SPECS = [TensorSpec(DType.F32, (2, 3)), TensorSpec(DType.I32, (4,))]
TENSORS = tuple(bytes(range(k, k + spec.nbytes)) for k, spec in enumerate(SPECS))
MARKS = (Digest(b"\x01" * 32), Digest(b"\x02" * 32))


@pytest.fixture
def local_cache(tmp_path: Path) -> LocalCache:
    return LocalCache(tmp_path / "cache")


def test_copies_live_as_long_as_the_rounds_that_use_them(local_cache: LocalCache) -> None:
    local_cache.put("lists/aa", b"old")
    local_cache.put("lists/bb", b"used again")
    local_cache.put("programs/cc", b"lasting")
    local_cache.turn(3, 0)
    assert local_cache.get("lists/bb", 100) == b"used again"
    local_cache.turn(4, 2)
    assert local_cache.get("lists/aa", 100) is None
    assert local_cache.get("lists/bb", 100) == b"used again"
    assert local_cache.get("programs/cc", 100) == b"lasting"


def test_a_copy_larger_than_its_place_allows_is_not_read(local_cache: LocalCache) -> None:
    local_cache.put("lists/aa", b"12345")
    assert local_cache.get("lists/aa", 4) is None
    assert local_cache.get("lists/aa", 5) == b"12345"


def test_a_cache_outlives_its_process_and_one_that_cannot_be_written_is_empty(tmp_path: Path) -> None:
    LocalCache(tmp_path / "cache").put("lists/aa", b"kept")
    assert LocalCache(tmp_path / "cache").get("lists/aa", 10) == b"kept"
    (tmp_path / "file").write_bytes(b"")
    broken = LocalCache(tmp_path / "file")
    broken.put("lists/aa", b"lost")
    broken.turn(2, 1)
    assert broken.get("lists/aa", 10) is None


def copies_of(store: BlobStore) -> list[Path]:
    """The files of a folder store's objects."""
    return [path for path in (Path(store.location) / "objects").rglob("*") if path.is_file()]


@pytest.mark.parametrize("harm", ["wiped", "overwritten"])
def test_what_a_store_lost_is_read_from_the_cache_and_put_back(
    tmp_path: Path, local_cache: LocalCache, harm: str
) -> None:
    store = open_store(tmp_path / "store")
    root = Objects(store).put_list(SPECS, TENSORS)
    digest = Objects(store).put_marks(MARKS)
    reader = Objects(store, local_cache)
    assert reader.list(root, SPECS) == TENSORS and reader.marks(digest, 2) == MARKS
    for path in copies_of(store):
        path.unlink() if harm == "wiped" else path.write_bytes(b"other bytes")
    with pytest.raises((ObjectMissing, ObjectMismatch)):
        Objects(store).list(root, SPECS)
    assert reader.list(root, SPECS) == TENSORS and reader.marks(digest, 2) == MARKS
    stranger = Objects(store)
    assert stranger.list(root, SPECS) == TENSORS and stranger.marks(digest, 2) == MARKS


def test_what_an_actor_published_it_can_read_whatever_became_of_the_store(
    tmp_path: Path, local_cache: LocalCache
) -> None:
    store = open_store(tmp_path / "store")
    root = Objects(store, local_cache).put_list(SPECS, TENSORS)
    for path in copies_of(store):
        path.unlink()
    assert Objects(store, LocalCache(tmp_path / "cache")).list(root, SPECS) == TENSORS


class Unreachable:
    """A store that fails whatever is asked."""

    def __getattr__(self, name: str) -> object:
        raise StoreUnreachable("down")


def test_a_damaged_copy_is_not_believed_and_the_stores_own_error_comes_through(
    tmp_path: Path, local_cache: LocalCache
) -> None:
    root = Objects(open_store(tmp_path / "store"), local_cache).put_list(SPECS, TENSORS)
    down = Objects(Unreachable(), local_cache)  # type: ignore[arg-type]
    assert down.list(root, SPECS) == TENSORS
    for path in (tmp_path / "cache").rglob("*"):
        if path.is_file():
            path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(StoreUnreachable):
        down.list(root, SPECS)
    with pytest.raises(UnavailableError):
        Objects(Unreachable()).list(root, SPECS)  # type: ignore[arg-type]


KEEPERS = {
    "copy": lambda folder: LocalCache(folder).put("lists/aa", b"kept"),
    "store": lambda folder: open_store(folder).put(b"kept", "lists/aa"),
    "state": lambda folder: ProgressFolder(folder).put(7, b"kept"),
}


@pytest.mark.parametrize("keep", KEEPERS.values(), ids=KEEPERS)
def test_bytes_and_their_name_are_on_disk_before_anybody_relies_on_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: Callable[[Path], object]
) -> None:
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda opened: synced.append(str(Path(f"/proc/self/fd/{opened}").readlink())))
    keep(tmp_path)
    (kept,) = [path for path in tmp_path.rglob("*") if path.is_file() and path.read_bytes() == b"kept"]
    folder = str(kept.parent)
    assert folder in synced[1:], "a crash may lose the name"
    # Under the name that it was written by, before it got its own.
    first = synced[synced.index(folder) - 1]
    assert Path(first).parent == kept.parent and first != str(kept)


def test_a_full_disk_leaves_no_halves_of_copies(local_cache: LocalCache, tmp_path: Path) -> None:
    local_cache.put("lists/aa", b"before")
    with writing_nothing(beyond=10):
        local_cache.put("lists/bb", bytes(100))
        ProgressFolder(tmp_path / "progress").put(3, bytes(100))
    assert local_cache.get("lists/bb", 100) is None and local_cache.get("lists/aa", 100) == b"before"
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["aa"]


def test_roots_that_a_full_disk_did_not_take_are_known_and_written_later(tmp_path: Path) -> None:
    roots = {step: Digest(bytes([step]) * 32) for step in range(1, 4)}
    progress = ProgressFolder(tmp_path)
    progress.note({1: roots[1]})
    with writing_nothing(beyond=50):
        progress.note({2: roots[2]})
        assert progress.roots[2] == roots[2]
    progress.note({3: roots[3]})
    assert dict(ProgressFolder(tmp_path).roots) == roots
