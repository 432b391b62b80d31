"""Choosing the largest: topk, sort, argmax and their kin, all by exact ranks or maxima (ties by the smaller index)."""

from __future__ import annotations

from math import prod

import torch

from assay.engine import ops
from assay.engine.compiler.ir.strided import Strided
from assay.engine.compiler.ir.values import Fill, Tensorlike
from assay.engine.compiler.lowering.indexing import gathered, placed
from assay.engine.compiler.lowering.reductions import in_reverse, reduce
from assay.engine.compiler.lowering.registry import RULES, Context, all_axes, axis, lowers
from assay.engine.compiler.lowering.shapes import narrow
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.types import DType

aten = torch.ops.aten

_NONE = 0x80000001
"""An i32 word below the negative of every index."""


def _iota(ctx: Context, size: int, dim: int, rank: int, *, negative: bool = False) -> Tensorlike:
    """0, 1, ... (or 0, -1, ...) along one dimension, i32 with 1 along the others."""
    numbers = torch.arange(size, dtype=torch.int32)
    column = ctx.values.const(DType.I32, (size,), to_bytes(-numbers if negative else numbers))
    return ctx.values.reshape(column, tuple(size if d == dim else 1 for d in range(rank)))


def ranks(ctx: Context, x: Tensorlike, dim: int) -> Tensorlike:
    """Per element how many along a dimension are ahead of it, i32 of x's shape: larger, or equal and earlier."""
    if isinstance(x, Fill):
        x = ctx.strided(x)
    last = len(x.shape) - 1
    order = [d for d in range(last + 1) if d != dim] + [dim]
    ranked: Strided = RULES[ops.RANK](ctx, x.permute(order))
    back = [*range(dim), last, *range(dim, last)]
    return ranked.permute(back)


def _ascending(ctx: Context, x: Tensorlike, dim: int) -> Tensorlike:
    """Per element how many along a dimension are smaller, or equal and earlier; NaN is above +inf here too.

    The stable ascending order is the reverse of the stable descending order of the reversed sequence.
    """
    turn = RULES[aten.flip.default]
    behind = ctx.strided(turn(ctx, ranks(ctx, ctx.strided(turn(ctx, x, [dim])), dim), [dim]))
    return ctx.apply("sub", Fill(DType.I32, behind.shape, x.shape[dim] - 1), behind)


def best(ctx: Context, x: Tensorlike, count: int, dim: int, *, largest: bool) -> tuple[Tensorlike, Tensorlike]:
    """The `count` first along a dimension in descending (ascending) order, and their positions as i32.

    Both have x's shape but for `count` along the dimension.
    """
    if x.dtype is DType.I32:
        return _best_of_integers(ctx, x, count, dim, largest=largest)
    if x.dtype is not DType.F32:
        values, places = best(ctx, ctx.cast(x, DType.F32), count, dim, largest=largest)
        return ctx.cast(values, x.dtype), places
    found = ctx.strided(ranks(ctx, x, dim) if largest else _ascending(ctx, x, dim))
    index = ctx.strided(placed(ctx, found, count, dim))
    ctx.placed[index.value.number] = dim, found
    return gathered(ctx, x, dim, index), index


def _best_of_integers(
    ctx: Context, x: Tensorlike, count: int, dim: int, *, largest: bool
) -> tuple[Tensorlike, Tensorlike]:
    """`best` of i32: ordered by the low 16 bits, then, stably, by the high ones, both of which binary32 holds."""
    low = ctx.cast(ctx.apply("bit_and", x, 0xFFFF), DType.F32)
    high = ctx.cast(ctx.apply("shift_right", x, 16), DType.F32)
    by_low = ctx.strided(best(ctx, low, x.shape[dim], dim, largest=largest)[1])
    by_high = ctx.strided(best(ctx, gathered(ctx, high, dim, by_low), count, dim, largest=largest)[1])
    places = ctx.strided(gathered(ctx, by_low, dim, by_high))
    # An element's rank is the one that its place in the first order has in the second.
    first, second = (ctx.placed[t.value.number][1] for t in (by_low, by_high))
    ctx.placed[places.value.number] = dim, ctx.strided(gathered(ctx, second, dim, first))
    return gathered(ctx, x, dim, places), places


@lowers(aten.topk.default)
def _topk(
    ctx: Context, x: Tensorlike, k: int, dim: int = -1, largest: bool = True, _: bool = True
) -> tuple[Tensorlike, Tensorlike]:
    return best(ctx, x, k, axis(dim, len(x.shape)), largest=largest)


@lowers(aten.sort.default)
def _sort(ctx: Context, x: Tensorlike, dim: int = -1, descending: bool = False) -> tuple[Tensorlike, Tensorlike]:
    dim = axis(dim, len(x.shape))
    return best(ctx, x, x.shape[dim], dim, largest=descending)


@lowers(aten.sort.stable)
def _stable_sort(
    ctx: Context, x: Tensorlike, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Tensorlike, Tensorlike]:
    return _sort(ctx, x, dim, descending)


@lowers(aten.argsort.default)
def _argsort(ctx: Context, x: Tensorlike, dim: int = -1, descending: bool = False) -> Tensorlike:
    return _sort(ctx, x, dim, descending)[1]


