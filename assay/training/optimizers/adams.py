"""Kin of Adam: AMSGrad, NAdam, RAdam and Adamax, as `torch.optim` defines them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.training.optimizer import TwoLists
from assay.training.optimizers.each import EachParameter, averaged, complement, decayed, power


@dataclass(frozen=True, slots=True)
class _AdamKin(EachParameter):
    """Two moments per parameter and the counter; decoupled: decay shrinks parameters, else it is added to gradients."""

    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    weight_decay: float = 0.0
    decoupled: bool = False

    @property
    def per(self) -> int:
        """Two moments."""
        return 2

    def _decay(self, p: Tensor, g: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
        """Parameter and gradient after weight decay."""
        if not self.decoupled:
            return p, decayed(p, g, self.weight_decay)
        return (p * (1.0 - rate * self.weight_decay) if self.weight_decay else p), g


@dataclass(frozen=True, slots=True)
class AMSGrad(_AdamKin):
    """Adam or AdamW by the largest second moment so far (Reddi, Kale and Kumar, 2018): a third tensor a parameter."""

    @property
    def per(self) -> int:
        """First and second moment, and the largest second one."""
        return 3

    def begin(self, shared: Sequence[Tensor], rate: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """t, the step size, and the root of the second moment's correction."""
        t = shared[0] + 1.0
        return [t, rate / complement(self.beta1, t), torch.sqrt(complement(self.beta2, t))], [t]

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        p, g = self._decay(p, g, rate)
        m, v = averaged(own[0], g, self.beta1), averaged(own[1], g * g, self.beta2)
        largest = torch.maximum(own[2], v)
        return [p - now[1] * (m / (torch.sqrt(largest) / now[2] + self.epsilon))], [m, v, largest]


@dataclass(frozen=True, slots=True)
class NAdam(_AdamKin):
    """Adam with Nesterov's momentum (Dozat, 2016); the list ends in t and the product of the momenta so far."""

    momentum_decay: float = 0.004

    def shared_start(self) -> list[Tensor]:
        """No step taken; the product of no momenta."""
        return [torch.zeros(()), torch.ones(())]

    def begin(self, shared: Sequence[Tensor], rate: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """t, the second moment's correction, the rates of the gradient and of the first moment."""
        t = shared[0] + 1.0
        present, following = self._momentum(t), self._momentum(t + 1.0)
        product = shared[1] * present
        of_gradient = rate * (1.0 - present) / (1.0 - product)
        of_moment = rate * following / (1.0 - product * following)
        return [t, complement(self.beta2, t), of_gradient, of_moment], [t, product]

    def _momentum(self, t: Tensor) -> Tensor:
        return (1.0 - power(0.96, t * self.momentum_decay) * 0.5) * self.beta1

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        p, g = self._decay(p, g, rate)
        m, v = averaged(own[0], g, self.beta1), averaged(own[1], g * g, self.beta2)
        scale = torch.sqrt(v / now[1]) + self.epsilon
        return [p - now[2] * (g / scale) - now[3] * (m / scale)], [m, v]


@dataclass(frozen=True, slots=True)
class RAdam(_AdamKin):
    """Adam whose step is rectified while the second moment's variance is not tractable (Liu et al., 2020)."""

    def begin(self, shared: Sequence[Tensor], rate: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """t, the step size, and what a root of the second moment divides, where steps are rectified."""
        t = shared[0] + 1.0
        step_size = rate / complement(self.beta1, t)
        return [t, step_size, step_size * self._rectifier(t) * torch.sqrt(complement(self.beta2, t))], [t]

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        p, g = self._decay(p, g, rate)
        m, v = averaged(own[0], g, self.beta1), averaged(own[1], g * g, self.beta2)
        first = self.first_rectified
        if first is None:
            return [p - now[1] * m], [m, v]
        rectified = now[2] * (m / (torch.sqrt(v) + self.epsilon))
        return [p - torch.where(now[0] < float(first), now[1] * m, rectified)], [m, v]

    @property
    def _longest(self) -> float:
        """The length of the average that the second moment becomes."""
        return 2.0 / (1.0 - self.beta2) - 1.0

    @property
    def first_rectified(self) -> int | None:
        """The first step whose average is longer than 5, or None: counted here, since f32 would miscount it."""
        if self._longest <= 5.0:
            return None
        t = 1
        while self._longest - 2 * t * self.beta2**t / (1.0 - self.beta2**t) <= 5.0:
            t += 1
        return t

    def _rectifier(self, t: Tensor) -> Tensor:
        """The factor of rectified steps; of others, any finite number."""
        longest = self._longest
        if longest <= 5.0:
            return torch.ones_like(t)
        length = torch.clamp(self._length(t), min=5.0)
        known = longest / ((longest - 4.0) * (longest - 2.0))
        return torch.sqrt((length - 4.0) * ((length - 2.0) / length) * known)

    def _length(self, t: Tensor) -> Tensor:
        """longest - 2 t beta2^t / (1 - beta2^t), by a series where the two terms would cancel."""
        q = -math.log(self.beta2)
        x = t * q
        direct = self._longest - power(self.beta2, t) * t * 2.0 / complement(self.beta2, t)
        square = x * x
        bend = 1.0 - square * (1.0 / 60.0) + square * square * (1.0 / 2520.0)
        series = t - (t * x) * (1.0 / 6.0) * bend + (self._longest - 2.0 / q)
        return torch.where(x < 0.5, series, direct)


@dataclass(frozen=True, slots=True)
class Adamax(_AdamKin):
    """Adam by the infinity norm (Kingma and Ba, 2015): the second tensor is the largest gradient, fading."""

    def begin(self, shared: Sequence[Tensor], rate: Tensor) -> tuple[list[Tensor], list[Tensor]]:
        """t and the step size."""
        t = shared[0] + 1.0
        return [t, rate / complement(self.beta1, t)], [t]

    def step(self, p: Tensor, g: Tensor, own: Sequence[Tensor], rate: Tensor, now: Sequence[Tensor]) -> TwoLists:
        """([the new parameter], its new tensors)."""
        g = decayed(p, g, self.weight_decay)
        m = averaged(own[0], g, self.beta1)
        largest = torch.maximum(own[1] * self.beta2, g.abs() + self.epsilon)
        return [p - now[1] * (m / largest)], [m, largest]
