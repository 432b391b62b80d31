"""The element rule of every family, against exact fractions written from the text of the protocol."""

from __future__ import annotations

import struct
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.arithmetic import f32, words
from assay.protocol.arithmetic.philox import random_word
from assay.protocol.arithmetic.scalar import Instruction, Op
from assay.protocol.program import leaf
from assay.protocol.program.leaf import Read
from assay.protocol.program.nodes import (
    Const,
    Dot,
    Gather,
    Input,
    Map,
    Max,
    Node,
    Operand,
    Output,
    Random,
    Rank,
    RowExp,
    ScatterSum,
    Sum,
)
from assay.protocol.program.views import View, Window
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType

NAN, INF = f32.NAN, f32.INF
MINUS_1 = (1 << 256) - 1
bits = st.integers(0, (1 << 32) - 1) | st.sampled_from(
    [0, f32.SIGN, INF, INF | f32.SIGN, NAN, 0xFFC12345, 1, 0x3F800000]
)
rows = st.lists(bits, min_size=1, max_size=12)


def whole(node: int, *dims: int) -> Operand:
    return Operand(node, Window.whole(dims).view)


def fixed(node: int, rank: int) -> Operand:
    """Element 0 of a node, over any index space."""
    return Operand(node, View(0, (0,) * rank, (0,) * rank, (1 << 40,) * rank))


def evaluate(node: Node, element: int, values: dict[int, list[int]]) -> int:
    """One element over earlier nodes' raw words; 0 outside them, as the contract reads."""

    def value_of(read: Read) -> int:
        if read.is_fill:
            return read.fill
        source = values[read.node]
        return source[read.address] if read.address < len(source) else 0

    return leaf.element(node, element, value_of)


def value(pattern: int) -> Fraction:
    """The number that a finite pattern is."""
    return Fraction(struct.unpack("<f", struct.pack("<I", pattern))[0])


def is_finite(pattern: int) -> bool:
    return pattern & INF != INF


def exponent(pattern: int) -> int:
    """E(x) by definition: |x| in [2^(e-1), 2^e)."""
    if not is_finite(pattern):
        return 129
    x = abs(value(pattern))
    if x == 0:
        return -149
    e = -160
    while not x < Fraction(2) ** e:
        e += 1
    return e


def quantize(pattern: int, p: int, e: int) -> int:
    """q_p(x, e) by definition; Fraction rounds ties to even."""
    if not is_finite(pattern):
        return 0
    limit = 127 if p == 8 else 1 << (p - 1)
    return max(-limit, min(limit, round(value(pattern) * Fraction(2) ** (p - 1 - e))))


def nearest(x: Fraction) -> int:
    """The binary32 pattern nearest to a fraction, ties to even, by search over all finite patterns of its sign."""
    if x == 0:
        return 0
    low, high = 0, INF  # patterns of one sign are ordered as their values; INF stands for 2^128
    size = abs(x)

    def at(pattern: int) -> Fraction:
        return Fraction(2) ** 128 if pattern == INF else value(pattern)

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if at(middle) <= size else (low, middle)
    down, up = size - at(low), at(high) - size
    pattern = low if down < up or (down == up and low % 2 == 0) else high
    return pattern | (f32.SIGN if x < 0 else 0)


@given(rows)
def test_rowexp_is_the_largest_exponent(row: list[int]) -> None:
    node = RowExp(TensorSpec(DType.I32, ()), (len(row),), whole(0, len(row)))
    assert words.signed(evaluate(node, 0, {0: row})) == max(map(exponent, row))


@given(rows)
def test_max_is_nan_if_any_and_a_zero_is_plus_zero(row: list[int]) -> None:
    node = Max(TensorSpec(DType.F32, ()), (len(row),), whole(0, len(row)))
    found = evaluate(node, 0, {0: row})
    if any(x & 0x7FFFFFFF > INF for x in row):
        assert found == NAN
    else:
        largest = max(struct.unpack("<f", struct.pack("<I", x))[0] for x in row)
        assert struct.pack("<I", found) == struct.pack("<f", largest + 0.0)


@given(st.lists(st.integers(-(1 << 31), (1 << 31) - 1), min_size=1, max_size=9))
def test_max_of_integers_is_signed(row: list[int]) -> None:
    node = Max(TensorSpec(DType.I32, ()), (len(row),), whole(0, len(row)))
    assert words.signed(evaluate(node, 0, {0: words.from_ints(DType.I32, row)})) == max(row)


exponents = st.integers(-160, 140) | st.integers(-(1 << 31), (1 << 31) - 1)


