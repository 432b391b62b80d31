"""A solver puts its update back where it is missing, and sends it nowhere else."""

from __future__ import annotations

import atexit
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType, Round
from assay_ledger.store.blobs import BlobStore, open_store
from assay_ledger.store.folder import Folder
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.mirrored import MirroredStore
from assay_ledger.store.objects import Objects
from assay_solver.actions import RestoreUpdate
from assay_solver.worker import Worker

SPECS = [TensorSpec(DType.F32, (2, 3))]
TENSORS = (bytes(range(24)),)
ROUND = Round(3)


class DenyingStore(BlobStore):
    """A folder that takes what it is given and says that it has nothing."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Folder(folder), str(folder))

    def is_named(self, digest: Digest, name: str) -> bool:
        """See BlobStore."""
        return False

    def serves(self, digest: Digest, max_bytes: int) -> bool:
        """See BlobStore."""
        return False


def looks(objects: Objects, root: Digest, epoch: int) -> None:
    """What a solver does once an epoch for its update of a round."""
    worker: Any = SimpleNamespace(
        archive=SimpleNamespace(update_specs=SPECS),
        objects=objects,
        put_update=lambda _, update: objects.put_list(SPECS, update),
        _restore_base=lambda *_: None,
        _restored={},
        _unsettled=lambda _: [SimpleNamespace(round=ROUND, work=SimpleNamespace(update=root))],
    )
    Worker.do_restore_update(worker, RestoreUpdate(ROUND, epoch), None)  # type: ignore[arg-type]
    assert worker._restored == {ROUND: epoch}


@pytest.mark.parametrize("denying", [0, 1])
def test_what_one_store_denies_to_have_is_uploaded_to_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, denying: int
) -> None:
    """Attack: each solver sent its update to all of them anew, once an epoch, as long as one of them said so."""
    monkeypatch.setattr(atexit, "register", lambda _: None)
    stores = [open_store(tmp_path / "a"), open_store(tmp_path / "b")]
    stores[denying] = DenyingStore(tmp_path / "denies")
    store = MirroredStore(stores)
    objects = Objects(store, LocalCache(tmp_path / "copies"))
    root = objects.put_list(SPECS, TENSORS)
    for epoch in range(3):
        assert store.flush(60)
        written = [one.traffic.bytes_written for one in stores]
        looks(objects, root, epoch)
        assert store.flush(60)
        more = [one.traffic.bytes_written - before for one, before in zip(stores, written, strict=True)]
        assert more[denying] > 0 and more[1 - denying] == 0
