"""Index arithmetic shared by fusion and executors: linear strides as steps along dimensions of a row-major tensor."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from assay.protocol.program.views import contiguous_strides


def coordinates(linear: int, dims: Sequence[int]) -> tuple[int, ...] | None:
    """The index of a linear element; None outside the tensor."""
    if not 0 <= linear < max(prod(dims), 1):
        return None
    found = []
    for stride in contiguous_strides(dims):
        i, linear = divmod(linear, stride)
        found.append(i)
    return tuple(found)


def axis_of(stride: int, dims: Sequence[int]) -> int | None:
    """The outermost dimension along which a step of this positive linear stride moves; None if along no single one."""
    for axis, s in enumerate(contiguous_strides(dims)):
        if dims[axis] > 1 and stride >= s and stride % s == 0:
            return axis
    return None


def steps(
    sizes: Sequence[int], strides: Sequence[int], offset: int, dims: Sequence[int]
) -> list[tuple[int, int]] | None:
    """Per stride the dimension of a row-major tensor along which it moves and by how much; (-1, 0) for stride 0.

    None when the start or the reach leaves the tensor, a stride is negative or moves along no single dimension: then no
    index of the tensor is an affine function of these.
    """
    start = coordinates(offset, dims)
    if start is None:
        return None
    reach = list(start)
    found: list[tuple[int, int]] = []
    row_major = contiguous_strides(dims)
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1 or stride == 0:
            found.append((-1, 0))
            continue
        axis = axis_of(stride, dims) if stride > 0 else None
        if axis is None:
            return None
        found.append((axis, stride // row_major[axis]))
        reach[axis] += (size - 1) * (stride // row_major[axis])
    return found if all(end < size for end, size in zip(reach, dims, strict=True)) else None
