"""AdamW as a pure function on lists of tensors, in operations that round once each (Loshchilov and Hutter, 2019).

The optimizer list is: first moments, second moments (one each per parameter, f32, same shape), then beta1^t and beta2^t
(f32 []), the running powers that correct the bias of *these* moments (docs/adr/0004).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class AdamW:
    """The constants of the update; the learning rate is an input of every step."""

    beta1: float = 0.9
    beta2: float = 0.99
    epsilon: float = 1e-8
    weight_decay: float = 0.01

    def blank(self, parameters: Sequence[Tensor]) -> list[Tensor]:
        """The optimizer list before the first step: zero moments, powers 1."""
        zeros = [torch.zeros_like(p) for p in (*parameters, *parameters)]
        return [*zeros, torch.ones(()), torch.ones(())]

    def update(
        self, parameters: Sequence[Tensor], gradients: Sequence[Tensor], optimizer: Sequence[Tensor], rate: Tensor
    ) -> tuple[list[Tensor], list[Tensor]]:
        """New parameters and new optimizer list; rate: f32 [].

        Weight decay is for matrices only, as usual for transformers.
        """
        count = len(parameters)
        power1 = optimizer[2 * count] * self.beta1
        power2 = optimizer[2 * count + 1] * self.beta2
        step_size = rate / (1.0 - power1)
        correction = 1.0 - power2
        keep = 1.0 - rate * self.weight_decay
        news: list[Tensor] = []
        firsts: list[Tensor] = []
        seconds: list[Tensor] = []
        for k, (p, g) in enumerate(zip(parameters, gradients, strict=True)):
            m = optimizer[k] * self.beta1 + g * (1.0 - self.beta1)
            v = optimizer[count + k] * self.beta2 + g * g * (1.0 - self.beta2)
            direction = m / (torch.sqrt(v / correction) + self.epsilon)
            decayed = p * keep if p.ndim > 1 else p
            news.append(decayed - step_size * direction)
            firsts.append(m)
            seconds.append(v)
        return news, [*firsts, *seconds, power1, power2]
