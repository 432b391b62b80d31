"""Optimizers as pure functions on lists of tensors, in operations that round once each.

An optimizer owns a list of the state: `zero_init` makes it, `update` returns the next one; each class documents its
slots. The learning rate is an input of every step, all other constants are in the program. Steps are counted by running
powers of *these* moments' betas (docs/adr/0004): a newcomer with zero-initialised moments is corrected as a newcomer.

Shapes: a gradient, a moment and a new value have their parameter's; rates, powers and norms are f32 []. Of matrices
(Muon): R the smaller and C the larger number of rows and columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

TwoLists = tuple[list[Tensor], list[Tensor]]
"""New parameters and new optimizer list."""


class Optimizer(Protocol):
    """What a training step asks of an optimizer."""

    def size(self, count: int) -> int:
        """How many tensors the list holds for this many parameters."""

    def zero_init(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """The list before the first step."""

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], optimizer: Sequence[Tensor], rate: Tensor
    ) -> TwoLists:
        """New parameters and new optimizer list; rate: f32 []."""


@dataclass(frozen=True, slots=True)
class AdamW:
    """AdamW (Loshchilov and Hutter, 2019), or Adam with decay added to gradients (Kingma and Ba, 2015).

    The list: first moments, second moments (one each per parameter, f32, same shape), then beta1^t, beta2^t (f32 []).
    decays_vectors: weight decay is for matrices only unless this is set, as usual for transformers. decoupled: decay
    shrinks parameters; otherwise it is added to gradients.
    """

    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.01
    decays_vectors: bool = False
    decoupled: bool = True

    def size(self, count: int) -> int:
        """Two moments per parameter and two powers."""
        return 2 * count + 2

    def zero_init(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """The optimizer list before the first step: zero moments, powers 1."""
        zeros = [torch.zeros_like(p) for p in (*parameters, *parameters)]
        return [*zeros, torch.ones(()), torch.ones(())]

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], optimizer: Sequence[Tensor], rate: Tensor
    ) -> TwoLists:
        """New parameters and new optimizer list; rate: f32 []."""
        count = len(parameters)
        power1 = optimizer[2 * count] * self.beta1
        power2 = optimizer[2 * count + 1] * self.beta2
        step_size = rate / (1.0 - power1)
        correction = 1.0 - power2
        keep = 1.0 - rate * self.weight_decay
        updated: list[Tensor] = []
        firsts: list[Tensor] = []
        seconds: list[Tensor] = []
        for k, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            is_decayed = self.weight_decay != 0.0 and (self.decays_vectors or p.ndim > 1)
            if is_decayed and not self.decoupled:
                g = g + p * self.weight_decay
            m = optimizer[k] * self.beta1 + g * (1.0 - self.beta1)
            v = optimizer[count + k] * self.beta2 + g * g * (1.0 - self.beta2)
            direction = m / (torch.sqrt(v / correction) + self.epsilon)
            decayed = p * keep if is_decayed and self.decoupled else p
            updated.append(decayed - step_size * direction)
            firsts.append(m)
            seconds.append(v)
        return updated, [*firsts, *seconds, power1, power2]


@dataclass(frozen=True, slots=True)
class SGD:
    """Gradient descent with momentum, classical or Nesterov's, as `torch.optim.SGD` defines it.

    The list: one buffer per parameter if there is momentum, then, with dampening, whether a step was taken (f32 [], 0
    or 1): the first gradient is not dampened. Decay is added to the gradients of all parameters.
    """

    momentum: float = 0.0
    dampening: float = 0.0
    weight_decay: float = 0.0
    nesterov: bool = False

    def size(self, count: int) -> int:
        """A buffer per parameter and the mark, where they are needed."""
        return count * (self.momentum != 0.0) + self._marks

    @property
    def _marks(self) -> int:
        return int(self.momentum != 0.0 and self.dampening != 0.0)

    def zero_init(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """Zero buffers, no step taken."""
        buffers = [torch.zeros_like(p) for p in parameters] if self.momentum else []
        return [*buffers, *[torch.zeros(())] * self._marks]

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], optimizer: Sequence[Tensor], rate: Tensor
    ) -> TwoLists:
        """New parameters and new optimizer list; rate: f32 []."""
        share: Tensor | float = 1.0 - optimizer[-1] * self.dampening if self._marks else 1.0
        updated: list[Tensor] = []
        buffers: list[Tensor] = []
        for k, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            if self.weight_decay:
                g = g + p * self.weight_decay
            if self.momentum:
                buffer = optimizer[k] * self.momentum + (g * share if self._marks else g)
                buffers.append(buffer)
                g = g + buffer * self.momentum if self.nesterov else buffer
            updated.append(p - rate * g)
        return updated, [*buffers, *[torch.ones(())] * self._marks]


@dataclass(frozen=True, slots=True)
class Muon:
    """Momentum whose matrices are orthogonalized by Newton and Schulz's iteration (Jordan et al., 2024).

    For matrices only. The list: one momentum buffer per parameter. As `torch.optim.Muon`, whose products are bfloat16
    where ours are exact at the program's precision. adjust: "original" scales the rate by sqrt(max(1, rows / columns)),
    "match_rms_adamw" by 0.2 sqrt(max(rows, columns)).
    """

    momentum: float = 0.95
    weight_decay: float = 0.1
    nesterov: bool = True
    coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315)
    iterations: int = 5
    epsilon: float = 1e-7
    adjust: str = "original"

    def size(self, count: int) -> int:
        """One buffer per parameter."""
        return count

    def zero_init(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """Zero buffers."""
        return [torch.zeros_like(p) for p in parameters]

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], optimizer: Sequence[Tensor], rate: Tensor
    ) -> TwoLists:
        """New parameters and new optimizer list; rate: f32 []."""
        keep = 1.0 - rate * self.weight_decay
        updated: list[Tensor] = []
        buffers: list[Tensor] = []
        for p, g, old in zip(parameters, gradients, optimizer, strict=True):
            buffer = old * self.momentum + g * (1.0 - self.momentum)
            direction = g * (1.0 - self.momentum) + buffer * self.momentum if self.nesterov else buffer
            turned = self._orthogonal(direction)
            updated.append(p * keep - rate * self._ratio(*p.shape) * turned)
            buffers.append(buffer)
        return updated, buffers

    def _orthogonal(self, x: Tensor) -> Tensor:
        """x with singular values brought near 1: f32 [m, n] to the same."""
        is_tall = x.shape[0] > x.shape[1]
        x_RC = x.t() if is_tall else x
        x_RC = x_RC / torch.sqrt((x_RC * x_RC).sum()).clamp_min(self.epsilon)
        a, b, c = self.coefficients
        for _ in range(self.iterations):
            gram_RR = x_RC @ x_RC.t()
            x_RC = x_RC * a + (gram_RR * b + (gram_RR @ gram_RR) * c) @ x_RC
        return x_RC.t() if is_tall else x_RC

    def _ratio(self, rows: int, columns: int) -> float:
        if self.adjust == "match_rms_adamw":
            return 0.2 * float(max(rows, columns)) ** 0.5
        return max(1.0, rows / columns) ** 0.5


@dataclass(frozen=True, slots=True)
class Maximizing:
    """An optimizer that climbs: it is given the gradients' negatives. The list is the optimizer's own."""

    optimizer: Optimizer

    def size(self, count: int) -> int:
        """The optimizer's size."""
        return self.optimizer.size(count)

    def zero_init(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """The optimizer's zero-initialised list."""
        return self.optimizer.zero_init(parameters)

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], optimizer: Sequence[Tensor], rate: Tensor
    ) -> TwoLists:
        """New parameters and new optimizer list; rate: f32 []."""
        return self.optimizer.update(parameters, [-g for g in gradients], optimizer, rate)


