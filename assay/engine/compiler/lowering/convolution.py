"""Convolutions as products over views: forward, both gradients, and transposed ones, in one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from assay.engine.compiler.ir.strided import Strided
from assay.engine.compiler.ir.values import Tensorlike
from assay.engine.compiler.lowering.products import product
from assay.engine.compiler.lowering.reductions import total
from assay.engine.compiler.lowering.registry import Context, Unsupported, lowers
from assay.engine.compiler.lowering.shapes import pad
from assay.engine.compiler.lowering.windows import (
    Readers,
    SpatialWindow,
    joined_positions,
    patches,
    reading_windows,
    windows_of,
)

aten = torch.ops.aten


def _split(ctx: Context, x: Tensorlike, dim: int, groups: int) -> Strided:
    """[groups, ..., size / groups, ...] from a tensor with `size` along a dimension."""
    shape = (*x.shape[:dim], groups, x.shape[dim] // groups, *x.shape[dim + 1 :])
    split = ctx.strided(ctx.values.reshape(x, shape))
    return split.permute((dim, *range(dim), *range(dim + 1, len(shape))))


def _matrix(x: Strided, rows: int) -> Strided:
    """[group, rows, columns] from [group, *dims], of which so many are the rows' and the rest the columns'."""
    axes = [tuple(a for g in part for a in g) for part in (x.groups[1 : 1 + rows], x.groups[1 + rows :])]
    return replace(x, groups=(x.groups[0], *axes))


def _swapped(x: Strided) -> Strided:
    return x.permute((0, 2, 1))


def _channels_last(rank: int, groups: int) -> tuple[int, ...]:
    """The order in which a copy of [N, C, *sizes] is read best: a term's channels side by side, or each group alone."""
    return (0, *range(2, rank), 1) if groups == 1 else tuple(range(rank))


def _leading(x: Strided, groups: int) -> Strided:
    """A product whose columns are channels: what is computed from it element by element keeps them innermost."""
    x.value.layout_hint = x.value.layout_hint or groups == 1
    return x


def _terms(ctx: Context, x: Tensorlike, windows: Sequence[SpatialWindow], groups: int) -> Strided:
    """What each window reads of x [N, C, *sizes]: [group, N, *outs, *kernel, C / groups]."""
    k = len(windows)
    seen = patches(ctx, x, windows, order=_channels_last(2 + k, groups))
    return _split(ctx, seen, 1, groups).permute((0, 1, *range(3, 3 + 2 * k), 2))


