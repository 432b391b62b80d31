"""Adaptive pooling of maxima: each cell of a result has a window of its own, of sizes that may differ by one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

PooledSize = int | None | Sequence[int | None]


def _sizes(wanted: PooledSize, given: Sequence[int]) -> list[int]:
    """The sizes that are asked for; None keeps the given one."""
    each = wanted if isinstance(wanted, Sequence) else [wanted] * len(given)
    return [n if w is None else int(w) for w, n in zip(each, given, strict=True)]


def _edges(size: int, out: int) -> list[tuple[int, int]]:
    """Where each of `out` windows begins and ends."""
    return [(k * size // out, -(-(k + 1) * size // out)) for k in range(out)]


def max_pool2d(x: Tensor, size: PooledSize) -> tuple[Tensor, Tensor]:
    """Maxima of windows of x [..., H, W], and the position in the plane of the first element that is one: [..., *size].

    One window of all sizes alike, where they divide; else one product of a row's and a column's window each.
    """
    (height, width), (rows, columns) = x.shape[-2:], _sizes(size, x.shape[-2:])
    if not x.numel() or not rows * columns:
        return NotImplemented
    if height % rows == 0 and width % columns == 0:
        return F.max_pool2d_with_indices(x, [height // rows, width // columns])
    maxima, places = [], []
    for top, bottom in _edges(height, rows):
        for left, right in _edges(width, columns):
            shape = [bottom - top, right - left]
            largest, at = F.max_pool2d_with_indices(x[..., top:bottom, left:right], shape)
            place = (at // shape[1] + top) * width + (at % shape[1] + left)
            maxima.append(largest.flatten(-2))
            places.append(place.flatten(-2))
    shape = [*x.shape[:-2], rows, columns]
    return torch.cat(maxima, -1).reshape(shape), torch.cat(places, -1).reshape(shape)


def max_pool1d(x: Tensor, size: PooledSize) -> tuple[Tensor, Tensor]:
    """The same of x [..., L]."""
    found = max_pool2d(x.unsqueeze(-2), [1, *_sizes(size, x.shape[-1:])])
    return found if found is NotImplemented else (found[0].squeeze(-2), found[1].squeeze(-2))


def _chosen(pool: Callable[[Tensor, PooledSize], tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    """As torch.nn.functional has it: maxima alone unless positions are asked for."""

    def chosen(x: Tensor, output_size: PooledSize, return_indices: bool = False) -> Any:
        found = pool(x, output_size)
        return found if return_indices or found is NotImplemented else found[0]

    return chosen


def _both(pool: Callable[[Tensor, PooledSize], tuple[Tensor, Tensor]]) -> Callable[..., Any]:
    return lambda x, output_size, return_indices=False: pool(x, output_size)


CALLS: dict[Any, Callable[..., Any]] = {
    F.adaptive_max_pool2d: _chosen(max_pool2d),
    F.adaptive_max_pool2d_with_indices: _both(max_pool2d),
    torch._C._nn.adaptive_max_pool2d: _both(max_pool2d),
    F.adaptive_max_pool1d: _chosen(max_pool1d),
    F.adaptive_max_pool1d_with_indices: _both(max_pool1d),
    torch.adaptive_max_pool1d: _both(max_pool1d),
}
"""A function to one of the same arguments, before autograd: the gradient is that of windows."""
