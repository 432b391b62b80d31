"""The libraries under the leaves against their Python definitions: rounding, order, elements, descriptors and views."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.protocol.arithmetic import f32, words
from assay.protocol.arithmetic.rounding import quantize
from assay.protocol.game.header import parse_head
from assay.protocol.program import leaf
from assay.protocol.program.encoding import MalformedError, decode_node, encode_node
from assay.protocol.program.nodes import Const, Family, Input, Node, Operand, Output, operands
from assay.protocol.program.views import unravel
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.contracts.leaf_cases import CONTRACTS, NON_FINITE, SPECIALS, draw, float_word

PATTERNS = st.one_of(st.sampled_from(SPECIALS + NON_FINITE), st.integers(0, (1 << 32) - 1))


@pytest.fixture(scope="module")
def libraries() -> EvmContract:
    return Evm().deploy("LeafHarness")


@given(st.lists(PATTERNS, min_size=1, max_size=40), st.integers(2, 31), st.integers(-160, 140))
def test_quantization_rounds_once_and_clamps(libraries: EvmContract, xs: list[int], p: int, e: int) -> None:
    assert list(libraries.call("quantize", xs, p, e)) == [quantize(x, p, e) for x in xs]


def test_quantization_is_right_at_ties_limits_and_hostile_exponents(libraries: EvmContract) -> None:
    near = [
        m << 23 | tail for m in (0, 1, 120, 126, 127, 128, 254) for tail in (0, 1, 1 << 22, (1 << 22) + 1, 0x7FFFFF)
    ]
    xs = near + [x | f32.SIGN for x in near]
    for p in (2, 8, 14, 31):
        for e in (-(1 << 31), -149, -126, -23, -1, 0, 1, 2, 7, 8, 9, 24, 25, 26, 127, 128, (1 << 31) - 1):
            assert list(libraries.call("quantize", xs, p, e)) == [quantize(x, p, e) for x in xs]


@given(st.lists(PATTERNS, min_size=1, max_size=40))
def test_the_order_of_keys_is_the_order_of_max_and_rank(libraries: EvmContract, xs: list[int]) -> None:
    keys, patterns = libraries.call("order", xs)
    assert list(patterns) == [f32.maximum(x, x) for x in xs]
    for x, key in zip(xs, keys, strict=True):
        ahead = [leaf._is_ahead(f32.canonical(y), 1, f32.canonical(x), 0) for y in xs]
        assert [other > key for other in keys] == ahead


@given(st.sampled_from(list(DType)), st.binary(min_size=0, max_size=40), st.integers(0, 50))
def test_elements_are_read_and_stored_as_words_say(
    libraries: EvmContract, dtype: DType, data: bytes, index: int
) -> None:
    padded = data + bytes(8 * 51 + 8)
    raw = words.from_bytes(dtype, padded[index * dtype.size : (index + 1) * dtype.size])[0]
    if (index + 1) * dtype.size > len(data) > index * dtype.size:
        return  # an element that the end of the leaf cuts: leaves have exact lengths
    value = words.canonical(dtype, raw)
    assert libraries.call("word", data, dtype, index) == (raw, value, value)


def _nodes(seed: int) -> Node:
    """A node of any family."""
    rng = Random(seed)
    family = rng.choice(list(Family))
    spec = TensorSpec(rng.choice(list(DType)), tuple(rng.choice((0, 1, 5, 1 << 13)) for _ in range(rng.randint(0, 3))))
    if family is Family.INPUT:
        return Input(spec, rng.getrandbits(8), rng.getrandbits(32))
    if family is Family.CONST:
        return Const(spec, Digest(rng.randbytes(32)))
    if family is Family.OUTPUT:
        return Output(spec, rng.getrandbits(8), rng.getrandbits(32), rng.getrandbits(32))
    return draw(family, rng).node


def _decoded(libraries: EvmContract, data: bytes) -> None:
    """Both decoders agree on whether these bytes are a node, and on its shape."""
    try:
        node = decode_node(data)
    except MalformedError:
        assert not libraries.call("decode", data)[0]
        return
    valid, family, dtype, dims, numel, red, terms, _, cursors, _ = libraries.call("decode", data)
    assert (valid, family, dtype, dims, numel) == (True, node.family, node.spec.dtype, node.spec.dims, node.spec.numel)
    assert red == getattr(node, "red", ())
    assert terms == getattr(node, "terms", 0)
    assert len(cursors) == len(operands(node))
    for cursor, (operand, space) in zip(cursors, operands(node), strict=True):
        if 0 not in space:
            _read(libraries, data, cursor, operand, space)


def _read(libraries: EvmContract, data: bytes, cursor: int, operand: Operand, space: tuple[int, ...]) -> None:
    """The operand at a cursor reads what its view says."""
    index = unravel(len(data) % max(1, _volume(space)), space)
    expected = leaf._read(operand, index)
    got = libraries.call("readView", data, cursor, index)
    assert got == (expected.node, expected.address, expected.is_fill, expected.fill)


def _volume(dims: tuple[int, ...]) -> int:
    return TensorSpec(DType.U8, dims).numel


@given(st.integers(0, 1 << 64))
@settings(max_examples=150)
def test_descriptors_decode_as_in_the_reference(libraries: EvmContract, seed: int) -> None:
    _decoded(libraries, encode_node(_nodes(seed)))


@given(st.integers(0, 1 << 64), st.integers(0, 4), st.data())
@settings(max_examples=150)
def test_damaged_descriptors_are_malformed_for_both_or_mean_the_same(
    libraries: EvmContract, seed: int, kind: int, data: st.DataObject
) -> None:
    good = encode_node(_nodes(seed))
    at = data.draw(st.integers(0, min(len(good) - 1, 60)))
    byte = data.draw(st.integers(0, 255))
    bad = (good[:at], good[:-1], good + b"\0", good[:at] + bytes([byte]) + good[at + 1 :], good[:at] + good[at + 1 :])
    _decoded(libraries, bad[kind])


@pytest.mark.parametrize(
    "dims",
    [(1 << 40, 1 << 40, 0), ((1 << 40) + 1, 0), (1 << 40, 2), (1 << 20, 1 << 20), ((1 << 64) - 1,), (3,) * 8, (1,) * 9],
)
def test_sizes_at_the_limits_are_judged_alike(libraries: EvmContract, dims: tuple[int, ...]) -> None:
    _decoded(libraries, encode_node(Input(TensorSpec(DType.F32, dims), 0, 0)))


@given(st.binary(max_size=80), st.sampled_from((0, 1, 3, 8, 9, 255)))
def test_every_byte_string_has_a_type_and_a_shape(libraries: EvmContract, data: bytes, rank: int) -> None:
    node = data[:2] + bytes([rank]) + data[2:]
    head = parse_head(node)
    assert libraries.call("parse", node) == (head.family, head.dtype, head.dims, head.body)
    assert libraries.call("volume", head.dims) == head.numel


@given(st.lists(st.integers(0, 6), max_size=8), st.integers(0, 1 << 40))
def test_positions_unravel_row_major(libraries: EvmContract, dims: list[int], position: int) -> None:
    got = libraries.call("unravel", dims, position)
    if 0 not in dims:
        assert got == unravel(position, dims)


def test_the_case_generator_reaches_non_finite_and_subnormal_words() -> None:
    rng = Random(1)
    drawn = {float_word(rng) for _ in range(2000)}
    assert drawn >= set(SPECIALS) | set(NON_FINITE)
    assert len(CONTRACTS) == 9
