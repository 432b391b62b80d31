"""Writes at known places: slices, single positions and constant indices, each a reading of what is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from assay.engine.compiler.ir.strided import Strided
from assay.engine.compiler.ir.values import Fill, Tensorlike
from assay.engine.compiler.lowering.indexing import (
    add_along,
    gathered,
    joined_index,
    ranks_of,
    take_rows,
    with_joined,
    written,
)
from assay.engine.compiler.lowering.registry import Context, Unsupported, axis, lowers
from assay.engine.compiler.lowering.shapes import narrow, pad
from assay.engine.runtime.values.dtypes import from_bytes, to_bytes
from assay.protocol.types import DType

aten = torch.ops.aten


@lowers(aten.slice_scatter.default)
def _slice_scatter(
    ctx: Context, base: Tensorlike, source: Tensorlike, dim: int = 0, start: Any = None, end: Any = None, step: int = 1
) -> Tensorlike:
    del end
    dim = axis(dim, len(base.shape))
    size, count = base.shape[dim], source.shape[dim]
    first = 0 if start is None else min(axis(start, size), size)
    if count == size:
        return source
    if step != 1:
        return _overlay_apart(ctx, base, source, dim, first, step)
    return overlay(ctx, base, source, dim, first)


@lowers(aten.select_scatter.default)
def _select_scatter(ctx: Context, base: Tensorlike, source: Tensorlike, dim: int, index: int) -> Tensorlike:
    dim = axis(dim, len(base.shape))
    shape = (*base.shape[:dim], 1, *base.shape[dim + 1 :])
    return overlay(ctx, base, ctx.values.reshape(source, shape), dim, axis(index, base.shape[dim]))


def overlay(ctx: Context, base: Tensorlike, source: Tensorlike, dim: int, first: int) -> Tensorlike:
    """`base` with `source` written over indices first, first + 1, ... of one dimension."""
    size, count = base.shape[dim], source.shape[dim]
    if isinstance(base, Fill):
        return pad(ctx, source, dim, first, size - first - count, base.word)
    placed = pad(ctx, source, dim, first, size - first - count, 0)
    mask = bytes(first) + b"\x01" * count + bytes(size - first - count)
    flags = ctx.values.const(DType.BOOL, (size,), mask)
    shaped = ctx.values.reshape(flags, tuple(size if d == dim else 1 for d in range(len(base.shape))))
    return ctx.apply("select", shaped, placed, base, dtype=ctx.dtype)


def put_at(ctx: Context, x: Tensorlike, dim: int, first: int, size: int, fill: int) -> Tensorlike:
    """x from index `first` on along a dimension of this size, cut at its end; `fill` elsewhere."""
    room = size - first
    if x.shape[dim] > room:
        x = narrow(ctx, x, dim, 0, room)
    return pad(ctx, x, dim, first, room - x.shape[dim], fill)


def _apart(ctx: Context, x: Tensorlike, dim: int, first: int, step: int, size: int, fill: int) -> Tensorlike:
    """x at indices first, first + step, ... of a dimension of this size; `fill` elsewhere."""
    apart = pad(ctx, ctx.values.reshape(x, (*x.shape[: dim + 1], 1, *x.shape[dim + 1 :])), dim + 1, 0, step - 1, fill)
    joined = ctx.values.reshape(apart, (*x.shape[:dim], x.shape[dim] * step, *x.shape[dim + 1 :]))
    return put_at(ctx, joined, dim, first, size, fill)


def _overlay_apart(ctx: Context, base: Tensorlike, source: Tensorlike, dim: int, first: int, step: int) -> Tensorlike:
    """`base` with `source` written over indices first, first + step, ... of one dimension."""
    size, count = base.shape[dim], source.shape[dim]
    if count == 0:
        return base
    if isinstance(base, Fill):
        return _apart(ctx, source, dim, first, step, size, base.word)
    flags = Fill(DType.BOOL, tuple(count if d == dim else 1 for d in range(len(base.shape))), 1)
    written = _apart(ctx, flags, dim, first, step, size, 0)
    return ctx.apply("select", written, _apart(ctx, source, dim, first, step, size, 0), base, dtype=base.dtype)


def constant(x: Tensorlike) -> Tensor | None:
    """The elements of a tensor that is known at capture, in its shape; None for any other."""
    if isinstance(x, Fill):
        return from_bytes(x.dtype, (), (x.word % (1 << 64)).to_bytes(8, "little")[: x.dtype.size]).expand(x.shape)
    if x.value.kind != "const" or not x.is_full:
        return None
    at = torch.tensor(x.offset)
    for a in x.axes:
        at = at[..., None] + torch.arange(a.size) * a.stride
    data = from_bytes(x.dtype, (x.value.numel,), x.value.attributes[0])
    return data[at.reshape(-1)].reshape(x.shape)


@lowers(aten.index_put.default, aten._unsafe_index_put.default)
def _index_put(
    ctx: Context, base: Tensorlike, indices: Sequence[Any], x: Tensorlike, accumulate: bool = False
) -> Tensorlike:
    """`base` with x added, or written, at indices.

    What is written lies at constant indices or at all the positions that one order gives, or is one number at a mask.
    """
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    if not accumulate and len(given) == 1 and given[0][1].dtype is DType.BOOL and x.shape in ((), (1,)):
        first, mask = given[0]
        after = (1,) * (len(base.shape) - first - len(mask.shape))
        where = ctx.values.reshape(mask, (*mask.shape, *after))
        return ctx.apply("select", where, ctx.values.reshape(x, ()), base, dtype=base.dtype)
    if not accumulate and len(given) == 1 and len(given[0][1].shape) == 1:
        ranks = ranks_of(ctx, given[0][1], 0)
        if ranks is not None and ranks.shape[0] == base.shape[given[0][0]]:
            return _write_in_order(ctx, base, given[0][0], ranks, given[0][1].shape[0], x)
    known = [] if accumulate else [constant(i) for _, i in given]
    if not accumulate and any(i is None for i in known):
        raise Unsupported("writing at indices that may repeat (only adding is order-free, and constant indices)")
    # index: i32 of the shape that the tensors of `indices` broadcast to, in place of the dimensions that they index.
    first, count, index = joined_index(ctx, base.shape, indices)
    flat = ctx.values.reshape(base, with_joined(base, first, count))
    shape = (*base.shape[:first], *index.shape, *base.shape[first + count :])
    values = ctx.values.expand(x, shape)
    if accumulate:
        return ctx.values.reshape(add_along(ctx, flat, first, index, values, len(index.shape)), base.shape)
    rows = _joined_rows(base.shape[first : first + count], [i for i in known if i is not None])
    merged = (*base.shape[:first], rows.numel(), *base.shape[first + count :])
    return ctx.values.reshape(_write_rows(ctx, flat, first, rows, ctx.values.reshape(values, merged)), base.shape)


def _write_in_order(ctx: Context, base: Tensorlike, dim: int, ranks: Strided, count: int, x: Tensorlike) -> Tensorlike:
    """`base` with slice k of x along a dimension where the rank is k < count; ranks: each of 0 .. size - 1 once."""
    along = ctx.values.reshape(ranks, tuple(n if d == dim else 1 for d, n in enumerate(base.shape)))
    source = ctx.values.expand(x, (*base.shape[:dim], count, *base.shape[dim + 1 :]))
    return written(ctx, base, dim, ctx.strided(ctx.values.expand(along, base.shape)), count, source)


def _joined_rows(sizes: Sequence[int], indices: Sequence[Tensor]) -> Tensor:
    """The row-major position that each set of indices into dimensions of these sizes names, i64 [n]."""
    joined = torch.zeros((), dtype=torch.int64)
    for size, index in zip(sizes, indices, strict=True):
        joined = joined * size + torch.where(index < 0, index + size, index)
    return joined.reshape(-1)


def _sources(rows: Tensor, size: int, dim: int, *, may_repeat: bool) -> Tensor:
    """Which of the elements along a dimension is written at each of `size` places there, -1 for none, i32.

    rows: i64 places, the same along the dimension as the result but for its size.

    Raises:
        Unsupported: a place is written twice, and not `may_repeat`.
    """
    shape = tuple(size if d == dim else n for d, n in enumerate(rows.shape))
    if bool(((rows < 0) | (rows >= size)).any()):
        raise Unsupported(f"writing outside 0..{size - 1}")
    found = torch.full(shape, -1, dtype=torch.int32)
    at = torch.arange(rows.shape[dim], dtype=torch.int32)
    found.scatter_(dim, rows, at.reshape(tuple(-1 if d == dim else 1 for d in range(rows.ndim))).expand(rows.shape))
    if not may_repeat and int((found >= 0).sum()) != rows.numel():
        raise Unsupported(
            "writing two values at one place (which one stays is nowhere said; only adding is order-free)"
        )
    return found


def _write_rows(ctx: Context, base: Tensorlike, dim: int, rows: Tensor, x: Tensorlike) -> Tensorlike:
    """`base` with slice k of x along a dimension written at index rows[k]."""
    found = _sources(rows, base.shape[dim], 0, may_repeat=isinstance(x, Fill))
    if isinstance(x, Fill):
        picked: Tensorlike = Fill(x.dtype, base.shape, x.word)
    else:
        index = ctx.values.const(DType.I32, tuple(found.shape), to_bytes(found.clamp_min(0)))
        picked = take_rows(ctx, x, index, dim)
    return _where_found(ctx, found.reshape(tuple(-1 if d == dim else 1 for d in range(len(base.shape)))), picked, base)


def _write_along(ctx: Context, base: Tensorlike, dim: int, index: Tensor, value: Any) -> Tensorlike:
    """As torch.scatter with a constant index of the base's shape but for its size along the dimension."""
    given = ctx.cast(value, base.dtype)
    known = given if isinstance(given, Strided | Fill) else Fill(base.dtype, tuple(index.shape), given.word)
    found = _sources(index.long(), base.shape[dim], dim, may_repeat=isinstance(known, Fill))
    if isinstance(known, Fill):
        return _where_found(ctx, found, Fill(known.dtype, base.shape, known.word), base)
    places = ctx.values.const(DType.I32, tuple(found.shape), to_bytes(found.clamp_min(0)))
    return _where_found(ctx, found, gathered(ctx, known, dim, places), base)


