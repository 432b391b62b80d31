"""binary32 by integers: against SoftFloat on random patterns, and each rule of ours by name."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import softfloatpy as soft
from hypothesis import example, given
from hypothesis import strategies as st

from assay.protocol.arithmetic import f32

NAN, INF, NEGATIVE_ZERO, LARGEST, SMALLEST, SMALLEST_NORMAL = 0x7FC00000, 0x7F800000, 1 << 31, 0x7F7FFFFF, 1, 0x00800000
NANS = (0x7FC00000, 0x7F800001, 0xFFC00000, 0xFFFFFFFF, 0x7FFFFFFF)

FIELDS = st.sampled_from((0, 1, 2, 23, 24, 25, 100, 126, 127, 128, 149, 150, 151, 157, 158, 189, 190, 253, 254, 255))
MANTISSAS = st.one_of(st.sampled_from((0, 1, 2, 0x3FFFFF, 0x400000, 0x7FFFFE, 0x7FFFFF)), st.integers(0, 0x7FFFFF))
PATTERNS = st.one_of(
    st.integers(0, 0xFFFFFFFF),
    st.builds(lambda s, f, m: s << 31 | f << 23 | m, st.integers(0, 1), FIELDS, MANTISSAS),
)


def bits(value: float) -> int:
    return int.from_bytes(struct.pack(">f", value), "big")


def value(pattern: int) -> float:
    result: float = struct.unpack(">f", pattern.to_bytes(4, "big"))[0]
    return result


def _soft(pattern: int) -> soft.Float32:
    return soft.Float32.from_bytes(pattern.to_bytes(4, "big"))


def _pattern(number: soft.Float32) -> int:
    return NAN if number.is_nan() else int.from_bytes(number.to_bytes(), "big")


def nearest(exact: Fraction) -> int:
    """The pattern of the nearest binary32 by searching the two neighbours with exact rationals, ties to even."""
    sign, size = (1 << 31, -exact) if exact < 0 else (0, exact)
    low, high = 0, INF  # patterns of non-negative numbers are ordered like their values; INF stands for 2^128
    while high - low > 1:
        middle = (low + high) // 2
        if Fraction(value(middle)) <= size:
            low = middle
        else:
            high = middle
    above = Fraction(2) ** 128 if high == INF else Fraction(value(high))
    below_gap, above_gap = size - Fraction(value(low)), above - size
    if below_gap == above_gap:
        return sign | (low if low % 2 == 0 else high)
    return sign | (low if below_gap < above_gap else high)


@given(PATTERNS, PATTERNS)
def test_sum_difference_product_and_quotient_are_those_of_softfloat(x: int, y: int) -> None:
    a, b = _soft(x), _soft(y)
    assert f32.add(x, y) == _pattern(soft.f32_add(a, b))
    assert f32.sub(x, y) == _pattern(soft.f32_sub(a, b))
    assert f32.mul(x, y) == _pattern(soft.f32_mul(a, b))
    assert f32.div(x, y) == _pattern(soft.f32_div(a, b))


@given(PATTERNS, st.integers(-3, 3), st.booleans())
def test_sums_of_near_neighbours_cancel_exactly(x: int, distance: int, flip: bool) -> None:
    y = ((x + distance) & 0xFFFFFFFF) ^ (int(flip) << 31)
    assert f32.add(x, y) == _pattern(soft.f32_add(_soft(x), _soft(y)))
    assert f32.sub(x, y) == _pattern(soft.f32_sub(_soft(x), _soft(y)))


@given(PATTERNS)
def test_square_root_and_rounding_to_integers_are_those_of_softfloat(x: int) -> None:
    assert f32.sqrt(x) == _pattern(soft.f32_sqrt(_soft(x)))
    assert f32.rint(x) == _pattern(soft.f32_round_to_int(_soft(x), soft.RoundingMode.NEAR_EVEN))
    assert f32.floor(x) == _pattern(soft.f32_round_to_int(_soft(x), soft.RoundingMode.MIN))


@given(PATTERNS, PATTERNS)
@example(0, NEGATIVE_ZERO)
@example(NAN, NAN)
@example(NAN, INF)
def test_comparisons_are_those_of_python_floats(x: int, y: int) -> None:
    a, b = value(x), value(y)
    assert (f32.eq(x, y), f32.lt(x, y), f32.le(x, y)) == (a == b, a < b, a <= b)


@given(PATTERNS, st.one_of(st.integers(-320, 320), st.integers(-(2**31), 2**31 - 1)))
@example(0x00FFFFFF, -1)
@example(0x00800001, -1)
@example(SMALLEST, 276)
@example(LARGEST, -300)
def test_scaling_rounds_the_exact_product_once(x: int, n: int) -> None:
    if not f32.is_finite(x):
        assert f32.scale2(x, n) == (NAN if f32.is_nan(x) else x)
        return
    clamped = max(-400, min(400, n))
    exact = Fraction(value(x)) * Fraction(2) ** clamped
    expected = nearest(exact)
    assert f32.scale2(x, n) == (expected | (x & NEGATIVE_ZERO) if exact == 0 else expected)


@given(PATTERNS)
def test_the_exponent_is_the_power_of_two_above(x: int) -> None:
    e = f32.exponent(x)
    if not f32.is_finite(x):
        assert e == 129
    elif x & 0x7FFFFFFF == 0:
        assert e == -149
    else:
        assert Fraction(2) ** (e - 1) <= abs(Fraction(value(x))) < Fraction(2) ** e


@given(st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 63).map(lambda k: 1 << k)))
@example((1 << 25) + 1 << 30)
@example(((1 << 24) + 1 << 38) + 1)
@example(2**63 - 1)
@example(-(2**63))
def test_an_integer_becomes_the_nearest_float_in_one_rounding(n: int) -> None:
    assert f32.from_int(n) == nearest(Fraction(n))


@given(PATTERNS, st.sampled_from((32, 64)))
@example(0x4EFFFFFF, 32)
@example(0x4F000000, 32)
@example(0xCF000000, 32)
@example(0xCF000001, 32)
@example(0x5F000000, 64)
@example(0xDF000000, 64)
def test_a_float_becomes_an_integer_toward_zero_and_saturates(x: int, width: int) -> None:
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    number = value(x)
    if math.isnan(number):
        expected = 0
    elif math.isinf(number):
        expected = high if number > 0 else low
    else:
        expected = max(low, min(high, int(number)))
    assert f32.to_int(x, width) == expected


def test_whatever_reads_bits_knows_one_nan_only() -> None:
    one = 0x3F800000
    for nan in NANS:
        for result in (
            *(f(nan, one) for f in (f32.add, f32.sub, f32.mul, f32.div, f32.minimum, f32.maximum)),
            *(f(one, nan) for f in (f32.add, f32.sub, f32.mul, f32.div, f32.minimum, f32.maximum)),
            *(f(nan) for f in (f32.sqrt, f32.neg, f32.absolute, f32.rint, f32.floor, f32.canonical)),
            f32.scale2(nan, 3),
        ):
            assert result == NAN
        assert f32.to_int(nan, 32) == 0
        assert f32.exponent(nan) == 129


def test_the_default_nan_of_invalid_operations_is_the_one_nan() -> None:
    assert f32.add(INF, INF | NEGATIVE_ZERO) == NAN
    assert f32.mul(INF, 0) == NAN
    assert f32.div(0, NEGATIVE_ZERO) == NAN
    assert f32.div(INF, INF) == NAN
    assert f32.sqrt(bits(-1.0)) == NAN


def test_a_zero_maximum_or_minimum_is_plus_zero() -> None:
    zeros = (0, NEGATIVE_ZERO)
    assert {f(x, y) for f in (f32.minimum, f32.maximum) for x in zeros for y in zeros} == {0}
    assert f32.maximum(bits(-1.0), NEGATIVE_ZERO) == 0
    assert f32.minimum(bits(1.0), NEGATIVE_ZERO) == 0
    assert f32.minimum(bits(-1.0), 0) == bits(-1.0)


def test_zeros_keep_the_sign_that_ieee_gives_them() -> None:
    one = bits(1.0)
    assert f32.add(NEGATIVE_ZERO, NEGATIVE_ZERO) == NEGATIVE_ZERO
    assert f32.add(NEGATIVE_ZERO, 0) == 0
    assert f32.sub(one, one) == 0
    assert f32.rint(bits(-0.5)) == NEGATIVE_ZERO
    assert f32.floor(NEGATIVE_ZERO) == NEGATIVE_ZERO
    assert f32.sqrt(NEGATIVE_ZERO) == NEGATIVE_ZERO
    assert f32.scale2(bits(-1.0), -200) == NEGATIVE_ZERO


def test_ties_go_to_even_at_every_boundary() -> None:
    half_ulp = bits(2.0**-24)
    assert f32.add(bits(1.0), half_ulp) == bits(1.0)
    assert f32.add(bits(1.0) + 1, half_ulp) == bits(1.0) + 2
    assert f32.scale2(1, -1) == 0  # half of the smallest subnormal
    assert f32.scale2(3, -1) == 2
    assert f32.scale2(0x00FFFFFF, -1) == SMALLEST_NORMAL  # a subnormal rounds up into the normal range
    assert f32.round_pack(0, (1 << 25) - 1, 103) == INF  # half an ulp above the largest
    assert f32.round_pack(0, (1 << 26) - 3, 102) == LARGEST  # a quarter


def test_no_operation_contracts_into_a_fused_one() -> None:
    x = bits(1.0 + 2.0**-12)
    product = f32.mul(x, x)
    assert f32.sub(product, product) == 0
    assert f32.sub(f32.mul(x, x), bits(1.0 + 2.0**-11)) == 0  # fused it would be 2^-24