@given(
    st.lists(st.tuples(bits, bits), max_size=10),
    st.integers(2, 31),
    st.integers(2, 31),
    st.data(),
)
def test_dot_is_the_exact_sum_rounded_once(row: list[tuple[int, int]], p_a: int, p_b: int, data: st.DataObject) -> None:
    a, b = [x for x, _ in row], [y for _, y in row]
    natural = data.draw(st.booleans())
    e_a, e_b = (max(map(exponent, r), default=-149) if natural else data.draw(exponents) for r in (a, b))
    k = len(row)
    node = Dot(TensorSpec(DType.F32, ()), (k,), p_a, p_b, whole(0, k), whole(1, k), whole(2), whole(3))
    heads = words.from_ints(DType.I32, [e_a, e_b])
    found = evaluate(node, 0, {0: a, 1: b, 2: [heads[0]], 3: [heads[1]]})
    if max(e_a, e_b) >= 129:
        assert found == NAN
        return
    if min(e_a, e_b) < -400:
        return  # the fraction would be astronomically long; f32's own tests cover such shifts
    total = sum(quantize(x, p_a, e_a) * quantize(y, p_b, e_b) for x, y in row)
    assert found == nearest(total * Fraction(2) ** (e_a + e_b - p_a - p_b + 2))


@given(rows, st.data())
def test_sum_is_the_exact_sum_rounded_once(row: list[int], data: st.DataObject) -> None:
    e = data.draw(st.just(max(map(exponent, row))) | st.integers(-160, 140))
    node = Sum(TensorSpec(DType.F32, ()), (len(row),), whole(0, len(row)), whole(1))
    found = evaluate(node, 0, {0: row, 1: words.from_ints(DType.I32, [e])})
    total = sum(quantize(x, 31, e) for x in row)
    assert found == (NAN if e >= 129 else nearest(total * Fraction(2) ** (e - 30)))


@given(rows, st.data())
def test_scatter_sum_adds_what_points_here(row: list[int], data: st.DataObject) -> None:
    k = len(row)
    index = data.draw(st.lists(st.integers(-1, 4), min_size=k, max_size=k))
    e = data.draw(st.just(max(map(exponent, row))) | st.integers(-160, 140))
    inner = View(0, (0, 1), (0, 0), (4, k))
    node = ScatterSum(TensorSpec(DType.F32, (4,)), (k,), Operand(0, inner), Operand(1, inner), fixed(2, 1))
    values = {0: row, 1: words.from_ints(DType.I32, index), 2: words.from_ints(DType.I32, [e])}
    for o in range(4):
        total = sum(quantize(x, 31, e) for x, i in zip(row, index, strict=True) if i == o)
        assert evaluate(node, o, values) == (NAN if e >= 129 else nearest(total * Fraction(2) ** (e - 30)))


@given(rows)
def test_rank_is_the_place_in_a_stable_descending_order(row: list[int]) -> None:
    n = len(row)
    node = Rank(TensorSpec(DType.I32, (n,)), (n,), Operand(0, View(0, (0, 1), (0, 0), (n, n))))

    def key(i: int) -> tuple[float, float, int]:
        x = struct.unpack("<f", struct.pack("<I", row[i]))[0]
        return (0.0, 0.0, i) if x != x else (1.0, -x, i)

    order = sorted(range(n), key=key)
    assert [evaluate(node, o, {0: row}) for o in range(n)] == [order.index(o) for o in range(n)]


@pytest.mark.parametrize("dtype", list(DType))
def test_gather_takes_the_row_that_the_index_names_and_a_defined_value_else(dtype: DType) -> None:
    table = words.from_ints(dtype, [3, 1, 4, 1, 5, 9])
    node = Gather(
        TensorSpec(dtype, (4, 2)),
        3,
        Operand(0, View(0, (2, 0, 1), (0,) * 3, (3, 4, 2))),
        Operand(1, View(0, (1, 0), (0, 0), (4, 2))),
    )
    index = words.from_ints(DType.I32, [2, -1, 3, 0])
    missing = NAN if dtype is DType.F32 else 0
    found = [evaluate(node, o, {0: table, 1: index}) for o in range(8)]
    assert found == [table[4], table[5], missing, missing, missing, missing, table[0], table[1]]


def test_gather_makes_what_it_stores_canonical() -> None:
    for dtype, raw, stored in ((DType.F32, 0xFFC00001, NAN), (DType.BOOL, 2, 1), (DType.I8, 0x80, MINUS_1 - 127)):
        node = Gather(TensorSpec(dtype, ()), 1, whole(0, 1), whole(1))
        assert evaluate(node, 0, {0: [raw], 1: [0]}) == stored


def test_random_words_are_philox_under_key_and_step() -> None:
    node = Random(TensorSpec(DType.I32, (9,)), 5, 0, 1)
    key, step = [3, MINUS_1], [7, 1]
    for o in range(9):
        expected = words.sign_extend(random_word(o, 5, (7, 1), (3, 0xFFFFFFFF)), 32)
        assert evaluate(node, o, {0: key, 1: step}) == expected