def correlate(ctx: Context, x: Tensorlike, w: Tensorlike, windows: Sequence[SpatialWindow], groups: int) -> Tensorlike:
    """x [N, C, *sizes] with w [O, C / groups, *kernel] to [N, O, *outs]."""
    n, outs = x.shape[0], [v.out for v in windows]
    k = len(windows)
    seen = _terms(ctx, x, windows, groups)
    weights = _split(ctx, w, 0, groups).permute((0, 1, *range(3, 3 + k), 2))  # group, O', kernel, C'
    made = _leading(product(ctx, _matrix(seen, 1 + k), _swapped(_matrix(weights, 1))), groups)
    split = ctx.strided(ctx.values.reshape(made, (groups, n, *outs, w.shape[0] // groups)))
    ordered = split.permute((1, 0, 2 + k, *range(2, 2 + k)))
    return ctx.values.reshape(ordered, (n, w.shape[0], *outs))


def scattered(ctx: Context, g: Tensorlike, w: Tensorlike, windows: Sequence[SpatialWindow], groups: int) -> Tensorlike:
    """The transposed map: g [N, O, *outs] with w [O, C / groups, *kernel] to [N, C, *sizes]."""
    g, windows = _grown(ctx, g, windows)
    k, n, channels = len(windows), g.shape[0], w.shape[1]
    readers = [Readers.of(v) for v in windows]
    seen = reading_windows(ctx, g, readers, order=_channels_last(2 + k, groups))
    seen = _split(ctx, seen, 1, groups).permute((0, 1, *range(3, 3 + 2 * k), 2))  # group, N, quotients, counts, O'
    weights: Tensorlike = ctx.strided(w)
    for d, r in enumerate(readers, 2):
        weights = pad(ctx, weights, d, 0, r.parts * r.count - r.window.kernel, 0)
    shape = (groups, w.shape[0] // groups, channels, *(x for r in readers for x in (r.count, r.parts)))
    split = ctx.strided(ctx.values.reshape(weights, shape))
    counts, parts = range(3, 3 + 2 * k, 2), range(4, 4 + 2 * k, 2)
    for d in counts:
        flipped = split.flip(d) or ctx.values.copy(split).flip(d)
        assert flipped is not None
        split = flipped
    # Weights are small: in memory of their own in the order in which they are read.
    columns = ctx.values.copy(_matrix(split.permute((0, *counts, 1, *parts, 2)), 1 + k))
    made = _leading(product(ctx, _matrix(seen, 1 + k), columns), groups)
    quotients, sizes = [r.quotients for r in readers], [r.parts for r in readers]
    whole = ctx.strided(ctx.values.reshape(made, (groups, n, *quotients, *sizes, channels)))
    pairs = [d for i in range(k) for d in (2 + i, 2 + k + i)]
    ordered = whole.permute((1, 0, 2 + 2 * k, *pairs))
    merged = ctx.values.reshape(ordered, (n, groups * channels, *(x for r in readers for x in (r.quotients, r.parts))))
    return joined_positions(ctx, merged, readers, 2)


def _grown(ctx: Context, g: Tensorlike, windows: Sequence[SpatialWindow]) -> tuple[Tensorlike, list[SpatialWindow]]:
    """g with zeros between its positions along dimensions that are both strided and dilated, and their new windows."""
    changed = []
    for d, v in enumerate(windows, 2):
        if v.stride > 1 and v.dilation > 1:
            apart = ctx.values.reshape(g, (*g.shape[: d + 1], 1, *g.shape[d + 1 :]))
            spaced = ctx.values.copy(pad(ctx, apart, d + 1, 0, v.stride - 1, 0))
            g = ctx.values.reshape(spaced, (*g.shape[:d], v.out * v.stride, *g.shape[d + 1 :]))
            v = replace(v, out=v.out * v.stride, stride=1)
        changed.append(v)
    return g, changed


def weight_gradient(
    ctx: Context, g: Tensorlike, x: Tensorlike, windows: Sequence[SpatialWindow], groups: int
) -> Tensorlike:
    """[O, C / groups, *kernel] from g [N, O, *outs] and x [N, C, *sizes]."""
    k = len(windows)
    kernel = [v.kernel for v in windows]
    seen = _terms(ctx, x, windows, groups)
    grads = _split(ctx, g, 1, groups)  # group, N, O', outs
    grads = grads.permute((0, 2, 1, *range(3, 3 + k)))
    made = product(ctx, _matrix(grads, 1), _matrix(seen, 1 + k))
    split = ctx.strided(ctx.values.reshape(made, (g.shape[1], *kernel, x.shape[1] // groups)))
    return split.permute((0, 1 + k, *range(1, 1 + k)))


@lowers(aten.convolution.default)
def _convolution(
    ctx: Context,
    x: Tensorlike,
    w: Tensorlike,
    bias: Tensorlike | None,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
) -> Tensorlike:
    del output_padding
    if 0 in w.shape[:2]:
        raise Unsupported("a convolution without channels")
    if transposed:
        windows = windows_of(ctx.shape[2:], x.shape[2:], w.shape[2:], stride, padding, dilation)
        result = scattered(ctx, x, w, windows, groups)
    else:
        windows = windows_of(x.shape[2:], ctx.shape[2:], w.shape[2:], stride, padding, dilation)
        result = correlate(ctx, x, w, windows, groups)
    if bias is None:
        return result
    return ctx.apply("add", result, ctx.values.reshape(bias, (bias.shape[0], *(1,) * len(windows))))


@lowers(aten.convolution_backward.default)
def _convolution_backward(
    ctx: Context,
    g: Tensorlike,
    x: Tensorlike,
    w: Tensorlike,
    bias_sizes: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    transposed: bool,
    output_padding: Any,
    groups: int,
    wanted: Sequence[bool],
) -> tuple[Tensorlike | None, ...]:
    del bias_sizes, output_padding
    gradient = weight = bias = None
    if transposed:
        windows = windows_of(g.shape[2:], x.shape[2:], w.shape[2:], stride, padding, dilation)
        if wanted[0]:
            gradient = correlate(ctx, g, w, windows, groups)
        if wanted[1]:
            weight = weight_gradient(ctx, x, g, windows, groups)
    else:
        windows = windows_of(x.shape[2:], g.shape[2:], w.shape[2:], stride, padding, dilation)
        if wanted[0]:
            gradient = scattered(ctx, g, w, windows, groups)
        if wanted[1]:
            weight = weight_gradient(ctx, g, x, windows, groups)
    if wanted[2]:
        bias = total(ctx, g, [d for d in range(len(g.shape)) if d != 1], keepdim=False)
    return gradient, weight, bias