def _where_found(ctx: Context, found: Tensor, x: Tensorlike, base: Tensorlike) -> Tensorlike:
    """x where `found` is not negative, else `base`."""
    if bool((found >= 0).all()):
        return x
    flags = ctx.values.const(DType.BOOL, tuple(found.shape), to_bytes(found >= 0))
    return ctx.apply("select", flags, x, base, dtype=base.dtype)


@lowers(aten.scatter.value, aten.scatter.src)
def _scatter_write(ctx: Context, base: Tensorlike, dim: int, index: Tensorlike, value: Any) -> Tensorlike:
    """One element written per row, as one-hot encodings and the gradient of cross-entropy do."""
    dim = axis(dim, len(base.shape))
    whole_rows = all(n == base.shape[d] for d, n in enumerate(index.shape) if d != dim)
    ranks = ranks_of(ctx, index, dim)
    if ranks is not None and whole_rows:
        given = ctx.cast(value, base.dtype)
        source = given if isinstance(given, Strided | Fill) else Fill(base.dtype, index.shape, given.word)
        return written(ctx, base, dim, ranks, index.shape[dim], source)
    known = constant(index) if whole_rows else None
    if known is not None and index.shape[dim] != 1:
        return _write_along(ctx, base, dim, known, value)
    if index.shape[dim] != 1 or not whole_rows:
        raise Unsupported("writing at several indices of a row (they may repeat; use scatter_add, or constant indices)")
    size = base.shape[dim]
    positions = ctx.values.const(DType.I32, (size,), to_bytes(torch.arange(size, dtype=torch.int32)))
    shape = tuple(size if d == dim else 1 for d in range(len(base.shape)))
    hit = ctx.apply("eq", ctx.cast(index, DType.I32), ctx.values.reshape(positions, shape), dtype=DType.BOOL)
    return ctx.apply("select", hit, ctx.cast(value, base.dtype), base, dtype=base.dtype)
