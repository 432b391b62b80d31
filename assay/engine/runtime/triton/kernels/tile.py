"""What generated kernels call to compute tiles of products anew, and to multiply tiles (docs/adr/0051).

A tile has BM rows m and BN columns n of batch element g; strides are in elements, the batch's element g lies at
(g div BATCH, g mod BATCH).
"""

import triton
import triton.language as tl

from assay.engine.runtime.triton.kernels.arith import quantized
from assay.engine.runtime.triton.kernels.product import added, plane, rounded_product, sums


@triton.jit
def score_tile(
    a, b, ea, eb, due, weights, left, node, g, m, n,
    BATCH: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    SA0: tl.constexpr, SA1: tl.constexpr, SAM: tl.constexpr, SAK: tl.constexpr,
    SB0: tl.constexpr, SB1: tl.constexpr, SBN: tl.constexpr, SBK: tl.constexpr,
    SEA0: tl.constexpr, SEA1: tl.constexpr, SEAM: tl.constexpr,
    SEB0: tl.constexpr, SEB1: tl.constexpr, SEBN: tl.constexpr,
    PA: tl.constexpr, PB: tl.constexpr, NA: tl.constexpr, NB: tl.constexpr,
    BITS: tl.constexpr, CARRIER: tl.constexpr, TIMES: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """f32 [BM, BN], elements of a product as `product` stores them; K is at most BK.

    left: i64 [batch, M], or None: where due holds `node`, TIMES the integers of each row weighed are added to it.
    """
    z = g.to(tl.int64)
    z0 = z // BATCH
    z1 = z % BATCH
    in_M = m < M
    in_N = n < N
    rows = m.to(tl.int64)
    columns = n.to(tl.int64)
    ea_M = tl.load(ea + z0 * SEA0 + z1 * SEA1 + rows * SEAM, mask=in_M, other=0)
    eb_N = tl.load(eb + z0 * SEB0 + z1 * SEB1 + columns * SEBN, mask=in_N, other=0)
    of_a = a + z0 * SA0 + z1 * SA1 + (rows * SAM)[:, None]
    of_b = b + z0 * SB0 + z1 * SB1 + (columns * SBN)[None, :]
    total = sums(
        of_a, of_b, ea_M, eb_N, in_M, in_N, SAK, SBK, 0, 0, 0, K,
        PA, PB, NA, NB, BITS, CARRIER, False, BM, BN, BK,
    )  # fmt: skip
    if left is not None:  # noqa: SIM102 (this one is decided when the kernel is made)
        if tl.load(due) == node:
            weight_N = tl.load(weights + columns, mask=in_N, other=0)
            tl.atomic_add(left + z * M + rows, TIMES * tl.sum(total * weight_N[None, :], 1), mask=in_M, sem="relaxed")
    return rounded_product(total, ea_M, eb_N, PA, PB)


@triton.jit
def side_tile(
    y, e, g, k, column, K: tl.constexpr, COLUMNS: tl.constexpr, BATCH: tl.constexpr,
    S0: tl.constexpr, S1: tl.constexpr, SC: tl.constexpr, SK: tl.constexpr, P: tl.constexpr,
):  # fmt: skip
    """q_P(y, e) i32 [columns, terms] of a stored operand y under exponents e i32 [columns]."""
    z = g.to(tl.int64)
    at = (z // BATCH) * S0 + (z % BATCH) * S1 + (column.to(tl.int64) * SC)[:, None] + (k.to(tl.int64) * SK)[None, :]
    value = tl.load(y + at, mask=(column < COLUMNS)[:, None] & (k < K)[None, :], other=0.0)
    return quantized(value, e[:, None], P)


@triton.jit
def multiplied(
    s0, s1, s2, s3, s4, qa, qb,
    NA: tl.constexpr, NB: tl.constexpr, BITS: tl.constexpr, CARRIER: tl.constexpr,
):  # fmt: skip
    """The accumulators with the product of integers qa [rows, terms] and qb [terms, columns] added."""
    a0 = plane(qa, 0, NA, BITS, CARRIER)
    b0 = plane(qb, 0, NB, BITS, CARRIER)
    a1 = plane(qa, 1, NA, BITS, CARRIER)
    b1 = plane(qb, 1, NB, BITS, CARRIER)
    a2 = plane(qa, 2, NA, BITS, CARRIER)
    b2 = plane(qb, 2, NB, BITS, CARRIER)
    return added(s0, s1, s2, s3, s4, a0, a1, a2, b0, b1, b2, NA, NB, CARRIER)
