"""Outlier columns of a product: a few indices of the contraction, at which one operand is far above itself elsewhere.

They become a product of their own: a b = a' b' + a_J b_J, where a' and b' have zeros at the columns J. So the exponents
of a' and b' are those of ordinary elements. J is chosen at capture: only where a weight names the columns, so that they
mean the same in every batch, and never along time, where a later token may not change what an earlier one gets.
"""

from __future__ import annotations

import torch

from assay.engine.compiler.ir.strided import Axes, Strided
from assay.engine.compiler.ir.value import Value
from assay.engine.compiler.ir.values import MAX_RANK, number
from assay.engine.compiler.lowering.indexing import take_rows
from assay.engine.compiler.lowering.registry import Context, Treatment
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.types import DType

BITS = 24
"""Of the outliers' operands, as many as f32 has: their error counts by their size."""

_DEEP = 16
"""Elementwise operations between a weight and its product, at most."""


def cuttable_axes(a: Strided, b: Strided) -> tuple[int, ...]:
    """The axes of the contraction of aligned operands whose columns can be taken; none where no weight names them."""
    if max(len(a.axes), len(b.axes)) >= MAX_RANK or not (_is_steady(a.value) or _is_steady(b.value)):
        return ()
    pairs = zip(a.groups[-1], b.groups[-2], strict=True)
    return tuple(d for d, (x, y) in enumerate(pairs) if x.is_full and y.is_full)


def _is_steady(value: Value, depth: int = _DEEP) -> bool:
    """Whether a value is a weight: an input of floats, a constant, or computed from such element by element."""
    if value.kind in ("input", "const"):
        return value.dtype is DType.F32
    return value.kind == "pointwise" and depth > 0 and all(_is_steady(r.value, depth - 1) for r in value.reads)


def divided(ctx: Context, a: Strided, b: Strided, wanted: Treatment) -> tuple[Strided, Strided, Strided, Strided]:
    """Both operands with the columns at zero, and the columns of both.

    a: [..., M, K], b: [..., K, N]; the columns have the axis of K that `wanted` names cut to those that it lists.
    """
    inner = len(a.groups[-1])
    wide_a = Strided(a.value, (*a.groups[:-1], *_apart(a.groups[-1])), a.offset, a.fill)
    wide_b = Strided(b.value, (*b.groups[:-2], *_apart(b.groups[-2]), b.groups[-1]), b.offset, b.fill)
    at_a, at_b = len(a.groups) - 1 + wanted.axis, len(b.groups) - 2 + wanted.axis
    columns = torch.tensor(wanted.columns, dtype=torch.int32)
    chosen = torch.zeros(a.groups[-1][wanted.axis].size, dtype=torch.bool)
    chosen[columns] = True
    mask = ctx.values.const(DType.BOOL, tuple(chosen.shape), to_bytes(chosen))
    index = ctx.values.const(DType.I32, tuple(columns.shape), to_bytes(columns))
    thin_a, thin_b = take_rows(ctx, wide_a, index, at_a), take_rows(ctx, wide_b, index, at_b)
    last_a, last_b = len(a.groups) - 1, len(b.groups) - 2
    return (
        _together(_without(ctx, wide_a, mask, at_a), last_a, inner),
        _together(_without(ctx, wide_b, mask, at_b), last_b, inner),
        _together(thin_a, last_a, inner),
        _together(thin_b, last_b, inner),
    )


def _without(ctx: Context, x: Strided, mask: Strided, dim: int) -> Strided:
    """x with zeros where the mask, bool of one dimension's size, says so."""
    at = ctx.values.reshape(mask, [x.shape[dim] if d == dim else 1 for d in range(len(x.groups))])
    return ctx.strided(ctx.apply("select", at, number(DType.F32, 0.0), x, dtype=DType.F32))


def _apart(group: Axes) -> tuple[Axes, ...]:
    return tuple((axis,) for axis in group)


def _together(x: Strided, first: int, count: int) -> Strided:
    """So many dimensions from `first` on as one."""
    joined = tuple(axis for group in x.groups[first : first + count] for axis in group)
    return Strided(x.value, (*x.groups[:first], joined, *x.groups[first + count :]), x.offset, x.fill)
