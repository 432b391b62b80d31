"""An archive whose store can fail."""

from __future__ import annotations

from pathlib import Path
from random import Random

from assay_ledger.index.publications import Publications
from assay_ledger.rounds.archive import Archive
from assay_ledger.store.blobs import BlobStore, StorePace
from assay_ledger.store.folder import Folder
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.mirrored import MirroredStore
from assay_ledger.store.objects import Objects
from tests.harness.actors.stage import RoundStageRun
from tests.harness.soak.faults import FaultyBackend


def behind_faults(
    run: RoundStageRun, copies: Path, beside: BlobStore | None = None, at: int = 0
) -> tuple[Archive, FaultyBackend]:
    """Somebody whose store can fail, with copies of what it read. beside: of two stores the one that cannot."""
    backend = FaultyBackend(Folder(run.folder / "store"), Random(1))
    store = BlobStore(backend, "the store", StorePace(call_s=0.1))
    if beside is not None:
        store = MirroredStore([store, beside] if at == 0 else [beside, store])
    objects = Objects(store, LocalCache(copies))
    return Archive(run.run.charter, run.run.facts, objects, Publications(run.chain, objects)), backend
