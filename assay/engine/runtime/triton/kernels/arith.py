"""The exact arithmetic of reductions for kernels: exponents, quantization and the one rounding (rules AR-8 to AR-10).

Binary32 and integers alone: GPUs of many kinds multiply binary64 at a sixty-fourth of the speed. Nothing here is fused,
so it needs `enable_fp_fusion=False`, and no number is flushed.
"""

import triton
import triton.language as tl


@triton.jit
def bits_of(x):
    """The pattern i32 of an f32."""
    return x.to(tl.int32, bitcast=True)


@triton.jit
def from_bits(b):
    """The f32 of a pattern i32."""
    return b.to(tl.float32, bitcast=True)


@triton.jit
def canonical(x):
    """The f32 with the one NaN."""
    return from_bits(tl.where(x != x, 0x7FC00000, bits_of(x)))


@triton.jit
def exponent_of_bits(b):
    """E of the f32 with these bits i32, sign apart: -149 for zero, 129 for NaN and infinity."""
    field = b >> 23
    # A subnormal number is its pattern times 2^-149, and an integer below 2^23 is exact in binary32.
    low = tl.where(b == 0, -149, (bits_of(b.to(tl.float32)) >> 23) - 126 - 149)
    return tl.where(field == 255, 129, tl.where(field == 0, low, field - 126))


@triton.jit
def power(n):
    """2^n in f32 for -126 <= n <= 127."""
    return from_bits((n + 127) << 23)


@triton.jit
def scaled(x, n):
    """x 2^n in f32 by two exact factors; one rounding at most wherever |n| <= 252 and only the last product is inexact.

    An f32 times 2^-126 may be inexact only below 2^-126: then the caller has no use for its last bits.
    """
    first = tl.minimum(tl.maximum(n, -126), 127)
    second = tl.minimum(tl.maximum(n - first, -126), 127)
    return x * power(first) * power(second)


@triton.jit
def rounded(t):
    """rint of f32 values of magnitude at most 2^30 as i32, ties to even: 2^23 and more of its own sign has no bits left
    below one.
    """
    shift = from_bits((bits_of(t) & -0x80000000) | 0x4B000000)
    whole = tl.where(tl.abs(t) < 8388608.0, (t + shift) - shift, t)
    return whole.to(tl.int32)


@triton.jit
def quantized(x, e, P: tl.constexpr):
    """q_P(x, e) as i32 for any exponent: 0 for a non-finite x, at most 2^(P-1) in magnitude (127 for P = 8)."""
    LIMIT: tl.constexpr = 127.0 if P == 8 else 2.0 ** (P - 1)
    # Beyond 250 every finite number is zero or at the limit alike; e is clamped first, so that n cannot wrap.
    n = (P - 1) - tl.minimum(tl.maximum(e, -400), 400)
    t = scaled(x, tl.minimum(tl.maximum(n, -250), 250))
    t = tl.where(tl.abs(x) < float("inf"), tl.minimum(tl.maximum(t, -LIMIT), LIMIT), 0.0)
    if P <= 23:
        # 1.5 * 2^23 leaves no bits below one, and what is below it in the sum's pattern is the number.
        return bits_of(t + 12582912.0) - 0x4B400000
    return rounded(t)


@triton.jit
def finished(total, n):
    """The f32 nearest to total 2^n, ties to even, in one rounding. total: i32 or i64 up to 2^62; n: i32 above -10,000.

    A conversion rounds once. Scaling by powers of two rounds again only where the result is subnormal and n is below
    -149, so that bits are lost: there the integer is shifted and rounded, and the result's pattern is that integer.
    Whole blocks seldom need it.
    """
    result = scaled(total.to(tl.float32), tl.minimum(tl.maximum(n, -250), 250))
    lost = (n < -149) & (total != 0)
    if tl.max(lost.to(tl.int32)) > 0:
        magnitude = tl.abs(total.to(tl.int64))
        shift = tl.minimum(tl.maximum(-149 - n, 1), 63).to(tl.int64)
        kept = magnitude >> shift
        half = tl.full(shift.shape, 1, tl.int64) << (shift - 1)
        pattern = ((magnitude + (half - 1) + (kept & 1)) >> shift).to(tl.int32)
        pattern = tl.where(total < 0, pattern | -0x80000000, pattern)
        result = tl.where(lost & (kept < 8388608), from_bits(pattern), result)
    return result


@triton.jit
def finished_or_nan(total, e, OFFSET: tl.constexpr):
    """`finished` of total 2^(e - OFFSET) for any i32 exponent; NaN where it is 129 or more."""
    result = finished(total, tl.maximum(e, -1000) - OFFSET)
    return tl.where(e >= 129, float("nan"), result)
