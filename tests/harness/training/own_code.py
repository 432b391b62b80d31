"""Modules and losses as users write them, each with one habit of keeping state beside the state: refused."""

from __future__ import annotations

import types
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
