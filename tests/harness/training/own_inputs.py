"""Modules and losses as users write them, which read or decide by what no state determines: refused."""

from __future__ import annotations

import datetime
import itertools
import logging
import random
import secrets
import time
import uuid

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from tests.harness.training.own_code import Net, base_loss


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


LOG, DATED_LOG = logging.getLogger("own.log"), logging.getLogger("own.dated")


class Dated(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return time.time() > 0.0  # HERE dated


DATED_LOG.addFilter(Dated())


def logs(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    LOG.warning("a step")
    return base_loss(module, x, y)


def dated(module: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    DATED_LOG.warning("a step")
    return base_loss(module, x, y)


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
