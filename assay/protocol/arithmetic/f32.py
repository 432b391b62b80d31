"""IEEE 754 binary32 on raw bit patterns, by Python integers (rules AR-7 and AR-8).

Every function takes and returns a `Bits`: an int in [0, 2^32). Results are rounded once, ties to even, subnormals kept.
There is one NaN, 0x7fc00000: any NaN pattern may come in, only that one goes out. No function raises.
This module is the definition; the torch executor and `contracts/libraries/Float32.sol` must agree with it on every bit.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

Bits = int

NAN: Bits = 0x7FC00000
INF: Bits = 0x7F800000
ONE: Bits = 0x3F800000
SIGN: Bits = 0x80000000

_MANTISSA = 0x007FFFFF
_HIDDEN = 0x00800000
_LOWEST = -149  # exponent of the smallest subnormal: every finite value is an integer multiple of 2^-149

E_ZERO = -149
"""E of a zero: no element of the row needs a larger exponent."""

E_NONFINITE = 129
"""E of a NaN or an infinity: the sentinel that turns a reduction into NaN."""


def is_nan(x: Bits) -> bool:
    """Whether the pattern is any NaN."""
    return (x & ~SIGN & 0xFFFFFFFF) > INF


def is_finite(x: Bits) -> bool:
    """Whether the pattern is neither NaN nor infinite."""
    return (x & INF) != INF


def canonical(x: Bits) -> Bits:
    """The pattern with every NaN replaced by the one NaN."""
    return NAN if is_nan(x) else x


def unpack(x: Bits) -> tuple[int, int, int]:
    """Sign bit, magnitude m and exponent e of a finite pattern, value (-1)^sign * m * 2^e."""
    exponent = (x >> 23) & 0xFF
    if exponent == 0:
        return x >> 31, x & _MANTISSA, _LOWEST
    return x >> 31, (x & _MANTISSA) | _HIDDEN, exponent - 150


def round_pack(sign: int, magnitude: int, exponent: int) -> Bits:
    """The binary32 nearest to (-1)^sign * magnitude * 2^exponent, ties to even, in one rounding."""
    signbit = sign << 31
    if magnitude == 0:
        return signbit
    top = magnitude.bit_length() + exponent  # the value lies in [2^(top-1), 2^top)
    if top > 128:
        return signbit | INF
    if top < _LOWEST:  # below half of the smallest subnormal; top == -149 can still be a tie or round up
        return signbit
    lsb = max(top - 24, _LOWEST)  # exponent of the last bit that the result keeps
    shift = lsb - exponent
    if shift <= 0:
        kept = magnitude << -shift
    else:
        kept = magnitude >> shift
        rest = magnitude & ((1 << shift) - 1)
        half = 1 << (shift - 1)
        if rest > half or (rest == half and kept & 1):
            kept += 1
    # A subnormal has lsb = -149 and no hidden bit; adding the fields lets a carry walk into the exponent by itself.
    field = lsb - _LOWEST
    bits = (field << 23) + kept
    return signbit | min(bits, INF)


def add(x: Bits, y: Bits) -> Bits:
    """x + y; a sum of zeros is -0 only if both are -0."""
    if is_nan(x) or is_nan(y):
        return NAN
    if not is_finite(x):
        return NAN if not is_finite(y) and x != y else x
    if not is_finite(y):
        return y
    sx, mx, ex = unpack(x)
    sy, my, ey = unpack(y)
    low = min(ex, ey)
    total = ((-mx if sx else mx) << (ex - low)) + ((-my if sy else my) << (ey - low))
    if total == 0:
        return SIGN if sx and sy and mx == 0 and my == 0 else 0
    return round_pack(int(total < 0), abs(total), low)


def sub(x: Bits, y: Bits) -> Bits:
    """x - y."""
    return add(x, y ^ SIGN)


def mul(x: Bits, y: Bits) -> Bits:
    """x * y; zero times infinity is NaN."""
    if is_nan(x) or is_nan(y):
        return NAN
    sign = (x ^ y) >> 31
    zero = (x & ~SIGN) == 0 or (y & ~SIGN) == 0
    if not (is_finite(x) and is_finite(y)):
        return NAN if zero else sign << 31 | INF
    _, mx, ex = unpack(x)
    _, my, ey = unpack(y)
    return round_pack(sign, mx * my, ex + ey)


def div(x: Bits, y: Bits) -> Bits:
    """x / y; 0/0 and inf/inf are NaN, a finite non-zero over zero is infinite."""
    if is_nan(x) or is_nan(y):
        return NAN
    sign = (x ^ y) >> 31
    if not is_finite(x):
        return NAN if not is_finite(y) else sign << 31 | INF
    if not is_finite(y):
        return sign << 31
    _, mx, ex = unpack(x)
    _, my, ey = unpack(y)
    if my == 0:
        return NAN if mx == 0 else sign << 31 | INF
    # 50 extra bits leave at least 26 in the quotient even for the smallest subnormal; the remainder is sticky.
    quotient, remainder = divmod(mx << 50, my)
    return round_pack(sign, quotient << 1 | int(remainder != 0), ex - ey - 51)


def sqrt(x: Bits) -> Bits:
    """The square root; of -0 it is -0, of anything below it is NaN."""
    if is_nan(x):
        return NAN
    if (x & ~SIGN) == 0 or x == INF:
        return x
    if x >> 31:
        return NAN
    _, m, e = unpack(x)
    if e & 1:
        m, e = m << 1, e - 1
    m <<= 52
    root = isqrt(m)
    return round_pack(0, root << 1 | int(root * root != m), e // 2 - 27)


def neg(x: Bits) -> Bits:
    """-x; NaN stays the one NaN."""
    return NAN if is_nan(x) else x ^ SIGN


def absolute(x: Bits) -> Bits:
    """|x|; NaN stays the one NaN."""
    return NAN if is_nan(x) else x & ~SIGN


def _key(x: Bits) -> int:
    """An integer that orders non-NaN patterns by value, both zeros as 0."""
    return -(x & ~SIGN) if x >> 31 else x


def minimum(x: Bits, y: Bits) -> Bits:
    """The smaller; NaN if any is NaN, a zero result is +0."""
    if is_nan(x) or is_nan(y):
        return NAN
    result = x if _key(x) < _key(y) else y
    return 0 if result == SIGN else result


def maximum(x: Bits, y: Bits) -> Bits:
    """The larger; NaN if any is NaN, a zero result is +0."""
    if is_nan(x) or is_nan(y):
        return NAN
    result = y if _key(x) < _key(y) else x
    return 0 if result == SIGN else result


def eq(x: Bits, y: Bits) -> bool:
    """x == y; false with a NaN, true for the two zeros."""
    return not is_nan(x) and not is_nan(y) and _key(x) == _key(y)


def lt(x: Bits, y: Bits) -> bool:
    """x < y; false with a NaN."""
    return not is_nan(x) and not is_nan(y) and _key(x) < _key(y)


def le(x: Bits, y: Bits) -> bool:
    """x <= y; false with a NaN."""
    return not is_nan(x) and not is_nan(y) and _key(x) <= _key(y)


def rint(x: Bits) -> Bits:
    """The nearest integral value, ties to even, the sign of zero kept."""
    return _integral(x, lambda _, m, shift: shift_round_even(m, shift))


def floor(x: Bits) -> Bits:
    """The largest integral value not above x, the sign of zero kept."""
    return _integral(x, lambda sign, m, shift: -(-m >> shift) if sign else m >> shift)


def _integral(x: Bits, shifted: Callable[[int, int, int], int]) -> Bits:
    """x where it is integral or not finite; else of magnitude `shifted(sign, m, shift)` for its own, m 2^-shift."""
    if is_nan(x):
        return NAN
    if not is_finite(x):
        return x
    sign, m, e = unpack(x)
    return x if e >= 0 else round_pack(sign, shifted(sign, m, -e), 0)


def scale2(x: Bits, n: int) -> Bits:
    """x * 2^n for any integer n, rounded once."""
    if is_nan(x):
        return NAN
    if not is_finite(x):
        return x
    sign, m, e = unpack(x)
    return round_pack(sign, m, e + n)


def exponent(x: Bits) -> int:
    """E(x): the e with |x| in [2^(e-1), 2^e); -149 for zero, 129 for NaN and infinity."""
    if not is_finite(x):
        return E_NONFINITE
    _, m, e = unpack(x)
    return m.bit_length() + e if m else E_ZERO


def from_int(value: int) -> Bits:
    """The binary32 nearest to an integer, in one rounding; 0 gives +0."""
    return round_pack(int(value < 0), abs(value), 0)


def to_int(x: Bits, bits: int) -> int:
    """x truncated toward zero to a signed integer of `bits` bits; NaN gives 0, out of range saturates."""
    if is_nan(x):
        return 0
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if not is_finite(x):
        return low if x >> 31 else high
    sign, m, e = unpack(x)
    whole = m << e if e >= 0 else m >> -e
    return max(low, min(high, -whole if sign else whole))


def shift_round_even(m: int, shift: int) -> int:
    """The integer nearest to m / 2^shift, ties to even, for m >= 0 and shift >= 1."""
    kept = m >> shift
    rest = m & ((1 << shift) - 1)
    half = 1 << (shift - 1)
    return kept + int(rest > half or (rest == half and kept & 1 == 1))
