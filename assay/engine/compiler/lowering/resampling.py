"""Enlarging, shrinking and averaging by fractions: along each dimension a few weighted readings at constant places.

Places and weights follow from sizes alone, in binary64, so that they are the same wherever a program is captured.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from assay.engine.compiler.ir.values import Fill, Tensorlike
from assay.engine.compiler.lowering.indexing import add_along, take_rows
from assay.engine.compiler.lowering.registry import Context, lowers
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.types import DType

aten = torch.ops.aten


@dataclass(frozen=True, slots=True)
class Taps:
    """How one dimension of `size` places is read: for place k of the result at places[j][k], times weights[j][k]."""

    size: int
    places: tuple[tuple[int, ...], ...]
    weights: tuple[tuple[float, ...], ...]


def _taps(size: int, rows: Sequence[Sequence[tuple[int, float]]]) -> Taps:
    """From (place, weight) pairs of each place of the result, in pairs of weight 0 where it has fewer than others."""
    most = max(len(row) for row in rows)
    full = [[*row, *[(row[-1][0], 0.0)] * (most - len(row))] for row in rows]
    places = tuple(tuple(min(max(row[j][0], 0), size - 1) for row in full) for j in range(most))
    return Taps(size, places, tuple(tuple(row[j][1] for row in full) for j in range(most)))


def _scale(size: int, out: int, factor: float | None, *, corners: bool) -> float:
    """How far places of the result lie apart."""
    if corners:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1.0 / factor if factor else size / out


def linear(size: int, out: int, factor: float | None, *, corners: bool) -> Taps:
    """Two neighbours, each weighed by its nearness."""
    scale = _scale(size, out, factor, corners=corners)
    rows = []
    for k in range(out):
        at = k * scale if corners else max((k + 0.5) * scale - 0.5, 0.0)
        first = min(int(at), size - 1)
        part = min(at - first, 1.0)
        rows.append([(first, 1.0 - part), (first + 1, part)])
    return _taps(size, rows)


def _cubic(t: float, a: float) -> float:
    """Keys' convolution kernel (Cubic convolution interpolation, 1981)."""
    t = abs(t)
    if t <= 1.0:
        return ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
    return (((t - 5.0) * t + 8.0) * t - 4.0) * a if t < 2.0 else 0.0


def cubic(size: int, out: int, factor: float | None, *, corners: bool) -> Taps:
    """Four neighbours, weighed by a cubic."""
    scale = _scale(size, out, factor, corners=corners)
    rows = []
    for k in range(out):
        at = k * scale if corners else (k + 0.5) * scale - 0.5
        first = math.floor(at)
        rows.append([(first + j, _cubic(at - first - j, -0.75)) for j in (-1, 0, 1, 2)])
    return _taps(size, rows)


def _smooth(kernel: Callable[[float], float], reach: float) -> Callable[..., Taps]:
    """Taps that average over what shrinking joins (anti-aliasing)."""

    def taps(size: int, out: int, factor: float | None, *, corners: bool) -> Taps:
        scale = _scale(size, out, factor, corners=corners)
        wide = max(scale, 1.0)
        rows = []
        for k in range(out):
            center = scale * (k + 0.5)
            first, end = max(int(center - reach * wide + 0.5), 0), min(int(center + reach * wide + 0.5), size)
            weights = [kernel((j - center + 0.5) / wide) for j in range(first, end)]
            rows.append([(first + j, w / sum(weights)) for j, w in enumerate(weights)])
        return _taps(size, rows)

    return taps


def _f32(x: float) -> float:
    return float(struct.unpack("<f", struct.pack("<f", x))[0])


def _nearest(shift: float) -> Callable[..., Taps]:
    def taps(size: int, out: int, factor: float | None, *, corners: bool = False) -> Taps:
        scale = _f32(_scale(size, out, factor, corners=corners))  # PyTorch finds places in binary32
        return _taps(size, [[(int(_f32((k + shift) * scale)), 1.0)] for k in range(out)])

    return taps


nearest = _nearest(0.0)


