"""One side of Freivalds' check: an operand's integers times weights, by 64-bit integers and no tensor core."""

import triton
import triton.language as tl

from assay.engine.runtime.triton.kernels.arith import quantized


@triton.jit
def weigh_block(
    x, e, weights, out, row, k, z, BATCH, ROWS, K, sx0, sx1, sxr, sxk, se0, se1, ser,
    P: tl.constexpr, ALONG: tl.constexpr, TIMES: tl.constexpr,
):  # fmt: skip
    """What `weigh` does with these rows and terms of element z of the batch."""
    rows = row.to(tl.int64)
    terms = k.to(tl.int64)
    of_x = x + (z // BATCH) * sx0 + (z % BATCH) * sx1 + (rows * sxr)[:, None] + (terms * sxk)[None, :]
    of_e = e + (z // BATCH) * se0 + (z % BATCH) * se1 + rows * ser
    exponent = tl.load(of_e, mask=row < ROWS, other=0)
    value = tl.load(of_x, mask=(row < ROWS)[:, None] & (k < K)[None, :], other=0.0)
    q = quantized(value, exponent[:, None], P).to(tl.int64)
    if ALONG:
        weight = tl.load(weights + z * K + terms, mask=k < K, other=0)
        found = -TIMES * tl.sum(q * weight[None, :], 1)
        tl.atomic_add(out + z * ROWS + rows, found, mask=row < ROWS, sem="relaxed")
    else:
        weight = tl.load(weights + rows, mask=row < ROWS, other=0)
        tl.atomic_add(out + z * K + terms, tl.sum(q * weight[:, None], 0), mask=k < K, sem="relaxed")


@triton.jit(do_not_specialize=["node"])
def weigh(
    x, e, due, weights, out, node, BATCH, ROWS, K, COUNT, sx0, sx1, sxr, sxk, se0, se1, ser,
    P: tl.constexpr, ALONG: tl.constexpr, TIMES: tl.constexpr, BR: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """Where due holds `node`: q_P(x, e) weighed, modulo 2^64; elsewhere nothing.

    ALONG: out[z, row] -= TIMES sum over k of q[z, row, k] weights[z, k]. Else: out[z, k] += sum over rows of
    q[z, row, k] weights[row]. x: f32, e: i32, weights and out: i64; strides in elements, the batch's element z at
    (z div BATCH, z mod BATCH). COUNT: blocks of rows, of terms, and of the batch in all, which few programs share: it
    is launched in every run, and in nearly all of them it is not due.
    """
    if tl.load(due) == node:
        of_terms = tl.cdiv(K, BK)
        of_rows = tl.cdiv(ROWS, BR)
        # In i64: the step after the last block may lie past what an i32 counts.
        for block in range(tl.program_id(0).to(tl.int64), COUNT, tl.num_programs(0)):
            row = (block // of_terms) % of_rows * BR + tl.arange(0, BR)
            k = block % of_terms * BK + tl.arange(0, BK)
            z = block // (of_terms * of_rows)
            weigh_block(
                x, e, weights, out, row, k, z, BATCH, ROWS, K, sx0, sx1, sxr, sxk, se0, se1, ser, P, ALONG, TIMES
            )  # fmt: skip
