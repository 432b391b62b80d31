"""Packed lists: what goes in comes out bit by bit, and no bytes of a stranger come out as a list, or fill memory."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from hashlib import sha256

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.errors import FraudError, UserError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import listfile
from assay_ledger.store.packing import MAGIC, pack_list, packed_limit, unpack_list

SPECS = (
    TensorSpec(DType.F32, (30, 4)),
    TensorSpec(DType.U16, (7,)),
    TensorSpec(DType.F32, ()),
    TensorSpec(DType.I8, (50,)),
    TensorSpec(DType.U8, (3, 0)),
    TensorSpec(DType.I32, (5,)),
)


def drawn(specs: tuple[TensorSpec, ...], seed: int) -> list[bytes]:
    draw = random.Random(seed)
    return [draw.randbytes(spec.nbytes) for spec in specs]


def digest_of(specs: tuple[TensorSpec, ...], tensors: list[bytes]) -> Digest:
    return Digest(sha256(listfile.pack(specs, tensors)).digest())


def weights(size: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(size).astype("<f4")


layouts = st.lists(
    st.builds(TensorSpec, st.sampled_from(list(listfile.ORDER)), st.lists(st.integers(0, 5), max_size=3).map(tuple)),
    min_size=1,
    max_size=6,
).map(tuple)


@given(specs=layouts, seed=st.integers(0, 99), has_base=st.booleans())
def test_any_list_comes_out_as_it_went_in(specs: tuple[TensorSpec, ...], seed: int, has_base: bool) -> None:
    tensors, base = drawn(specs, seed), drawn(specs, seed + 100) if has_base else None
    packed = pack_list(specs, tensors, base)
    assert len(packed) <= packed_limit(specs)
    assert list(unpack_list(specs, packed, digest_of(specs, tensors), base)) == tensors


def test_a_model_that_moved_a_little_is_packed_smaller_against_its_base() -> None:
    specs, before = (TensorSpec(DType.F32, (20_000,)),), weights(20_000)
    after = (before + weights(20_000, 2) * np.float32(1e-4)).astype("<f4")
    alone, against = (len(pack_list(specs, [after.tobytes()], base)) for base in (None, [before.tobytes()]))
    assert against < 0.75 * alone < 0.75 * 4 * 20_000
    assert len(pack_list(specs, [before.tobytes()], [before.tobytes()])) < 500


@pytest.mark.parametrize("has_base", [False, True], ids=["alone", "against a base"])
def test_no_byte_of_a_packed_list_can_be_changed_unseen(has_base: bool) -> None:
    tensors, base = drawn(SPECS, 1), drawn(SPECS, 2) if has_base else None
    tensors[0] = bytes(len(tensors[0]))  # a plane that is deflated
    packed, digest = pack_list(SPECS, tensors, base), digest_of(SPECS, tensors)
    for at in range(len(packed)):
        for other in (packed[at] ^ 1, packed[at] ^ 0x80):
            false = packed[:at] + bytes([other]) + packed[at + 1 :]
            try:
                assert list(unpack_list(SPECS, false, digest, base)) == tensors  # a bit that deflating ignores
            except FraudError as error:
                assert error.code == "FalsePacking"


@pytest.mark.parametrize("cut", [0, 3, 8, 9, 40, -1], ids=["all", "magic", "flag", "head", "plane", "last"])
def test_a_packed_list_that_is_cut_off_or_followed_by_bytes_is_refused(cut: int) -> None:
    tensors = drawn(SPECS, 1)
    tensors[0] = bytes(len(tensors[0]))  # so that it is shorter than it may be
    packed, digest = pack_list(SPECS, tensors), digest_of(SPECS, tensors)
    for data in (packed[:cut], packed + b"\0", b"", MAGIC):
        with pytest.raises(FraudError, match="not the packed list"):
            unpack_list(SPECS, data, digest)


def test_another_list_another_base_or_none_is_refused() -> None:
    tensors, base, other = (drawn(SPECS, seed) for seed in (1, 2, 3))
    packed, digest = pack_list(SPECS, tensors, base), digest_of(SPECS, tensors)
    for held in (other, None):
        with pytest.raises(FraudError):
            unpack_list(SPECS, packed, digest, held)
    with pytest.raises(FraudError):
        unpack_list(SPECS, pack_list(SPECS, other), digest)
    with pytest.raises(UserError) as caught:
        unpack_list(SPECS, packed, digest, base[:-1])
    assert caught.value.code == "OtherLayout"


@pytest.mark.parametrize("layers", [1, 2], ids=["once", "twice"])
def test_a_bomb_is_given_up_before_it_fills_memory(layers: int) -> None:
    """Attack: 100 MB of zeros, in the place of a plane of a kilobyte."""
    specs = (TensorSpec(DType.U8, (200_000,)),)
    bomb = bytes(100_000_000)
    for _ in range(layers):
        bomb = zlib.compress(bomb, 9)
    data = MAGIC + b"\0" + b"\1" + len(bomb).to_bytes(8, "big") + bomb
    digest = digest_of(specs, [bytes(200_000)])
    tracemalloc.start()
    try:
        with pytest.raises(FraudError, match="another size"):
            unpack_list(specs, data, digest)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_what_is_longer_than_its_list_is_not_looked_at() -> None:
    specs = (TensorSpec(DType.U8, (10,)),)
    data = MAGIC + b"\0" + b"\0" + (1 << 63).to_bytes(8, "big") + bytes(20)
    assert len(data) > packed_limit(specs)
    with pytest.raises(FraudError, match="longer"):
        unpack_list(specs, data, digest_of(specs, [bytes(10)]))
