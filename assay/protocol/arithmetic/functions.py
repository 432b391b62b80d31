"""Transcendental functions as straight lines of correctly rounded binary32 operations (ADR 2).

Every function takes a builder and an f32 value and returns the f32 value of the function, the same on every machine
because each operation is. No FMA, no table. NaN gives NaN. `tools/ulp_sweep.py` finds the largest errors, which
ADR 2 states in units of the last place of the true value (ulp).

Coefficients are our own minimax fits (`tools/fit_functions.py`), rounded one after the other with the rest refitted.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.arithmetic.scalar import Op
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.types import DType

# ln 2 in two parts: the first has 15 bits, so its product with an integer below 2^9 is exact.
_LOG2_E = 1.4426950408889634
_LN2_HIGH = 0.693145751953125
_LN2_LOW = 1.428606765330187e-06

_EXPM1 = (0.4999999701976776, 0.1666654646396637, 0.04166743904352188, 0.008366256020963192, 0.001387032330967486)
"""(e^r - 1 - r) / r^2 for |r| <= ln(2)/2."""


_LOG = (0.6666677594184875, 0.39977574348449707, 0.2987123727798462)
"""(log((1 + s) / (1 - s)) - 2 s) / s^3 over z = s^2, for |s| <= (sqrt 2 - 1) / (sqrt 2 + 1)."""

_TANH_NUMERATOR = (-0.33333319425582886, -0.0015500427689403296)
_TANH_DENOMINATOR = 0.40464189648628235
"""(tanh(x) - x) / x^3 over z = x^2, for |x| <= 9/16."""

_ERF_NEAR = (
    0.12837916612625122,
    -0.3761260211467743,
    0.11283256113529205,
    -0.026839222759008408,
    0.005160259082913399,
    -0.0007765797199681401,
    7.063506927806884e-05,
)
"""erf(x) / x - 1 over z = x^2, for |x| <= 9/8."""

_ERF_FAR = (
    1.5879015922546387,
    1.0471539497375488,
    0.6842696666717529,
    0.29424819350242615,
    0.17930780351161957,
    -0.03706705570220947,
    0.09357019513845444,
    -0.03672342002391815,
    0.0111068831756711,
)
"""erfc(1 + v)^(-1/4) for 1/8 <= v <= 2.96, in absolute terms of erfc."""

_RATIO_NUMERATOR = (0.5, 0.33004990220069885, 0.10211483389139175, 0.013123497366905212)
_RATIO_DENOMINATOR = (1.0, 1.457982063293457, 0.8675562739372253, 0.255327969789505, 0.03292076289653778)
"""P(N > t) e^(t^2 / 2) for 0 <= t <= 5.5; beyond, where the tail is under 2^-25, the error may grow."""

_PHI_0 = 0.3989422917366028
"""The normal density at 0, as binary32 has it."""

_GELU_NEAR = (
    0.3989422917366028,
    -0.06649058312177658,
    0.009974339976906776,
    -0.0011865738779306412,
    0.00010770437074825168,
)
"""(P(N < t) - 1/2) / t over z = t^2, for |t| <= 0.7."""

_GELU_FAR_NUMERATOR = (0.137364000082016, 0.04455028846859932, 0.005908518563956022)
_GELU_FAR_DENOMINATOR = (
    1.0,
    1.2285939455032349,
    0.6061305999755859,
    0.14451955258846283,
    0.014491964131593704,
    1.4912983715476003e-05,
)
"""phi(0) - t P(N > t) e^(t^2 / 2) over t - 1, for 0.7 <= t <= 5.6; beyond, the tail is under 2^-26 and the error may
grow."""

_SIN = (-0.16666650772094727, 0.008331980556249619, -0.00019495567539706826)
"""(sin r - r) / r^3 over z = r^2, for |r| <= pi/4 and a hair."""

_COS = (0.04166664555668831, -0.00138873013202101, 2.443066841806285e-05)
"""(cos r - 1 + r^2/2) / r^4 over z = r^2, likewise."""

_HALF_PI = (1.5703125, 0.00048351287841796875, 3.1391647326017846e-07)
"""pi/2 in three parts; products of the first two, of 8 and 9 bits, with integers below 2^15 are exact."""


def horner(b: ScalarBuilder, x: Reg, coefficients: Sequence[float]) -> Reg:
    """The polynomial with these coefficients, lowest first, at x."""
    result = b.f32(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        result = b.add(b.mul(result, x), b.f32(c))
    return result


def clamp(b: ScalarBuilder, x: Reg, low: float, high: float) -> Reg:
    """x limited to [low, high]; NaN stays NaN."""
    return b.minimum(b.maximum(x, b.f32(low)), b.f32(high))


def _exp_parts(b: ScalarBuilder, x: Reg, rest: Reg | None = None) -> tuple[Reg, Reg]:
    """n (i32) and p with e^(x + rest) = 2^n (1 + p), for |x| < 350 and |rest| < 2^-5; p lies in (-0.32, 0.46).

    x - n ln 2 stays in two parts until the end, so that only its square feels the rounding of their sum.
    """
    n = b.apply(Op.F32_RINT, b.mul(x, b.f32(_LOG2_E)))
    high = b.sub(x, b.mul(n, b.f32(_LN2_HIGH)))  # exact
    low = b.mul(n, b.f32(-_LN2_LOW))
    if rest is not None:
        low = b.add(low, rest)
    r = b.add(high, low)
    p = b.add(high, b.add(low, b.mul(b.mul(r, r), horner(b, r, _EXPM1))))
    return b.cast(n, DType.I32), p


def exp(b: ScalarBuilder, x: Reg) -> Reg:
    """e^x; subnormal results are rounded once."""
    # e^-104 rounds to zero and e^89 to infinity: the clamp changes no value and keeps n * ln 2 exact
    n, p = _exp_parts(b, clamp(b, x, -104.0, 89.0))
    return b.scale2(b.add(b.f32(1.0), p), n)


def log(b: ScalarBuilder, x: Reg) -> Reg:
    """The natural logarithm; of zeros it is -inf, below them NaN.

    With x = 2^k (1 + f), 1 + f in [sqrt 1/2, sqrt 2) and s = f / (2 + f): log(1 + f) = f - f^2/2 + s (f^2/2 + R(s^2)).
    """
    zero, one = b.f32(0.0), b.f32(1.0)
    e = b.apply(Op.F32_EXPONENT, x)
    m = b.scale2(x, b.sub(b.i32(0), e))  # in [1/2, 1), exact for subnormals too
    small = b.lt(m, b.f32(0.7071067811865476))
    k = b.cast(b.sub(e, b.cast(small, DType.I32)), DType.F32)
    f = b.sub(b.select(small, b.add(m, m), m), one)
    s = b.div(f, b.add(b.f32(2.0), f))
    z = b.mul(s, s)
    half = b.mul(b.f32(0.5), b.mul(f, f))
    correction = b.add(b.mul(s, b.add(half, b.mul(z, horner(b, z, _LOG)))), b.mul(k, b.f32(_LN2_LOW)))
    result = b.sub(b.mul(k, b.f32(_LN2_HIGH)), b.sub(b.sub(half, correction), f))
    # q - 1/q is finite exactly for positive finite x, and right for all others: -inf, inf or NaN
    q = b.sqrt(b.add(x, zero))
    special = b.sub(q, b.div(one, q))
    return b.select(b.eq(b.sub(special, special), zero), result, special)


def sigmoid(b: ScalarBuilder, x: Reg) -> Reg:
    """1 / (1 + e^-x), with e^-x = 2^n (1 + p) kept apart so that the denominator is rounded once."""
    n, p = _exp_parts(b, clamp(b, b.neg(x), -104.0, 104.0))
    zero, one = b.i32(0), b.f32(1.0)
    minus_n = b.sub(zero, n)
    # The denominator over 2^max(n, 0) is 1 + 2^-|n| + p 2^min(n, 0); the sum of the first two is kept in two parts.
    small = b.scale2(one, b.minimum(n, minus_n))
    head = b.add(one, small)
    tail = b.sub(small, b.sub(head, one))
    denominator = b.add(head, b.add(b.scale2(p, b.minimum(n, zero)), tail))
    return b.scale2(b.div(one, denominator), b.minimum(minus_n, zero))


def tanh(b: ScalarBuilder, x: Reg) -> Reg:
    """The hyperbolic tangent: x + x^3 R(x^2) below 9/16, 1 - 2 / (e^(2|x|) + 1) above; odd."""
    one = b.f32(1.0)
    z = b.mul(x, x)
    (p0, p1), q1 = _TANH_NUMERATOR, _TANH_DENOMINATOR
    ratio = b.div(b.add(b.mul(z, b.f32(p1)), b.f32(p0)), b.add(b.mul(z, b.f32(q1)), one))
    near = b.add(x, b.mul(b.mul(x, z), ratio))
    magnitude = b.minimum(b.abs(x), b.f32(10.0))  # tanh is 1 from 9.02 on
    n, p = _exp_parts(b, b.add(magnitude, magnitude))
    denominator = b.add(b.add(b.scale2(one, n), one), b.scale2(p, n))
    far = b.sub(one, b.div(b.f32(2.0), denominator))
    signed = b.select(b.lt(x, b.f32(0.0)), b.neg(far), far)
    return b.select(b.lt(magnitude, b.f32(0.5625)), near, signed)


def rsqrt(b: ScalarBuilder, x: Reg) -> Reg:
    """1 / sqrt(x); of +-0 it is +-inf."""
    return b.div(b.f32(1.0), b.sqrt(x))


def erf(b: ScalarBuilder, x: Reg) -> Reg:
    """The error function: x + x P(x^2) below 9/8, 1 - 1/Q(|x| - 1)^4 above; odd."""
    one = b.f32(1.0)
    near = b.add(x, b.mul(x, horner(b, b.mul(x, x), _ERF_NEAR)))
    magnitude = b.minimum(b.abs(x), b.f32(3.953125))  # erf rounds to 1 from 3.92 on
    q = horner(b, b.sub(magnitude, one), _ERF_FAR)
    q2 = b.mul(q, q)
    far = b.sub(one, b.div(one, b.mul(q2, q2)))
    signed = b.select(b.lt(x, b.f32(0.0)), b.neg(far), far)
    return b.select(b.lt(magnitude, b.f32(1.125)), near, signed)


def gauss(b: ScalarBuilder, x: Reg) -> Reg:
    """e^(-x^2 / 2), with x^2 in two parts: its rounding alone would cost 64 ulp at x = 12.

    `gelu` and `gelu_grad` take it as their second argument, so that one map serves both.
    """
    t = b.minimum(b.abs(x), b.f32(14.5))
    # adding 1.5 * 2^15 rounds t to a multiple of 2^-8; the square of that is exact
    shift = b.f32(49152.0)
    high = b.sub(b.add(t, shift), shift)
    minus_half = b.f32(-0.5)
    low = b.mul(b.mul(b.sub(t, high), b.add(t, high)), minus_half)
    n, p = _exp_parts(b, b.mul(b.mul(high, high), minus_half), low)
    return b.scale2(b.add(b.f32(1.0), p), n)


def _normal_ratio(b: ScalarBuilder, t: Reg) -> Reg:
    """P(N > t) e^(t^2 / 2) for a standard normal N and t in [0, 14.5]; all coefficients are positive."""
    return b.div(horner(b, t, _RATIO_NUMERATOR), horner(b, t, _RATIO_DENOMINATOR))


def gelu(b: ScalarBuilder, x: Reg, gauss_x: Reg | None = None) -> Reg:
    """x P(N < x): x (1/2 + x G(x^2)) below 0.7, max(x, 0) - S(|x|) e^(-x^2/2) above, S = t P(N > t) e^(t^2/2).

    gauss_x: the value of `gauss(x)`, from a map of its own; computed here when left out, which exceeds one map.
    """
    e = gauss(b, x) if gauss_x is None else gauss_x
    t = b.minimum(b.abs(x), b.f32(14.5))
    near = b.mul(x, b.add(b.f32(0.5), b.mul(x, horner(b, b.mul(x, x), _GELU_NEAR))))
    # S climbs to phi(0); what it lacks is small where the exponential asks for relative precision
    v = b.sub(t, b.f32(1.0))
    lack = b.div(horner(b, v, _GELU_FAR_NUMERATOR), horner(b, v, _GELU_FAR_DENOMINATOR))
    far = b.sub(b.maximum(x, b.f32(0.0)), b.mul(b.sub(b.f32(_PHI_0), lack), e))
    return b.select(b.lt(t, b.f32(0.7)), near, far)


def gelu_grad(b: ScalarBuilder, x: Reg, gauss_x: Reg | None = None) -> Reg:
    """The derivative of gelu, P(N < x) + x phi(x), from `gauss(x)` as in `gelu`."""
    e = gauss(b, x) if gauss_x is None else gauss_x
    t = b.minimum(b.abs(x), b.f32(14.5))
    tail = b.mul(e, b.sub(_normal_ratio(b, t), b.mul(t, b.f32(_PHI_0))))
    return b.select(b.lt(x, b.f32(0.0)), tail, b.sub(b.f32(1.0), tail))


def gelu_tanh(b: ScalarBuilder, x: Reg) -> Reg:
    """The tanh approximation of gelu, 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as x sigmoid(2 ...)."""
    inner = b.mul(x, b.add(b.f32(1.5957691216057308), b.mul(b.mul(x, x), b.f32(0.07135481627159834))))
    return b.mul(x, sigmoid(b, inner))


def _quadrant(b: ScalarBuilder, x: Reg, shift: int) -> Reg:
    """sin(x + shift pi/2). Beyond |x| = 2^15 the bits are defined and at most 1 in size, but mean nothing."""
    n = b.apply(Op.F32_RINT, b.mul(x, b.f32(0.6366197723675814)))
    r = x
    for part in _HALF_PI:
        r = b.sub(r, b.mul(n, b.f32(part)))
    r = clamp(b, r, -0.8, 0.8)
    z = b.mul(r, r)
    sine = b.add(r, b.mul(b.mul(r, z), horner(b, z, _SIN)))
    cosine = horner(b, z, (1.0, -0.5, *_COS))
    quadrant = b.add(b.cast(n, DType.I32), b.i32(shift))
    odd = b.cast(b.apply(Op.I32_AND, quadrant, b.i32(1)), DType.BOOL)
    value = b.select(odd, cosine, sine)
    flip = b.cast(b.apply(Op.I32_AND, quadrant, b.i32(2)), DType.BOOL)
    return b.select(flip, b.neg(value), value)


def sin(b: ScalarBuilder, x: Reg) -> Reg:
    """The sine, to 2^-23 absolute for |x| <= 2^15."""
    return _quadrant(b, x, 0)


def cos(b: ScalarBuilder, x: Reg) -> Reg:
    """The cosine, to 2^-23 absolute for |x| <= 2^15."""
    return _quadrant(b, x, 1)
