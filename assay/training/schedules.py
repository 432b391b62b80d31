"""Learning-rate schedules inside the program: functions of the step that multiply the state's learning rate.

A schedule is any function from the step (f32 [], counted from 0, exact up to 2^24) to a factor (f32 []) in PyTorch
operations; those here are the usual ones. `RoundWarmup` starts anew in every round, beside any schedule.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

Schedule = Callable[[Tensor], Tensor]

MEMORY: Final = 10
"""Steps that a first moment remembers at the usual beta 1 of 0.9: after so many it is what it would be anyway."""


def warmup_cosine(warmup: int, total: int, floor: float = 0.0) -> Schedule:
    """Linear from 1 / warmup to 1 over `warmup` steps, then half a cosine down to `floor` at step `total`."""

    def factor(step: Tensor) -> Tensor:
        curve = (torch.cos(_progress(step, warmup, total) * math.pi) + 1.0) * (0.5 * (1.0 - floor)) + floor
        return torch.where(step < warmup, _rise(step, warmup), curve)

    return factor


def warmup_linear(warmup: int, total: int, floor: float = 0.0) -> Schedule:
    """Linear from 1 / warmup to 1 over `warmup` steps, then linear down to `floor` at step `total`."""

    def factor(step: Tensor) -> Tensor:
        line = 1.0 - _progress(step, warmup, total) * (1.0 - floor)
        return torch.where(step < warmup, _rise(step, warmup), line)

    return factor


@dataclass(frozen=True, slots=True)
class RoundWarmup:
    """Linear over the first `steps` steps of each round, for moments that are zero at its start, then level.

    What the rise withholds is given back over the whole round: its factors sum to its steps, so that a round walks as
    far as one without a warm-up. round_length: what the state's step grows by from one round's first step to the next
    one's, whatever a seat trains.
    """

    steps: int
    round_length: int

    @classmethod
    def usual(cls, round_length: int) -> RoundWarmup:
        """Over MEMORY steps, in short rounds over two fifths, so that the rate stands at 5 / 4 at most."""
        return cls(min(MEMORY, max(1, 2 * round_length // 5)), round_length)

    @property
    def level(self) -> float:
        """The factor where the rise ends: 1 for one step, below 2."""
        return self.round_length / (self.round_length - (self.steps - 1) / 2)

    def factor(self, step: Tensor, round: Tensor, schedule: Schedule | None = None) -> Tensor:
        """f32 [] for a state's `step` i32 [2] and `round` i32 [], the schedule in it; 0 before a round's first step.

        A schedule that rises through the round by itself is not made to rise twice: the rate rises to where the
        schedule stands when the round ends, and is the schedule's where that is less.
        """
        # Modulo 2^32, as the words are: exact however long the run is.
        position = step[0] - round * self.round_length
        rise = _rise(position.to(torch.float32), self.steps).clamp(0.0, 1.0)
        if schedule is None:
            return rise * self.level
        now = schedule(step[0].to(torch.float32))
        last = schedule((step[0] - position + (self.round_length - 1)).to(torch.float32))
        return torch.minimum(now, torch.maximum(now, last) * rise) * self.level


def _rise(step: Tensor, warmup: int) -> Tensor:
    return (step + 1.0) / float(max(warmup, 1))


def _progress(step: Tensor, warmup: int, total: int) -> Tensor:
    """0 at the end of the warm-up, 1 from step `total` on."""
    return ((step - float(warmup)) / float(max(total - warmup, 1))).clamp(0.0, 1.0)
