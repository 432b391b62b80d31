"""What the third planes of a product's two sides come to by themselves: one block, wherever the planes lie."""

import triton
import triton.language as tl

from assay.engine.runtime.triton.kernels.product import places


@triton.jit
def third_place(a, b, out, next_a, next_b, BLOCK: tl.constexpr):
    """a, b: planes i8 [BLOCK, BLOCK], three of each, next_a and next_b elements apart. out: i32 [BLOCK, BLOCK]."""
    row = tl.arange(0, BLOCK)
    there = row < BLOCK
    of_a, of_b = a + (row * BLOCK)[:, None], b + (row * BLOCK)[None, :]
    found = places(
        of_a,
        of_b,
        row,
        row,
        there,
        there,
        1,
        1,
        next_a,
        next_b,
        0,
        BLOCK,
        22,
        22,
        3,
        3,
        8,
        0,
        True,
        BLOCK,
        BLOCK,
        BLOCK,
    )
    tl.store(out + (row * BLOCK)[:, None] + row[None, :], found[4])
