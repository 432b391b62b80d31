"""One piece of memory for a whole run: what kernels ask for is planned once, and handed out again in every run.

A program's kernels ask for the same memory in the same order in every run. So a first pass, in which none is launched
and nothing is allocated, writes the requests down, each with the step that made it; offsets are found from how long
each value is read; every later run is handed the same places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from threading import local
from typing import Protocol

import torch
from torch import Tensor

from assay.engine.runtime.triton import backend
from assay.protocol.errors import InvariantError


class Memory(Protocol):
    """Whence kernels have the memory that they ask for."""

    def take(self, dims: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """Memory of any content for a tensor of these dims."""


class _InForce(local):
    """A thread's own: executors of other threads ask at the same time, each for the memory of its run."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []


_in_force = _InForce()


@contextmanager
def within(memory: Memory) -> Iterator[None]:
    """Kernels of this thread have their memory from here."""
    _in_force.memories.append(memory)
    try:
        yield
    finally:
        _in_force.memories.pop()


def take(dims: Sequence[int], dtype: torch.dtype) -> Tensor:
    """Memory for a value, or for what a kernel keeps on the way: the run's, or its own where there is no plan."""
    if memories := _in_force.memories:
        return memories[-1].take(tuple(dims), dtype)
    return torch.empty(tuple(dims), dtype=dtype, device=backend.device())


def contiguous(t: Tensor) -> Tensor:
    """The tensor, row-major in memory that was taken for it unless it is so already."""
    return t if t.is_contiguous() else take(tuple(t.shape), t.dtype).copy_(t)


class Requests:
    """What is asked for in a pass that computes nothing: the step and the shape of each, answered without memory."""

    def __init__(self) -> None:
        self.step = 0
        self.made: list[tuple[int, tuple[tuple[int, ...], torch.dtype]]] = []
        self._numbers: dict[int, int] = {}
        self._kept: list[Tensor] = []  # so that no two of them are known by one address

    def take(self, dims: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """A tensor without memory."""
        t = torch.empty(dims, dtype=dtype, device="meta")
        self._numbers[t.untyped_storage()._cdata] = len(self.made)
        self._kept.append(t)
        self.made.append((self.step, (dims, dtype)))
        return t

    def number_of(self, t: Tensor) -> int | None:
        """Which request a value is, or is a view of; None for what was there before."""
        return self._numbers.get(t.untyped_storage()._cdata)


class Arena:
    """Memory of one run after another: the places of all requests, in their order."""

    def __init__(self, size: int) -> None:
        """size: bytes. Raises ConfigError (MemoryExceeded): the GPU has not so many left."""
        with backend.named_memory(f"{size / 2**30:,.1f} GiB left for the runs of a program"):
            self.whole = torch.empty(size, dtype=torch.uint8, device=backend.device())
        self._places: list[Tensor] = []
        self._next = 0

    def tensor(self, offset: int, dims: Sequence[int], dtype: torch.dtype) -> Tensor:
        """A tensor over some of it."""
        return self.whole[offset : offset + prod(dims) * dtype.itemsize].view(dtype).view(tuple(dims))

    def give(self, places: Sequence[Tensor]) -> None:
        """The tensors that requests are answered with."""
        self._places = list(places)

    def begin(self) -> None:
        """A run begins: the first request comes next."""
        self._next = 0

    def take(self, dims: tuple[int, ...], dtype: torch.dtype) -> Tensor:
        """The place of the next request."""
        at, self._next = self._next, self._next + 1
        if at >= len(self._places) or self._places[at].shape != dims or self._places[at].dtype is not dtype:
            raise InvariantError(f"A kernel asks for {dtype} {list(dims)}, which the plan of its run does not hold.")
        return self._places[at]
