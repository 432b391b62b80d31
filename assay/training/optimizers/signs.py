"""Rprop, which follows the signs of gradients, and ASGD, which averages: as `torch.optim` defines them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.optimizer import TwoLists
from assay.training.optimizers.each import EachParameter, decayed


@dataclass(frozen=True, slots=True)
class Rprop(EachParameter):
    """`torch.optim.Rprop` (Riedmiller and Braun, 1993). A parameter's tensors: the last gradient, its step sizes.

    Step sizes begin at the first step's rate; later rates say nothing.
    """

    shrink: float = 0.5
    grow: float = 1.2
    smallest: float = 1e-6
    largest: float = 50.0

    @property
    def per(self) -> int:
        """Gradient and step sizes."""
        return 2

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        agreement = g * own[0]
        turns = agreement < 0.0
        factor = torch.where(agreement > 0.0, self.grow, torch.where(turns, self.shrink, 1.0))
        sizes = torch.where(now[0] == 1.0, rate, own[1])
        sizes = torch.clamp(sizes * factor, min=self.smallest, max=self.largest)
        followed = torch.where(turns, 0.0, g)
        return [p - torch.sign(followed) * sizes], [followed, sizes]


@dataclass(frozen=True, slots=True)
class ASGD(EachParameter):
    """`torch.optim.ASGD` (Polyak and Juditsky, 1992). A parameter's tensor: the average of its values.

    The list ends in t and in the rate of the step to come, which the present step's rate sets, as in PyTorch.
    """

    decay: float = 1e-4
    alpha: float = 0.75
    start_at: float = 1e6
    weight_decay: float = 0.0

    @property
    def per(self) -> int:
        """The average."""
        return 1

    def shared_start(self) -> list[Tensor]:
        """No step taken, no rate set."""
        return [torch.zeros(()), torch.zeros(())]

    def begin(self, shared: Sequence[Tensor], rate: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """t, the rate of this step, the share of the present values in the average."""
        t = shared[0] + 1.0
        following = rate * torch.exp(torch.log1p(rate * self.decay * t) * -self.alpha)
        share = 1.0 / torch.clamp(shared[0] - self.start_at, min=1.0)
        return [t, torch.where(t == 1.0, rate, shared[1]), share], [t, following]

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        g = decayed(p, g, self.weight_decay)
        new = p * (1.0 - now[1] * self.decay) - now[1] * g
        return [new], [torch.where(now[2] == 1.0, new, own[0] + (new - own[0]) * now[2])]
