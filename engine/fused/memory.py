"""Where values that live for a part of a run lie in one piece of memory: no two that live at once overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class Life:
    """A value of some bytes that is written at one moment and read until another, both included."""

    key: int
    size: int
    first: int
    last: int


def placed(lives: Sequence[Life]) -> tuple[dict[int, int], int]:
    """An offset per key and the bytes of all: each value in the lowest gap that fits it, the largest values first."""
    offsets: dict[int, int] = {}
    done: list[tuple[int, int, Life]] = []
    total = 0
    for life in sorted(lives, key=lambda x: (-x.size, x.first, x.key)):
        size = -(-max(life.size, 1) // ALIGNMENT) * ALIGNMENT
        start = 0
        for low, high, other in done:  # by offset
            if other.last < life.first or other.first > life.last or high <= start:
                continue
            if low >= start + size:
                break
            start = high
        offsets[life.key] = start
        done.append((start, start + size, life))
        done.sort(key=lambda x: x[:2])
        total = max(total, start + size)
    return offsets, total
