"""Functions replaced where a user's code calls them, before autograd, whose own gradients are opaque to a program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from assay.engine.compiler.written import adaptive, alignment, likelihoods, matrices, sampling


def _grid_sample(
    x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros", align_corners: bool | None = None
) -> Tensor:
    ways, edges = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")
    return sampling.grid_sampler(x, grid, ways.index(mode), edges.index(padding_mode), bool(align_corners))


def _ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    number = ("none", "mean", "sum").index(reduction)
    return alignment.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, number, zero_infinity)


def _one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """int64 [..., num_classes]: PyTorch writes ones at places on real numbers, and compares while it is traced."""
    if num_classes < 0:
        return NotImplemented  # the largest element says how many
    return (x.unsqueeze(-1) == torch.arange(num_classes, device=x.device)).to(torch.int64)


CALLS: dict[Any, Callable[..., Any]] = {
    **adaptive.CALLS,
    **likelihoods.CALLS,
    torch.grid_sampler: sampling.grid_sampler,
    F.grid_sample: _grid_sample,
    torch.ctc_loss: alignment.ctc_loss,
    F.ctc_loss: _ctc_loss,
    torch.cdist: sampling.cdist,
    F.one_hot: _one_hot,
    torch._grouped_mm: matrices.grouped_mm,
    F.grouped_mm: matrices.grouped_mm,
}
"""A function to one of the same arguments in simpler operations; it may give NotImplemented."""


class WrittenOut(TorchFunctionMode):
    """Calls what `CALLS` has for a function, so that autograd sees the simpler operations."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Makes the call, or its replacement's."""
        kwargs = kwargs or {}
        written = CALLS.get(func)
        result = NotImplemented if written is None else written(*args, **kwargs)
        return func(*args, **kwargs) if result is NotImplemented else result
