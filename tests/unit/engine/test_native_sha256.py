"""The native SHA-256 gives hashlib's digests and the protocol's roots, on every instruction set of this machine."""

from __future__ import annotations

import hashlib
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.engine.runtime.native import sha256
from assay.engine.runtime.native.build import INSTRUCTION_SETS
from assay.engine.runtime.native.library import native, processor_flags
from assay.engine.runtime.native.sha256 import Hasher, hasher_of
from assay.engine.runtime.values import state_io
from assay.engine.runtime.values.dtypes import raw_bytes, to_bytes
from assay.protocol.digests import TAG_LEAF
from assay.protocol.trees import merkle, tensors
from assay.protocol.trees.tensors import TensorSizeError, TensorSpec
from assay.protocol.types import Digest, DType

pytestmark = pytest.mark.skipif(native("sha256").handle is None, reason=native("sha256").reason or "-")

VARIANTS = {"fastest": -1, "lanes": 0, "one by one": 1, "plain C": 2}


@pytest.fixture(
    params=[(v, w) for v in INSTRUCTION_SETS if INSTRUCTION_SETS[v].needs <= processor_flags() for w in VARIANTS],
    ids=" ".join,
)
def kernels(request: pytest.FixtureRequest) -> Hasher:
    instruction_set, variant = request.param
    return hasher_of(instruction_set, variant=VARIANTS[variant])


def test_every_way_passes_the_self_test(kernels: Hasher):
    assert sha256.failure(kernels) == ""


def test_leaves_of_every_length_have_hashlib_s_digest(kernels: Hasher):
    data = random.Random(1).randbytes(1024)
    for length in range(1, 1025):
        assert kernels.leaf_digests(data[:length]) == [hashlib.sha256(TAG_LEAF + data[:length]).digest()], length


def test_trees_of_every_small_count_have_the_protocol_s_root(kernels: Hasher):
    rng = random.Random(2)
    for count in [*range(70), 1023, 1025]:
        digests = [Digest(rng.randbytes(32)) for _ in range(count)]
        assert kernels.root(digests) == merkle.root(digests), count


def test_a_flipped_bit_anywhere_changes_the_root(kernels: Hasher):
    data = bytearray(random.Random(3).randbytes(20 * 1024 + 5))
    before = kernels.tree_root(bytes(data), len(data))
    for at in range(0, len(data), 997):
        data[at] ^= 1 << at % 8
        assert kernels.tree_root(bytes(data), len(data)) != before
        data[at] ^= 1 << at % 8
    assert kernels.tree_root(bytes(data), len(data)) == before


@given(st.integers(0, 5000), st.sampled_from([DType.F32, DType.U8, DType.I64, DType.U16]), st.integers(0, 2**32))
@settings(max_examples=60)
def test_roots_of_tensors_are_those_of_the_protocol(numel: int, dtype: DType, seed: int):
    spec = TensorSpec(dtype, (numel,))
    data = random.Random(seed).randbytes(spec.nbytes)
    assert sha256.tensor_root(spec, data) == tensors.tensor_root(spec, data)
    assert sha256.tensor_root(spec, bytearray(data)) == tensors.tensor_root(spec, data)


def test_a_wrong_length_is_refused():
    with pytest.raises(TensorSizeError):
        sha256.tensor_root(TensorSpec(DType.U8, (5000,)), bytes(5001))


def test_tensors_hash_as_they_are_stored():
    """Strides and offsets are followed; a NaN that no store writes stays in a slot, and is the one NaN in a value."""
    x = torch.randn(60, 50)
    odd = x.clone()
    odd.view(torch.int32)[7, 7] = 0x7FC00001
    minus = x.clone()
    minus[3, 3] = -float("nan")
    minus.view(torch.int32)[3, 3] = -4194304
    fine = x.clone()
    fine[1, 1] = float("nan")
    for t in (x, x.t(), x[5:], x[:, 3:7].contiguous(), odd, minus, fine, torch.full((40, 40), float("inf"))):
        spec = state_io.spec_of(t)
        assert state_io.stored_root(t) == tensors.tensor_root(spec, to_bytes(t))
        assert state_io.root_of(t) == tensors.tensor_root(spec, raw_bytes(t))
    assert state_io.stored_root(odd) != state_io.root_of(odd)


def test_without_kernels_the_roots_are_the_same(monkeypatch: pytest.MonkeyPatch):
    x = torch.randn(100, 33)
    ours = state_io.root_of(x)
    monkeypatch.setattr(sha256, "hasher", lambda: None)
    assert state_io.root_of(x) == ours
    assert sha256.tensor_root(state_io.spec_of(x), to_bytes(x)) == ours


def test_kernels_that_hash_wrongly_are_not_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Hasher, "tree_root", lambda self, data, size: Digest(bytes(32)))
    sha256.hasher.cache_clear()
    try:
        assert sha256.hasher() is None
    finally:
        monkeypatch.undo()
        sha256.hasher.cache_clear()
    assert sha256.hasher() is not None
