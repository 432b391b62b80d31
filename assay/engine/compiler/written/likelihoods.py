"""Losses and statistics of PyTorch's that look at values to warn or to refuse, which no trace has."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F


def gaussian_nll_loss(
    x: Tensor, target: Tensor, var: Tensor, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Tensor:
    """-log of a normal density at `target`; PyTorch refuses a negative variance, here it counts as eps."""
    if not isinstance(var, Tensor) or reduction not in ("none", "mean", "sum"):
        return NotImplemented
    if var.shape != x.shape:
        if x.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)  # one variance for all that an example has
        elif x.shape[:-1] != var.shape[:-1] or var.shape[-1] != 1:
            return NotImplemented  # PyTorch says what is wrong
    var = var.clone()
    with torch.no_grad():
        var.clamp_(min=eps)  # the gradient passes as if nothing were cut, as in PyTorch
    loss = 0.5 * (torch.log(var) + (x - target) ** 2 / var)
    if full:
        loss = loss + 0.5 * math.log(2.0 * math.pi)
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def cov(x: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """Covariances of the rows of x [variables, examples]; PyTorch looks at their count to warn."""
    if fweights is not None or aweights is not None or x.ndim > 2 or not x.is_floating_point() or not x.numel():
        return NotImplemented
    rows = x.reshape(1, -1) if x.ndim < 2 else x
    centered = rows - rows.mean(1, keepdim=True)
    return (centered @ centered.mT / max(rows.shape[1] - correction, 0)).squeeze()


def corrcoef(x: Tensor) -> Tensor:
    """Correlations of the rows of x [variables, examples]."""
    c = cov(x)
    if c is NotImplemented:
        return NotImplemented
    if c.ndim == 0:
        return c / c
    deviation = torch.diagonal(c).sqrt()
    return (c / deviation[:, None] / deviation[None]).clamp(-1.0, 1.0)


CALLS: dict[Any, Callable[..., Any]] = {
    F.gaussian_nll_loss: gaussian_nll_loss,
    torch.cov: cov,
    torch.Tensor.cov: cov,
    torch.corrcoef: corrcoef,
    torch.Tensor.corrcoef: corrcoef,
}
"""A function to one of the same arguments; it may give NotImplemented."""
