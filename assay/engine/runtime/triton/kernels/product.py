"""Exact products on tensor cores: operands as planes of digits, multiplied and added exactly, joined, and rounded once.

A digit travels as i8 with i32 accumulators (CARRIER 0), or as f16 or bf16 with f32 accumulators (1 and 2), which hold
integers up to 2^24. Digits are multiplied pair by pair, or, two by two, by Karatsuba: then the planes of an operand are
its low digits, the sums of both, its high ones, and only like planes are multiplied. `pack` writes planes once per
operand; `product` reads them, or splits f32 operands itself. Shapes: M rows of A, N rows of B, K terms; a batch of two
dims. `limits` says how many terms every accumulator holds (CHUNK); more are added in i64.
"""

import triton
import triton.language as tl

from assay.engine.runtime.triton.kernels.arith import finished, quantized


@triton.jit
def digit(q, WHICH: tl.constexpr, COUNT: tl.constexpr, BITS: tl.constexpr, CARRIER: tl.constexpr):
    """Digit WHICH of COUNT of an i32, base 2^BITS: all but the highest in [-2^(BITS-1), 2^(BITS-1))."""
    HALF: tl.constexpr = 1 << (BITS - 1)
    rest = q
    for _ in tl.static_range(WHICH):
        rest = (rest + HALF) >> BITS
    if WHICH + 1 < COUNT:
        rest = ((rest + HALF) & (2 * HALF - 1)) - HALF
    if CARRIER == 0:
        found = rest.to(tl.int8)
    elif CARRIER == 1:
        found = rest.to(tl.float16)
    else:
        found = rest.to(tl.float32).to(tl.bfloat16)
    return found


@triton.jit
def plane(
    q, WHICH: tl.constexpr, COUNT: tl.constexpr, KARATSUBA: tl.constexpr, BITS: tl.constexpr, CARRIER: tl.constexpr
):  # fmt: skip
    """Plane WHICH of an i32 of COUNT digits; the first one where there is no such plane."""
    if KARATSUBA:
        low = digit(q, 0, 2, BITS, CARRIER)
        high = digit(q, 1, 2, BITS, CARRIER)
        found = low if WHICH == 0 else (low + high if WHICH == 1 else high)
    else:
        found = digit(q, WHICH if WHICH < COUNT else 0, COUNT, BITS, CARRIER)
    return found


@triton.jit
def nothing(BM: tl.constexpr, BN: tl.constexpr, CARRIER: tl.constexpr):
    """An accumulator of zeros."""
    if CARRIER == 0:
        found = tl.zeros((BM, BN), tl.int32)
    else:
        found = tl.zeros((BM, BN), tl.float32)
    return found


@triton.jit
def times(a, b, total, CARRIER: tl.constexpr):
    """total + a b, exact while the accumulator holds it."""
    if CARRIER == 0:
        found = tl.dot(a, b, total, out_dtype=tl.int32)
    else:
        found = tl.dot(a, b, total, out_dtype=tl.float32)
    return found


@triton.jit
def added(
    s0, s1, s2, s3, s4, a0, a1, a2, b0, b1, b2,
    NA: tl.constexpr, NB: tl.constexpr, KARATSUBA: tl.constexpr, CARRIER: tl.constexpr,
):  # fmt: skip
    """The accumulators of every place with the products of these planes added."""
    s0 = times(a0, b0, s0, CARRIER)
    if KARATSUBA:
        s1 = times(a1, b1, s1, CARRIER)
        s2 = times(a2, b2, s2, CARRIER)
    else:
        if NA > 1:
            s1 = times(a1, b0, s1, CARRIER)
        if NB > 1:
            s1 = times(a0, b1, s1, CARRIER)
        if NA > 1 and NB > 1:
            s2 = times(a1, b1, s2, CARRIER)
        if NA > 2:
            s2 = times(a2, b0, s2, CARRIER)
        if NB > 2:
            s2 = times(a0, b2, s2, CARRIER)
        if NA > 2 and NB > 1:
            s3 = times(a2, b1, s3, CARRIER)
        if NB > 2 and NA > 1:
            s3 = times(a1, b2, s3, CARRIER)
        if NA > 2 and NB > 2:
            s4 = times(a2, b2, s4, CARRIER)
    return s0, s1, s2, s3, s4


