"""Operations written out in simpler ones before lowering: PyTorch's core set, and what it leaves whole."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch._decomp import core_aten_decompositions, get_decompositions
from torch.utils._pytree import tree_leaves, tree_map

from assay.engine.compiler import written
from assay.engine.compiler.lowering.registry import RULES

aten = torch.ops.aten


def batch_norm(
    x: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize channels (dimension 1) by the batch's statistics, or by the running ones; updates those in place.

    Returns the result, the batch's mean and the reciprocal of its deviation (both empty outside training).
    """
    shape = (1, -1, *(1,) * (x.ndim - 2))
    if training:
        dims = [d for d in range(x.ndim) if d != 1]
        mean = x.mean(dims)
        centered = x - mean.reshape(shape)
        variance = (centered * centered).mean(dims)
        count = x.numel() // x.shape[1]
        if running_mean is not None:
            running_mean.copy_(running_mean * (1.0 - momentum) + mean * momentum)
        if running_var is not None:
            unbiased = variance * (count / max(count - 1, 1))
            running_var.copy_(running_var * (1.0 - momentum) + unbiased * momentum)
        kept_mean, kept_rate = mean, torch.rsqrt(variance + eps)
        rate = kept_rate
    else:
        assert running_mean is not None
        assert running_var is not None
        centered, rate = x - running_mean.reshape(shape), torch.rsqrt(running_var + eps)
        kept_mean, kept_rate = x.new_zeros(0), x.new_zeros(0)
    result = centered * rate.reshape(shape)
    if weight is not None:
        result = result * weight.reshape(shape)
    if bias is not None:
        result = result + bias.reshape(shape)
    return result, kept_mean, kept_rate


def group_norm(
    x: Tensor, weight: Tensor | None, bias: Tensor | None, n: int, channels: int, rest: int, groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize groups of channels of every example; also returns means and reciprocals of deviations [n, groups]."""
    grouped = x.reshape(n, groups, channels // groups * rest)
    mean = grouped.mean(2, keepdim=True)
    centered = grouped - mean
    rate = torch.rsqrt((centered * centered).mean(2, keepdim=True) + eps)
    result = (centered * rate).reshape(x.shape)
    shape = (1, channels, *(1,) * (x.ndim - 2))
    if weight is not None:
        result = result * weight.reshape(shape)
    if bias is not None:
        result = result + bias.reshape(shape)
    return result, mean.reshape(n, groups), rate.reshape(n, groups)


def weight_norm_backward(g: Tensor, v: Tensor, magnitude: Tensor, norms: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Gradients of v * magnitude / |v| for v and the magnitude; norms over all dimensions but one."""
    dims = [d for d in range(v.ndim) if d != dim % v.ndim]
    norms = norms.reshape(magnitude.shape)
    along = (g * v).sum(dims, keepdim=True)
    return (magnitude / norms) * (g - v * (along / (norms * norms))), along / norms


def repeat(x: Tensor, repeats: list[int]) -> Tensor:
    """Copies of x side by side."""
    shape = (1,) * (len(repeats) - x.ndim) + tuple(x.shape)
    apart = x.reshape([n for s in shape for n in (1, s)])
    wide = apart.expand([n for r, s in zip(repeats, shape, strict=True) for n in (r, s)])
    return wide.reshape([r * s for r, s in zip(repeats, shape, strict=True)])


def softshrink_backward(g: Tensor, x: Tensor, limit: float) -> Tensor:
    """The gradient where x is outside [-limit, limit]."""
    return torch.where(x.abs() <= limit, 0.0, g)


_OWN: dict[Any, Callable[..., Any]] = {
    aten.native_batch_norm.default: batch_norm,
    aten.native_group_norm.default: group_norm,
    aten._weight_norm_interface_backward.default: weight_norm_backward,
    aten.repeat.default: repeat,
    aten.softshrink_backward.default: softshrink_backward,
    aten.hardshrink_backward.default: softshrink_backward,
}

_MORE = [
    aten.elu.default,
    aten.elu_backward.default,
    aten.clamp.Tensor,
    aten.linspace.default,
    aten.unfold.default,
    aten.diagonal.default,
    aten.upsample_bilinear2d.vec,
    aten.upsample_nearest2d.vec,
]
"""What PyTorch can write out but keeps whole in its core set."""


def decompositions() -> Mapping[Any, Any]:
    """How to write out everything for which there is no rule."""
    table = {**core_aten_decompositions(), **get_decompositions(_MORE), **_OWN, **written.TABLE}
    return {target: _apart(target, how) for target, how in table.items() if target not in RULES}


def _apart(target: Any, how: Callable[..., Any]) -> Callable[..., Any]:
    """The same, but no result is a view of an argument where the operation itself makes new tensors.

    Whoever writes into the result later would else write into the argument, and into every copy of an expanded one.
    """
    returns = getattr(getattr(target, "_schema", None), "returns", ())
    if not returns or any(r.alias_info is not None for r in returns):
        return how

    @functools.wraps(how)
    def apart(*args: Any, **kwargs: Any) -> Any:
        found = how(*args, **kwargs)
        given = {_storage(a) for a in tree_leaves((args, kwargs)) if isinstance(a, Tensor)}
        return tree_map(lambda t: t.clone() if isinstance(t, Tensor) and _storage(t) in given else t, found)

    return apart


def _storage(t: Tensor) -> object:
    return t.untyped_storage()._cdata if t.layout is torch.strided else id(t)
