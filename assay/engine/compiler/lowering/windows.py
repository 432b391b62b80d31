"""Sliding windows as views: what a convolution or a pooling reads, and, for gradients, what reads an input position.

Forward, along one dimension, window o reads positions o stride + k dilation - padding. Both o and k are axes of one
strided reading, so that patches are never made; only padding is, in memory of its own. Backward, the windows that read
a position are again an affine range once positions are split into (quotient, remainder) by the stride.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from assay.engine.compiler.ir.strided import Strided, merge_axes
from assay.engine.compiler.ir.value import Axis, full_axis
from assay.engine.compiler.ir.values import Tensorlike
from assay.engine.compiler.lowering.registry import Context, Unsupported
from assay.engine.compiler.lowering.shapes import narrow, pad


@dataclass(frozen=True, slots=True)
class SpatialWindow:
    """One spatial dimension: input and output sizes, and how windows lie."""

    size: int
    out: int
    kernel: int
    stride: int
    padding: int
    dilation: int

    @property
    def overhang(self) -> int:
        """How far the last window reaches beyond the input's end (negative: short of it)."""
        return (self.out - 1) * self.stride + (self.kernel - 1) * self.dilation + 1 - self.padding - self.size


def spatial(value: Any, count: int, default: int = 0) -> list[int]:
    """One number per spatial dimension from PyTorch's several ways of writing it."""
    if isinstance(value, int):
        return [value] * count
    values = list(value) or [default]
    return [int(v) for v in (values * count if len(values) == 1 else values)]


def windows_of(
    sizes: Sequence[int], outs: Sequence[int], kernel: Any, stride: Any, padding: Any, dilation: Any = 1
) -> list[SpatialWindow]:
    """The windows of all spatial dimensions; an empty stride is the kernel."""
    n = len(sizes)
    kernels = spatial(kernel, n)
    strides = kernels if not isinstance(stride, int) and not list(stride) else spatial(stride, n, 1)
    rest = strides, spatial(padding, n), spatial(dilation, n, 1)
    return [SpatialWindow(*values) for values in zip(sizes, outs, kernels, *rest, strict=True)]


def patches(
    ctx: Context, x: Tensorlike, windows: Sequence[SpatialWindow], fill: int = 0, order: Sequence[int] | None = None
) -> Strided:
    """What each window reads of x [*lead, *sizes]: [*lead, *outs, *kernel].

    order: the dimensions of x from the outermost in memory, should it be copied (as it lies, when none is given).
    """
    lead = len(x.shape) - len(windows)
    padded: Tensorlike = ctx.strided(x)
    for d, w in enumerate(windows, lead):
        padded = pad(ctx, padded, d, w.padding, max(w.overhang, 0), fill)
    tensor = _plain(ctx, ctx.strided(padded), lead, order)
    outs, kernels = [], []
    for d, w in enumerate(windows, lead):
        stride = tensor.groups[d][0].stride if tensor.groups[d] else 0
        outs.append((full_axis(w.out, stride * w.stride),))
        kernels.append((full_axis(w.kernel, stride * w.dilation),))
    return replace(tensor, groups=(*tensor.groups[:lead], *outs, *kernels))


def _plain(ctx: Context, x: Strided, lead: int, order: Sequence[int] | None) -> Strided:
    """The tensor with one full axis per trailing dimension, in memory of its own where it has several or reads fill."""
    merged = [merge_axes(g) for g in x.groups[lead:]]
    if not x.is_full or any(len(g) > 1 for g in merged):
        x = ctx.values.copy(x, order) if order else ctx.values.relaid(x)
        merged = [merge_axes(g) for g in x.groups[lead:]]
    return replace(x, groups=(*x.groups[:lead], *merged))


@dataclass(frozen=True, slots=True)
class Readers:
    """Which windows read which positions along one dimension: position + padding = quotient * parts + part.

    Position (quotient, part) is read by window quotient - step * back at kernel position part + parts * back, where
    both exist, for back = count - 1 - j and j below `count`: windows ascend with j, kernel positions descend. Quotients
    run from `first` over `quotients`; the first `skip` positions are cut off.
    """

    window: SpatialWindow
    parts: int
    count: int
    step: int
    first: int
    quotients: int
    skip: int

    @classmethod
    def of(cls, w: SpatialWindow) -> Readers:
        """The readers of a dimension whose stride or dilation is 1.

        Raises:
            Unsupported: both are above 1.
        """
        if w.stride > 1 and w.dilation > 1:
            raise Unsupported("the gradient of windows that are both strided and dilated")
        parts = w.stride
        first, end = w.padding // parts, -(-(w.padding + w.size) // parts)
        return cls(w, parts, -(-w.kernel // parts), w.dilation, first, end - first, w.padding - first * parts)

    @property
    def before(self) -> int:
        """Windows that are missing in front of the first."""
        return max((self.count - 1) * self.step - self.first, 0)

    @property
    def after(self) -> int:
        """Windows that are missing behind the last."""
        return max(self.first + self.quotients - self.window.out, 0)


def reading_windows(
    ctx: Context, g: Tensorlike, readers: Sequence[Readers], fill: int = 0, order: Sequence[int] | None = None
) -> Strided:
    """The windows that read each position, of g [*lead, *outs]: [*lead, *quotients, *counts], counts over readers j.

    order: as in `patches`.
    """
    lead = len(g.shape) - len(readers)
    padded: Tensorlike = ctx.strided(g)
    for d, r in enumerate(readers, lead):
        padded = pad(ctx, padded, d, r.before, r.after, fill)
    tensor = _plain(ctx, ctx.strided(padded), lead, order)
    offset = tensor.offset
    quotients, counts = [], []
    for d, r in enumerate(readers, lead):
        stride = tensor.groups[d][0].stride if tensor.groups[d] else 0
        offset += (r.first + r.before - r.step * (r.count - 1)) * stride
        quotients.append((full_axis(r.quotients, stride),))
        counts.append((full_axis(r.count, stride * r.step),))
    return replace(tensor, groups=(*tensor.groups[:lead], *quotients, *counts), offset=offset)


def with_parts(x: Strided, readers: Sequence[Readers], lead: int) -> Strided:
    """After `reading_windows`: [*lead, *(quotient, part), *counts]; nothing changes along a part."""
    n = len(readers)
    groups: list[tuple[Axis, ...]] = list(x.groups[:lead])
    for d, r in enumerate(readers, lead):
        groups += [x.groups[d], (full_axis(r.parts, 0),)]
    return replace(x, groups=(*groups, *x.groups[lead + n :]))


def joined_positions(ctx: Context, x: Tensorlike, readers: Sequence[Readers], lead: int) -> Tensorlike:
    """[*lead, *sizes] from [*lead, *(quotient, part)]."""
    shape = (*x.shape[:lead], *(r.quotients * r.parts for r in readers))
    x = ctx.values.reshape(x, shape)
    for d, r in enumerate(readers, lead):
        if x.shape[d] != r.window.size:
            x = narrow(ctx, x, d, r.skip, r.window.size)
    return x
