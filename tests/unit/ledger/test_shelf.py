"""An actor's own copies: of the rounds that matter, never believed, and put back where the store lost them."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store.blobs import BlobStore, ObjectMismatch, ObjectMissing, StoreUnreachable, open_store
from assay_ledger.store.cache import Shelf
from assay_ledger.store.objects import Objects

SPECS = [TensorSpec(DType.F32, (2, 3)), TensorSpec(DType.I32, (4,))]
TENSORS = tuple(bytes(range(k, k + spec.nbytes)) for k, spec in enumerate(SPECS))
STATE = (Digest(b"\x01" * 32), Digest(b"\x02" * 32))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "shelf")


def test_copies_live_as_long_as_the_rounds_that_use_them(shelf: Shelf) -> None:
    shelf.put("lists/aa", b"old")
    shelf.put("lists/bb", b"used again")
    shelf.put("programs/cc", b"lasting")
    shelf.turn(3, 0)
    assert shelf.get("lists/bb", 100) == b"used again"
    shelf.turn(4, 2)
    assert shelf.get("lists/aa", 100) is None
    assert shelf.get("lists/bb", 100) == b"used again"
    assert shelf.get("programs/cc", 100) == b"lasting"


def test_a_copy_larger_than_its_place_allows_is_not_read(shelf: Shelf) -> None:
    shelf.put("lists/aa", b"12345")
    assert shelf.get("lists/aa", 4) is None
    assert shelf.get("lists/aa", 5) == b"12345"


def test_a_shelf_outlives_its_process_and_one_that_cannot_be_written_is_empty(tmp_path: Path) -> None:
    Shelf(tmp_path / "shelf").put("lists/aa", b"kept")
    assert Shelf(tmp_path / "shelf").get("lists/aa", 10) == b"kept"
    (tmp_path / "file").write_bytes(b"")
    broken = Shelf(tmp_path / "file")
    broken.put("lists/aa", b"lost")
    broken.turn(2, 1)
    assert broken.get("lists/aa", 10) is None


def copies_of(store: BlobStore) -> list[Path]:
    """The files of a folder store's objects."""
    return [path for path in (Path(store.location) / "objects").rglob("*") if path.is_file()]


@pytest.mark.parametrize("harm", ["wiped", "overwritten"])
def test_what_a_store_lost_is_read_from_the_shelf_and_put_back(tmp_path: Path, shelf: Shelf, harm: str) -> None:
    store = open_store(tmp_path / "store")
    root = Objects(store).put_list(SPECS, TENSORS)
    state = Objects(store).put_state(STATE)
    reader = Objects(store, shelf)
    assert reader.list(root, SPECS) == TENSORS and reader.state(state) == STATE
    for path in copies_of(store):
        path.unlink() if harm == "wiped" else path.write_bytes(b"other bytes")
    with pytest.raises((ObjectMissing, ObjectMismatch)):
        Objects(store).list(root, SPECS)
    assert reader.list(root, SPECS) == TENSORS and reader.state(state) == STATE
    stranger = Objects(store)
    assert stranger.list(root, SPECS) == TENSORS and stranger.state(state) == STATE


def test_what_an_actor_published_it_can_read_whatever_became_of_the_store(tmp_path: Path, shelf: Shelf) -> None:
    store = open_store(tmp_path / "store")
    root = Objects(store, shelf).put_list(SPECS, TENSORS)
    for path in copies_of(store):
        path.unlink()
    assert Objects(store, Shelf(tmp_path / "shelf")).list(root, SPECS) == TENSORS


class Unreachable:
    """A store that fails whatever is asked."""

    def __getattr__(self, name: str) -> object:
        raise StoreUnreachable("down")


def test_a_damaged_copy_is_not_believed_and_the_stores_own_error_comes_through(tmp_path: Path, shelf: Shelf) -> None:
    root = Objects(open_store(tmp_path / "store"), shelf).put_list(SPECS, TENSORS)
    down = Objects(Unreachable(), shelf)  # type: ignore[arg-type]
    assert down.list(root, SPECS) == TENSORS
    for path in (tmp_path / "shelf").rglob("*"):
        if path.is_file():
            path.write_bytes(bytes(path.stat().st_size))
    with pytest.raises(StoreUnreachable):
        down.list(root, SPECS)
    with pytest.raises(UnavailableError):
        Objects(Unreachable()).list(root, SPECS)  # type: ignore[arg-type]
