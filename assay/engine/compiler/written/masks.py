"""Writes and reads by masks whose results have a fixed size, and at flat positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _places(mask: Tensor) -> Tensor:
    """How many elements of a mask hold up to and with each one, less one: i64 [numel]."""
    return mask.reshape(-1).to(torch.int32).cumsum(0) - 1


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """x with the first elements of `source`, in order, where the mask holds."""
    shape = torch.broadcast_shapes(x.shape, mask.shape)
    at = _places(mask.expand(shape)).clamp(0, source.numel() - 1)
    return torch.where(mask, source.reshape(-1)[at].reshape(shape), x.expand(shape))


def masked_scatter_backward(g: Tensor, mask: Tensor, sizes: Sequence[int]) -> Tensor:
    """The gradient for the source, of these sizes: each gets that of its place, the surplus zero."""
    count = 1
    for n in sizes:
        count *= n
    wide = mask.expand(g.shape)
    at = torch.where(wide.reshape(-1), _places(wide).clamp(max=count), count)
    # Place `count` takes what no element of the source was written to.
    return g.new_zeros(count + 1).index_add(0, at, g.reshape(-1))[:count].reshape(list(sizes))


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """x with `source` written, or added, at flat positions."""
    flat = x.reshape(-1)
    return flat.index_put((index.reshape(-1),), source.reshape(-1), accumulate).reshape(x.shape)


def diagonal_scatter(x: Tensor, source: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """x with `source` [..., n] written on a diagonal of two of its dimensions."""
    at = x.movedim((dim1, dim2), (-2, -1))
    rows = torch.arange(at.shape[-2], device=x.device)[:, None]
    columns = torch.arange(at.shape[-1], device=x.device)
    # The place on the diagonal counts along the dimension that it begins first in.
    along = -1 if offset >= 0 else -2
    more = at.shape[-2 if offset >= 0 else -1] - source.shape[-1]
    wide = torch.constant_pad_nd(source, [0, more], 0.0).unsqueeze(along)
    return torch.where(columns - rows == offset, wide, at).movedim((-2, -1), (dim1, dim2))


def fmax(x: Tensor, y: Tensor) -> Tensor:
    """The larger, or the one that is no NaN."""
    return torch.where(y.isnan(), x, torch.where(x.isnan(), y, torch.maximum(x, y)))


def fmin(x: Tensor, y: Tensor) -> Tensor:
    """The smaller, or the one that is no NaN."""
    return torch.where(y.isnan(), x, torch.where(x.isnan(), y, torch.minimum(x, y)))


TABLE: dict[Any, Callable[..., Any]] = {
    aten.masked_scatter.default: masked_scatter,
    aten.masked_scatter_backward.default: masked_scatter_backward,
    aten.put.default: put,
    aten.diagonal_scatter.default: diagonal_scatter,
    aten.fmax.default: fmax,
    aten.fmin.default: fmin,
}
