"""Tensors of a captured graph as affine readings of values: every reshaping that a strided view can express is free.

A `Strided` has the logical shape that PyTorch sees; each logical dimension is a group of axes, outermost first, so that
merging dimensions that no single stride can describe (a head axis and a batch axis, say) costs nothing either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from assay.engine.compiler.ir.value import Axis, Value, full_axis
from assay.protocol.types import DType

Axes = tuple[Axis, ...]


@dataclass(frozen=True, slots=True)
class Strided:
    """A value read at offset + sum of index times stride over the axes of all groups; `fill` as in a protocol view."""

    value: Value
    groups: tuple[Axes, ...]
    offset: int = 0
    fill: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The logical shape."""
        return tuple(prod(a.size for a in group) for group in self.groups)

    @property
    def dtype(self) -> DType:
        """The element type of the value."""
        return self.value.dtype

    @property
    def axes(self) -> Axes:
        """All axes in order."""
        return tuple(axis for group in self.groups for axis in group)

    @property
    def is_full(self) -> bool:
        """Whether no index reads the fill."""
        return all(axis.is_full for axis in self.axes)

    def permute(self, order: Sequence[int]) -> Strided:
        """Dimension d of the result is dimension order[d]."""
        return replace(self, groups=tuple(self.groups[d] for d in order))

    def unsqueeze(self, at: int) -> Strided:
        """A new dimension of size 1 before dimension `at`."""
        return replace(self, groups=(*self.groups[:at], (), *self.groups[at:]))

    def squeeze(self, dims: Sequence[int]) -> Strided | None:
        """Without these dimensions of size 1; None when one of them reads the fill."""
        dropped = [self.groups[d] for d in dims]
        if any(not axis.is_full for group in dropped for axis in group):
            return None
        return replace(self, groups=tuple(g for d, g in enumerate(self.groups) if d not in set(dims)))

    def expand(self, shape: Sequence[int]) -> Strided | None:
        """Broadcast to a shape as PyTorch does (-1 keeps a size); None when a repeated index reads the fill."""
        groups: list[Axes] = []
        missing = len(shape) - len(self.groups)
        for d, size in enumerate(shape):
            group = self.groups[d - missing] if d >= missing else ()
            have = prod(a.size for a in group)
            if size in (-1, have):
                groups.append(group)
            elif all(a.is_full for a in group):
                groups.append((full_axis(size, 0),))
            else:
                return None
        return replace(self, groups=tuple(groups))

    def narrow(self, dim: int, start: int, count: int, step: int = 1) -> Strided | None:
        """Indices start, start + step, ... of one dimension; None when the dimension is a group that this cuts."""
        group = tuple(a for a in self.groups[dim] if a.size != 1 or not a.is_full)
        if start == 0 and step == 1 and count == self.shape[dim]:
            return self
        if not group:
            return replace(self, groups=(*self.groups[:dim], (), *self.groups[dim + 1 :])) if count == 1 else None
        if len(group) > 1:
            merged = merge_axes(group)
            if len(merged) > 1:
                return None
            group = merged
        axis = group[0]
        if step == 1:
            new = Axis(count, axis.stride, axis.lo - start, axis.hi - start)
        elif axis.is_full:
            new = full_axis(count, axis.stride * step)
        else:
            return None
        if axis.is_full and step == 1:
            new = full_axis(count, axis.stride)
        groups = (*self.groups[:dim], (new,), *self.groups[dim + 1 :])
        return replace(self, groups=groups, offset=self.offset + start * axis.stride)

    def pad(self, dim: int, before: int, after: int, fill: int) -> Strided | None:
        """Indices that read `fill` around one dimension; None if another fill is in use or the dimension is a group."""
        if before == after == 0:
            return self
        group = merge_axes(self.groups[dim])
        if len(group) > 1 or (not self.is_full and fill != self.fill):
            return None
        axis = group[0] if group else full_axis(1, 0)
        lo, hi = max(axis.lo, 0), min(axis.hi, axis.size)
        new = Axis(before + axis.size + after, axis.stride, lo + before, hi + before)
        groups = (*self.groups[:dim], (new,), *self.groups[dim + 1 :])
        return replace(self, groups=groups, offset=self.offset - before * axis.stride, fill=fill)

    def flip(self, dim: int) -> Strided | None:
        """One dimension backwards; None when it is a group or reads the fill."""
        group = merge_axes(self.groups[dim])
        if not group:
            return self
        if len(group) > 1 or not group[0].is_full:
            return None
        axis = group[0]
        groups = (*self.groups[:dim], (full_axis(axis.size, -axis.stride),), *self.groups[dim + 1 :])
        return replace(self, groups=groups, offset=self.offset + (axis.size - 1) * axis.stride)

    def reshape(self, shape: Sequence[int]) -> Strided | None:
        """The same elements, row-major, under another shape; None when that takes a copy."""
        if tuple(shape) == self.shape:
            return self
        groups = regroup(self.axes, shape)
        if groups is None:
            groups = regroup(merge_axes(self.axes), shape)
        return None if groups is None else replace(self, groups=groups)


