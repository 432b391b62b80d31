"""Tensors: exact leaves, attributable bits, element words."""

from __future__ import annotations

from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.arithmetic import words
from assay.protocol.arithmetic.scalar import load
from assay.protocol.digests import ZERO, leaf_digest
from assay.protocol.trees import merkle, tensors
from assay.protocol.trees.tensors import LEAF_SIZE, TensorSizeError, TensorSpec, TensorTree, tensor_root, verify_leaf
from assay.protocol.types import DType

specs = st.builds(
    TensorSpec, st.sampled_from(list(DType)), st.lists(st.integers(0, 12), max_size=4).map(lambda dims: tuple(dims))
)
large = st.builds(TensorSpec, st.sampled_from(list(DType)), st.tuples(st.integers(100, 1500)))


def content(spec: TensorSpec) -> bytes:
    return bytes(i * 37 % 251 for i in range(spec.nbytes))


@given(specs | large)
def test_leaf_lengths_are_exact_and_add_up(spec: TensorSpec) -> None:
    lengths = [spec.leaf_length(i) for i in range(spec.leaf_count)]
    assert sum(lengths) == spec.nbytes
    assert all(length == LEAF_SIZE for length in lengths[:-1])
    assert all(0 < length <= LEAF_SIZE for length in lengths)


@given(large, st.data())
def test_a_leaf_verifies_at_its_place_with_its_exact_length_only(spec: TensorSpec, data: st.DataObject) -> None:
    tree = TensorTree(spec, content(spec))
    i = data.draw(st.integers(0, spec.leaf_count - 1))
    leaf, path = tree.leaf(i), tree.path(i)
    assert verify_leaf(tree.root, spec, i, leaf, path)
    assert not verify_leaf(tree.root, spec, i, leaf + b"\0", path)
    assert not verify_leaf(tree.root, spec, i, leaf[:-1], path)
    assert not verify_leaf(tree.root, spec, spec.leaf_count, leaf, path)
    bit = data.draw(st.integers(0, 8 * len(leaf) - 1))
    changed = bytearray(leaf)
    changed[bit // 8] ^= 1 << bit % 8
    assert not verify_leaf(tree.root, spec, i, bytes(changed), path)
    other = TensorSpec(spec.dtype, (1, *spec.dims))
    assert not verify_leaf(tree.root, other, i, leaf, path)


def test_type_and_dims_are_part_of_the_root() -> None:
    data = bytes(24)
    roots = {
        tensor_root(TensorSpec(dtype, dims), data)
        for dtype, dims in [
            (DType.F32, (6,)), (DType.I32, (6,)), (DType.F32, (2, 3)), (DType.F32, (3, 2)), (DType.U8, (24,)),
            (DType.F32, (6, 1)), (DType.I64, (3,)),
        ]
    }  # fmt: skip
    assert len(roots) == 7


def test_tensors_without_elements_and_scalars_have_stated_roots() -> None:
    empty = TensorSpec(DType.F32, (0, 3))
    header = b"\x02\x00\x02" + (0).to_bytes(8, "big") + (3).to_bytes(8, "big")
    assert tensor_root(empty, b"") == sha256(header + ZERO).digest()
    scalar = TensorSpec(DType.I32, ())
    leaf = sha256(b"\x00" + b"\x05\0\0\0").digest()
    assert tensor_root(scalar, b"\x05\0\0\0") == sha256(b"\x02\x01\x00" + leaf).digest()


def test_data_of_another_length_is_refused() -> None:
    with pytest.raises(TensorSizeError, match="has 24 bytes, not 25"):
        tensor_root(TensorSpec(DType.F32, (6,)), bytes(25))


@given(st.sampled_from(list(DType)), st.data())
def test_raw_words_go_to_bytes_and_back_without_a_change(dtype: DType, data: st.DataObject) -> None:
    raw = data.draw(st.binary(max_size=64).map(lambda b: b[: len(b) // dtype.size * dtype.size]))
    assert words.to_bytes(dtype, words.from_bytes(dtype, raw)) == raw
    for k, word in enumerate(words.from_bytes(dtype, raw)):
        bits = int.from_bytes(raw[k * dtype.size : (k + 1) * dtype.size], "little")
        assert 0 <= word < 1 << 256
        assert words.canonical(dtype, word) == words.canonical(dtype, load(dtype, bits))
        assert words.canonical(dtype, words.canonical(dtype, word)) == words.canonical(dtype, word)


def test_words_are_what_the_contracts_say() -> None:
    assert words.from_bytes(DType.I32, b"\xff\xff\xff\xff") == [(1 << 256) - 1]
    assert words.from_bytes(DType.I8, b"\x80\x7f") == [(1 << 256) - 128, 127]
    assert words.from_bytes(DType.I64, b"\xfe" + b"\xff" * 7) == [(1 << 256) - 2]
    assert words.from_bytes(DType.U16, b"\xff\xff") == [0xFFFF]
    assert words.from_bytes(DType.BOOL, b"\x02") == [2]
    assert words.canonical(DType.BOOL, 2) == 1
    assert words.canonical(DType.F32, 0xFFC00001) == 0x7FC00000
    assert words.signed((1 << 256) - 2) == -2


@given(large, st.data())
def test_an_element_is_found_in_its_leaf(spec: TensorSpec, data: st.DataObject) -> None:
    element = data.draw(st.integers(0, spec.numel - 1))
    tree = TensorTree(spec, content(spec))
    index, offset = spec.locate(element)
    assert index * LEAF_SIZE + offset == element * spec.dtype.size
    assert tensors.element_word(spec, element, tree.leaf(index)) == tree.word(element)
    assert tree.word(element) == words.from_bytes(spec.dtype, tree.data)[element]


def test_leaves_cut_at_other_places_are_refused_though_their_tree_has_the_root() -> None:
    spec = TensorSpec(DType.U8, (2048,))
    leaves = [bytes(1023), bytes(1025)]
    digests = [leaf_digest(leaf) for leaf in leaves]
    root = spec.digest(merkle.root(digests))
    for i, leaf in enumerate(leaves):
        assert not verify_leaf(root, spec, i, leaf, merkle.path(digests, i))
