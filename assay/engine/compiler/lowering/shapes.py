"""Reshapings: views wherever one affine reading expresses them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from assay.engine.compiler.ir.fusion import MAX_FUSED_OPERANDS
from assay.engine.compiler.ir.strided import Strided, merge_axes
from assay.engine.compiler.ir.values import Fill, Tensorlike
from assay.engine.compiler.lowering.registry import Context, Unsupported, axis, lowers
from assay.protocol.types import DType

aten = torch.ops.aten


@lowers(
    aten.alias.default,
    aten.clone.default,
    aten.detach.default,
    aten.lift_fresh_copy.default,
    aten.contiguous.default,
)
def _same(_: Context, x: Tensorlike, **__: Any) -> Tensorlike:
    return x


@lowers(aten.view.default, aten._unsafe_view.default, aten.reshape.default)
def _view(ctx: Context, x: Tensorlike, _: Sequence[int]) -> Tensorlike:
    seen = ctx.values.reshape(x, ctx.shape)
    if isinstance(seen, Strided) and seen.value.layout_hint and any(len(merge_axes(g)) > 1 for g in seen.groups):
        # Channels that lie innermost, flattened: put in order once, and not by every product that reads them.
        return ctx.values.reshape(ctx.values.copy(ctx.strided(x)), ctx.shape)
    return seen


@lowers(aten.permute.default)
def _permute(ctx: Context, x: Tensorlike, order: Sequence[int]) -> Tensorlike:
    if isinstance(x, Fill):
        return Fill(x.dtype, ctx.shape, x.word)
    return x.permute([axis(d, len(order)) for d in order])


@lowers(aten.expand.default)
def _expand(ctx: Context, x: Tensorlike, _: Sequence[int], **__: Any) -> Tensorlike:
    return ctx.values.expand(x, ctx.shape)


@lowers(aten.unsqueeze.default)
def _unsqueeze(ctx: Context, x: Tensorlike, dim: int) -> Tensorlike:
    return Fill(x.dtype, ctx.shape, x.word) if isinstance(x, Fill) else x.unsqueeze(axis(dim, len(ctx.shape)))


@lowers(aten.squeeze.dims, aten.squeeze.dim, aten.squeeze.default)
def _squeeze(ctx: Context, x: Tensorlike, _: Any = None) -> Tensorlike:
    return ctx.values.reshape(x, ctx.shape)


@lowers(aten.slice.Tensor)
def _slice(ctx: Context, x: Tensorlike, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Tensorlike:
    del end
    dim = axis(dim, len(x.shape))
    first = 0 if start is None else min(axis(start, x.shape[dim]), x.shape[dim])
    return narrow(ctx, x, dim, max(first, 0), ctx.shape[dim], step)


@lowers(aten.select.int)
def _select(ctx: Context, x: Tensorlike, dim: int, index: int) -> Tensorlike:
    dim = axis(dim, len(x.shape))
    one = narrow(ctx, x, dim, axis(index, x.shape[dim]), 1)
    return ctx.values.reshape(one, ctx.shape)


@lowers(aten.split_with_sizes.default)
def _split(ctx: Context, x: Tensorlike, sizes: Sequence[int], dim: int = 0) -> tuple[Tensorlike, ...]:
    dim = axis(dim, len(x.shape))
    starts = [sum(sizes[:k]) for k in range(len(sizes))]
    return tuple(narrow(ctx, x, dim, start, size) for start, size in zip(starts, sizes, strict=True))


def narrow(ctx: Context, x: Tensorlike, dim: int, start: int, count: int, step: int = 1) -> Tensorlike:
    """Indices start, start + step, ... of one dimension."""
    if isinstance(x, Fill):
        return Fill(x.dtype, (*x.shape[:dim], count, *x.shape[dim + 1 :]), x.word)
    cut = x.narrow(dim, start, count, step)
    if cut is None:
        cut = ctx.values.relaid(x).narrow(dim, start, count, step)
    if cut is None and count == 0:
        return Fill(x.dtype, (*x.shape[:dim], 0, *x.shape[dim + 1 :]), 0)
    if cut is None:
        raise Unsupported("a slice of this dimension")
    if any(a.hi <= 0 or a.lo >= a.size for a in cut.axes):
        return Fill(cut.dtype, cut.shape, cut.fill)
    return cut


def pad(ctx: Context, x: Tensorlike, dim: int, before: int, after: int, fill: int) -> Strided:
    """Indices that read a fill around one dimension."""
    tensor = ctx.strided(x)
    return tensor.pad(dim, before, after, fill) or _sure(ctx.values.relaid(tensor).pad(dim, before, after, fill))


def _sure(x: Strided | None) -> Strided:
    if x is None:
        raise Unsupported("padding of this dimension")
    return x


def neutral(dtype: DType) -> tuple[str, int]:
    """An operation and a fill that leave the other operand's bits as they are."""
    match dtype.value_type:
        case DType.F32:
            return "add", 0x80000000  # x + -0 is x, also for the zeros
        case DType.I32:
            return "bit_or", 0
        case DType.BOOL:
            return "logical_or", 0
        case _:
            raise Unsupported(f"joining tensors of {dtype.name}")


