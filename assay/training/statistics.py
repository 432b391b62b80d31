"""Running statistics in a merge: each element goes to the middle of where the seats' went.

A mean would ask for a limit on what one seat may add, and statistics have none that is known beforehand: a variance
may be a thousandth or a thousand, and one below zero makes the model NaN. The middle needs no limit: while no more than
half of the seats lie, every element ends between where it began and where an honest seat's ended.

Shapes: N seats or groups; a difference (start - end) has its statistic's, f32 or i32.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor

from assay.training.finite import INFINITE, finite

MOST_COUNTED: Final = float(1 << 24)
"""What a counter moves by at most in a round: beyond it f32, in which seats are put in order, skips numbers."""


def middle(differences: Sequence[Tensor], counted_N: Tensor) -> Tensor:
    """The middle of the counted differences, element by element; counted_N: bool.

    Of an even number, the one of the two middle ones that is nearer to zero, and zero where these differ in sign. What
    is not finite is zero. Nobody counted: no number that means anything.
    """
    moves = [finite(d.to(torch.float32)) for d in differences]
    is_counter = not differences[0].is_floating_point()
    if is_counter:
        moves = [m.clamp(-MOST_COUNTED, MOST_COUNTED) for m in moves]
    low, high = middle_two(torch.stack(moves, -1), counted_N)
    chosen = torch.where(low > 0.0, low, torch.where(high < 0.0, high, 0.0))
    return chosen.to(differences[0].dtype) if is_counter else chosen


def middle_two(x: Tensor, counted_N: Tensor) -> tuple[Tensor, Tensor]:
    """The two middle ones, lower first, of the counted along the last dimension of f32 [..., N]; of an odd number twice
    the same. Nobody counted: no numbers that mean anything.
    """
    ordered = torch.where(counted_N, x, INFINITE).sort(-1).values
    count = counted_N.to(torch.int32).sum()
    places = torch.stack([(count - 1) >> 1, count >> 1]).clamp(0, x.shape[-1] - 1)
    both = ordered.index_select(-1, places)  # [..., 2]
    return both[..., 0], both[..., 1]


def present(updates: Sequence[Sequence[Tensor]]) -> Tensor:
    """Which of N updates move a statistic at all, bool [N]; an empty update does not."""
    largest = [torch.stack([s.to(torch.float32).abs().amax() for s in u]).amax() for u in updates if u]
    return torch.stack(largest) != 0.0 if largest else torch.zeros(len(updates), dtype=torch.bool)
