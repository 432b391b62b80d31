"""Sums, means and maxima: each exact sum is preceded by the row exponents that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, cast

import torch

from assay.engine.compiler.ir.strided import Axes, Strided, contiguous, memory_order
from assay.engine.compiler.ir.value import ValueRead
from assay.engine.compiler.ir.values import Fill, Tensorlike, regrouped
from assay.engine.compiler.lowering.registry import RULES, Context, Unsupported, all_axes, lowers
from assay.engine.compiler.lowering.shapes import pad
from assay.protocol.types import DType

aten = torch.ops.aten

_EXACT_BITS = 24
"""Integers of so many bits are exact in binary32."""

_LEAST_BITS = 4
"""Sums of integers whose pieces would be smaller are refused."""


def reduce(ctx: Context, kind: str, x: Strided, dims: Sequence[int], *, keepdim: bool) -> Strided:
    """A rowexp, max or sum over some dimensions of x, which are gone then, or 1 with `keepdim`.

    Raises Unsupported where they hold no element (WF-18).
    """
    if any(x.shape[d] == 0 for d in dims):
        raise Unsupported("a maximum over no elements")
    spaces = [g for d, g in enumerate(x.groups) if d not in dims]
    kept = [a for g in spaces for a in g]
    order = memory_order(kept) if x.value.layout_hint else list(range(len(kept)))
    out = tuple(kept[d] for d in order)
    red = tuple(a for d in dims for a in x.groups[d])
    reads = [ValueRead(x.value, (*out, *red), x.offset, x.fill)]
    out_dims, red_dims = tuple(a.size for a in out), tuple(a.size for a in red)
    if kind == "sum":
        exponents = ctx.values.add("rowexp", DType.I32, out_dims, red_dims, reads)
        reads.append(ValueRead(exponents, contiguous(out_dims)))
    dtype = {"rowexp": DType.I32, "sum": DType.F32}.get(kind, x.dtype)
    value = ctx.values.add(kind, dtype, out_dims, red_dims, reads, layout_hint=x.value.layout_hint)
    found = iter(regrouped(value, spaces, order).groups)
    groups: list[Axes] = []
    for d in range(len(x.groups)):
        if d in dims:
            groups += [()] * keepdim
        else:
            groups.append(next(found))
    return Strided(value, tuple(groups))


def check_terms(count: int) -> None:
    """Raises Unsupported for a sum of more than 2^32 terms, of 30 bits each, of which 62 are exact."""
    if count > 1 << 32:
        raise Unsupported(f"a sum of {count} terms (at most 2^32; sum over fewer dimensions at a time)")


def total(ctx: Context, x: Tensorlike, dims: Sequence[int], *, keepdim: bool) -> Tensorlike:
    """The exact sum of f32 over some dimensions; zero over nothing, which has no exponents to be summed by."""
    count = prod(x.shape[d] for d in dims)
    check_terms(count)
    if count == 0:
        kept = [1 if d in dims else n for d, n in enumerate(x.shape) if keepdim or d not in dims]
        return Fill(DType.F32, tuple(kept), 0)
    if not dims or count == 1:
        shape = [n for d, n in enumerate(x.shape) if d not in dims] if not keepdim else x.shape
        return ctx.values.reshape(x, tuple(shape))
    return reduce(ctx, "sum", ctx.strided(x), dims, keepdim=keepdim)


@lowers(aten.sum.dim_IntList, aten.sum.default)
def _sum(ctx: Context, x: Tensorlike, dims: Any = None, keepdim: bool = False, **_: Any) -> Tensorlike:
    axes = all_axes(dims, len(x.shape))
    count = prod(x.shape[d] for d in axes)
    if x.dtype is DType.F32:
        return total(ctx, x, axes, keepdim=keepdim)
    return integer_total(ctx, x, count, lambda part: total(ctx, part, axes, keepdim=keepdim))


def integer_total(ctx: Context, x: Tensorlike, count: int, add: Callable[[Tensorlike], Tensorlike]) -> Tensorlike:
    """Sums of bools or integers mod 2^32 as i32, from exact sums of f32.

    Integers are added in pieces of so few bits that the sums of `count` pieces are exact in f32.
    """
    room = _EXACT_BITS - max(count - 1, 0).bit_length()
    if room < (0 if x.dtype is DType.BOOL else _LEAST_BITS):
        raise Unsupported(f"a sum of {count} {x.dtype.name} (convert to float32 first)")
    if x.dtype is DType.BOOL:
        return ctx.cast(add(ctx.cast(x, DType.F32)), DType.I32)
    rest, shift = ctx.cast(x, DType.I32), 0
    result: Tensorlike | None = None
    while shift < 32:
        # The last piece keeps the sign.
        is_last = shift + room >= 32
        piece = rest if is_last else ctx.apply("bit_and", rest, (1 << room) - 1)
        part = ctx.cast(add(ctx.cast(piece, DType.F32)), DType.I32)
        part = part if shift == 0 else ctx.apply("shift_left", part, shift)
        result = part if result is None else ctx.apply("add", result, part)
        rest, shift = ctx.apply("shift_right", rest, min(room, 31)), shift + room
    assert result is not None
    return result


@lowers(aten.cumsum.default)
def _cumulative_sum(ctx: Context, x: Tensorlike, dim: int, **_: Any) -> Tensorlike:
    """Prefix sums by doubling (Hillis and Steele, 1986): log2 n additions, each of what lies 1, 2, 4, ... before.

    Each sum is rounded at most log2 n times, where adding one by one rounds n times; integers are added mod 2^32.
    """
    total: Tensorlike = ctx.cast(x, ctx.dtype)
    if not x.shape:
        return total
    dim, shift = dim % len(x.shape), 1
    size = x.shape[dim]
    if size == 1 and ctx.dtype is DType.F32:
        return ctx.apply("add", total, 0.0)  # a sum of negative zeros is +0, of one too
    while shift < size:
        earlier = pad(ctx, total, dim, shift, 0, 0).narrow(dim, 0, size)
        if earlier is None:
            raise Unsupported("a cumulative sum along this dimension (call contiguous first)")
        total = ctx.apply("add", total, earlier)
        shift *= 2
    return total


@lowers(aten.mean.dim, aten.mean.default)
def _mean(ctx: Context, x: Tensorlike, dims: Any = None, keepdim: bool = False, **_: Any) -> Tensorlike:
    axes = all_axes(dims, len(x.shape))
    count = prod(x.shape[d] for d in axes)
    return ctx.apply("div", total(ctx, x, axes, keepdim=keepdim), float(count))


@lowers(aten.var.correction)
def _var(ctx: Context, x: Tensorlike, dims: Any = None, *, correction: Any = 1, keepdim: bool = False) -> Tensorlike:
    axes = all_axes(dims, len(x.shape))
    count = prod(x.shape[d] for d in axes)
    mean = ctx.apply("div", total(ctx, x, axes, keepdim=True), float(count))
    centered = ctx.apply("sub", x, mean)
    squares = total(ctx, ctx.apply("mul", centered, centered), axes, keepdim=keepdim)
    return ctx.apply("div", squares, float(max(count - (1 if correction is None else correction), 0)))


@lowers(aten.linalg_vector_norm.default)
def _norm(ctx: Context, x: Tensorlike, order: Any = 2, dims: Any = None, keepdim: bool = False, **_: Any) -> Tensorlike:
    axes = all_axes(dims, len(x.shape))
    if order == 2:
        return ctx.apply("sqrt", total(ctx, ctx.apply("mul", x, x), axes, keepdim=keepdim))
    magnitudes = ctx.apply("abs", x)
    if order == 1:
        return total(ctx, magnitudes, axes, keepdim=keepdim)
    if order == float("inf"):
        return reduce(ctx, "max", ctx.strided(magnitudes), axes, keepdim=keepdim)
    if order == float("-inf"):
        turned = reduce(ctx, "max", ctx.strided(in_reverse(ctx, magnitudes)), axes, keepdim=keepdim)
        return in_reverse(ctx, turned)
    if order == 0:
        return total(ctx, ctx.cast(ctx.apply("ne", x, 0.0, dtype=DType.BOOL), DType.F32), axes, keepdim=keepdim)
    power = RULES[aten.pow.Tensor_Scalar]
    return cast(Tensorlike, power(ctx, total(ctx, power(ctx, magnitudes, order), axes, keepdim=keepdim), 1.0 / order))


@lowers(aten.amax.default)
def _amax(ctx: Context, x: Tensorlike, dims: Any = (), keepdim: bool = False) -> Tensorlike:
    axes = all_axes(dims, len(x.shape))
    wide = x if x.dtype is DType.F32 else ctx.cast(x, DType.I32)
    return ctx.cast(reduce(ctx, "max", ctx.strided(wide), axes, keepdim=keepdim), ctx.dtype)


@lowers(aten.amin.default)
def _amin(ctx: Context, x: Tensorlike, dims: Any = (), keepdim: bool = False) -> Tensorlike:
    axes = all_axes(dims, len(x.shape))
    wide = x if x.dtype is DType.F32 else ctx.cast(x, DType.I32)
    turned = reduce(ctx, "max", ctx.strided(in_reverse(ctx, wide)), axes, keepdim=keepdim)
    return ctx.cast(in_reverse(ctx, turned), ctx.dtype)


def in_reverse(ctx: Context, x: Tensorlike) -> Tensorlike:
    """f32 or i32 in the opposite order, and back again: ~x of integers, since the least has no negative."""
    return ctx.apply("neg" if x.dtype is DType.F32 else "bit_not", x)


@lowers(aten.any.default, aten.any.dim, aten.any.dims)
def _any(ctx: Context, x: Tensorlike, dims: Any = None, keepdim: bool = False) -> Tensorlike:
    axes = all_axes(dims, len(x.shape))
    flags = ctx.strided(ctx.cast(ctx.cast(x, DType.BOOL), DType.I32))
    return ctx.cast(reduce(ctx, "max", flags, axes, keepdim=keepdim), DType.BOOL)
