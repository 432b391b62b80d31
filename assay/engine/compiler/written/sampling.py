"""Reading images at coordinates that are values (grid_sample), and distances between all pairs of rows."""

from __future__ import annotations

from itertools import product
from typing import Any

import torch
from torch import Tensor

_LINEAR, _NEAREST = 0, 1
_BORDER, _REFLECTION = 1, 2


def _reflected(at: Tensor, size: int, *, corners: bool) -> Tensor:
    """Coordinates mirrored at the edges until they lie between them."""
    low, span = (0.0, float(size - 1)) if corners else (-0.5, float(size))
    if span == 0.0:
        return torch.zeros_like(at)
    away = (at - low).abs()
    turns = torch.floor(away / span).detach()
    rest = away - turns * span
    return torch.where(torch.remainder(turns, 2.0) == 0.0, rest, span - rest) + low


def _inside(at: Tensor, size: int, padding: int, *, corners: bool) -> Tensor:
    """Coordinates as the padding moves them; zeros leave them where they are."""
    if padding == _REFLECTION:
        at = _reflected(at, size, corners=corners)
    return at.clamp(0.0, float(size - 1)) if padding in (_BORDER, _REFLECTION) else at


def _read(x: Tensor, places: list[Tensor]) -> Tensor:
    """x [N, C, *sizes] at whole coordinates [N, points], one tensor a dimension: [N, C, points]; 0 outside."""
    index, is_within = torch.zeros_like(places[0]), torch.ones_like(places[0], dtype=torch.bool)
    for size, at in zip(x.shape[2:], places, strict=True):
        is_within = is_within & (at >= 0) & (at <= size - 1)
        index = index * size + at.clamp(0.0, float(size - 1))
    flat = index.to(torch.int64)[:, None].expand(x.shape[0], x.shape[1], index.shape[1])
    return torch.where(is_within[:, None], x.flatten(2).gather(2, flat), 0.0)


def _cubic(part: Tensor) -> list[Tensor]:
    """Keys' weights of the four neighbours of a point, the second of which lies `part` before it."""
    a = -0.75
    weights: list[Tensor] = []
    for t in (part + 1.0, part, 1.0 - part, 2.0 - part):
        far = ((t - 5.0) * t + 8.0) * t - 4.0
        near = ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0
        weights.append(near if len(weights) in (1, 2) else a * far)
    return weights


def grid_sampler(x: Tensor, grid: Tensor, mode: int, padding: int, align_corners: bool) -> Tensor:
    """x [N, C, *sizes] read at grid [N, *outs, dimensions], whose last number counts along the first of the sizes.

    Coordinates lie in -1..1 between the edges; indices beyond 2^24 elements a plane are not exact.
    """
    sizes, corners = x.shape[2:], bool(align_corners)
    points = grid.reshape(grid.shape[0], -1, len(sizes))
    coordinates = []
    for d, size in enumerate(sizes):
        unit = points[..., len(sizes) - 1 - d]
        coordinates.append((unit + 1.0) * (0.5 * (size - 1)) if corners else ((unit + 1.0) * size - 1.0) * 0.5)
    if mode == _NEAREST:
        whole = [torch.round(_inside(c, n, padding, corners=corners)) for c, n in zip(coordinates, sizes, strict=True)]
        # Grids have a gradient here too, of zero, as in PyTorch.
        still = [(at - at.detach()).clamp(0.0, 0.0) for at in whole]
        result = _read(x, whole) + torch.stack(still).sum(0)[:, None]
    else:
        axes = []
        for c, n in zip(coordinates, sizes, strict=True):
            c = _inside(c, n, padding, corners=corners) if mode == _LINEAR else c
            first = torch.floor(c).detach()
            part = c - first
            weights = [1.0 - part, part] if mode == _LINEAR else _cubic(part)
            start = 0 if mode == _LINEAR else -1
            moved = [first + float(start + j) for j in range(len(weights))]
            if mode != _LINEAR:
                moved = [_inside(m, n, padding, corners=corners) for m in moved]
            axes.append(list(zip(moved, weights, strict=True)))
        result = x.new_zeros(())
        for corner in product(*axes):
            weight = corner[0][1]
            for _, w in corner[1:]:
                weight = weight * w
            result = result + _read(x, [at for at, _ in corner]) * weight[:, None]
    return result.reshape(x.shape[0], x.shape[1], *grid.shape[1:-1])


def cdist(x: Tensor, y: Tensor, p: float = 2.0, _: str | None = None, **__: Any) -> Tensor:
    """Distances of rows of x [..., P, M] from rows of y [..., R, M] in norm 1, 2 or infinity: [..., P, R]."""
    apart = x.unsqueeze(-2) - y.unsqueeze(-3)
    if p == 1.0:
        return apart.abs().sum(-1)
    if p == float("inf"):
        return apart.abs().amax(-1)
    if p != 2.0:
        return NotImplemented
    squares = (apart * apart).sum(-1)
    is_apart = squares > 0.0
    # The gradient of a distance of zero is zero, not infinite.
    return torch.where(is_apart, torch.where(is_apart, squares, 1.0).sqrt(), 0.0)
