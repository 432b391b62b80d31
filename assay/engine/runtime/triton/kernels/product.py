"""Exact products on tensor cores: operands as planes of digits, multiplied and added exactly, joined, and rounded once.

A digit travels as i8 with i32 accumulators (CARRIER 0), or as f16 or bf16 with f32 accumulators (1 and 2), which hold
integers up to 2^24. Digits are multiplied pair by pair: Karatsuba's three products for four need a third plane, and
planes are what tensor cores wait for. `pack` writes planes once per operand; `product` reads them, or splits f32
operands itself. Shapes: M rows of A, N rows of B, K terms; a batch of two dims. `limits` says how many terms every
accumulator holds (CHUNK); more are added in i64.
"""

import triton
import triton.language as tl

from assay.engine.runtime.triton.kernels.arith import finished, power, quantized
from assay.engine.runtime.triton.kernels.weigh import weigh_block


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
    q, WHICH: tl.constexpr, COUNT: tl.constexpr, BITS: tl.constexpr, CARRIER: tl.constexpr
):  # fmt: skip
    """Plane WHICH of an i32 of COUNT digits; the first one where there is no such plane."""
    return digit(q, WHICH if WHICH < COUNT else 0, COUNT, BITS, CARRIER)


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
    NA: tl.constexpr, NB: tl.constexpr, CARRIER: tl.constexpr,
):  # fmt: skip
    """The accumulators of every place with the products of these planes added."""
    s0 = times(a0, b0, s0, CARRIER)
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
    s0, s1, s2, s3, s4, NA: tl.constexpr, NB: tl.constexpr, BITS: tl.constexpr,
    NARROW: tl.constexpr = False, zero=0,
):  # fmt: skip
    """The integers whose places are these: i32 where there is one place, which an accumulator holds, else i64.

    NARROW: i32 holds what the places above the first come to, so it does not matter what wraps on the way there.
    zero: 0, or an i32 of which a compiler does not know it: it would widen whole accumulators, not parts of them.
    """
    total = s0.to(tl.int32) + zero
    if NA + NB > 2:
        high = s1.to(tl.int32)
        if not NARROW:
            high = (high + zero).to(tl.int64)
        if NA + NB > 3:
            high += (s2.to(tl.int32) + zero).to(high.dtype) << BITS
        if NA + NB > 4:
            high += (s3.to(tl.int32) + zero).to(high.dtype) << (2 * BITS)
        if NA + NB > 5:
            high += (s4.to(tl.int32) + zero).to(high.dtype) << (3 * BITS)
        total = total.to(tl.int64) + high.to(tl.int64) * (1 << BITS)
    return total


