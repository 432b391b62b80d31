"""What one of several stores lost, or has other bytes of, is put back in that one, and the others are left alone."""

from __future__ import annotations

import atexit
from hashlib import sha256
from pathlib import Path

import pytest

from assay.protocol.trees import tensors
from assay.protocol.trees.tensors import LEAF_SIZE, TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import objects as objects_module
from assay_ledger.store import parts
from assay_ledger.store.blobs import object_path, open_store
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.mirrored import MirroredStore
from assay_ledger.store.objects import Objects

SPECS = [TensorSpec(DType.F32, (2, 3))]
TENSORS = [bytes(range(24))]

PART = 4 * LEAF_SIZE
DATA = bytes(i * i * 7 >> 2 & 255 for i in range(2 * PART + 300))
SPEC = TensorSpec(DType.U8, (len(DATA),))


@pytest.fixture(autouse=True)
def _no_waiting_at_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atexit, "register", lambda _: None)


def test_what_every_store_lost_is_put_back_in_each(tmp_path: Path) -> None:
    stores = [open_store(tmp_path / name) for name in ("a", "b")]
    store = MirroredStore(stores)
    objects = Objects(store, LocalCache(tmp_path / "copies"))
    digest = objects.list_digest(objects.put_list(SPECS, TENSORS), SPECS)
    assert store.flush(60)
    for name in ("a", "b"):
        open_store(tmp_path / name).delete(object_path(digest))
    with objects.putting_back():
        objects.put_list(SPECS, TENSORS)
    assert store.flush(60) and all(one.serves(digest, 1 << 10) for one in stores)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 4 leaves, and everything mapped."""
    monkeypatch.setattr(parts, "PART_BYTES", PART)
    monkeypatch.setattr(objects_module, "MAPPED_FROM", 1)


def pair(folder: Path) -> MirroredStore:
    """Two folders as one, as whoever was started just now opens them."""
    return MirroredStore([open_store(folder / name) for name in ("a", "b")])


def published(folder: Path, spec: TensorSpec, data: bytes) -> Digest:
    """Data in both."""
    store = pair(folder)
    root = Objects(store).put_data(spec, data)
    assert store.flush(60)
    return root


@pytest.mark.usefixtures("small")
def test_a_part_that_was_written_over_in_one_of_two_stores_is_put_back_there(tmp_path: Path) -> None:
    """Attack: the other one was enough to be content; once that was silent, nobody who has no copy got the data."""
    root = published(tmp_path, SPEC, DATA)
    assert root == tensors.tensor_root(SPEC, DATA)
    assert Objects(pair(tmp_path), LocalCache(tmp_path / "copies")).mapped(root, SPEC) == DATA
    digest = Digest(sha256(DATA[:PART]).digest())
    open_store(tmp_path / "a").put_as(digest, bytes(PART))
    for k in range(2):
        store = pair(tmp_path)
        assert Objects(store, LocalCache(tmp_path / "copies")).mapped(root, SPEC) == DATA
        assert store.flush(60) and open_store(tmp_path / "a").get(digest, PART) == DATA[:PART]
        first, second = store.stores
        assert first.traffic.bytes_written == (0 if k else PART) and not second.traffic.bytes_written
    assert Objects(open_store(tmp_path / "a")).mapped(root, SPEC) == DATA


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("other", [0, 1])
def test_data_of_one_object_that_were_written_over_in_one_store_are_put_back(tmp_path: Path, other: int) -> None:
    spec, data = TensorSpec(DType.U8, (PART,)), DATA[:PART]
    root, place = published(tmp_path, spec, data), tmp_path / ("a", "b")[other]
    assert Objects(pair(tmp_path), LocalCache(tmp_path / "copies")).mapped(root, spec) == data
    digest = Digest(sha256(data).digest())
    open_store(place).put_as(digest, bytes(PART))
    store = pair(tmp_path)
    assert Objects(store, LocalCache(tmp_path / "copies")).mapped(root, spec) == data
    assert open_store(place).get(digest, PART) == data
    assert not store.stores[1 - other].traffic.bytes_written