def averages(size: int, out: int) -> Taps:
    """The mean over each of `out` nearly equal parts, which overlap where sizes do not divide."""
    bounds = [(k * size // out, -(-(k + 1) * size // out)) for k in range(out)]
    return _taps(size, [[(j, 1.0 / (end - first)) for j in range(first, end)] for first, end in bounds])


def _weights(ctx: Context, rows: Sequence[float] | Sequence[Sequence[float]], dim: int, rank: int) -> Tensorlike:
    """Weights [taps, places] or [places], along `dim` of so many dimensions."""
    t = torch.tensor(rows, dtype=torch.float32)
    if bool((t == 1.0).all()):
        return Fill(DType.F32, (1,) * rank, 0x3F800000)
    known = ctx.values.const(DType.F32, tuple(t.shape), to_bytes(t))
    return ctx.values.reshape(known, (*(1,) * dim, *t.shape, *(1,) * (rank - dim - t.ndim)))


def resampled(ctx: Context, x: Tensorlike, taps: Sequence[Taps]) -> Tensorlike:
    """x [*lead, *sizes] read through taps, one for each of the last dimensions: [*lead, *outs]."""
    lead = len(x.shape) - len(taps)
    for dim, t in enumerate(taps, lead):
        total: Tensorlike | None = None
        for places, weights in zip(t.places, t.weights, strict=True):
            part: Tensorlike = x
            if places != tuple(range(t.size)):
                index = ctx.values.const(DType.I32, (len(places),), to_bytes(torch.tensor(places, dtype=torch.int32)))
                part = take_rows(ctx, x, index, dim)
            scaled = (
                part if set(weights) == {1.0} else ctx.apply("mul", part, _weights(ctx, weights, dim, len(x.shape)))
            )
            total = scaled if total is None else ctx.apply("add", total, scaled)
        assert total is not None
        x = total
    return x


def resampled_back(ctx: Context, g: Tensorlike, taps: Sequence[Taps]) -> Tensorlike:
    """The gradient of `resampled`: g [*lead, *outs] to [*lead, *sizes], each an exact sum of what was read there."""
    lead = len(g.shape) - len(taps)
    for dim, t in enumerate(taps, lead):
        index = torch.tensor(t.places, dtype=torch.int32)
        at = ctx.values.const(DType.I32, tuple(index.shape), to_bytes(index))
        apart = ctx.values.reshape(g, (*g.shape[:dim], 1, *g.shape[dim:]))
        shape = (*g.shape[:dim], *index.shape, *g.shape[dim + 1 :])
        terms = ctx.values.expand(ctx.apply("mul", apart, _weights(ctx, t.weights, dim, len(shape))), shape)
        zeros = Fill(DType.F32, (*g.shape[:dim], t.size, *g.shape[dim + 1 :]), 0)
        g = add_along(ctx, zeros, dim, at, terms, 2)
    return g


def _all(way: Callable[..., Taps], sizes: Sequence[int], outs: Sequence[int], factors: Any, **how: bool) -> list[Taps]:
    given = [*factors, *[None] * (len(outs) - len(factors))]
    return [way(n, o, f, **how) for n, o, f in zip(sizes, outs, given, strict=True)]


def _lowers_with_corners(way: Callable[..., Taps], forward: Any, backward: Any) -> None:
    def onward(ctx: Context, x: Tensorlike, outs: Sequence[int], corners: bool, *factors: Any) -> Tensorlike:
        return resampled(ctx, x, _all(way, x.shape[2:], outs, factors, corners=corners))

    def back(
        ctx: Context, g: Tensorlike, outs: Sequence[int], into: Sequence[int], corners: bool, *factors: Any
    ) -> Tensorlike:
        return resampled_back(ctx, g, _all(way, into[2:], outs, factors, corners=corners))

    lowers(forward)(onward)
    lowers(backward)(back)


for _way, _forward, _backward in (
    (linear, aten.upsample_linear1d.default, aten.upsample_linear1d_backward.default),
    (linear, aten.upsample_bilinear2d.default, aten.upsample_bilinear2d_backward.default),
    (linear, aten.upsample_trilinear3d.default, aten.upsample_trilinear3d_backward.default),
    (cubic, aten.upsample_bicubic2d.default, aten.upsample_bicubic2d_backward.default),
    (
        _smooth(lambda t: max(1.0 - abs(t), 0.0), 1.0),
        aten._upsample_bilinear2d_aa.default,
        aten._upsample_bilinear2d_aa_backward.default,
    ),
    (
        _smooth(lambda t: _cubic(t, -0.5), 2.0),
        aten._upsample_bicubic2d_aa.default,
        aten._upsample_bicubic2d_aa_backward.default,
    ),
):
    _lowers_with_corners(_way, _forward, _backward)


def _lowers_nearest(way: Callable[..., Taps], forward: Any, backward: Any) -> None:
    def onward(ctx: Context, x: Tensorlike, outs: Sequence[int], *factors: Any) -> Tensorlike:
        return resampled(ctx, x, _all(way, x.shape[2:], outs, factors))

    def back(ctx: Context, g: Tensorlike, outs: Sequence[int], into: Sequence[int], *factors: Any) -> Tensorlike:
        return resampled_back(ctx, g, _all(way, into[2:], outs, factors))

    lowers(forward)(onward)
    lowers(backward)(back)


for _way, _forward, _backward in (
    (nearest, aten.upsample_nearest3d.default, aten.upsample_nearest3d_backward.default),
    (_nearest(0.5), aten._upsample_nearest_exact1d.default, aten._upsample_nearest_exact1d_backward.default),
    (_nearest(0.5), aten._upsample_nearest_exact2d.default, aten._upsample_nearest_exact2d_backward.default),
    (_nearest(0.5), aten._upsample_nearest_exact3d.default, aten._upsample_nearest_exact3d_backward.default),
):
    _lowers_nearest(_way, _forward, _backward)


def _edges(sizes: Sequence[int], padding: Sequence[int]) -> list[Taps]:
    """Taps that repeat the first and last place; padding counts from the last dimension, before and after."""
    taps = []
    for d, size in enumerate(sizes):
        before, after = padding[2 * (len(sizes) - 1 - d) :][:2]
        taps.append(_taps(size, [[(k - before, 1.0)] for k in range(before + size + after)]))
    return taps


@lowers(
    aten.replication_pad1d_backward.default,
    aten.replication_pad2d_backward.default,
    aten.replication_pad3d_backward.default,
)
def _replication_back(ctx: Context, g: Tensorlike, x: Tensorlike, padding: Sequence[int]) -> Tensorlike:
    k = len(padding) // 2
    return resampled_back(ctx, g, _edges(x.shape[len(x.shape) - k :], padding))
