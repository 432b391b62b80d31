"""The exact-integer reduction's two roundings: quantization q_p and the final rounding (rules AR-9 and AR-10).

Patterns are binary32 bits as in `f32`; exponents and quantized values are Python integers.
"""

from __future__ import annotations

from assay.protocol.arithmetic import f32

E = f32.exponent
"""E(x) of a binary32 pattern: -149 for zero, 129 for NaN and infinity."""

E_MIN = f32.E_ZERO
E_NAN = f32.E_NONFINITE


def quantize(x: int, p: int, e: int) -> int:
    """q_p(x, e): rint(x * 2^(p-1-e)), ties to even, clamped to +-2^(p-1) (p = 8: +-127); 0 for a non-finite x.

    x: binary32 pattern. p: precision in bits. e: the row's exponent, any integer.
    """
    if not f32.is_finite(x):
        return 0
    sign, magnitude, exponent = f32.unpack(x)
    limit = 127 if p == 8 else 1 << (p - 1)
    shift = exponent + p - 1 - e
    if magnitude == 0 or magnitude.bit_length() + shift < 0:  # zero or below one half
        return 0
    if magnitude.bit_length() + shift > p:  # at least 2^p: the clamp decides, whatever e was supplied
        q = limit
    elif shift >= 0:
        q = min(magnitude << shift, limit)
    else:
        q = min(f32.shift_round_even(magnitude, -shift), limit)
    return -q if sign else q


def finish(total: int, n: int) -> int:
    """The binary32 pattern nearest to total * 2^n, ties to even, in one rounding; total = 0 gives +0."""
    return f32.round_pack(int(total < 0), abs(total), n)
