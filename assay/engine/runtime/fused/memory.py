"""Where values lie: those of one run in one piece, where no two that live at once overlap; outputs on used memory."""

from __future__ import annotations

import ctypes
import sys
from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import prod
from threading import Lock

import torch
from torch import Tensor

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Life:
    """A value of some bytes that is written at one moment and read until another, both included."""

    key: int
    size: int
    first: int
    last: int


_MOST_FITTED = 1 << 13
"""Values that each look for a gap among all others: a second or two. GPT-2 small's step has three thousand."""


def placed(lives: Sequence[Life]) -> tuple[dict[int, int], int]:
    """An offset per key and the bytes of all: each value in the lowest gap that fits it, the largest values first.

    Attack: a stranger's program of a million small values, whose gaps take hours to find. After so many of the largest
    the others take turns, behind them.
    """
    ordered = sorted(lives, key=lambda x: (-x.size, x.first, x.key))
    offsets, total = _fitted(ordered[:_MOST_FITTED])
    others, total = _in_turn(ordered[_MOST_FITTED:], total)
    return offsets | others, total


def _fitted(lives: Sequence[Life]) -> tuple[dict[int, int], int]:
    """Each value in the lowest gap that fits it, in this order."""
    offsets: dict[int, int] = {}
    done: list[tuple[int, int, Life]] = []
    total = 0
    for life in lives:
        size = _aligned(life)
        start = 0
        for low, high, other in done:  # by offset
            if other.last < life.first or other.first > life.last or high <= start:
                continue
            if low >= start + size:
                break
            start = high
        offsets[life.key] = start
        insort(done, (start, start + size, life), key=lambda x: x[:2])
        total = max(total, start + size)
    return offsets, total


def _in_turn(lives: Sequence[Life], total: int) -> tuple[dict[int, int], int]:
    """Each value where one of its size lay that is read no more, or else behind all: from `total` on."""
    offsets: dict[int, int] = {}
    ends: list[tuple[int, int, int]] = []
    free: dict[int, list[int]] = {}
    for life in sorted(lives, key=lambda x: (x.first, x.key)):
        while ends and ends[0][0] < life.first:
            _, size, offset = heappop(ends)
            free.setdefault(size, []).append(offset)
        size = _aligned(life)
        if left := free.get(size):
            offset = left.pop()
        else:
            offset, total = total, total + size
        offsets[life.key] = offset
        heappush(ends, (life.last, size, offset))
    return offsets, total


def _aligned(life: Life) -> int:
    """Bytes that a value takes."""
    return -(-max(life.size, 1) // ALIGNMENT) * ALIGNMENT


_RECYCLED_BYTES = 1 << 16
"""Bytes from which on memory is kept: below, asking the system for it costs little."""

_MOST_KEPT = 3
"""Pieces of memory that are kept per value: what a caller reads from, what it gets, and one that it keeps."""


class Recycled:
    """New tensors of one shape, on memory that an earlier one of them has left when nothing refers to it any more.

    Memory that the system hands out anew costs a fault per page, a tenth of a step.
    """

    def __init__(self, dtype: torch.dtype, dims: Sequence[int]) -> None:
        self._dtype, self._dims = dtype, tuple(dims)
        self._bytes = dtype.itemsize * prod(dims)
        self._kept: list[ctypes.Array[ctypes.c_char]] = []
        self._lock = Lock()

    def take(self) -> Tensor:
        """A tensor of any content that shares no memory with any other that is still in use."""
        if self._bytes < _RECYCLED_BYTES:
            return torch.empty(self._dims, dtype=self._dtype)
        with self._lock:
            for n in range(len(self._kept)):
                if sys.getrefcount(self._kept[n]) == _UNUSED:
                    return self._over(self._kept[n])
            if len(self._kept) == _MOST_KEPT:
                return torch.empty(self._dims, dtype=self._dtype)
            self._kept.append((ctypes.c_char * self._bytes)())
            return self._over(self._kept[-1])

    def _over(self, raw: ctypes.Array[ctypes.c_char]) -> Tensor:
        """A tensor over this memory; its storage refers to `raw` as long as it lives."""
        return torch.frombuffer(raw, dtype=self._dtype).view(self._dims)


_UNUSED = 2
"""References to memory of which only a list, and the question, know."""
