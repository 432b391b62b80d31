"""Places among boundaries and counts of bins, by comparing each element with each boundary."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


def searchsorted(
    boundaries: Tensor,
    x: Tensor,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
) -> Tensor:
    """How many boundaries [..., n] lie before each element of x [..., m] (or at it, to the right); all before a NaN."""
    if sorter is not None:
        boundaries = boundaries.gather(-1, sorter)
    right = right or side == "right"
    if boundaries.ndim > 1:
        boundaries, x = boundaries.unsqueeze(-2), x.unsqueeze(-1)
    else:
        x = x.unsqueeze(-1)
    behind = boundaries > x if right else boundaries >= x
    return behind.logical_not().sum(-1).to(torch.int32 if out_int32 else torch.int64)


def bucketize(x: Tensor, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """As searchsorted of boundaries [n]."""
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


def histc(x: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """How many elements lie in each of `bins` equal bins between two numbers, the last one with its upper end."""
    if min == max:
        return NotImplemented  # the bins would depend on values
    flat = x.reshape(-1, 1).to(torch.float32)
    at = ((flat - min) * (bins / (max - min))).floor().clamp(max=bins - 1)
    inside = (flat >= min) & (flat <= max)
    places = torch.arange(bins, dtype=torch.float32, device=x.device)
    return ((at == places) & inside).sum(0).to(x.dtype)


TABLE: dict[Any, Callable[..., Any]] = {
    aten.searchsorted.Tensor: searchsorted,
    aten.bucketize.Tensor: bucketize,
    aten.histc.default: histc,
}