@triton.jit
def places(
    a, b, ea_M, eb_N, in_M, in_N, sak, sbk, next_a, next_b, start, end,
    PA: tl.constexpr, PB: tl.constexpr, NA: tl.constexpr, NB: tl.constexpr,
    BITS: tl.constexpr, CARRIER: tl.constexpr, PACKED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The accumulators [BM, BN] of q_PA(a) q_PB(b) over terms start to end, which they must hold; `joined` joins them.

    a: pointers [BM, 1] to the first terms of A's rows, b: [1, BN] to those of B's. PACKED: they are rows of planes,
    next_a and next_b elements apart, with zeros up to a multiple of BK.
    """
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
            a1 = tl.load(of_a + next_a) if NA > 1 else a0
            b1 = tl.load(of_b + next_b) if NB > 1 else b0
            a2 = tl.load(of_a + next_a + next_a) if NA > 2 else a0  # which i32 may not hold the double of
            b2 = tl.load(of_b + next_b + next_b) if NB > 2 else b0
        else:
            at = k.to(tl.int64)
            x = tl.load(a + at[None, :] * sak, mask=in_M[:, None] & (k < end)[None, :], other=0.0)
            y = tl.load(b + at[:, None] * sbk, mask=in_N[None, :] & (k < end)[:, None], other=0.0)
            qa = quantized(x, ea_M[:, None], PA)
            qb = quantized(y, eb_N[None, :], PB)
            a0 = plane(qa, 0, NA, BITS, CARRIER)
            b0 = plane(qb, 0, NB, BITS, CARRIER)
            a1 = plane(qa, 1, NA, BITS, CARRIER)
            b1 = plane(qb, 1, NB, BITS, CARRIER)
            a2 = plane(qa, 2, NA, BITS, CARRIER)
            b2 = plane(qb, 2, NB, BITS, CARRIER)
        s0, s1, s2, s3, s4 = added(s0, s1, s2, s3, s4, a0, a1, a2, b0, b1, b2, NA, NB, CARRIER)
    return s0, s1, s2, s3, s4


@triton.jit
def sums(
    a, b, ea_M, eb_N, in_M, in_N, sak, sbk, next_a, next_b, start, end,
    PA: tl.constexpr, PB: tl.constexpr, NA: tl.constexpr, NB: tl.constexpr,
    BITS: tl.constexpr, CARRIER: tl.constexpr, PACKED: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The exact sums [BM, BN] of what `places` leaves, i32 or i64."""
    s0, s1, s2, s3, s4 = places(
        a, b, ea_M, eb_N, in_M, in_N, sak, sbk, next_a, next_b, start, end,
        PA, PB, NA, NB, BITS, CARRIER, PACKED, BM, BN, BK,
    )  # fmt: skip
    return joined(s0, s1, s2, s3, s4, NA, NB, BITS)


@triton.jit(do_not_specialize=["node"])
def pack(
    x, e, out, due, weights, weighed, node, BATCH, ROWS, K, WIDTH, sx0, sx1, sxr, sxk, se0, se1, ser,
    P: tl.constexpr, COUNT: tl.constexpr, BITS: tl.constexpr, CARRIER: tl.constexpr, ALONG: tl.constexpr,
    BR: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """The planes of q_P(x, e): [planes, batch, ROWS, WIDTH], terms innermost, zeros from K to WIDTH.

    weights: i64, or None: where due holds `node`, the operand is loaded again and weighed into `weighed`, as `weigh`
    does it.

    x: f32, e: i32; strides in elements, the batch's element z at (z div BATCH, z mod BATCH). Grid, all in one size, the
    only one that may be large: batch, blocks of terms, blocks of rows.
    """
    of_rows = tl.cdiv(ROWS, BR)
    of_terms = tl.cdiv(WIDTH, BK)
    row = tl.program_id(0) % of_rows * BR + tl.arange(0, BR)
    k = tl.program_id(0) // of_rows % of_terms * BK + tl.arange(0, BK)
    z = (tl.program_id(0) // of_rows // of_terms).to(tl.int64)
    rows = row.to(tl.int64)
    terms = k.to(tl.int64)
    of_x = x + (z // BATCH) * sx0 + (z % BATCH) * sx1 + (rows * sxr)[:, None] + (terms * sxk)[None, :]
    of_e = e + (z // BATCH) * se0 + (z % BATCH) * se1 + rows * ser
    there = (row < ROWS)[:, None]
    exponent = tl.load(of_e, mask=row < ROWS, other=0)
    q = quantized(tl.load(of_x, mask=there & (k < K)[None, :], other=0.0), exponent[:, None], P)
    to = out + (z * ROWS + rows)[:, None] * WIDTH + terms[None, :]
    following = (tl.num_programs(0) // of_rows // of_terms).to(tl.int64) * ROWS * WIDTH
    for i in tl.static_range(COUNT):
        tl.store(to + i * following, plane(q, i, COUNT, BITS, CARRIER), mask=there & (k < WIDTH)[None, :])
    if weights is not None:  # noqa: SIM102 (this one is decided when the kernel is made)
        if tl.load(due) == node:
            weigh_block(
                x, e, weights, weighed, row, k, z, BATCH, ROWS, K, sx0, sx1, sxr, sxk, se0, se1, ser, P, ALONG, 1
            )  # fmt: skip


LOW: tl.constexpr = tl.constexpr(-75)
HIGH: tl.constexpr = tl.constexpr(65)
"""Between which powers of two of rows and columns rounding needs no care (`rounded_sums`)."""


@triton.jit
def power_of_side(e, P: tl.constexpr):
    """The power of two e - (P - 1) of a row or column, for any i32 e: nothing that is added to it wraps."""
    return tl.minimum(tl.maximum(e, -1000), 129) - (P - 1)


@triton.jit
def care(ea_M, eb_N, PA: tl.constexpr, PB: tl.constexpr):
    """What rounding under these exponents needs: 0 nothing, 1 a look at rows and columns below LOW, 2 all care."""
    a = power_of_side(ea_M, PA)
    b = power_of_side(eb_N, PB)
    of_rows = tl.max(tl.where(a > HIGH, 2, tl.where(a < LOW, 1, 0)))
    return tl.maximum(of_rows, tl.max(tl.where(b > HIGH, 2, tl.where(b < LOW, 1, 0))))


@triton.jit
def rounded_sums(total, ea_M, eb_N, needed, PA: tl.constexpr, PB: tl.constexpr):
    """finish of the sums i32 or i64 [M, N] under the exponents of their rows and columns; NaN where one is 129 or more.

    needed: `care` of these rows and columns, or of more. The result is total 2^a 2^b, where a = ea - (PA - 1) and
    b = eb - (PB - 1). With both from LOW to HIGH, two powers are all that it takes, one per row and one per column.
    The f32 nearest to a total that is not 0 is 1 to 2^62 in magnitude (MAX_SUM_BITS), so times 2^a it is 2^-75 to
    2^127: exact. Times 2^b it is infinite where the result is, and else exact, unless it is below 2^-126. But then, as
    a + b >= -150, the total is below 2^24, and its f32 was exact: nothing is rounded twice. No exponent is 129.

    A total of 0 is +0 by any powers, so rows of zeros, whose exponent is -149, may take part. A hook may have replaced
    the exponent of another row by as low a one: its elements are then at the limit, so the totals are looked at.
    """
    a = power_of_side(ea_M, PA)
    b = power_of_side(eb_N, PB)
    nearest = total.to(tl.float32)
    is_plain = needed == 0
    if needed == 1:
        # Magnitudes, not whether they are 0: that would be worked out where nobody asks, since `finished` asks too.
        is_low = (a < LOW)[:, None] | (b < LOW)[None, :]
        is_plain = tl.max(tl.where(is_low, tl.abs(nearest), 0.0)) == 0.0
    if is_plain:
        of_rows = power(tl.maximum(a, LOW))
        of_columns = power(tl.maximum(b, LOW))
        result = nearest * of_rows[:, None] * of_columns[None, :]
    else:
        is_nan = (ea_M >= 129)[:, None] | (eb_N >= 129)[None, :]
        result = tl.where(is_nan, float("nan"), finished(total, a[:, None] + b[None, :]))
    return result


@triton.jit
def rounded_product(total, ea_M, eb_N, PA: tl.constexpr, PB: tl.constexpr):
    """`rounded_sums` of a block by itself."""
    return rounded_sums(total, ea_M, eb_N, care(ea_M, eb_N, PA, PB), PA, PB)


@triton.jit
def part(x, WHICH: tl.constexpr, PARTS: tl.constexpr):
    """The columns of part WHICH of a block that is cut into 1, 2 or 4: registers stay where they are."""
    found = x
    if PARTS > 1:
        left, right = tl.split(tl.permute(tl.reshape(x, (x.shape[0], 2, x.shape[1] // 2)), (0, 2, 1)))
        found = part(left if WHICH < PARTS // 2 else right, WHICH % (PARTS // 2), PARTS // 2)
    return found


@triton.jit
def needed_terms(
    first_m, first_n, K, CUT_A: tl.constexpr, CUT_B: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):  # fmt: skip
    """The first term of a block that counts, a multiple of BK, and the one past the last."""
    start = 0
    end = K
    if CUT_A == 1:
        end = tl.minimum(K, first_m + BM)
    elif CUT_A == 2:
        start = first_m // BK * BK
    elif CUT_B == 1:
        end = tl.minimum(K, first_n + BN)
    elif CUT_B == 2:
        start = first_n // BK * BK
    return start, end


@triton.jit
def are_finite(ea_M, eb_N, K):
    """Whether every sum of K products under these exponents rounds to a finite number: each is below 2^(ea + eb)."""
    a = tl.max(ea_M)
    b = tl.max(eb_N)
    # A sum of 2^15 terms of 2^112 is 2^127.
    return (K <= 1 << 15) & (a < 129) & (b < 129) & (tl.maximum(a, -1000) + tl.maximum(b, -1000) <= 112)


@triton.jit(do_not_specialize=["node"])
def product(
    a, b, ea, eb, out, due, weights, left, node, BATCH, M, N, K, next_a, next_b, som, son,
    sa0, sa1, sam, sak, sb0, sb1, sbn, sbk, sea0, sea1, seam, seb0, seb1, sebn,
    PA: tl.constexpr, PB: tl.constexpr, NA: tl.constexpr, NB: tl.constexpr,
    BITS: tl.constexpr, CARRIER: tl.constexpr, PACKED: tl.constexpr, CHUNK: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PARTS: tl.constexpr, GROUP: tl.constexpr,
    NARROW: tl.constexpr, GAP: tl.constexpr, TURNED: tl.constexpr, CUT_A: tl.constexpr, CUT_B: tl.constexpr,
):  # fmt: skip
    """out[z, m, n] = finish(sum over k of q_PA(a, ea) q_PB(b, eb), ea + eb - (PA - 1) - (PB - 1)).

    a, b: f32, or with PACKED their planes, next_a and next_b elements apart; ea, eb: i32. out: f32, an element of the
    batch M N after the one before it, its rows and columns som and son apart.
    Strides in elements, the batch's element z at (z div BATCH, z mod BATCH). CHUNK: terms that the accumulators hold,
    a multiple of BK; 0 where they hold all K. Grid, all in one size, the only one that may be large: batch, blocks of M
    and N, those of GROUP rows of blocks together.
    PARTS: into how many columns of parts a block is cut to be rounded and stored, since registers hold its
    accumulators but not, beside them, what all of its elements become.

    left: i64 [batch, M], or None: where due holds `node`, the integers of each row weighed by weights i64 [N] are added
    to it, modulo 2^64 (Freivalds' check).

    GAP, CUT_A, CUT_B: what of it need not be computed (`triangles`): blocks above the diagonal, which is below it where
    A and B are TURNED; terms of a row of A or of B that are nothing. Such a block is zeros, unless it is checked.
    """
    # Programs that run at a time read few rows and few columns: GROUP by as many as there are.
    columns_of_blocks = tl.cdiv(N, BN)
    of_matrix = tl.cdiv(M, BM) * columns_of_blocks
    block = tl.program_id(0) % of_matrix
    together = GROUP * columns_of_blocks
    first_row = block // together * GROUP
    rows_here = tl.minimum(tl.cdiv(M, BM) - first_row, GROUP)
    inside = block % together
    first_m = (first_row + inside % rows_here) * BM
    m = first_m + tl.arange(0, BM)
    first_n = inside // rows_here * BN
    n = first_n + tl.arange(0, BN)
    z = (tl.program_id(0) // of_matrix).to(tl.int64)
    z0 = z // BATCH
    z1 = z % BATCH
    in_M = m < M
    in_N = n < N
    rows = m.to(tl.int64)
    columns = n.to(tl.int64)
    of_ea = ea + z0 * sea0 + z1 * sea1
    of_eb = eb + z0 * seb0 + z1 * seb1
    ea_M = tl.load(of_ea + rows * seam, mask=in_M, other=0)
    eb_N = tl.load(of_eb + columns * sebn, mask=in_N, other=0)
    needed = care(ea_M, eb_N, PA, PB)
    is_due = False
    if left is not None:
        is_due = tl.load(due) == node
    start, end = needed_terms(first_m, first_n, K, CUT_A, CUT_B, BM, BN, BK)
    if GAP != 0:
        is_above = first_m >= first_n + BN if TURNED else first_n >= first_m + BM
        if GAP == 2:
            is_above = is_above & are_finite(ea_M, eb_N, K)
        end = tl.where(is_above & (not is_due), start, end)
    # Planes are copied without masks: rows past the last read it again, and what comes of it is not stored.
    from_a = tl.minimum(rows, M - 1) if PACKED else rows
    from_b = tl.minimum(columns, N - 1) if PACKED else columns
    of_a = a + z0 * sa0 + z1 * sa1 + (from_a * sam)[:, None]
    of_b = b + z0 * sb0 + z1 * sb1 + (from_b * sbn)[None, :]
    if CHUNK == 0:
        s0, s1, s2, s3, s4 = places(
            of_a, of_b, ea_M, eb_N, in_M, in_N, sak, sbk, next_a, next_b, start, end,
            PA, PB, NA, NB, BITS, CARRIER, PACKED, BM, BN, BK,
        )  # fmt: skip
    else:
        whole = tl.zeros((BM, BN), tl.int64)
        for first in range(start, end, CHUNK):
            whole += sums(
                of_a, of_b, ea_M, eb_N, in_M, in_N, sak, sbk, next_a, next_b, first, tl.minimum(first + CHUNK, end),
                PA, PB, NA, NB, BITS, CARRIER, PACKED, BM, BN, BK,
            )  # fmt: skip
    WIDTH: tl.constexpr = BN // PARTS
    zero = tl.minimum(K, 0)
    ea_M = tl.load(of_ea + rows * seam, mask=in_M, other=0)
    for i in tl.static_range(PARTS):
        if CHUNK == 0:
            total = joined(
                part(s0, i, PARTS), part(s1, i, PARTS), part(s2, i, PARTS), part(s3, i, PARTS), part(s4, i, PARTS),
                NA, NB, BITS, NARROW, zero,
            )  # fmt: skip
        else:
            total = part(whole, i, PARTS)
        n = first_n + i * WIDTH + tl.arange(0, WIDTH)
        in_N = n < N
        columns = n.to(tl.int64)
        if left is not None:  # noqa: SIM102 (this one is decided when the kernel is made)
            if is_due:
                weight_N = tl.load(weights + columns, mask=in_N, other=0)
                tl.atomic_add(left + z * M + rows, tl.sum(total * weight_N[None, :], 1), mask=in_M, sem="relaxed")
        eb_N = tl.load(of_eb + columns * sebn, mask=in_N, other=0)
        result = rounded_sums(total, ea_M, eb_N, needed, PA, PB)
        at = z * M * N + (rows * som)[:, None] + (columns * son)[None, :]
        tl.store(out + at, result, mask=in_M[:, None] & in_N[None, :])
