"""The two roundings of an exact reduction, against rational arithmetic, and where obvious code goes wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.rounding import E, finish, quantize
from tests.unit.protocol.test_f32 import INF, LARGEST, PATTERNS, bits, nearest, value

TOTALS = st.one_of(
    st.integers(-(2**63), 2**63 - 1),
    # midpoints of 24-bit numbers and their neighbours, at every height up to 2^62
    st.builds(
        lambda m, k, d, s: s * (((1 << 24 | m) * 2 + 1 << k) + d),
        st.integers(0, (1 << 24) - 1),
        st.integers(0, 37),
        st.integers(-1, 1),
        st.sampled_from((1, -1)),
    ),
)


@given(TOTALS, st.integers(-420, 320))
@example((1 << 54) + (1 << 29) + 1, -20)
@example(1, -150)
@example(3, -151)
@example(1, -151)
@example(1, -(10**9))
@example(1, 10**9)
@example((1 << 25) - 1, 103)
@example((1 << 26) - 3, 102)
def test_finish_is_the_nearest_float_in_one_rounding(total: int, n: int) -> None:
    expected = nearest(Fraction(total) * Fraction(2) ** max(-600, min(600, n)))
    assert finish(total, n) == expected


@pytest.mark.parametrize("height", range(54, 63))
def test_finish_sees_the_last_bit_beside_a_midpoint(height: int) -> None:
    midpoint = (1 << height) + (1 << (height - 24))
    even, odd = bits(float(1 << height)), bits(float(1 << height)) + 1
    assert finish(midpoint - 1, 0) == even
    assert finish(midpoint, 0) == even
    assert finish(midpoint + 1, 0) == odd


def test_finish_rounds_a_subnormal_once_where_scaling_a_rounded_total_rounds_twice() -> None:
    total, n = (5 << 40) + 1, -149 - 41  # 2.5 smallest subnormals and a hair
    assert finish(total, n) == 3
    assert f32.scale2(f32.from_int(total), n) == 2


def test_finish_of_zero_is_plus_zero_and_overflow_is_infinite() -> None:
    assert finish(0, -50) == 0
    assert finish(-1, 128) == INF | 1 << 31
    assert finish((1 << 24) - 1, 104) == LARGEST


@given(PATTERNS, st.integers(2, 31), st.integers(-200, 200))
@example(bits(0.5), 8, 0)
@example(bits(2.5), 3, 2)
def test_quantize_is_the_clamped_nearest_integer(x: int, p: int, e: int) -> None:
    limit = 127 if p == 8 else 1 << (p - 1)
    if not f32.is_finite(x):
        assert quantize(x, p, e) == 0
        return
    exact = Fraction(value(x)) * Fraction(2) ** (p - 1 - e)
    assert quantize(x, p, e) == max(-limit, min(limit, round(exact)))


@given(PATTERNS, st.integers(2, 31))
def test_quantize_with_the_own_exponent_loses_less_than_one_part_in_2_to_p_minus_1(x: int, p: int) -> None:
    if not f32.is_finite(x) or x & 0x7FFFFFFF == 0 or p == 8:
        return
    back = Fraction(quantize(x, p, E(x))) * Fraction(2) ** (E(x) - p + 1)
    assert abs(back - Fraction(value(x))) <= Fraction(2) ** (E(x) - p)


@pytest.mark.parametrize("top", (-149, -127, -126, -114, -113, -98, -97, 0, 127))
@pytest.mark.parametrize("p", (8, 14, 22, 31))
def test_rows_with_tiny_or_huge_maxima_are_quantized_like_any_other(top: int, p: int) -> None:
    """Scaling in binary32 by 2^(p-1-e) overflows for e < -113 and would give zeros here."""
    x = f32.scale2(bits(1.0), top)
    assert E(x) == top + 1
    assert quantize(x, p, E(x)) == 1 << (p - 2)
    assert quantize(x ^ 1 << 31, p, E(x)) == -(1 << (p - 2))


def test_a_supplied_exponent_clamps_and_the_eight_bit_tier_stays_within_127() -> None:
    assert quantize(bits(1000.0), 14, 0) == 1 << 13
    assert quantize(bits(-1000.0), 14, 0) == -(1 << 13)
    assert quantize(bits(0.999), 8, 0) == 127
    assert quantize(bits(-1.0), 8, 0) == -127
    assert quantize(bits(0.999999), 14, 0) == 1 << 13
    assert quantize(1, 14, 10**9) == 0
    assert quantize(1, 14, -(10**9)) == 1 << 13


def test_the_exponent_of_zero_is_below_all_and_of_nan_above_all() -> None:
    assert [E(x) for x in (0, 1 << 31, 1, 2, 3, LARGEST, INF, f32.NAN)] == [-149, -149, -148, -147, -147, 128, 129, 129]
