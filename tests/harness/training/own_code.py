"""Modules and losses as users write them, each with one habit that a captured step could get wrong."""

from __future__ import annotations

import datetime
import functools
import itertools
import random
import secrets
import time
import types
import uuid
from collections import deque

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

CALLS = 0
SEEN: list[float] = []
TABLE = {"calls": 0}
HOUSE = types.ModuleType("house")
HOUSE.visits = 0


def base_loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return F.cross_entropy(module(x), y)


class Net(nn.Module):
    """A perceptron; habits derive from it."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up, self.down = nn.Linear(2, 8), nn.Linear(8, 2)
        self.setup()

    def setup(self) -> None:
        pass

    def hidden(self, h: Tensor) -> Tensor:
        return h

    def forward(self, x: Tensor) -> Tensor:
        return self.down(self.hidden(torch.tanh(self.up(x))))


# --- state beside the state: refused


class Counter(Net):
    def setup(self) -> None:
        self.steps = 0

    def hidden(self, h: Tensor) -> Tensor:
        self.steps += 1  # HERE Counter
        return h


class CounterDecides(Net):
    def setup(self) -> None:
        self.steps = 0

    def hidden(self, h: Tensor) -> Tensor:
        self.steps += 1  # HERE CounterDecides
        return h * 0.5 if self.steps > 2 else h


class CounterScales(Net):
    def setup(self) -> None:
        self.warmth = 0.1

    def hidden(self, h: Tensor) -> Tensor:
        self.warmth = min(1.0, self.warmth * 1.5)  # HERE CounterScales
        return h * self.warmth


class FirstCall(Net):
    def setup(self) -> None:
        self.first = True

    def hidden(self, h: Tensor) -> Tensor:
        if self.first:
            h = h * 3.0
            self.first = False  # HERE FirstCall
        return h


class Toggle(Net):
    def setup(self) -> None:
        self.odd = False

    def hidden(self, h: Tensor) -> Tensor:
        self.odd = not self.odd  # HERE Toggle
        return -h if self.odd else h


class ClassCounter(Net):
    made = 0

    def hidden(self, h: Tensor) -> Tensor:
        type(self).made += 1  # HERE ClassCounter
        return h * float(self.made)


class GlobalCounter(Net):
    def hidden(self, h: Tensor) -> Tensor:
        global CALLS
        CALLS += 1  # HERE GlobalCounter
        return h * float(CALLS)


class GlobalList(Net):
    def hidden(self, h: Tensor) -> Tensor:
        SEEN.append(0.5)  # HERE GlobalList
        return h * float(len(SEEN))


class GlobalTable(Net):
    def hidden(self, h: Tensor) -> Tensor:
        TABLE["calls"] += 1  # HERE GlobalTable
        return h / float(TABLE["calls"])


class OwnModule(Net):
    def hidden(self, h: Tensor) -> Tensor:
        HOUSE.visits += 1  # HERE OwnModule
        return h / float(HOUSE.visits)


class KeepsLosses(Net):
    def setup(self) -> None:
        self.norms: list[Tensor] = []

    def hidden(self, h: Tensor) -> Tensor:
        self.norms.append(h.detach().norm())  # HERE KeepsLosses
        return h


class Queue(Net):
    def setup(self) -> None:
        self.queue: deque[int] = deque([1, 2, 3], maxlen=3)

    def hidden(self, h: Tensor) -> Tensor:
        self.queue.rotate(1)  # HERE Queue
        return h * float(self.queue[0])


class Average(Net):
    def setup(self) -> None:
        self.mean = torch.zeros(8)

    def hidden(self, h: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * h.detach().mean(0)  # HERE Average
        return h - self.mean


class AverageInPlace(Net):
    def setup(self) -> None:
        self.mean = torch.zeros(8)

    def hidden(self, h: Tensor) -> Tensor:
        with torch.no_grad():
            self.mean.mul_(0.9).add_(h.mean(0) * 0.1)  # HERE AverageInPlace
        return h - self.mean


class AverageInATable(Net):
    def setup(self) -> None:
        self.means = {"h": [torch.zeros(8)]}

    def hidden(self, h: Tensor) -> Tensor:
        self.means["h"][0] = 0.9 * self.means["h"][0] + 0.1 * h.detach().mean(0)  # HERE AverageInATable
        return h - self.means["h"][0]


class _Holder:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = torch.zeros(8)


class AverageInAnObject(Net):
    def setup(self) -> None:
        self.holder = _Holder()

    def hidden(self, h: Tensor) -> Tensor:
        self.holder.value = self.holder.value * 0.5 + h.detach().mean(0)  # HERE AverageInAnObject
        return h - self.holder.value


class AverageNeverUsed(Net):
    def setup(self) -> None:
        self.mean = torch.zeros(8)

    def hidden(self, h: Tensor) -> Tensor:
        self.mean = 0.9 * self.mean + 0.1 * h.detach().mean(0)  # HERE AverageNeverUsed
        return h


class ReadsTheLast(Net):
    """The step before decides, by a comparison that the first steps do not show."""

    def setup(self) -> None:
        self.last = torch.zeros(())

    def hidden(self, h: Tensor) -> Tensor:
        h = torch.where(self.last > 1e6, h * 0.1, h)
        self.last = h.detach().abs().max()
        return h


class Numbers(Net):
    def setup(self) -> None:
        self.table = np.zeros(3)

    def hidden(self, h: Tensor) -> Tensor:
        self.table[0] += 1.0  # HERE Numbers
        return h * float(self.table[0])


class Restless(Net):
    def hidden(self, h: Tensor) -> Tensor:
        if self.training:
            self.eval()  # HERE Restless
            return h * 2.0
        return h


class Thaws(Net):
    def hidden(self, h: Tensor) -> Tensor:
        self.seen = getattr(self, "seen", 0) + 1  # HERE Thaws
        return h.detach() if self.seen < 3 else h


def counting_loss(module: nn.Module, x: Tensor, y: Tensor, seen: list[int] = []) -> Tensor:  # noqa: B006 - the habit
    seen.append(1)  # HERE counting_loss
    return base_loss(module, x, y) * float(len(seen))


def attribute_loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    attribute_loss.calls += 1  # HERE attribute_loss
    return base_loss(module, x, y) * float(attribute_loss.calls)


attribute_loss.calls = 0


def closure_loss():
    calls = 0

    def loss(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        nonlocal calls
        calls += 1  # HERE closure_loss
        return base_loss(module, x, y) / float(calls)

    return loss


class OwnLoss:
    def __init__(self) -> None:
        self.weight = 1.0

    def __call__(self, module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        self.weight *= 0.9  # HERE OwnLoss
        return base_loss(module, x, y) * self.weight


# --- what no state determines: refused


def python_random(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return base_loss(module, x, y) * random.random()  # HERE python_random


def python_branch(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    if random.randint(0, 1):  # HERE python_branch
        x = -x
    return base_loss(module, x, y)


OWN_RANDOM = random.Random(5)


def own_random(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return base_loss(module, x, y) * OWN_RANDOM.uniform(0.5, 1.0)  # HERE own_random


def numpy_random(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return base_loss(module, x, y) * float(np.random.rand())  # HERE numpy_random


OWN_GENERATOR = np.random.default_rng(3)


def own_generator(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return base_loss(module, x, y) * float(OWN_GENERATOR.random())  # HERE own_generator


def fresh_generator(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return base_loss(module, x, y) * float(np.random.default_rng().random())  # HERE fresh_generator


def swallowed(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    try:
        factor = random.random()  # HERE swallowed
    except Exception:
        factor = 1.0
    return base_loss(module, x, y) * factor


def clock(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return base_loss(module, x, y) * (1.0 + time.time() % 1.0)  # HERE clock


def calendar(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return base_loss(module, x, y) * (2.0 if datetime.datetime.now().month > 6 else 1.0)  # HERE calendar


def entropy(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return base_loss(module, x, y) * (1.0 + secrets.randbelow(3))  # HERE entropy


def identity(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return base_loss(module, x, y) * (1.0 + uuid.uuid4().int % 3)  # HERE identity


def a_file(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    with open(__file__) as file:  # HERE a_file
        return base_loss(module, x, y) * float(len(file.readline()))


def reseeded(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    torch.manual_seed(0)  # HERE reseeded
    return base_loss(module, F.dropout(x, 0.5), y)


class Yields(Net):
    def setup(self) -> None:
        self.factors = (1.0 / k for k in range(1, 1000))

    def hidden(self, h: Tensor) -> Tensor:
        return h * next(self.factors)


class Counts(Net):
    def setup(self) -> None:
        self.numbers = itertools.count(1)

    def hidden(self, h: Tensor) -> Tensor:
        return h * float(next(self.numbers))


# --- what values decide: refused


class Item(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return h * 2.0 if h.mean().item() > 0 else h  # HERE Item


class Number(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return h / float(h.abs().max())  # HERE Number


class Numpy(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return h * float(h.detach().numpy().max())  # HERE Numpy


class Listed(Net):
    def hidden(self, h: Tensor) -> Tensor:
        return h * max(h[0].tolist())  # HERE Listed


# --- captured, equal to stock PyTorch


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


# --- parameters written by the loss: refused


class Clips(Net):
    """Weights clipped in forward, as some critics do."""

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            self.up.weight.clamp_(-0.3, 0.3)  # HERE Clips
        return super().forward(x)


class ClipsData(Net):
    def forward(self, x: Tensor) -> Tensor:
        self.up.weight.data.clamp_(-0.3, 0.3)  # HERE ClipsData
        return super().forward(x)
