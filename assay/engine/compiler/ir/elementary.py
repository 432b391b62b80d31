"""Further elementary functions in the scalar machine, made of those of `protocol.arithmetic.functions`.

Each states its error against the true value; an ulp is the last place of that. Coefficients: `tools/fit_functions.py`.
"""

from __future__ import annotations

import math

from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import Op
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.types import DType

_ATAN = (-0.3333294987678528, 0.1997772753238678, -0.13877800107002258, 0.08053967356681824)
"""(atan(t) - t) / t^3 over z = t^2, for |t| <= tan(pi/8)."""

_ERFINV_NEAR = (
    1.5014094114303589,
    0.24664071202278137,
    -0.004177693743258715,
    -0.0012536939466372132,
    0.0002185966877732426,
    -4.4005169002048206e-06,
    -3.5280511383462e-06,
    3.440380567099055e-07,
    2.849615832190011e-08,
)
"""erfinv(y) / y over w - 2.5, w = -log(1 - y^2) <= 5."""

_ERFINV_FAR = (
    2.832976818084717,
    1.0016741752624512,
    0.009440680034458637,
    -0.00762198306620121,
    0.005731141194701195,
    -0.003677171189337969,
    0.0013643507845699787,
    0.00010561595263425261,
    -0.00021008129988331348,
)
"""erfinv(y) / y over sqrt(w) - 3, 5 <= w <= 15.95, the largest w of a y below 1."""

_HALF_PI = 1.5707963705062866
_HALF_PI_REST = -4.371138828673793e-08
"""pi/2 as binary32 has it, and what is left."""


def log2(b: ScalarBuilder, x: Reg) -> Reg:
    """The logarithm to base 2, to 2 ulp; exact at powers of two."""
    e = b.apply(Op.F32_EXPONENT, x)
    m = b.scale2(x, b.sub(b.i32(0), e))  # in [1/2, 1), exact for subnormals too
    small = b.lt(m, b.f32(math.sqrt(0.5)))
    k = b.cast(b.sub(e, b.cast(small, DType.I32)), DType.F32)
    rest = functions.log(b, b.select(small, b.add(m, m), m))
    return b.add(k, b.mul(rest, b.f32(1.0 / math.log(2.0))))


def exp2(b: ScalarBuilder, x: Reg) -> Reg:
    """2^x, to 1.5 ulp; exact at integers."""
    near = functions.clamp(b, x, -152.0, 130.0)
    n = b.apply(Op.F32_RINT, near)
    return b.scale2(functions.exp(b, b.mul(b.sub(near, n), b.f32(math.log(2.0)))), b.cast(n, DType.I32))


def power_of(b: ScalarBuilder, x: Reg, y: Reg, log2_x: Reg) -> Reg:
    """x^y from log2 |x|, to 2 + 2 |y log2 x| ulp; NaN for a negative x and a y that is no integer, 1 for y = 0."""
    zero = b.f32(0.0)
    size = exp2(b, b.mul(y, log2_x))
    half = b.mul(y, b.f32(0.5))
    is_even = b.eq(b.apply(Op.F32_FLOOR, half), half)
    is_whole = b.eq(b.apply(Op.F32_FLOOR, y), y)
    signed = b.select(is_even, size, b.select(is_whole, b.neg(size), b.f32(math.nan)))
    return b.select(b.eq(y, zero), b.f32(1.0), b.select(b.lt(x, zero), signed, size))


def _is_below_zero(b: ScalarBuilder, x: Reg) -> Reg:
    """Whether the sign bit is set, of -0 too."""
    return b.lt(b.apply(Op.F32_BITS, x), b.i32(0))


def copysign(b: ScalarBuilder, x: Reg, sign: Reg) -> Reg:
    """|x| with the sign bit of another number."""
    size = b.abs(x)
    return b.select(_is_below_zero(b, sign), b.neg(size), size)


