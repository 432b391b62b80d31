"""Views: how a node reads an earlier node's value over its own index space (docs/protocol.md, section 3).

A view over the index space (i_0..i_(r-1)) reads element offset + sum i_d stride_d of the source, or `fill` when any i_d
is outside [lo_d, hi_d). So permute, expand, slice, pad and shift cost nothing and are one rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from assay.protocol.arithmetic.words import MASK_64, Word, canonical
from assay.protocol.errors import InvariantError
from assay.protocol.types import DType


@dataclass(frozen=True, slots=True)
class View:
    """Offset and strides in elements of the source, bounds per dimension, and the fill's raw bits.

    `fill` is the low 64 bits of the canonical word of the source's element type (see `fill_bits`).
    """

    offset: int
    strides: tuple[int, ...]
    lo: tuple[int, ...]
    hi: tuple[int, ...]
    fill: int = 0

    @property
    def rank(self) -> int:
        """Number of dimensions of the index space."""
        return len(self.strides)

    def address(self, index: Sequence[int]) -> int | None:
        """The source element that an index reads; None where it reads `fill`. May lie outside an ill-formed source."""
        position = self.offset
        for i, stride, lo, hi in zip(index, self.strides, self.lo, self.hi, strict=True):
            if not lo <= i < hi:
                return None
            position += i * stride
        return position

    def extremes(self, dims: Sequence[int]) -> tuple[int, int] | None:
        """The lowest and highest address read over an index space; None when every index reads `fill`."""
        low = high = self.offset
        for size, stride, lo, hi in zip(dims, self.strides, self.lo, self.hi, strict=True):
            first, last = max(lo, 0), min(hi, size) - 1
            if first > last:
                return None
            ends = (first * stride, last * stride)
            low, high = low + min(ends), high + max(ends)
        return low, high


def contiguous_strides(dims: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    return tuple(prod(dims[d + 1 :]) for d in range(len(dims)))


def unravel(index: int, dims: Sequence[int]) -> tuple[int, ...]:
    """The coordinates of a row-major linear index; all dims positive."""
    coordinates = []
    for size in reversed(dims):
        index, i = divmod(index, size)
        coordinates.append(i)
    return tuple(reversed(coordinates))


def fill_bits(dtype: DType, word: Word) -> int:
    """The `fill` field for this word of the source's element type: the canonical word mod 2^64."""
    return canonical(dtype, word) & MASK_64


@dataclass(frozen=True, slots=True)
class Window:
    """A view together with the index space it is read over; each method returns the window after one reshaping.

    Raises InvariantError for what one view cannot express.
    """

    dims: tuple[int, ...]
    view: View

    @classmethod
    def whole(cls, dims: Sequence[int]) -> Window:
        """The window that reads a source of these dims as it is."""
        dims = tuple(dims)
        return cls(dims, View(0, contiguous_strides(dims), (0,) * len(dims), dims))

    def permute(self, order: Sequence[int]) -> Window:
        """Dimension d of the result is dimension order[d] of this one."""
        if sorted(order) != list(range(len(self.dims))):
            raise InvariantError(f"{tuple(order)} is no permutation of {len(self.dims)} dimensions.")
        return self._with([self._dimension(d) for d in order])

    def unsqueeze(self, at: int) -> Window:
        """Insert a dimension of size 1 before dimension `at`."""
        dimensions = self._dimensions()
        dimensions.insert(at, (1, 0, 0, 1))
        return self._with(dimensions)

    def expand(self, dims: Sequence[int]) -> Window:
        """Repeat dimensions of size 1 to the given sizes; new dimensions come in front."""
        window = self
        while len(window.dims) < len(dims):
            window = window.unsqueeze(0)
        dimensions = window._dimensions()
        for d, size in enumerate(dims):
            have, _, lo, hi = dimensions[d]
            if have != size:
                if have != 1:
                    raise InvariantError(f"A dimension of size {have} cannot be repeated to {size}.")
                dimensions[d] = (size, 0, 0, size if lo <= 0 < hi else 0)
        return window._with(dimensions)

    def slice(self, dim: int, start: int, stop: int, step: int = 1) -> Window:
        """Indices start, start + step, ... of one dimension below `stop` (above it for a negative step)."""
        size, stride, lo, hi = self._dimension(dim)
        taken = range(start, stop, step)
        if taken and not all(0 <= i < size for i in (taken[0], taken[-1])):
            raise InvariantError(f"A slice {start}:{stop}:{step} leaves a dimension of size {size}.")
        # Positions i whose old index start + i * step lies in [lo, hi).
        if step > 0:
            first, end = -((start - lo) // step), -((start - hi) // step)
        else:
            first, end = (start - hi) // -step + 1, (start - lo) // -step + 1
        first, end = max(first, 0), min(end, len(taken))
        bounds = (first, end) if first < end else (0, 0)
        window = self._replaced(dim, (len(taken), stride * step, *bounds))
        return replace(window, view=replace(window.view, offset=self.view.offset + start * stride))

    def select(self, dim: int, index: int) -> Window:
        """Fix one dimension to an index and drop it (inside the bounds only)."""
        size, stride, lo, hi = self._dimension(dim)
        if not lo <= index < min(hi, size):
            raise InvariantError(f"Index {index} of a dimension of size {size} is not inside the view.")
        dimensions = self._dimensions()
        del dimensions[dim]
        window = self._with(dimensions)
        return replace(window, view=replace(window.view, offset=self.view.offset + index * stride))

    def pad(self, dim: int, before: int, after: int, fill: int = 0) -> Window:
        """Add indices that read `fill` (bits, see `fill_bits`) around one dimension."""
        if self.extremes_are_partial() and fill != self.view.fill:
            raise InvariantError("A view has one fill; this one already pads with another.")
        size, stride, lo, hi = self._dimension(dim)
        window = self._replaced(dim, (before + size + after, stride, lo + before, hi + before))
        return replace(window, view=replace(window.view, offset=self.view.offset - before * stride, fill=fill))

    def split(self, dim: int, sizes: Sequence[int]) -> Window:
        """Divide one dimension, wholly inside its bounds, into several of these sizes (row-major)."""
        size, stride, lo, hi = self._dimension(dim)
        if prod(sizes) != size or (lo, hi) != (0, size):
            raise InvariantError(f"A dimension of size {size} cannot be split into {tuple(sizes)}.")
        dimensions = self._dimensions()
        dimensions[dim : dim + 1] = [
            (n, s * stride, 0, n) for n, s in zip(sizes, contiguous_strides(sizes), strict=True)
        ]
        return self._with(dimensions)

    def extremes_are_partial(self) -> bool:
        """Whether some index reads `fill`."""
        return any((lo, hi) != (0, size) for size, _, lo, hi in self._dimensions())

    def _dimension(self, d: int) -> tuple[int, int, int, int]:
        return self.dims[d], self.view.strides[d], self.view.lo[d], self.view.hi[d]

    def _dimensions(self) -> list[tuple[int, int, int, int]]:
        return [self._dimension(d) for d in range(len(self.dims))]

    def _replaced(self, dim: int, dimension: tuple[int, int, int, int]) -> Window:
        dimensions = self._dimensions()
        dimensions[dim] = dimension
        return self._with(dimensions)

    def _with(self, dimensions: Sequence[tuple[int, int, int, int]]) -> Window:
        dims, strides, lo, hi = (tuple(d[f] for d in dimensions) for f in range(4))
        return Window(dims, View(self.view.offset, strides, lo, hi, self.view.fill))