def test_a_map_reads_fill_outside_its_bounds_and_stores_by_type() -> None:
    code = b"".join(i.encode() for i in (Instruction(Op.I32_ADD, 0, 1),))
    inside = Operand(0, View(-1, (1,), (1,), (3,), 0xFFFFFFFF))
    node = Map(TensorSpec(DType.I8, (4,)), (inside, whole(1, 4)), code)
    found = [evaluate(node, o, {0: [100, 27], 1: [0, 0, 100, MINUS_1]}) for o in range(4)]
    assert [words.signed(w) for w in found] == [-1, 100, 127, -2]


def test_a_map_of_storage_types_sees_integers() -> None:
    code = Instruction(Op.I32_TO_F32, 0).encode()
    node = Map(TensorSpec(DType.F32, (1,)), (whole(0, 1),), code)
    assert evaluate(node, 0, {0: words.from_bytes(DType.I8, b"\x80")}) == 0xC3000000
    assert evaluate(node, 0, {0: words.from_bytes(DType.U8, b"\x80")}) == 0x43000000


def test_addresses_that_no_u64_holds_read_zero() -> None:
    for offset in (-1, -(1 << 63)):
        node = Max(TensorSpec(DType.I32, ()), (1,), Operand(0, View(offset, (0,), (0,), (1,), 9)))
        assert leaf.term_reads(node, 0, 0, ()) == (Read(0, 0, True, 0),)
    node = Max(TensorSpec(DType.I32, ()), (3,), Operand(0, View((1 << 63) - 1, ((1 << 63) - 1,), (0,), (3,), 9)))
    assert leaf.term_reads(node, 0, 1, ()) == (Read(0, (1 << 64) - 2, False, 0),)
    assert leaf.term_reads(node, 0, 2, ()) == (Read(0, 0, True, 0),)


@given(st.lists(st.integers(-(1 << 62), 1 << 62), min_size=2, max_size=20), st.data())
def test_parts_combine_in_any_grouping(parts: list[int], data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, len(parts) - 1))
    point = whole(0)
    spec = TensorSpec(DType.F32, ())
    integers = TensorSpec(DType.I32, ())
    for node in (
        Sum(spec, (2,), whole(0, 2), point),
        RowExp(integers, (2,), whole(0, 2)),
        Max(integers, (2,), whole(0, 2)),
        Max(spec, (2,), whole(0, 2)),
    ):
        finer = [leaf.combine(node, parts[:cut]), leaf.combine(node, parts[cut:])]
        assert leaf.combine(node, finer) == leaf.combine(node, parts)
        assert leaf.fold(node, [0, 0], finer) == leaf.fold(node, [0, 0], parts)


def test_sums_of_hostile_parts_wrap_at_256_bits() -> None:
    node = Sum(TensorSpec(DType.F32, ()), (2,), whole(0, 2), whole(1))
    largest = (1 << 255) - 1
    assert leaf.combine(node, [largest, 1]) == -(1 << 255)
    assert leaf.combine(node, [largest, largest, 2]) == 0


def test_reductions_over_nothing_are_done_at_once() -> None:
    spec, integers = TensorSpec(DType.F32, ()), TensorSpec(DType.I32, ())
    nothing = Operand(0, View(0, (1,), (0,), (0,)))
    e = whole(1)
    assert leaf.start(Sum(spec, (0,), nothing, e), 0, [0]).value == 0
    assert leaf.start(Dot(spec, (0,), 8, 8, nothing, nothing, e, e), 0, [0, 0]) == leaf.Start(True, 0, 0)
    assert leaf.start(Dot(spec, (0,), 8, 8, nothing, nothing, e, e), 0, [129, 0]).value == NAN
    assert leaf.start(Max(spec, (0,), nothing), 0, []).value == NAN
    assert words.signed(leaf.start(RowExp(integers, (0,), nothing), 0, []).value) == -149


def test_families_that_are_no_computation_have_nothing_to_open() -> None:
    spec = TensorSpec(DType.F32, (2,))
    for node in (Input(spec, 0, 0), Const(spec, Digest(bytes(32))), Output(spec, 0, 0, 0)):
        assert leaf.head_reads(node, 0) == leaf.term_reads(node, 0, 0, ()) == ()
        assert leaf.start(node, 0, ()) == leaf.Start(True, 0, 0)
        assert leaf.term(node, 0, 0, (), ()) == 0


def test_no_element_is_computed_of_a_tensor_without_elements() -> None:
    node = Sum(TensorSpec(DType.F32, (0,)), (2,), whole(0, 0, 2), whole(1, 0))
    assert leaf.head_reads(node, 0) == leaf.term_reads(node, 0, 0, [0]) == ()
    assert leaf.start(node, 0, []) == leaf.Start(True, 0, 0)
    assert leaf.start(replace(node, spec=TensorSpec(DType.F32, (1,))), 0, [0]).terms == 2
