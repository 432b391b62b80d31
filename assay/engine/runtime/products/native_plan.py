"""A product as the C files take it: the structures of `dot.h`, and views as tables of element offsets."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from threading import local
from typing import cast
from weakref import WeakValueDictionary

import torch
from torch import Tensor

from assay.engine.runtime.exact import limits
from assay.engine.runtime.exact.limits import Digits
from assay.engine.runtime.native.library import native
from assay.protocol.program.nodes import Dot
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.types import DType

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
        ("own_exponents", INTEGER),
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
        ("kept", POINTER),
    )


@cache
def checker() -> Callable[..., int] | None:
    """The function of the unit `check`; None where it is not built."""
    handle = native("check").handle
    if handle is None:
        return None
    function = handle.assay_check_product
    function.argtypes, function.restype = [POINTER] * 8, INTEGER
    return cast(Callable[..., int], function)


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


def runs(a: Digits, b: Digits) -> list[int]:
    """Per pair of digits, [2, 2] row-major, how many pairs of terms 32 bits add."""
    return [
        limits.run(a.largest[x], b.largest[y]) if x < a.count and y < b.count else 0 for x in range(2) for y in range(2)
    ]


def is_readable(program: Program, node: Dot) -> bool:
    """Whether operands and exponents have the types that the kernels read."""
    return all(program.specs[o.node].dtype is DType.F32 for o in (node.a, node.b)) and all(
        program.specs[o.node].dtype not in (DType.F32, DType.I64, DType.BOOL)
        for o in (node.exponent_a, node.exponent_b)
    )


_memory = local()


def sums_memory(count: int) -> Tensor:
    """Room, f64 [count] or more, for sums that a thread forgets after each check: fresh pages would cost more."""
    if getattr(_memory, "sums", None) is None or _memory.sums.numel() < count:
        _memory.sums = torch.empty(count, dtype=torch.float64)
    return cast(Tensor, _memory.sums)