@triton.jit
def joined(
    s0, s1, s2, s3, s4, NA: tl.constexpr, NB: tl.constexpr, KARATSUBA: tl.constexpr, BITS: tl.constexpr
):  # fmt: skip
    """The integers i64 whose places are these."""
    middle = s1.to(tl.int32)
    if KARATSUBA:
        middle -= s0.to(tl.int32) + s2.to(tl.int32)
    total = s0.to(tl.int64)
    if NA + NB > 2:
        total += middle.to(tl.int64) << BITS
    if NA + NB > 3:
        total += s2.to(tl.int64) << (2 * BITS)
    if NA + NB > 4:
        total += s3.to(tl.int64) << (3 * BITS)
    if NA + NB > 5:
        total += s4.to(tl.int64) << (4 * BITS)
    return total


@triton.jit
def sums(
    a, b, ea_M, eb_N, in_M, in_N, sak, sbk, next_a, next_b, start, end,
    PA: tl.constexpr, PB: tl.constexpr, NA: tl.constexpr, NB: tl.constexpr, KARATSUBA: tl.constexpr,
    BITS: tl.constexpr, CARRIER: tl.constexpr, PACKED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The exact sums i64 [BM, BN] of q_PA(a) q_PB(b) over terms start to end, which accumulators must hold.

    a: pointers [BM, 1] to the first terms of A's rows, b: [1, BN] to those of B's. PACKED: they are rows of planes,
    next_a and next_b elements apart, with zeros up to a multiple of BK.
    """
    LAST_A: tl.constexpr = 3 if KARATSUBA else NA
    LAST_B: tl.constexpr = 3 if KARATSUBA else NB
    s0 = nothing(BM, BN, CARRIER)
    s1 = nothing(BM, BN, CARRIER)
    s2 = nothing(BM, BN, CARRIER)
    s3 = nothing(BM, BN, CARRIER)
    s4 = nothing(BM, BN, CARRIER)
    for first in range(start, end, BK):
        k = first + tl.arange(0, BK)
        if PACKED:
            of_a = a + k[None, :]
            of_b = b + k[:, None]
            a0 = tl.load(of_a)
            b0 = tl.load(of_b)
            a1 = tl.load(of_a + next_a) if LAST_A > 1 else a0
            b1 = tl.load(of_b + next_b) if LAST_B > 1 else b0
            a2 = tl.load(of_a + 2 * next_a) if LAST_A > 2 else a0
            b2 = tl.load(of_b + 2 * next_b) if LAST_B > 2 else b0
        else:
            at = k.to(tl.int64)
            x = tl.load(a + at[None, :] * sak, mask=in_M[:, None] & (k < end)[None, :], other=0.0)
            y = tl.load(b + at[:, None] * sbk, mask=in_N[None, :] & (k < end)[:, None], other=0.0)
            qa = quantized(x, ea_M[:, None], PA)
            qb = quantized(y, eb_N[None, :], PB)
            a0 = plane(qa, 0, NA, KARATSUBA, BITS, CARRIER)
            b0 = plane(qb, 0, NB, KARATSUBA, BITS, CARRIER)
            a1 = plane(qa, 1, NA, KARATSUBA, BITS, CARRIER)
            b1 = plane(qb, 1, NB, KARATSUBA, BITS, CARRIER)
            a2 = plane(qa, 2, NA, KARATSUBA, BITS, CARRIER)
            b2 = plane(qb, 2, NB, KARATSUBA, BITS, CARRIER)
        s0, s1, s2, s3, s4 = added(s0, s1, s2, s3, s4, a0, a1, a2, b0, b1, b2, NA, NB, KARATSUBA, CARRIER)
    return joined(s0, s1, s2, s3, s4, NA, NB, KARATSUBA, BITS)


@triton.jit
def pack(
    x, e, out, BATCH, ROWS, K, WIDTH, sx0, sx1, sxr, sxk, se0, se1, ser,
    P: tl.constexpr, COUNT: tl.constexpr, KARATSUBA: tl.constexpr, BITS: tl.constexpr, CARRIER: tl.constexpr,
    BR: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The planes of q_P(x, e): [planes, batch, ROWS, WIDTH], terms innermost, zeros from K to WIDTH.

    x: f32, e: i32; strides in elements, the batch's element z at (z div BATCH, z mod BATCH). Grid: blocks of rows,
    blocks of terms, batch.
    """
    row = tl.program_id(0) * BR + tl.arange(0, BR)
    k = tl.program_id(1) * BK + tl.arange(0, BK)
    z = tl.program_id(2).to(tl.int64)
    rows = row.to(tl.int64)
    terms = k.to(tl.int64)
    of_x = x + (z // BATCH) * sx0 + (z % BATCH) * sx1 + (rows * sxr)[:, None] + (terms * sxk)[None, :]
    of_e = e + (z // BATCH) * se0 + (z % BATCH) * se1 + rows * ser
    there = (row < ROWS)[:, None]
    exponent = tl.load(of_e, mask=row < ROWS, other=0)
    q = quantized(tl.load(of_x, mask=there & (k < K)[None, :], other=0.0), exponent[:, None], P)
    to = out + (z * ROWS + rows)[:, None] * WIDTH + terms[None, :]
    following = tl.num_programs(2).to(tl.int64) * ROWS * WIDTH
    for i in tl.static_range(3 if KARATSUBA else COUNT):
        tl.store(to + i * following, plane(q, i, COUNT, KARATSUBA, BITS, CARRIER), mask=there & (k < WIDTH)[None, :])


@triton.jit
def rounded_product(total, ea_M, eb_N, PA: tl.constexpr, PB: tl.constexpr):
    """finish of the sums i64 [M, N] under the exponents of their rows and columns; NaN where one is 129 or more."""
    # Exponents far below every finite result are clamped, so that their sum cannot wrap.
    low_a = tl.maximum(ea_M, -1000)[:, None]
    low_b = tl.maximum(eb_N, -1000)[None, :]
    is_nan = (ea_M >= 129)[:, None] | (eb_N >= 129)[None, :]
    shift = tl.minimum(low_a, 129) + tl.minimum(low_b, 129) - (PA + PB - 2)
    return tl.where(is_nan, float("nan"), finished(total, shift))


@triton.jit(do_not_specialize=["node"])
def product(
    a, b, ea, eb, out, due, weights, left, node, BATCH, M, N, K, next_a, next_b,
    sa0, sa1, sam, sak, sb0, sb1, sbn, sbk, sea0, sea1, seam, seb0, seb1, sebn,
    PA: tl.constexpr, PB: tl.constexpr, NA: tl.constexpr, NB: tl.constexpr, KARATSUBA: tl.constexpr,
    BITS: tl.constexpr, CARRIER: tl.constexpr, PACKED: tl.constexpr, CHUNK: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """out[z, m, n] = finish(sum over k of q_PA(a, ea) q_PB(b, eb), ea + eb - (PA - 1) - (PB - 1)).

    a, b: f32, or with PACKED their planes, next_a and next_b elements apart; out: f32, contiguous; ea, eb: i32.
    Strides in elements, the batch's element z at (z div BATCH, z mod BATCH). CHUNK: terms that the accumulators hold,
    a multiple of BK; 0 where they hold all K. Grid: blocks of M, blocks of N, batch.

    left: i64 [batch, M], or None: where due holds `node`, the integers of each row weighed by weights i64 [N] are added
    to it, modulo 2^64 (Freivalds' check).
    """
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    z = tl.program_id(2).to(tl.int64)
    z0 = z // BATCH
    z1 = z % BATCH
    in_M = m < M
    in_N = n < N
    rows = m.to(tl.int64)
    columns = n.to(tl.int64)
    ea_M = tl.load(ea + z0 * sea0 + z1 * sea1 + rows * seam, mask=in_M, other=0)
    eb_N = tl.load(eb + z0 * seb0 + z1 * seb1 + columns * sebn, mask=in_N, other=0)
    # Planes are copied without masks: rows past the last read it again, and what comes of it is not stored.
    from_a = tl.minimum(rows, M - 1) if PACKED else rows
    from_b = tl.minimum(columns, N - 1) if PACKED else columns
    of_a = a + z0 * sa0 + z1 * sa1 + (from_a * sam)[:, None]
    of_b = b + z0 * sb0 + z1 * sb1 + (from_b * sbn)[None, :]
    if CHUNK == 0:
        total = sums(
            of_a, of_b, ea_M, eb_N, in_M, in_N, sak, sbk, next_a, next_b, 0, K,
            PA, PB, NA, NB, KARATSUBA, BITS, CARRIER, PACKED, BM, BN, BK,
        )  # fmt: skip
    else:
        total = tl.zeros((BM, BN), tl.int64)
        for start in range(0, K, CHUNK):
            total += sums(
                of_a, of_b, ea_M, eb_N, in_M, in_N, sak, sbk, next_a, next_b, start, tl.minimum(start + CHUNK, K),
                PA, PB, NA, NB, KARATSUBA, BITS, CARRIER, PACKED, BM, BN, BK,
            )  # fmt: skip
    if left is not None:  # noqa: SIM102 (this one is decided when the kernel is made)
        if tl.load(due) == node:
            weight_N = tl.load(weights + columns, mask=in_N, other=0)
            tl.atomic_add(left + z * M + rows, tl.sum(total * weight_N[None, :], 1), mask=in_M)
    result = rounded_product(total, ea_M, eb_N, PA, PB)
    at = (z * M + rows)[:, None] * N + columns[None, :]
    tl.store(out + at, result, mask=in_M[:, None] & in_N[None, :])
