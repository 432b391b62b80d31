"""Connectionist temporal classification: the loss over all alignments of a sequence with a shorter one."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

_NEVER = -1e30
"""The logarithm of a probability of zero, kept finite so that gradients are."""


def _lengths(given: Any) -> Tensor:
    return given.to(torch.int64) if isinstance(given, Tensor) else torch.tensor(given, dtype=torch.int64)


def _rows(targets: Tensor, lengths: Tensor, most: int) -> Tensor:
    """Targets by example, [N, S]; those that lie one after the other are cut apart."""
    if targets.ndim == 2:
        return targets.to(torch.int64)
    starts = (lengths.cumsum(0) - lengths)[:, None]
    return targets.to(torch.int64)[(starts + torch.arange(most)).clamp(max=targets.shape[0] - 1)]


def _behind(x: Tensor, shift: int) -> Tensor:
    return torch.constant_pad_nd(x[:, :-shift], [shift, 0], _NEVER)


def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: int = 1,
    zero_infinity: bool = False,
) -> Tensor:
    """As torch.ctc_loss of log_probs [T, N, C] or [T, C] (Graves et al., 2006), by T steps over 2 S + 1 states.

    PyTorch's gradient for log_probs has a probability too many, which log_softmax takes away again, and nothing else.
    """
    is_single = log_probs.ndim == 2
    if is_single:
        log_probs, targets = log_probs.unsqueeze(1), targets.unsqueeze(0)
    steps, count = log_probs.shape[0], log_probs.shape[1]
    inputs, sizes = _lengths(input_lengths).reshape(-1), _lengths(target_lengths).reshape(-1)
    labels = _rows(targets, sizes, min(targets.shape[-1], steps))
    blanks = torch.full_like(labels, blank)
    states = torch.cat([torch.stack([blanks, labels], 2).flatten(1), blanks[:, :1]], 1)
    width = states.shape[1]
    # A label follows another one without a blank between unless they are the same.
    skips = torch.cat([torch.zeros(count, 2, dtype=torch.bool), states[:, 2:] != states[:, :-2]], 1) & (states != blank)
    seen = log_probs.gather(2, states.expand(steps, count, width))
    alpha = torch.where(torch.arange(width) < 2, seen[0], _NEVER)
    for t in range(1, steps):
        moved = torch.where(skips, _behind(alpha, 2), _NEVER) if width > 2 else torch.full_like(alpha, _NEVER)
        before = torch.stack([alpha, _behind(alpha, 1) if width > 1 else torch.full_like(alpha, _NEVER), moved])
        alpha = torch.where((t < inputs)[:, None], torch.logsumexp(before, 0) + seen[t], alpha)
    last = 2 * sizes[:, None]
    label = torch.where(last > 0, alpha.gather(1, (last - 1).clamp(min=0)), _NEVER)
    loss = -torch.logsumexp(torch.cat([alpha.gather(1, last), label], 1), 1)
    excess = (log_probs.exp().sum(2) * (torch.arange(steps)[:, None] < inputs)).sum(0)
    lost = 0.0 if zero_infinity else float("inf")
    loss = torch.where(loss > -0.1 * _NEVER, lost, loss + (excess - excess.detach()))
    if reduction == 1:
        return (loss / sizes.clamp(min=1)).mean()
    return loss.sum() if reduction == 2 else (loss[0] if is_single else loss)
