"""Index spaces as kernels walk them: dimensions that step evenly for all views joined, the others dropped or kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from assay.engine.runtime.fused.layout import MAX_RANK, CSpace, CView, Mode, dims
from assay.protocol.program.views import View, contiguous_strides
from assay.protocol.types import DType


@dataclass(frozen=True, slots=True)
class Reading:
    """One view over a space: what it reads, and its strides and bounds per dimension of the space."""

    node: int
    dtype: DType
    view: View

    def bounded(self, sizes: Sequence[int]) -> bool:
        """Whether some index reads the fill."""
        return any(lo > 0 or hi < n for n, lo, hi in zip(sizes, self.view.lo, self.view.hi, strict=True))


@dataclass(frozen=True, slots=True)
class Space:
    """Sizes of the dimensions, the first `out` of them not reduced, and the views over it."""

    sizes: tuple[int, ...]
    out: int
    readings: tuple[Reading, ...]

    @property
    def inner(self) -> int:
        """The size of the last dimension."""
        return self.sizes[-1] if self.sizes else 1

    def contiguous(self, reading: Reading) -> bool:
        """Whether a view reads consecutive elements in the order of the space."""
        return not reading.bounded(self.sizes) and reading.view.strides == contiguous_strides(self.sizes)

    def constant(self, reading: Reading) -> bool:
        """Whether a view reads one element only."""
        return not reading.bounded(self.sizes) and not any(reading.view.strides)

    def c_space(self) -> CSpace:
        """As the kernels take it."""
        return CSpace(len(self.sizes), dims(self.sizes))

    def c_view(self, reading: Reading, mode: Mode) -> CView:
        """As the kernels take it."""
        v = reading.view
        fill = v.fill & (1 << 64) - 1
        signed = fill - (1 << 64) if fill >> 63 else fill
        bounded = int(reading.bounded(self.sizes))
        return CView(
            reading.node, reading.dtype, mode, v.offset, bounded, signed, dims(v.strides), dims(v.lo), dims(v.hi)
        )


def joined(out: Sequence[int], red: Sequence[int], readings: Sequence[Reading]) -> Space:
    """The space of out, then red, with as few dimensions as these views allow; out and red are never joined.

    Views are over out + red; no dimension is 0. At least one dimension of red is left when there is one.
    """
    sizes = (*out, *red)
    kept: list[list[tuple[int, int, int, int]]] = []  # per dimension: (size, stride, lo, hi) of each view
    is_red: list[bool] = []
    for d, n in enumerate(sizes):
        here = [(n, r.view.strides[d], r.view.lo[d], r.view.hi[d]) for r in readings]
        if n == 1 and all(lo <= 0 < hi for _, _, lo, hi in here):
            continue
        if kept and is_red[-1] == (d >= len(out)) and _even(kept[-1], here):
            kept[-1] = [(a[0] * n, b[1], 0, a[0] * n) for a, b in zip(kept[-1], here, strict=True)]
        else:
            kept.append([(n, s if n > 1 else 0, max(lo, 0), min(hi, n)) for _, s, lo, hi in here])
            is_red.append(d >= len(out))
    if red and not any(is_red):
        kept.append([(1, 1, 0, 1)] * len(readings))
        is_red.append(True)
    fresh = tuple(
        replace(
            r,
            view=View(
                r.view.offset,
                tuple(k[i][1] for k in kept),
                tuple(k[i][2] for k in kept),
                tuple(k[i][3] for k in kept),
                r.view.fill,
            ),
        )
        for i, r in enumerate(readings)
    )
    return Space(_sizes(kept, is_red, out, red), is_red.count(False), fresh)


def _sizes(
    kept: list[list[tuple[int, int, int, int]]], is_red: list[bool], out: Sequence[int], red: Sequence[int]
) -> tuple[int, ...]:
    if kept and kept[0]:
        return tuple(k[0][0] for k in kept)
    # Without views nothing tells dimensions apart: one of each kind.
    return tuple(prod(red) if r else prod(out) for r in is_red)


def _even(a: list[tuple[int, int, int, int]], b: list[tuple[int, int, int, int]]) -> bool:
    """Whether a step of the outer dimension is a walk over the inner one, for every view, with no bounds."""
    return all(
        lo0 <= 0 and hi0 >= n0 and lo1 <= 0 and hi1 >= n1 and s0 == n1 * s1
        for (n0, s0, lo0, hi0), (n1, s1, lo1, hi1) in zip(a, b, strict=True)
    )


def fits(space: Space) -> bool:
    """Whether the kernels' structures have room for it."""
    return len(space.sizes) <= MAX_RANK
