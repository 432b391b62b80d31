"""Pooling: maxima and averages over windows, their gradients, and nearest-neighbour enlargement."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import torch
from torch import Tensor

from assay.engine.compiler.ir.strided import Strided
from assay.engine.compiler.ir.values import Fill, Tensorlike
from assay.engine.compiler.lowering.reductions import reduce, total
from assay.engine.compiler.lowering.registry import Context, lowers
from assay.engine.compiler.lowering.resampling import Taps, averages, nearest, resampled, resampled_back
from assay.engine.compiler.lowering.shapes import narrow
from assay.engine.compiler.lowering.windows import (
    Readers,
    SpatialWindow,
    joined_positions,
    patches,
    reading_windows,
    windows_of,
    with_parts,
)
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.types import DType

aten = torch.ops.aten

_MINUS_INFINITY = 0xFF800000
_FEW = 4
"""Windows of so many elements are read by one map; larger ones are reduced."""

_NOWHERE = 0xFFFFFFFF
"""-1 as an i32 word: the index of no position."""


def _const(ctx: Context, t: Tensor) -> Tensorlike:
    """An i32, f32 or bool constant."""
    dtype = {torch.int32: DType.I32, torch.float32: DType.F32, torch.bool: DType.BOOL}[t.dtype]
    return ctx.values.const(dtype, tuple(t.shape), to_bytes(t))


def _outer_sum(vectors: Sequence[Tensor]) -> Tensor:
    """All sums of one element of each vector, i32 with one dimension per vector."""
    n = len(vectors)
    parts = [v.reshape(*(1,) * d, -1, *(1,) * (n - d - 1)) for d, v in enumerate(vectors)]
    return sum(parts[1:], parts[0]).to(torch.int32)


def _plane_strides(sizes: Sequence[int]) -> list[int]:
    return [prod(sizes[d + 1 :]) for d in range(len(sizes))]


@lowers(aten.max_pool2d_with_indices.default, aten.max_pool3d_with_indices.default)
def _max_pool(
    ctx: Context, x: Tensorlike, kernel: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1, _: bool = False
) -> tuple[Tensorlike, Tensorlike]:
    """Maxima and, per window, the position in the plane of the first element that is the maximum.

    x: [*lead, *sizes]; both results: [*lead, *outs], the second i32.
    """
    k = _rank(kernel)
    lead = len(x.shape) - k
    windows = windows_of(x.shape[lead:], ctx.shape[lead:], kernel, stride, padding, dilation)
    seen = patches(ctx, x, windows, _MINUS_INFINITY)
    steps = _plane_strides(x.shape[lead:])
    away = _outer_sum([torch.arange(w.kernel) * w.dilation * s for w, s in zip(windows, steps, strict=True)])
    corner = _outer_sum([(torch.arange(w.out) * w.stride - w.padding) * s for w, s in zip(windows, steps, strict=True)])
    narrow_windows = away.numel() <= _FEW
    result, first = (_top_of_few if narrow_windows else _top)(ctx, seen, away, lead + k)
    return result, ctx.apply("add", first, _const(ctx, corner))


def _is_top(ctx: Context, x: Tensorlike, top: Tensorlike) -> Tensorlike:
    """Whether an element is the maximum, or a NaN."""
    odd = ctx.apply("ne", x, x, dtype=DType.BOOL)
    return ctx.apply("logical_or", ctx.apply("eq", x, top, dtype=DType.BOOL), odd, dtype=DType.BOOL)


def _top(ctx: Context, seen: Strided, away: Tensor, outer: int) -> tuple[Tensorlike, Tensorlike]:
    """Maxima over all dimensions from `outer` on, and the smallest `away` where one stands.

    seen: [*lead, *outs, *kernel], outer counting lead and outs; away: i32 [*kernel]; both results: [*lead, *outs].
    """
    inner = tuple(range(outer, len(seen.groups)))
    top = reduce(ctx, "max", seen, inner, keepdim=True)
    far = Fill(DType.I32, (), 0x80000001)
    negative = ctx.apply("select", _is_top(ctx, seen, top), _const(ctx, -away), far, dtype=DType.I32)
    first = ctx.apply("neg", reduce(ctx, "max", ctx.strided(negative), inner, keepdim=False))
    return ctx.values.reshape(top, seen.shape[:outer]), first


def _top_of_few(ctx: Context, seen: Strided, away: Tensor, outer: int) -> tuple[Tensorlike, Tensorlike]:
    """The same for windows of a few elements, as maps that read each of them."""
    parts: list[Tensorlike] = []
    for index in product(*(range(n) for n in seen.shape[outer:])):
        part: Tensorlike = seen
        for d, i in enumerate(index, outer):
            part = narrow(ctx, part, d, i, 1)
        parts.append(ctx.values.reshape(part, seen.shape[:outer]))
    top = parts[0]
    for part in parts[1:]:
        top = ctx.apply("maximum", top, part)
    offsets = away.flatten().tolist()
    first: Tensorlike = Fill(DType.I32, seen.shape[:outer], offsets[-1])
    for part, offset in reversed(list(zip(parts[:-1], offsets[:-1], strict=True))):
        chosen = Fill(DType.I32, (), offset)
        first = ctx.apply("select", _is_top(ctx, part, top), chosen, first, dtype=DType.I32)
    return top, first


def _rank(kernel: Any) -> int:
    return 2 if isinstance(kernel, int) else max(len(kernel), 2)


@lowers(aten.max_pool2d_with_indices_backward.default, aten.max_pool3d_with_indices_backward.default)
def _max_pool_backward(
    ctx: Context,
    g: Tensorlike,
    x: Tensorlike,
    kernel: Any,
    stride: Any,
    padding: Any,
    dilation: Any,
    _: bool,
    indices: Tensorlike,
) -> Tensorlike:
    """Per position the exact sum of the gradients of windows whose maximum it is.

    g, indices: [*lead, *outs]; the result: [*lead, *sizes]. Between: [*lead, *(quotient, part), *readers].
    """
    k = _rank(kernel)
    lead = len(x.shape) - k
    windows = windows_of(x.shape[lead:], g.shape[lead:], kernel, stride, padding, dilation)
    readers = [Readers.of(w) for w in windows]
    steps = _plane_strides(x.shape[lead:])
    grads = with_parts(reading_windows(ctx, g, readers), readers, lead)
    at = with_parts(reading_windows(ctx, ctx.cast(indices, DType.I32), readers, _NOWHERE), readers, lead)
    places = _outer_sum(
        [(torch.arange(r.quotients * r.parts) - r.skip) * s for r, s in zip(readers, steps, strict=True)]
    )
    shape = [n for r in readers for n in (r.quotients, r.parts)] + [1] * k
    here = ctx.values.reshape(_const(ctx, places), tuple(shape))
    hit = ctx.apply("eq", at, here, dtype=DType.BOOL)
    terms = ctx.apply("select", hit, grads, Fill(DType.F32, (), 0), dtype=DType.F32)
    first = lead + 2 * k
    added = total(ctx, terms, tuple(range(first, first + k)), keepdim=False)
    return joined_positions(ctx, added, readers, lead)


def _divisor(windows: Sequence[SpatialWindow], *, with_padding: bool, override: int | None) -> Tensor:
    """How many elements each average is over, f32 [*outs] or [] where all are equal."""
    if override:
        return torch.tensor(float(override))
    counts = torch.ones(())
    for d, w in enumerate(windows):
        start = torch.arange(w.out) * w.stride - w.padding
        end = (start + w.kernel).clamp(max=w.size + w.padding)
        inside = end - start if with_padding else end.clamp(max=w.size) - start.clamp(min=0)
        counts = counts * inside.reshape(-1, *(1,) * (len(windows) - d - 1))
    return counts.flatten()[0] if bool((counts == counts.flatten()[0]).all()) else counts


def _averaged(ctx: Context, x: Tensorlike, divisor: Tensor) -> Tensorlike:
    return ctx.apply("div", x, float(divisor) if divisor.ndim == 0 else _const(ctx, divisor))


@lowers(aten.avg_pool2d.default, aten.avg_pool3d.default)
def _avg_pool(
    ctx: Context,
    x: Tensorlike,
    kernel: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensorlike:
    lead = len(x.shape) - _rank(kernel)
    windows = windows_of(x.shape[lead:], ctx.shape[lead:], kernel, stride, padding)
    seen = patches(ctx, x, windows)
    added = total(ctx, seen, tuple(range(lead + len(windows), len(seen.groups))), keepdim=False)
    divisor = _divisor(windows, with_padding=count_include_pad, override=divisor_override)
    return _averaged(ctx, added, divisor)


@lowers(aten.avg_pool2d_backward.default, aten.avg_pool3d_backward.default)
def _avg_pool_backward(
    ctx: Context,
    g: Tensorlike,
    x: Tensorlike,
    kernel: Any,
    stride: Any,
    padding: Any,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Tensorlike:
    k = _rank(kernel)
    lead = len(x.shape) - k
    windows = windows_of(x.shape[lead:], g.shape[lead:], kernel, stride, padding)
    divisor = _divisor(windows, with_padding=count_include_pad, override=divisor_override)
    return spread_evenly(ctx, _averaged(ctx, g, divisor), windows)


def spread_evenly(ctx: Context, g: Tensorlike, windows: Sequence[SpatialWindow]) -> Tensorlike:
    """Per position the exact sum of g [*lead, *outs] over the windows that read it: [*lead, *sizes]."""
    k = len(windows)
    lead = len(g.shape) - k
    readers = [Readers.of(w) for w in windows]
    terms: Tensorlike = with_parts(reading_windows(ctx, g, readers), readers, lead)
    first = lead + 2 * k
    for d, r in enumerate(readers):
        if r.parts * r.count != r.window.kernel:
            at = torch.arange(r.parts)[:, None] + r.parts * torch.arange(r.count).flip(0)
            shape = [1] * (first + k)
            shape[lead + 2 * d + 1], shape[first + d] = r.parts, r.count
            exists = ctx.values.reshape(_const(ctx, at < r.window.kernel), tuple(shape))
            terms = ctx.apply("select", exists, terms, Fill(DType.F32, (), 0), dtype=DType.F32)
    added = total(ctx, terms, tuple(range(first, first + k)), keepdim=False)
    return joined_positions(ctx, added, readers, lead)


def _divides(small: Sequence[int], large: Sequence[int]) -> bool:
    return all(n % o == 0 for n, o in zip(large, small, strict=True))


def _even(sizes: Sequence[int], outs: Sequence[int]) -> list[SpatialWindow]:
    """Windows of equal size side by side."""
    return [SpatialWindow(n, o, n // o, n // o, 0, 1) for n, o in zip(sizes, outs, strict=True)]


@lowers(aten._adaptive_avg_pool2d.default, aten._adaptive_avg_pool3d.default)
def _adaptive(ctx: Context, x: Tensorlike, sizes: Any) -> Tensorlike:
    lead = len(x.shape) - len(sizes)
    if not _divides(ctx.shape[lead:], x.shape[lead:]):
        return resampled(ctx, x, list(map(averages, x.shape[lead:], ctx.shape[lead:])))
    windows = _even(x.shape[lead:], ctx.shape[lead:])
    seen = patches(ctx, x, windows)
    added = total(ctx, seen, tuple(range(lead + len(windows), len(seen.groups))), keepdim=False)
    return ctx.apply("div", added, float(prod(w.kernel for w in windows)))


@lowers(aten._adaptive_avg_pool2d_backward.default, aten._adaptive_avg_pool3d_backward.default)
def _adaptive_backward(ctx: Context, g: Tensorlike, x: Tensorlike) -> Tensorlike:
    lead = len(x.shape) - (3 if len(x.shape) == 5 else 2)
    if not _divides(g.shape[lead:], x.shape[lead:]):
        return resampled_back(ctx, g, list(map(averages, x.shape[lead:], g.shape[lead:])))
    windows = _even(x.shape[lead:], g.shape[lead:])
    return spread_evenly(ctx, ctx.apply("div", g, float(prod(w.kernel for w in windows))), windows)


def _enlarged(sizes: Sequence[int], outs: Sequence[int]) -> list[int]:
    return [o // n for n, o in zip(sizes, outs, strict=True)]


def _nearest(sizes: Sequence[int], outs: Sequence[int], scales: Sequence[float | None]) -> list[Taps]:
    return list(map(nearest, sizes, outs, scales or [None] * len(outs)))


@lowers(aten.upsample_nearest2d.default, aten.upsample_nearest1d.default)
def _upsample(ctx: Context, x: Tensorlike, sizes: Sequence[int], *scales: Any) -> Tensorlike:
    if not _divides(x.shape[2:], sizes):
        return resampled(ctx, x, _nearest(x.shape[2:], sizes, scales))
    factors = _enlarged(x.shape[2:], sizes)
    apart = ctx.values.reshape(x, (*x.shape[:2], *(m for n in x.shape[2:] for m in (n, 1))))
    wide = (*x.shape[:2], *(m for n, f in zip(x.shape[2:], factors, strict=True) for m in (n, f)))
    return ctx.values.reshape(ctx.values.expand(apart, wide), ctx.shape)


@lowers(aten.upsample_nearest2d_backward.default, aten.upsample_nearest1d_backward.default)
def _upsample_backward(
    ctx: Context, g: Tensorlike, sizes: Sequence[int], into: Sequence[int], *scales: Any
) -> Tensorlike:
    if not _divides(into[2:], sizes):
        return resampled_back(ctx, g, _nearest(into[2:], sizes, scales))
    factors = _enlarged(into[2:], sizes)
    apart = (*into[:2], *(m for n, f in zip(into[2:], factors, strict=True) for m in (n, f)))
    dims = tuple(range(3, 3 + 2 * len(factors), 2))
    return total(ctx, ctx.values.reshape(g, apart), dims, keepdim=False)
