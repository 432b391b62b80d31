"""Reading a value through a view: `as_strided` where every index is inside, a filled copy elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from assay.engine.runtime.values.dtypes import bits, fill_tensor
from assay.protocol.errors import InvariantError
from assay.protocol.program.views import View, contiguous_strides
from assay.protocol.trees.tensors import TensorSpec

ViewReader = Callable[[Tensor], Tensor]
"""Takes the source's contiguous value, gives the value over the index space; often an alias of the source."""


def reader(view: View, dims: Sequence[int], source: TensorSpec, *, broadcast: bool = False) -> ViewReader:
    """A function that reads a source of this spec through a view over `dims`.

    broadcast: dimensions along which nothing changes (stride 0, inside the bounds) come out with size 1.

    Raises:
        InvariantError: some address lies outside the source (ill-formed programs are not executed).
    """
    dims = tuple(dims)
    if broadcast:
        free = [
            s == 0 and lo <= 0 and hi >= n for n, s, lo, hi in zip(dims, view.strides, view.lo, view.hi, strict=True)
        ]
        dims = tuple(min(n, 1) if f else n for n, f in zip(dims, free, strict=True))
    first = tuple(max(lo, 0) for lo in view.lo)
    last = tuple(min(hi, n) for hi, n in zip(view.hi, dims, strict=True))
    if any(a >= b for a, b in zip(first, last, strict=True)):
        return _constant(view, dims, source)
    _check(view, dims, source)
    offset = view.offset + sum(a * s for a, s in zip(first, view.strides, strict=True))
    inside = tuple(b - a for a, b in zip(first, last, strict=True))
    strides = tuple(s if n > 1 else 0 for n, s in zip(inside, view.strides, strict=True))
    inner = _strided(inside, strides, offset, source)
    if inside == dims:
        return inner
    where = tuple(slice(a, b) for a, b in zip(first, last, strict=True))
    fill = fill_tensor(source.dtype, view.fill)

    def padded(t: Tensor) -> Tensor:
        out = fill.expand(dims).clone(memory_format=torch.contiguous_format)
        out[where] = inner(t)
        return out

    return padded


def is_inside(view: View, dims: Sequence[int]) -> bool:
    """Whether no index of the space reads the fill."""
    return all(lo <= 0 and hi >= n for n, lo, hi in zip(dims, view.lo, view.hi, strict=True))


def sub_view(view: View, keep: Sequence[int]) -> View:
    """The view over only these dimensions, the others fixed at index 0 (where they must lie inside the bounds)."""
    strides, lo, hi = (tuple(field[d] for d in keep) for field in (view.strides, view.lo, view.hi))
    return View(view.offset, strides, lo, hi, view.fill)


def _constant(view: View, dims: tuple[int, ...], source: TensorSpec) -> ViewReader:
    fill = fill_tensor(source.dtype, view.fill).expand(dims)
    return lambda _: fill


def _check(view: View, dims: tuple[int, ...], source: TensorSpec) -> None:
    extremes = view.extremes(dims)
    if extremes is not None and not 0 <= extremes[0] <= extremes[1] < source.numel:
        raise InvariantError(
            f"A view reads elements {extremes[0]} to {extremes[1]} of a tensor of {source.numel}.", code="IllFormedView"
        )


def _strided(dims: tuple[int, ...], strides: tuple[int, ...], offset: int, source: TensorSpec) -> ViewReader:
    """A reader of a region that lies inside the source."""
    if (
        offset == 0
        and dims == source.dims
        and all(s == c or n == 1 for n, s, c in zip(dims, strides, contiguous_strides(dims), strict=True))
    ):
        return lambda t: t
    if all(s >= 0 for s in strides):
        return lambda t: t.as_strided(dims, strides, offset)
    # as_strided takes no negative strides: read the dimension forwards, then flip it.
    flipped = [d for d, s in enumerate(strides) if s < 0]
    lowest = offset + sum((dims[d] - 1) * strides[d] for d in flipped)
    forward = tuple(abs(s) for s in strides)
    # Moved as bits: torch does not flip every type.
    return lambda t: bits(t).as_strided(dims, forward, lowest).flip(flipped).view(t.dtype)