def atan2(b: ScalarBuilder, y: Reg, x: Reg) -> Reg:
    """The angle of the point (x, y) in [-pi, pi], to 3 ulp; zeros and infinities as IEEE 754 has them."""
    zero, one = b.f32(0.0), b.f32(1.0)
    wide, high = b.abs(x), b.abs(y)
    large, small = b.maximum(wide, high), b.minimum(wide, high)
    ratio = b.select(b.eq(large, zero), zero, b.div(small, large))
    t = b.select(b.eq(small, b.f32(math.inf)), one, ratio)
    is_steep = b.lt(b.f32(math.sqrt(2.0) - 1.0), t)
    u = b.select(is_steep, b.div(b.sub(t, one), b.add(t, one)), t)
    z = b.mul(u, u)
    angle = b.add(u, b.mul(b.mul(u, z), functions.horner(b, z, _ATAN)))
    angle = b.select(is_steep, b.add(b.f32(math.pi / 4), angle), angle)
    turned = b.add(b.sub(b.f32(_HALF_PI), angle), b.f32(_HALF_PI_REST))
    angle = b.select(b.lt(wide, high), turned, angle)
    behind = b.add(b.sub(b.f32(2 * _HALF_PI), angle), b.f32(2 * _HALF_PI_REST))
    angle = b.select(_is_below_zero(b, x), behind, angle)
    return b.select(_is_below_zero(b, y), b.neg(angle), angle)


def erfinv_near(b: ScalarBuilder, w: Reg) -> Reg:
    """erfinv(y) / y from w = -log(1 - y^2) below 5."""
    return functions.horner(b, b.sub(w, b.f32(2.5)), _ERFINV_NEAR)


def erfinv_far(b: ScalarBuilder, w: Reg) -> Reg:
    """erfinv(y) / y from w = -log(1 - y^2) in 5..15.95; infinite for an infinite w."""
    root = b.sqrt(w)
    within = b.minimum(root, b.f32(4.0625))
    value = functions.horner(b, b.sub(within, b.f32(3.0)), _ERFINV_FAR)
    return b.select(b.eq(root, b.f32(math.inf)), root, value)


def fmod(b: ScalarBuilder, x: Reg, y: Reg) -> Reg:
    """x - y trunc(x / y), exact for |x / y| < 2^10; the quotient's product is subtracted in two exact parts."""
    zero = b.f32(0.0)
    quotient = b.div(x, y)
    down = b.apply(Op.F32_FLOOR, b.abs(quotient))
    q = b.select(b.lt(quotient, zero), b.neg(down), down)
    high = b.apply(Op.BITS_F32, b.apply(Op.I32_AND, b.apply(Op.F32_BITS, y), b.i32(-(1 << 12))))
    rest = b.sub(b.sub(x, b.mul(q, high)), b.mul(q, b.sub(y, high)))
    # A quotient just below an integer is rounded up to it: then the rest has the other sign.
    size = b.abs(y)
    up = b.select(b.lt(x, zero), b.neg(size), size)
    is_over = b.select(b.lt(x, zero), b.lt(zero, rest), b.lt(rest, zero))
    rest = b.select(is_over, b.add(rest, up), rest)
    is_within = b.lt(b.abs(x), size)
    return b.select(is_within, x, rest)


def remainder_of(b: ScalarBuilder, rest: Reg, y: Reg) -> Reg:
    """Python's remainder from that of `fmod` (or of integers): it has the sign of y."""
    zero = b.f32(0.0) if rest.dtype is DType.F32 else b.i32(0)
    left, right = (b.cast(b.lt(v, zero), DType.I32) for v in (rest, y))
    moved = b.select(b.eq(left, right), rest, b.add(rest, y))
    return b.select(b.eq(rest, zero), rest, moved)


def integer_floor_divide(b: ScalarBuilder, n: Reg, d: Reg) -> Reg:
    """floor(n / d) of i32; n = -2^31 over d = -1 and divisors of 0 have no quotient, and some bits."""
    q, rest = b.i32(0), n
    for _ in range(2):
        # The first quotient is wrong by 2^9 at most, the second by 1, where it was rounded up to an integer.
        part = b.apply(Op.F32_TO_I32, b.div(b.cast(rest, DType.F32), b.cast(d, DType.F32)))
        q, rest = b.add(q, part), b.sub(rest, b.mul(part, d))
    zero = b.i32(0)
    is_part = b.apply(Op.BOOL_AND, b.logical_not(b.eq(rest, zero)), b.lt(b.apply(Op.I32_XOR, rest, d), zero))
    return b.sub(q, b.cast(is_part, DType.I32))


def integer_truncated_divide(b: ScalarBuilder, n: Reg, d: Reg) -> Reg:
    """n / d of i32 without its fraction: one above the floor where that is negative and something is left."""
    q = integer_floor_divide(b, n, d)
    is_below = b.lt(b.apply(Op.I32_XOR, n, d), b.i32(0))
    is_part = b.logical_not(b.eq(n, b.mul(q, d)))
    return b.add(q, b.cast(b.apply(Op.BOOL_AND, is_below, is_part), DType.I32))
