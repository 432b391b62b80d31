"""Operations of the scalar machine that take several of Triton's (rules AR-1 to AR-7)."""

import triton
import triton.language as tl

from assay.engine.runtime.triton.kernels.arith import bits_of, from_bits, power


@triton.jit
def smaller(a, b):
    """The smaller f32: NaN if any is, a zero is +0."""
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL) + 0.0


@triton.jit
def larger(a, b):
    """The larger f32: NaN if any is, a zero is +0."""
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL) + 0.0


@triton.jit
def nearest(x):
    """rint of an f32, ties to even; a zero keeps the sign of x."""
    shift = from_bits((bits_of(x) & -0x80000000) | 0x4B000000)
    whole = from_bits((bits_of((x + shift) - shift) & 0x7FFFFFFF) | (bits_of(x) & -0x80000000))
    return tl.where(tl.abs(x) < 8388608.0, whole, x)


@triton.jit
def below(x):
    """floor of an f32; a compiler's own flushes subnormal numbers, and that of a negative one is -1."""
    whole = nearest(x)
    return tl.where(whole > x, whole - 1.0, whole)


@triton.jit
def nearest_small(x):
    """`nearest` of what is below 2^22 in magnitude, or NaN."""
    shift = from_bits((bits_of(x) & -0x80000000) | 0x4B000000)
    return from_bits((bits_of((x + shift) - shift) & 0x7FFFFFFF) | (bits_of(x) & -0x80000000))


@triton.jit
def scale2(x, n):
    """x 2^n in one rounding, for any i32 n.

    The power nearest to 1 comes last, and it alone rounds. Those before it are other than 1 only where it is 2^-126 or
    2^127, and of one sign with it: where a product with them is inexact, it is below 2^-126, and x 2^n is a zero.
    """
    bounded = tl.minimum(tl.maximum(n, -378), 381)
    last = tl.minimum(tl.maximum(bounded, -126), 127)
    middle = tl.minimum(tl.maximum(bounded - last, -126), 127)
    return x * power(bounded - last - middle) * power(middle) * power(last)


@triton.jit
def scale2_near(x, n):
    """`scale2` for -252 <= n <= 254, which two powers reach."""
    last = tl.minimum(tl.maximum(n, -126), 127)
    return x * power(n - last) * power(last)


@triton.jit
def to_i32_whole(x):
    """`to_i32` of a whole number of at most 2^21 in magnitude, or NaN."""
    return tl.where(x == x, bits_of(x + 12582912.0) - 0x4B400000, 0)


@triton.jit
def to_i32(x):
    """Toward zero, saturating; NaN gives 0."""
    inside = tl.where((x > -2147483648.0) & (x < 2147483648.0), x, 0.0).to(tl.int32)
    return tl.where(x >= 2147483648.0, 2147483647, tl.where(x <= -2147483648.0, -2147483648, inside))


@triton.jit
def to_i32_small(x):
    """`to_i32` of what is below 2^31 in magnitude, or NaN."""
    return tl.where(x == x, x, 0.0).to(tl.int32)


@triton.jit
def to_i64(x):
    """Toward zero, saturating; NaN gives 0."""
    inside = tl.where((x > -9223372036854775808.0) & (x < 9223372036854775808.0), x, 0.0).to(tl.int64)
    most = tl.full([1], 0x7FFFFFFFFFFFFFFF, tl.int64)
    return tl.where(x >= 9223372036854775808.0, most, tl.where(x <= -9223372036854775808.0, -most - 1, inside))


@triton.jit
def order_of(x):
    """An i32 that orders f32 values: -inf .. -0 = +0 .. +inf < NaN."""
    b = bits_of(tl.where(x != x, from_bits(tl.full([1], 0x7FC00000, tl.int32)), x + 0.0))
    return b ^ ((b >> 31) & 0x7FFFFFFF)


@triton.jit
def philox_word(i, stream, low, high, k0, k1):
    """Word i mod 4 of Philox4x32-10 at counter (i div 4, stream, low, high) under (k0, k1); all u32, i i64."""
    c0 = (i // 4).to(tl.uint32)
    c1 = tl.zeros_like(c0) + stream
    c2 = tl.zeros_like(c0) + low
    c3 = tl.zeros_like(c0) + high
    for _ in tl.static_range(10):
        p0 = c0.to(tl.uint64) * 0xD2511F53
        p1 = c2.to(tl.uint64) * 0xCD9E8D57
        c0 = (p1 >> 32).to(tl.uint32) ^ c1 ^ k0
        c1 = p1.to(tl.uint32)
        c2 = (p0 >> 32).to(tl.uint32) ^ c3 ^ k1
        c3 = p0.to(tl.uint32)
        k0 = k0 + 0x9E3779B9
        k1 = k1 + 0xBB67AE85
    word = i % 4
    return tl.where(word == 0, c0, tl.where(word == 1, c1, tl.where(word == 2, c2, c3))).to(tl.int32, bitcast=True)