@lowers(aten.kthvalue.default)
def _kth(ctx: Context, x: Tensorlike, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Tensorlike, Tensorlike]:
    dim = axis(dim, len(x.shape))
    values, places = best(ctx, x, x.shape[dim], dim, largest=False)
    return _at(ctx, values, dim, k - 1, keepdim=keepdim), _at(ctx, places, dim, k - 1, keepdim=keepdim)


def _at(ctx: Context, x: Tensorlike, dim: int, place: int, *, keepdim: bool) -> Tensorlike:
    """One place of a dimension, which is gone then, or 1 with `keepdim`."""
    cut = narrow(ctx, x, dim, place, 1)
    return cut if keepdim else ctx.values.reshape(cut, tuple(n for d, n in enumerate(x.shape) if d != dim))


@lowers(aten.median.dim)
def _median(ctx: Context, x: Tensorlike, dim: int, keepdim: bool = False) -> tuple[Tensorlike, Tensorlike]:
    """The lower of the middle elements; a NaN, which is last in the order, where there is one."""
    dim = axis(dim, len(x.shape))
    found = best(ctx, x, x.shape[dim], dim, largest=False)
    size = x.shape[dim]
    value, place = (_at(ctx, t, dim, (size - 1) // 2, keepdim=keepdim) for t in found)
    if x.dtype is not DType.F32:
        return value, place
    last, its_place = (_at(ctx, t, dim, size - 1, keepdim=keepdim) for t in found)
    odd = ctx.apply("ne", last, last, dtype=DType.BOOL)
    chosen = ctx.apply("select", odd, last, value, dtype=DType.F32)
    return chosen, ctx.apply("select", odd, its_place, place, dtype=DType.I32)


@lowers(aten.median.default)
def _median_all(ctx: Context, x: Tensorlike) -> Tensorlike:
    return _median(ctx, ctx.values.reshape(x, (prod(x.shape),)), 0)[0]


def extreme(ctx: Context, x: Tensorlike, dim: int, *, keepdim: bool, largest: bool) -> tuple[Tensorlike, Tensorlike]:
    """The maximum (minimum) along a dimension and the first position where it stands (or a NaN).

    Both have x's shape without the dimension, or with 1 there.
    """
    given = ctx.strided(x if x.dtype is DType.F32 else ctx.cast(x, DType.I32))
    source = given if largest else ctx.strided(in_reverse(ctx, given))
    top = reduce(ctx, "max", source, (dim,), keepdim=True)
    hit = ctx.apply("eq", source, top, dtype=DType.BOOL)
    if source.dtype is DType.F32:
        odd = ctx.apply("ne", source, source, dtype=DType.BOOL)
        hit = ctx.apply("logical_or", hit, odd, dtype=DType.BOOL)
    place = _iota(ctx, x.shape[dim], dim, len(x.shape), negative=True)
    marked = ctx.apply("select", hit, place, Fill(DType.I32, (), _NONE), dtype=DType.I32)
    index = ctx.apply("neg", reduce(ctx, "max", ctx.strided(marked), (dim,), keepdim=keepdim))
    value: Tensorlike = top if largest else in_reverse(ctx, top)
    if not keepdim:
        value = ctx.values.reshape(value, tuple(n for d, n in enumerate(x.shape) if d != dim))
    return ctx.cast(value, x.dtype), index


@lowers(aten.max.dim)
def _max(ctx: Context, x: Tensorlike, dim: int, keepdim: bool = False) -> tuple[Tensorlike, Tensorlike]:
    return extreme(ctx, x, axis(dim, len(x.shape)), keepdim=keepdim, largest=True)


@lowers(aten.min.dim)
def _min(ctx: Context, x: Tensorlike, dim: int, keepdim: bool = False) -> tuple[Tensorlike, Tensorlike]:
    return extreme(ctx, x, axis(dim, len(x.shape)), keepdim=keepdim, largest=False)


def _position(ctx: Context, x: Tensorlike, dim: int | None, *, keepdim: bool, largest: bool) -> Tensorlike:
    if dim is None:
        x, dim, keepdim = ctx.values.reshape(x, (prod(x.shape),)), 0, False
    return extreme(ctx, x, axis(dim, len(x.shape)), keepdim=keepdim, largest=largest)[1]


@lowers(aten.argmax.default)
def _argmax(ctx: Context, x: Tensorlike, dim: int | None = None, keepdim: bool = False) -> Tensorlike:
    return _position(ctx, x, dim, keepdim=keepdim, largest=True)


@lowers(aten.argmin.default)
def _argmin(ctx: Context, x: Tensorlike, dim: int | None = None, keepdim: bool = False) -> Tensorlike:
    return _position(ctx, x, dim, keepdim=keepdim, largest=False)


@lowers(aten.max.default)
def _max_all(ctx: Context, x: Tensorlike) -> Tensorlike:
    return RULES[aten.amax.default](ctx, x, all_axes(None, len(x.shape)))


@lowers(aten.min.default)
def _min_all(ctx: Context, x: Tensorlike) -> Tensorlike:
    return RULES[aten.amin.default](ctx, x, all_axes(None, len(x.shape)))
