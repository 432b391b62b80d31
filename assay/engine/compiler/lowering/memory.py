"""Reading and writing a tensor's memory by strides: affine, so that a reading is a view and a write one map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import torch
from torch import Tensor
from torch.fx import Node

from assay.engine.compiler.ir.strided import Strided, merge_axes
from assay.engine.compiler.ir.value import full_axis
from assay.engine.compiler.ir.values import Fill, Tensorlike
from assay.engine.compiler.lowering.registry import Context, Unsupported, lowers
from assay.engine.compiler.lowering.shapes import pad
from assay.engine.compiler.lowering.writes import put_at
from assay.protocol.types import DType

aten = torch.ops.aten


def _order_in_memory(fake: Tensor) -> list[int] | None:
    """Dimensions from the outermost in memory, where the tensor is all of its memory, each element once."""
    if fake.storage_offset() != 0 or fake.untyped_storage().nbytes() != fake.numel() * fake.element_size():
        return None
    strides = fake.stride()
    order = sorted(range(fake.ndim), key=lambda d: (-strides[d], -fake.shape[d]))
    expected = fake.numel()
    for d in order:
        if fake.shape[d] == 1:
            continue
        expected //= fake.shape[d]
        if strides[d] != expected:
            return None
    return order


def _owner(ctx: Context) -> tuple[Tensorlike, list[int]]:
    """The tensor whose memory the first argument is a view of, and its dimensions from the outermost in memory.

    Raises:
        Unsupported: none of those that it was made from is all of that memory.
    """
    assert ctx.node is not None
    node: Any = ctx.node.args[0]
    memory = node.meta["val"].untyped_storage()._cdata
    while isinstance(node, Node) and isinstance(node.meta.get("val"), Tensor):
        fake = node.meta["val"]
        if fake.untyped_storage()._cdata != memory:
            break
        order = _order_in_memory(fake)
        if order is not None and isinstance(ctx.known[node], Strided | Fill):
            return ctx.known[node], order
        node = node.args[0] if node.args else None
    raise Unsupported("strides over memory of which only a part is known (call contiguous first, or slice)")


def _in_memory(ctx: Context, x: Tensorlike, order: Sequence[int]) -> Tensorlike:
    """x with its elements in the order in which they lie in memory: [numel]."""
    flat = (prod(x.shape),)
    return Fill(x.dtype, flat, x.word) if isinstance(x, Fill) else ctx.values.reshape(x.permute(order), flat)


def _from_memory(ctx: Context, flat: Tensorlike, shape: Sequence[int], order: Sequence[int]) -> Tensorlike:
    """The inverse of `_in_memory`."""
    laid = ctx.values.reshape(flat, tuple(shape[d] for d in order))
    if isinstance(laid, Fill):
        return Fill(laid.dtype, tuple(shape), laid.word)
    return laid.permute([list(order).index(d) for d in range(len(order))])


@lowers(aten.as_strided.default)
def _as_strided(
    ctx: Context, x: Tensorlike, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Tensorlike:
    """A view of memory: offset + sum of index times stride, over the tensor that owns the memory."""
    assert ctx.node is not None
    given: Any = ctx.node.args[0]
    start = given.meta["val"].storage_offset() if offset is None else offset
    owner, order = _owner(ctx)
    if isinstance(owner, Fill) or 0 in size:
        return Fill(x.dtype, tuple(size), owner.word if isinstance(owner, Fill) else 0)
    flat = ctx.strided(_in_memory(ctx, owner, order))
    group = merge_axes(flat.groups[0])
    if len(group) > 1 or not all(a.is_full for a in group):
        flat = ctx.values.copy(flat)
        group = merge_axes(flat.groups[0])
    step = group[0].stride if group else 0
    groups = tuple((full_axis(n, s * step),) for n, s in zip(size, stride, strict=True))
    return replace(flat, groups=groups, offset=flat.offset + start * step)


@lowers(aten.as_strided_scatter.default)
def _as_strided_scatter(
    ctx: Context,
    base: Tensorlike,
    source: Tensorlike,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int | None = None,
) -> Tensorlike:
    """`base` with its memory at offset + sum of index times stride overwritten by a tensor of this size."""
    assert ctx.node is not None
    given: Any = ctx.node.args[0]
    order = _order_in_memory(given.meta["val"])
    if order is None:
        raise Unsupported("writing by strides into a tensor that is a part of its memory (assign to a slice)")
    if 0 in size:
        return base
    total = prod(base.shape)
    places = size, stride, offset or 0, total
    if prod(size) == total:
        return _from_memory(ctx, _laid_out(ctx, source, *places, 0), base.shape, order)
    if isinstance(base, Fill):
        return _from_memory(ctx, _laid_out(ctx, source, *places, base.word), base.shape, order)
    written = _laid_out(ctx, Fill(DType.BOOL, tuple(size), 1), *places, 0)
    placed = _laid_out(ctx, source, *places, 0)
    flat = ctx.apply("select", written, placed, _in_memory(ctx, base, order), dtype=base.dtype)
    return _from_memory(ctx, flat, base.shape, order)


def _laid_out(
    ctx: Context, x: Tensorlike, size: Sequence[int], stride: Sequence[int], offset: int, total: int, fill: int
) -> Tensorlike:
    """Memory [total] that holds x [*size] at offset + sum of index times stride, and `fill` elsewhere.

    Raises:
        Unsupported: places repeat, or interleave otherwise than as rows of rows.
    """
    order = sorted((d for d, n in enumerate(size) if n > 1), key=lambda d: -stride[d])
    seen: Tensorlike = ctx.strided(x).permute([*order, *(d for d in range(len(size)) if d not in order)])
    seen = ctx.values.reshape(seen, (*(size[d] for d in order), 1))
    for d in reversed(order):
        room = stride[d] - seen.shape[-1]
        if room < 0:
            raise Unsupported("writing by strides at places that overlap (assign to slices one after the other)")
        wide = pad(ctx, seen, len(seen.shape) - 1, 0, room, fill)
        seen = ctx.values.reshape(wide, (*wide.shape[:-2], wide.shape[-2] * wide.shape[-1]))
    return put_at(ctx, seen, 0, offset, total, fill)
