"""The outer step of DiLoCo (Douillard et al., 2023): updates of many seats, averaged, and a Nesterov step on them.

The outer program has eight update slots and a 0/1 mask, so that its shape does not depend on who contributed; a
seat that is not included has the all-zero update list.

Shapes: S = 8 slots; momentum and updates have their parameter's, all else is f32 [].
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

SLOTS = 8
OUTER_RATE = 0.7
OUTER_MOMENTUM = 0.9


def outer_step(
    parameters: Sequence[Tensor], momentum: Sequence[Tensor], *slots_and_mask: Sequence[Tensor]
) -> tuple[list[Tensor], list[Tensor]]:
    """New parameters and outer momentum from eight update lists and a list holding the mask f32 [8].

    Mean over the included seats; Nesterov 0.7 / 0.9; none included: nothing changes.
    """
    *slots, (mask_S,) = slots_and_mask
    included = mask_S.sum()
    anyone = included > 0.0
    share = 1.0 / torch.maximum(included, torch.ones(()))
    new_parameters: list[Tensor] = []
    new_momentum: list[Tensor] = []
    for p, m, *updates in zip(parameters, momentum, *slots, strict=True):
        total = _sum_in_pairs(updates)
        mean = total * share
        velocity = m * OUTER_MOMENTUM + mean
        moved = p - (mean + velocity * OUTER_MOMENTUM) * OUTER_RATE
        new_parameters.append(torch.where(anyone, moved, p))
        new_momentum.append(torch.where(anyone, velocity, m))
    return new_parameters, new_momentum


def zero_momentum(parameters: Sequence[Tensor]) -> list[Tensor]:
    """The outer momentum at genesis: zeros."""
    return [torch.zeros_like(p) for p in parameters]


def _sum_in_pairs(tensors: Sequence[Tensor]) -> Tensor:
    """The sum in slot order, neighbours first."""
    if len(tensors) == 1:
        return tensors[0]
    half = (len(tensors) + 1) // 2
    return _sum_in_pairs(tensors[:half]) + _sum_in_pairs(tensors[half:])
