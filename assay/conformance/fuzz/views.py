"""Random views: every kind that a well-formed operand may have over an index space.

Whole and permuted sources, broadcasts, strides of both signs, windows with fills, and views that read nothing, whose
offset and strides well-formedness leaves free.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from random import Random
from typing import Final

from assay.conformance.fuzz.values import word
from assay.protocol.program.nodes import Operand
from assay.protocol.program.views import View, contiguous_strides, fill_bits
from assay.protocol.trees.tensors import TensorSpec

WILD: Final = (0, 1, -1, 7, 1 << 20, -(1 << 20), 1 << 40, -(1 << 40), (1 << 62) - 1, -(1 << 62))
"""Strides and offsets where no element is read."""


def operand(rng: Random, node: int, source: TensorSpec, dims: Sequence[int]) -> Operand | None:
    """A read of a node over an index space; None where it has no element and the space no dimension to bound."""
    dims = tuple(dims)
    lo, hi = _bounds(rng, dims)
    if source.numel == 0 and all(a < b for a, b in zip(lo, hi, strict=True)):
        if not dims:
            return None
        d = rng.randrange(len(dims))
        hi = (*hi[:d], lo[d], *hi[d + 1 :])
    fill = fill_bits(source.dtype, word(rng, source.dtype)) if rng.random() < 0.8 else 0
    if any(a >= b for a, b in zip(lo, hi, strict=True)):
        return Operand(node, View(_wild(rng), tuple(_wild(rng) for _ in dims), lo, hi, fill))
    strides = list(_strides(rng, source, dims))
    while True:
        low, high = _reach(strides, lo, hi)
        if high - low < source.numel:
            break
        widest = max(range(len(dims)), key=lambda d: abs(strides[d]) * (hi[d] - 1 - lo[d]))
        strides[widest] = rng.choice((0, 0, 1, strides[widest] // 2)) if abs(strides[widest]) > 1 else 0
    offset = rng.choice((0, source.numel - 1 - high + low, rng.randrange(source.numel - high + low))) - low
    for d, size in enumerate(dims):
        if hi[d] == 1 and lo[d] == 0 and rng.random() < 0.1 and size >= 1:
            strides[d] = _wild(rng)  # multiplied by index 0 alone
    return Operand(node, View(offset, tuple(strides), lo, hi, fill))


def _bounds(rng: Random, dims: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Mostly the whole space; else a window, empty now and then."""
    if rng.random() < 0.7:
        return (0,) * len(dims), dims
    pairs = []
    for size in dims:
        chance = rng.random()
        if chance < 0.5:
            pairs.append((0, size))
        elif chance < 0.95 and size:
            lo = rng.randrange(size)
            pairs.append((lo, rng.randint(lo + 1, size)))
        else:
            at = rng.randint(0, size)
            pairs.append((at, at))
    return tuple(a for a, _ in pairs), tuple(b for _, b in pairs)


def _strides(rng: Random, source: TensorSpec, dims: tuple[int, ...]) -> Sequence[int]:
    chance = rng.random()
    if chance < 0.35 and prod(dims) <= source.numel:
        return contiguous_strides(dims)
    if chance < 0.8:
        return _matched(rng, source.dims, dims)
    return [rng.choice((0, 0, 1, -1, 2, -2, 3, 5, rng.randint(-20, 20))) for _ in dims]


def _matched(rng: Random, have: tuple[int, ...], dims: tuple[int, ...]) -> list[int]:
    """Each dimension follows one of the source of at least its size, or repeats: permutations and broadcasts."""
    strides, free = contiguous_strides(have), list(range(len(have)))
    found = []
    for size in dims:
        fitting = [d for d in free if have[d] >= size]
        if not fitting or rng.random() < 0.15:
            found.append(0)
            continue
        exact = [d for d in fitting if have[d] == size]
        d = rng.choice(exact or fitting) if rng.random() < 0.4 else (exact or fitting)[0]
        free.remove(d)
        found.append(strides[d] if rng.random() < 0.93 else -strides[d])
    return found


def _reach(strides: Sequence[int], lo: Sequence[int], hi: Sequence[int]) -> tuple[int, int]:
    """The lowest and highest address over the bounds, from offset 0."""
    ends = [(a * s, (b - 1) * s) for s, a, b in zip(strides, lo, hi, strict=True)]
    return sum(min(e) for e in ends), sum(max(e) for e in ends)


def _wild(rng: Random) -> int:
    return rng.choice(WILD)
