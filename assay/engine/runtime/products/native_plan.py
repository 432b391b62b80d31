"""A product as the C files take it: the structures of `dot.h`, and views as tables of element offsets."""

from __future__ import annotations

import ctypes
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from assay.protocol.program.views import View

OUTSIDE = -(1 << 63)
"""In a table: the index lies outside the bounds and reads the fill."""

INTEGER, POINTER = ctypes.c_int64, ctypes.c_void_p


class DotSide(ctypes.Structure):
    """Equal to `dot_side` in `dot.h`."""

    _fields_ = (
        ("batch", POINTER),
        ("own", POINTER),
        ("red", POINTER),
        ("e_batch", POINTER),
        ("e_own", POINTER),
        ("own_kind", POINTER),
        ("red_kind", POINTER),
        ("fill", INTEGER),
        ("e_fill", INTEGER),
        ("precision", INTEGER),
        ("digits", INTEGER),
        ("shift", INTEGER),
    )


class DotPlan(ctypes.Structure):
    """Equal to `dot_plan` in `dot.h`."""

    _fields_ = (
        ("batches", INTEGER),
        ("m", INTEGER),
        ("n", INTEGER),
        ("k", INTEGER),
        ("a", DotSide),
        ("b", DotSide),
        ("c_batch", POINTER),
        ("c_row", POINTER),
        ("c_column", POINTER),
        ("c_kind", POINTER),
        ("variant", INTEGER),
        ("run", INTEGER * 4),
        ("room", INTEGER),
        ("joined", INTEGER),
    )


_tables: WeakValueDictionary[tuple[View, tuple[int, ...], tuple[int, ...], int], Tensor] = WeakValueDictionary()


def table(view: View, dims: tuple[int, ...], which: tuple[int, ...], start: int = 0) -> Tensor:
    """The offsets of all indices of some dimensions, row-major, i64; OUTSIDE where an index is outside the bounds.

    One tensor for all products that look alike, as those of a model's layers do.
    """
    known = _tables.get((view, dims, which, start))
    if known is not None:
        return known
    offsets = torch.full((1,), start, dtype=torch.int64)
    for d in which:
        index = torch.arange(dims[d])
        inside = (index >= view.lo[d]) & (index < view.hi[d]) & (offsets != OUTSIDE)[:, None]
        offsets = torch.where(inside, offsets[:, None] + index * view.strides[d], OUTSIDE).flatten()
    _tables[view, dims, which, start] = offsets
    return offsets
