"""Modules as users write them, with habits that are captured and equal stock PyTorch."""

from __future__ import annotations

import functools
import types

import torch
from torch import Tensor, nn

from tests.harness.training.own_code import Net


class LastOutput(Net):
    """Keeps what no code reads."""

    def hidden(self, h: Tensor) -> Tensor:
        self.last = h.detach()
        return h


class Rewritten(Net):
    def setup(self) -> None:
        self.kept: list[Tensor] = []

    def hidden(self, h: Tensor) -> Tensor:
        self.kept = []
        for k in range(2):
            self.kept.append(h * (k + 1.0))
        return self.kept[0] + self.kept[1]


class Cache(Net):
    """A table made in the first call, as rotary embeddings do."""

    table: Tensor | None

    def setup(self) -> None:
        self.table = None

    def hidden(self, h: Tensor) -> Tensor:
        if self.table is None:
            self.table = torch.cos(torch.arange(8, dtype=torch.float32))
        return h * self.table


class CachedProperty(Net):
    @functools.cached_property
    def mask(self) -> Tensor:
        return torch.arange(8) % 2 == 0

    def hidden(self, h: Tensor) -> Tensor:
        return h.masked_fill(self.mask, 0.25)


@functools.lru_cache
def triangle(n: int) -> Tensor:
    return torch.ones(n, n).tril()


class Memoized(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return h @ triangle(8)


class ByShape(Net):
    def setup(self) -> None:
        self.tables: dict[int, Tensor] = {}

    def hidden(self, h: Tensor) -> Tensor:
        if h.shape[1] not in self.tables:
            self.tables[h.shape[1]] = torch.linspace(0.5, 1.5, h.shape[1])
        return h * self.tables[h.shape[1]]


class Inner(Net):
    """A hook on what forward computes."""

    def hidden(self, h: Tensor) -> Tensor:
        if h.requires_grad:
            h.register_hook(lambda g: g * 0.5)
        return h


class Constant(Net):
    def setup(self) -> None:
        self.scale = torch.linspace(0.5, 1.5, 8)
        self.factors = [1.0, 0.5]

    def hidden(self, h: Tensor) -> Tensor:
        return h * self.scale * sum(self.factors)


class _Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(-1.0, 1.0)

    @staticmethod
    def backward(ctx, g: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return g * (x.abs() < 2.0)


class OwnFunction(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return _Scaled.apply(h * 3.0)


class NamesAType(Net):
    """Code that names classes of C, whose `__module__` is no name."""

    kinds = (types.FunctionType, types.GetSetDescriptorType, type(Net.forward.__call__))

    def hidden(self, h: Tensor) -> Tensor:
        return h if isinstance(self.hidden, self.kinds) else h * 0.5


class Recurrent(Net):
    """PyTorch keeps a second list of its weights here, which follows the first."""

    def setup(self) -> None:
        self.memory = nn.GRU(8, 8, batch_first=True)

    def hidden(self, h: Tensor) -> Tensor:
        return self.memory(h[:, None])[0][:, 0]