@lowers(aten.cat.default)
def _cat(ctx: Context, tensors: Sequence[Tensorlike], dim: int = 0) -> Tensorlike:
    dim = axis(dim, len(ctx.shape))
    parts = [ctx.cast(t, ctx.dtype) for t in tensors if t.shape != (0,)]
    if not parts:
        raise Unsupported("joining no tensors")
    first = parts[0]
    if isinstance(first, Fill) and all(isinstance(p, Fill) and p.word == first.word for p in parts):
        return Fill(ctx.dtype, ctx.shape, first.word)
    # One map joins as many as it may read; more are joined in several rounds, each of which moves everything once.
    while len(parts) > MAX_FUSED_OPERANDS:
        starts = range(0, len(parts), MAX_FUSED_OPERANDS)
        parts = [_joined(ctx, parts[k : k + MAX_FUSED_OPERANDS], dim) for k in starts]
    return _joined(ctx, parts, dim)


def _joined(ctx: Context, parts: Sequence[Tensorlike], dim: int) -> Tensorlike:
    """Tensors of one type side by side along a dimension."""
    if len(parts) == 1:
        return parts[0]
    op, fill = neutral(ctx.dtype)
    total, at = sum(p.shape[dim] for p in parts), 0
    result: Tensorlike | None = None
    for part in parts:
        size = part.shape[dim]
        wide = pad(ctx, part, dim, at, total - at - size, fill)
        result = wide if result is None else ctx.apply(op, result, wide, dtype=ctx.dtype)
        at += size
    assert result is not None
    return result


@lowers(aten.constant_pad_nd.default)
def _constant_pad(ctx: Context, x: Tensorlike, padding: Sequence[int], value: float = 0) -> Tensorlike:
    from assay.engine.compiler.ir.values import number

    fill = number(x.dtype.value_type, value).word
    for k in range(0, len(padding), 2):
        dim = len(x.shape) - 1 - k // 2
        before, after = padding[k], padding[k + 1]
        if before < 0 or after < 0:
            low, high = max(-before, 0), max(-after, 0)
            x = narrow(ctx, x, dim, low, x.shape[dim] - low - high)
        x = pad(ctx, x, dim, max(before, 0), max(after, 0), fill)
    return x


@lowers(aten.flip.default)
def _flip(ctx: Context, x: Tensorlike, dims: Sequence[int]) -> Tensorlike:
    if isinstance(x, Fill):
        return x
    for d in dims:
        dim = axis(d, len(x.shape))
        flipped = x.flip(dim) or ctx.values.relaid(x).flip(dim)
        if flipped is None:
            raise Unsupported("reversing this dimension")
        x = flipped
    return x