def whole(value: Value) -> Strided:
    """A value as it is, one axis per dimension."""
    return Strided(value, tuple((axis,) for axis in contiguous(value.dims)))


def contiguous(dims: Sequence[int]) -> Axes:
    """Full axes over row-major dims."""
    return tuple(full_axis(n, prod(dims[d + 1 :])) for d, n in enumerate(dims))


def memory_order(axes: Sequence[Axis]) -> list[int]:
    """Positions of axes from the outermost in memory to the innermost; one that repeats stays behind its forerunner."""
    steps: list[float] = []
    for axis in axes:
        steps.append(abs(axis.stride) * (axis.size > 1) or (steps[-1] if steps else float("inf")))
    return sorted(range(len(steps)), key=lambda d: -steps[d])


def merge_axes(axes: Sequence[Axis]) -> Axes:
    """Axes of which neighbours that step evenly are joined, and full ones of size 1 dropped."""
    merged: list[Axis] = []
    for axis in axes:
        if axis.size == 1 and axis.is_full:
            continue
        if merged and merged[-1].is_full and axis.is_full and merged[-1].stride == axis.size * axis.stride:
            merged[-1] = full_axis(merged[-1].size * axis.size, axis.stride)
        else:
            merged.append(axis)
    return tuple(merged)


def regroup(axes: Sequence[Axis], shape: Sequence[int]) -> tuple[Axes, ...] | None:
    """The axes divided among the dims of a shape with as many elements, split where needed; None if impossible."""
    if 0 in shape:
        return tuple((full_axis(n, 0),) for n in shape)
    rest = [a for a in axes if a.size != 1 or not a.is_full][::-1]
    groups: list[Axes] = []
    for size in shape:
        group: list[Axis] = []
        while size > 1 or (rest and rest[-1].size == 1):
            if not rest:
                return None
            axis = rest.pop()
            if size % axis.size == 0:
                group.append(axis)
                size //= axis.size
            elif axis.is_full and axis.size % size == 0:
                outer, inner = axis.split(axis.size // size)
                group.append(outer)
                rest.append(inner)
                size = 1
            else:
                return None
        groups.append(tuple(group))
    return None if rest else tuple(groups)


def common_axes(groups: Sequence[Axes]) -> list[Axes] | None:
    """The same logical dimension of several tensors, split so that all have axes of the same sizes.

    None when the sizes cannot be reconciled (2 by 3 against 3 by 2) or an axis with bounds would have to be split.
    """
    if any(axis.size == 0 for group in groups for axis in group):
        return [(full_axis(0, 0),) for _ in groups]
    inner_sizes: set[int] = set()
    for group in groups:
        inner = 1
        for axis in reversed(group):
            inner_sizes.add(inner)
            inner *= axis.size
        inner_sizes.add(inner)
    cuts = sorted(inner_sizes)
    if any(large % small for small, large in pairwise(cuts)):
        return None
    sizes = [large // small for small, large in pairwise(cuts)][::-1]
    result = []
    for group in groups:
        pieces = regroup(group, sizes) if sizes else ((),)
        if pieces is None or any(len(p) > 1 for p in pieces):
            return None
        result.append(tuple(p[0] if p else full_axis(n, 0) for p, n in zip(pieces, sizes, strict=False)))
    return result
