"""Kernels that call functions which call others."""

import triton
import triton.language as tl


@triton.jit
def squared(x):  # type: ignore[no-untyped-def]
    return tl.maximum(x * x, 0)


@triton.jit
def summed(x):  # type: ignore[no-untyped-def]
    return tl.sum(squared(x), axis=0)


@triton.jit
def sums_of_squares(x, out, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    """out[0] = sum of x[i]^2, i32, by functions within functions."""
    tl.store(out, summed(tl.load(x + tl.arange(0, SIZE))))


@triton.jit
def fails(out, SIZE: tl.constexpr):  # type: ignore[no-untyped-def]
    tl.static_assert(SIZE < 0, "refused")
