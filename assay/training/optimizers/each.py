"""Optimizers that treat each parameter by itself: what they share, and bias corrections as functions of the step.

Unlike AdamW's running powers (docs/adr/0004), these count: t is a f32 [] of the optimizer list, the number of steps
since its moments were zero, exact up to 2^24. beta^t is exp(t log beta), and 1 - beta^t keeps all its bits where t is
small. Shapes: a gradient, a moment and a new value have their parameter's; rates, counters and corrections are f32 [].
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

import torch
from torch import Tensor

from assay.training.optimizer import TwoLists


class EachParameter(ABC):
    """One rule for every parameter. The list: `per` tensors a parameter, one parameter after another; then `shared`."""

    @property
    @abstractmethod
    def per(self) -> int:
        """Tensors that a parameter has."""

    def start(self, parameter: Tensor) -> list[Tensor]:
        """A parameter's tensors before the first step: zeros in its shape, where a rule says nothing else."""
        return [torch.zeros_like(parameter) for _ in range(self.per)]

    def shared_start(self) -> list[Tensor]:
        """What all parameters share before the first step: the counter, then what else a rule has, f32 [] each."""
        return [torch.zeros(())]

    def begin(self, shared: Sequence[Tensor], rate: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """What all parameters need in this step, of which the first is t >= 1, and the new shared tensors."""
        return [shared[0] + 1.0], [shared[0] + 1.0]

    @abstractmethod
    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors); now: from `begin`."""

    def size(self, count: int) -> int:
        """Tensors of all parameters, and the shared ones."""
        return self.per * count + len(self.shared_start())

    def zero_init(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """The optimizer list before the first step."""
        return [*(t for p in parameters for t in self.start(p)), *self.shared_start()]

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], optimizer: Sequence[Tensor], rate: Tensor
    ) -> TwoLists:
        """New parameters and new optimizer list; rate: f32 []."""
        end = self.per * len(parameters)
        now, shared = self.begin(optimizer[end:], rate)
        updated: list[Tensor] = []
        kept: list[Tensor] = []
        for k, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            new, own = self.step(p, g, optimizer[self.per * k : self.per * (k + 1)], rate, now)
            updated += new
            kept += own
        return updated, [*kept, *shared]


def power(base: float, t: Tensor) -> Tensor:
    """base^t for 0 <= base, f32 []."""
    return torch.exp(t * math.log(base)) if base > 0.0 else torch.zeros_like(t)


def complement(base: float, t: Tensor) -> Tensor:
    """1 - base^t for 0 <= base < 1, without the cancellation, f32 []."""
    return -torch.expm1(t * math.log(base)) if base > 0.0 else torch.ones_like(t)


def averaged(old: Tensor, new: Tensor, beta: float) -> Tensor:
    """The running average with what is new."""
    return old * beta + new * (1.0 - beta)


def decayed(p: Tensor, g: Tensor, weight_decay: float) -> Tensor:
    """The gradient with weight decay added to it."""
    return g + p * weight_decay if weight_decay else g
