"""Reductions by index: sums and means by exact sums at indices, extremes and products after an exact sort by index."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def _counts(index: Tensor, dim: int, shape: torch.Size) -> Tensor:
    """How many elements go to each place, f32 of this shape."""
    zeros = torch.zeros(shape, dtype=torch.float32, device=index.device)
    return zeros.scatter_add(dim, index, torch.ones(index.shape, dtype=torch.float32, device=index.device))


def _starts(counts: Tensor, dim: int, last: int) -> Tensor:
    """Where each group begins once elements are sorted by index, cut to the last element."""
    return (counts.cumsum(dim) - counts).to(torch.int64).clamp(max=last)


def _largest(index: Tensor, x: Tensor, dim: int, counts: Tensor) -> Tensor:
    """The largest element of each group: the first of it in the order by index, then by descending value."""
    values, places = torch.sort(x, dim=dim, descending=True, stable=True)
    _, by_index = torch.sort(index.gather(dim, places).to(torch.float32), dim=dim, stable=True)
    return values.gather(dim, by_index).gather(dim, _starts(counts, dim, index.shape[dim] - 1))


def _product(index: Tensor, x: Tensor, dim: int, counts: Tensor) -> Tensor:
    """The product of each group: a scan by doubling over elements sorted by index, read at each group's last."""
    group, places = torch.sort(index.to(torch.float32), dim=dim, stable=True)
    x, shift, size = x.gather(dim, places), 1, index.shape[dim]
    while shift < size:
        front = [0, 0] * (x.ndim - 1 - dim) + [shift, 0]
        earlier = torch.constant_pad_nd(x.narrow(dim, 0, size - shift), front, 1.0)
        theirs = torch.constant_pad_nd(group.narrow(dim, 0, size - shift), front, -1.0)
        x = torch.where(group == theirs, x * earlier, x)
        shift *= 2
    last = (counts.cumsum(dim) - 1).to(torch.int64).clamp(0, size - 1)
    return x.gather(dim, last)


def scatter_reduce(
    base: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """base with the elements of `source` at each index added, averaged, multiplied, or the largest or smallest kept."""
    if index.numel() == 0 or base.ndim == 0:
        return base.clone() if index.numel() == 0 else NotImplemented
    dim = dim % base.ndim
    if any(n != base.shape[d] for d, n in enumerate(index.shape) if d != dim):
        return NotImplemented  # a part of other dimensions
    source = source[tuple(slice(0, n) for n in index.shape)]
    if reduce == "amin":
        return -scatter_reduce(-base, dim, index, -source, "amax", include_self=include_self)
    if reduce == "sum" and include_self:
        return base.scatter_add(dim, index, source)
    counts = _counts(index, dim, base.shape)
    is_given = counts > 0
    if reduce in ("sum", "mean"):
        added = (base if include_self else torch.where(is_given, 0, base)).scatter_add(dim, index, source)
        return added if reduce == "sum" else added / (counts + float(include_self)).clamp(min=1.0)
    if reduce == "amax":
        found = _largest(index, source, dim, counts)
        return torch.where(is_given, torch.maximum(base, found) if include_self else found, base)
    if reduce == "prod":
        found = _product(index, source, dim, counts)
        return torch.where(is_given, base * found if include_self else found, base)
    return NotImplemented


def index_reduce(
    base: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """As scatter_reduce with one index for whole slices."""
    if base.ndim == 0:
        return NotImplemented
    dim = dim % base.ndim
    wide = index.reshape([-1 if d == dim else 1 for d in range(base.ndim)]).expand(source.shape)
    return scatter_reduce(base, dim, wide, source, reduce, include_self=include_self)


TABLE: dict[Any, Callable[..., Any]] = {
    aten.scatter_reduce.two: scatter_reduce,
    aten.index_reduce.default: index_reduce,
}
