"""Optimizers that divide by a root of squared gradients: RMSprop, Adagrad, Adadelta and Adafactor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt

import torch
from torch import Tensor

from assay.training.optimizer import TwoLists
from assay.training.optimizers.each import EachParameter, averaged, decayed


@dataclass(frozen=True, slots=True)
class RMSprop(EachParameter):
    """`torch.optim.RMSprop` (Hinton, 2012; centered: Graves, 2013).

    A parameter's tensors: the average of squares, of gradients if centered, the buffer if there is momentum.
    """

    alpha: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    momentum: float = 0.0
    centered: bool = False

    @property
    def per(self) -> int:
        """Between one and three tensors."""
        return 1 + self.centered + (self.momentum > 0.0)

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        g = decayed(p, g, self.weight_decay)
        kept = [averaged(own[0], g * g, self.alpha)]
        variance = kept[0]
        if self.centered:
            kept.append(averaged(own[1], g, self.alpha))
            # Rounding may leave less than nothing of gradients that are always the same; torch gives NaN then.
            variance = torch.clamp(variance - kept[1] * kept[1], min=0.0)
        direction = g / (torch.sqrt(variance) + self.epsilon)
        if self.momentum > 0.0:
            direction = own[-1] * self.momentum + direction
            kept.append(direction)
        return [p - rate * direction], kept


@dataclass(frozen=True, slots=True)
class Adagrad(EachParameter):
    """`torch.optim.Adagrad` (Duchi, Hazan and Singer, 2011). A parameter's tensor: the sum of squares."""

    rate_decay: float = 0.0
    epsilon: float = 1e-10
    weight_decay: float = 0.0
    initial: float = 0.0

    @property
    def per(self) -> int:
        """The sum."""
        return 1

    def start(self, parameter: Tensor) -> list[Tensor]:
        """Sums as the optimizer begins with them."""
        return [torch.full_like(parameter, self.initial)]

    def begin(self, shared: Sequence[Tensor], rate: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """t and the decayed rate."""
        return [shared[0] + 1.0, rate / (shared[0] * self.rate_decay + 1.0)], [shared[0] + 1.0]

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        g = decayed(p, g, self.weight_decay)
        total = own[0] + g * g
        return [p - now[1] * (g / (torch.sqrt(total) + self.epsilon))], [total]


@dataclass(frozen=True, slots=True)
class Adadelta(EachParameter):
    """`torch.optim.Adadelta` (Zeiler, 2012). A parameter's tensors: averages of squared gradients and of its steps."""

    rho: float = 0.9
    epsilon: float = 1e-6
    weight_decay: float = 0.0

    @property
    def per(self) -> int:
        """Two averages."""
        return 2

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        g = decayed(p, g, self.weight_decay)
        squares = averaged(own[0], g * g, self.rho)
        delta = torch.sqrt(own[1] + self.epsilon) / torch.sqrt(squares + self.epsilon) * g
        return [p - rate * delta], [squares, averaged(own[1], delta * delta, self.rho)]


@dataclass(frozen=True, slots=True)
class Adafactor(EachParameter):
    """`torch.optim.Adafactor` (Shazeer and Stern, 2018), for matrices (factored) or for all other parameters.

    A matrix's tensors (of R rows, C columns; more dimensions lead): mean squares of its rows [..., R, 1] and of its
    columns [..., 1, C]. Another's: the average of squares.
    """

    factored: bool
    beta2_decay: float = -0.8
    epsilon1: float = torch.finfo(torch.float32).eps
    epsilon2: float = 1e-3
    limit: float = 1.0
    weight_decay: float = 0.0

    @property
    def per(self) -> int:
        """Two vectors, or one tensor in the parameter's shape."""
        return 2 if self.factored else 1

    def start(self, parameter: Tensor) -> list[Tensor]:
        """Zeros."""
        if not self.factored:
            return [torch.zeros_like(parameter)]
        return [torch.zeros_like(parameter[..., :1]), torch.zeros_like(parameter[..., :1, :])]

    def begin(self, shared: Sequence[Tensor], rate: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """t, the share of the present squares, the relative rate."""
        t = shared[0] + 1.0
        return [t, torch.exp(torch.log(t) * self.beta2_decay), torch.minimum(rate, 1.0 / torch.sqrt(t))], [t]

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        root = sqrt(p.numel())
        alpha = torch.clamp(torch.sqrt((p * p).sum()) / root, min=self.epsilon2) * now[2]
        if self.weight_decay:
            p = p * (1.0 - rate * self.weight_decay)
        kept, variance = self._variance(g * g, own, now[1])
        step = g / torch.sqrt(torch.clamp(variance, min=self.epsilon1 * self.epsilon1))
        size = torch.clamp(torch.sqrt((step * step).sum()) / (root * self.limit), min=1.0)
        return [p - step * (alpha / size)], kept

    def _variance(self, squares: Tensor, own: Sequence[Tensor], share: Tensor) -> tuple[list[Tensor], Tensor]:
        """The new tensors, and the second moment that they stand for."""
        if not self.factored:
            kept = own[0] + (squares - own[0]) * share
            return [kept], kept
        row = own[0] + (squares.mean(-1, keepdim=True) - own[0]) * share
        column = own[1] + (squares.mean(-2, keepdim=True) - own[1]) * share
        return [row, column], row * column / torch.clamp(row.mean(-2, keepdim=True), min=self.epsilon1)