@dataclass(frozen=True, slots=True)
class ParameterGroup:
    """Parameters (by their positions) that share an optimizer; `rate` multiplies the state's learning rate."""

    positions: tuple[int, ...]
    optimizer: Optimizer
    rate: float = 1.0


@dataclass(frozen=True, slots=True)
class Grouped:
    """Several optimizers, each for its own parameters; a parameter in no group stays as it is.

    The list: the groups' lists one after another.
    """

    groups: tuple[ParameterGroup, ...]

    def size(self, count: int) -> int:
        """The groups' sizes together."""
        return sum(group.optimizer.size(len(group.positions)) for group in self.groups)

    def zero_init(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """The groups' zero-initialised lists."""
        return [t for g in self.groups for t in g.optimizer.zero_init([parameters[k] for k in g.positions])]

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], optimizer: Sequence[Tensor], rate: Tensor
    ) -> TwoLists:
        """New parameters and new optimizer list; rate: f32 []."""
        updated, moments, at = list(parameters), [], 0
        for group in self.groups:
            size = group.optimizer.size(len(group.positions))
            own = [parameters[k] for k in group.positions]
            grads = [gradients[k] for k in group.positions]
            scaled = rate if group.rate == 1.0 else rate * group.rate
            changed, kept = group.optimizer.update(own, grads, optimizer[at : at + size], scaled)
            for k, value in zip(group.positions, changed, strict=True):
                updated[k] = value
            moments += kept
            at += size
        return updated, moments


def clip_by_value(gradients: Sequence[Tensor], limit: float) -> list[Tensor]:
    """Gradients whose elements are cut to [-limit, limit], as `clip_grad_value_` does it."""
    return [torch.clamp(g, -limit, limit) for g in gradients]


def clip_by_global_norm(gradients: Sequence[Tensor], limit: float) -> list[Tensor]:
    """Gradients scaled down together so that their joint norm is at most `limit`, as `clip_grad_norm_` does it.

    Squares are summed exactly per tensor, then tensor after tensor.
    """
    total = torch.zeros(())
    for g in gradients:
        total = total + (g * g).sum()
    scale = torch.clamp(limit / (torch.sqrt(total) + 1e-6), max=1.0)
    return [g * scale for g in gradients]
