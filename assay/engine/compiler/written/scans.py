"""Products and extremes of prefixes and of whole dimensions, by doubling: log2 n steps, each a map."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten


_LEAST, _MOST = -(2**31), 2**31 - 1
"""Of the integers of a program."""


def _behind(x: Tensor, dim: int, shift: int, fill: float) -> Tensor:
    """x moved along a dimension by `shift`, with a fill in front."""
    padding = [0, 0] * (x.ndim - 1 - dim) + [shift, 0]
    return torch.constant_pad_nd(x.narrow(dim, 0, x.shape[dim] - shift), padding, fill)


def _doubled(x: Tensor, dim: int, neutral: float, join: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Prefixes joined, each of what lies 1, 2, 4, ... before (Hillis and Steele, 1986)."""
    if x.ndim == 0:
        return x.clone()
    dim, shift = dim % x.ndim, 1
    while shift < x.shape[dim]:
        x = join(_behind(x, dim, shift, neutral), x)
        shift *= 2
    return x


def _typed(x: Tensor, dtype: torch.dtype | None) -> Tensor:
    if dtype is not None:
        return x.to(dtype)
    return x if x.dtype.is_floating_point else x.to(torch.int64)


def cumprod(x: Tensor, dim: int, *, dtype: torch.dtype | None = None) -> Tensor:
    """Products of prefixes, each rounded at most log2 n times."""
    return _doubled(_typed(x, dtype), dim, 1, torch.mul)


def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """Logarithms of sums of exponentials of prefixes."""
    return _doubled(x, dim, -math.inf, torch.logaddexp)


def prod(x: Tensor, dim: int, keepdim: bool = False, *, dtype: torch.dtype | None = None) -> Tensor:
    """The product along a dimension, in pairs of pairs; 1 over nothing."""
    x = _typed(x, dtype)
    if x.ndim == 0:
        return x.clone()
    dim = dim % x.ndim
    if x.shape[dim] == 0:
        shape = [1 if d == dim else n for d, n in enumerate(x.shape) if keepdim or d != dim]
        return x.new_ones(shape)
    while x.shape[dim] > 1:
        half = x.shape[dim] // 2
        pairs = x.narrow(dim, 0, half) * x.narrow(dim, half, half)
        x = torch.cat([pairs, x.narrow(dim, 2 * half, 1)], dim) if x.shape[dim] % 2 else pairs
    return x if keepdim else x.squeeze(dim)


def prod_all(x: Tensor, *, dtype: torch.dtype | None = None) -> Tensor:
    """The product of all elements."""
    return prod(x.reshape(-1), 0, dtype=dtype)


def _extremes(x: Tensor, dim: int, is_ahead: Callable[[Tensor, Tensor], Tensor], worst: float) -> tuple[Tensor, Tensor]:
    """Prefix extremes and where they stand: of equals the last; a NaN stays."""
    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    dim, shift = dim % x.ndim, 1
    size = x.shape[dim]
    shape = [size if d == dim else 1 for d in range(x.ndim)]
    at = torch.arange(size, dtype=torch.int32, device=x.device).reshape(shape).expand(x.shape)
    while shift < size:
        earlier, place = _behind(x, dim, shift, worst), _behind(at, dim, shift, 0)
        # What lies before the first element loses to it also where it equals the worst.
        stays = is_ahead(x, earlier) | x.isnan()
        x, at = torch.where(stays, x, earlier), torch.where(stays, at, place)
        shift *= 2
    return x, at.to(torch.int64)


def cummax(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Maxima of prefixes and their places."""
    return _extremes(x, dim, torch.ge, -math.inf if x.dtype.is_floating_point else _LEAST)


def cummin(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Minima of prefixes and their places."""
    return _extremes(x, dim, torch.le, math.inf if x.dtype.is_floating_point else _MOST)


def var_mean(x: Tensor, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """Variance and mean."""
    dims = list(range(x.ndim)) if dim is None or len(dim) == 0 else dim
    return torch.var(x, dims, correction=1 if correction is None else correction, keepdim=keepdim), x.mean(
        dims, keepdim
    )


def dist(x: Tensor, y: Tensor, p: float = 2.0) -> Tensor:
    """The norm of a difference."""
    return torch.linalg.vector_norm(x - y, p)


TABLE: dict[Any, Callable[..., Any]] = {
    aten.cumprod.default: cumprod,
    aten.logcumsumexp.default: logcumsumexp,
    aten.prod.dim_int: prod,
    aten.prod.default: prod_all,
    aten.cummax.default: cummax,
    aten.cummin.default: cummin,
    aten.var_mean.correction: var_mean,
    aten.dist.default: dist,
}
