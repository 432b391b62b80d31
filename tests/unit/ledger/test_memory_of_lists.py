"""What a list takes in memory while it is put, kept and read, as a multiple of its bytes: models are large."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import local_cache, packing
from assay_ledger.store.blobs import open_store
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects

SPECS = [TensorSpec(DType.F32, (1 << 19,)) for _ in range(4)]
SIZE = sum(spec.nbytes for spec in SPECS)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces that are small beside this list, as the usual ones are beside a large one."""
    monkeypatch.setattr(packing, "SOME", 1 << 14)
    monkeypatch.setattr(local_cache, "_COMPARED_BYTES", 1 << 16)


def most(call: Callable[[], object]) -> float:
    """The most memory that a call takes beyond what there was, in lists."""
    gc.collect()
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1] / SIZE
    finally:
        tracemalloc.stop()


def test_a_list_takes_no_more_than_a_few_times_its_bytes(tmp_path: Path) -> None:
    """It took four times its bytes to put one, five to read it, and three to keep what lies there already."""
    drawn = np.random.default_rng(1)
    tensors = [(drawn.standard_normal(spec.numel) * 0.02).astype("<f4").tobytes() for spec in SPECS]
    store = open_store(tmp_path / "store")
    publisher, reader = (Objects(store, LocalCache(tmp_path / name)) for name in ("publisher", "reader"))
    roots: list[Digest] = []
    assert most(lambda: roots.append(publisher.put_list(SPECS, tensors))) < 3.1
    assert store.traffic.bytes_written < SIZE, "it lies packed"
    assert most(lambda: publisher.keep_list(SPECS, tensors)) < 1.3
    assert most(lambda: reader.list(roots[0], SPECS)) < 3.3
    with reader.own_copies_only():
        assert most(lambda: reader.list(roots[0], SPECS)) < 2.2
        assert reader.list(roots[0], SPECS) == tuple(tensors)
