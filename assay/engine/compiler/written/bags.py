"""Embedding bags: sums, means and maxima of groups of rows of a table, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten

_SUM, _MEAN, _MAX = 0, 1, 2


def _bags(indices: Tensor, offsets: Tensor) -> Tensor:
    """The bag of each index: how many bags begin at it or before, less one; i64 [n]."""
    at = torch.arange(indices.shape[0], device=indices.device)
    return (offsets <= at[:, None]).sum(1) - 1


def _kept(indices: Tensor, padding: int) -> Tensor:
    """1 for indices that count and 0 for padding, f32 [n, 1]."""
    return (indices != padding).to(torch.float32)[:, None]


def _sizes(bag: Tensor, kept: Tensor, count: int) -> Tensor:
    return kept.new_zeros(count, 1).index_add(0, bag, kept)


def _places_of_largest(rows: Tensor, bag: Tensor, kept: Tensor, largest: Tensor) -> Tensor:
    """The first element of each bag that equals the bag's maximum, i64 [B, width]; 0 where there is none."""
    n = rows.shape[0]
    at = torch.arange(n, dtype=torch.float32, device=rows.device)[:, None]
    marked = torch.where((rows == largest[bag]) & (kept > 0), at, float(n))
    first = torch.full_like(largest, float(n)).index_reduce(0, bag, marked, "amin")
    return torch.where(first < n, first, 0.0).to(torch.int64)


def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Rows of weight [R, width] at indices [n] reduced by bag, of which bag k begins at offsets[k]: [B, width].

    Also the bag of each index, the bags' sizes, and, for maxima, the rows that they come from [B, width].
    """
    if scale_grad_by_freq or sparse:
        return NotImplemented
    count = offsets.shape[0] - int(include_last_offset)
    bag, kept = _bags(indices, offsets[:count]), _kept(indices, padding_idx)
    rows, sizes = weight[indices], _sizes(bag, kept, count)
    zeros, origin = weight.new_zeros(count, weight.shape[1]), indices.new_zeros(0)
    if mode == _MAX:
        low = torch.where(kept > 0, rows, -torch.inf)
        found = zeros.index_reduce(0, bag, low, "amax", include_self=False)
        result = torch.where(sizes > 0, found, 0.0)
        origin = indices[_places_of_largest(rows, bag, kept, result)]
    else:
        scaled = rows * (kept if per_sample_weights is None else kept * per_sample_weights[:, None])
        result = zeros.index_add(0, bag, scaled)
        result = result / sizes.clamp(min=1.0) if mode == _MEAN else result
    return result, bag, sizes.squeeze(1).to(torch.int64), origin


def embedding_bag_backward(
    g: Tensor,
    indices: Tensor,
    offsets: Tensor,
    bag: Tensor,
    bag_size: Tensor,
    maximum_indices: Tensor,
    rows: int,
    scale_grad_by_freq: bool,
    mode: int,
    sparse: bool,
    per_sample_weights: Tensor | None,
    padding_idx: int = -1,
) -> Tensor:
    """The gradient for the table [rows, width]; bags are counted anew, since PyTorch leaves `bag` empty at times."""
    if scale_grad_by_freq or sparse:
        return NotImplemented
    if mode == _MAX:
        given = torch.where((bag_size > 0)[:, None], g, 0.0)
        return g.new_zeros(rows, g.shape[1]).scatter_add(0, maximum_indices, given)
    kept = _kept(indices, padding_idx)
    if mode == _MEAN:
        g = g / bag_size.to(torch.float32).clamp(min=1.0)[:, None]
    terms = g[_bags(indices, offsets)] * (kept if per_sample_weights is None else kept * per_sample_weights[:, None])
    return g.new_zeros(rows, g.shape[1]).index_add(0, indices, terms)


def weights_backward(
    g: Tensor, weight: Tensor, indices: Tensor, offsets: Tensor, bag: Tensor, mode: int, padding_idx: int = -1
) -> Tensor:
    """The gradient for the weights of single indices, [n]; bags as in `embedding_bag_backward`."""
    return (g[_bags(indices, offsets)] * weight[indices] * _kept(indices, padding_idx)).sum(1)


TABLE: dict[Any, Callable[..., Any]] = {
    aten._embedding_bag.default: embedding_bag,
    aten._embedding_bag_backward.default: embedding_bag_backward,
    aten._embedding_bag_per_sample_weights_backward.default: weights_backward,
}
