"""Executors of rowexp, max, sum, scatter_sum and rank: exact, so the order in which a library adds does not matter.

Shapes: O the dims of out and R those of red, each of which may be several; for sums by index also N rows of out, I the
rest of its elements and T terms; for ranks L, the last dim. An exponent broadcasts over O.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from operator import mul

import torch
from torch import Tensor

from assay.engine.runtime.exact import exponents
from assay.engine.runtime.exact.affine import coordinates, steps
from assay.engine.runtime.exact.limits import sums_fit_f64
from assay.engine.runtime.values.views import is_inside, reader, sub_view
from assay.protocol.program.nodes import Max, Operand, Rank, RowExp, ScatterSum, Sum
from assay.protocol.program.program import Program
from assay.protocol.types import DType

Kernel = Callable[[list[Tensor]], Tensor]
"""Computes a node from the values of earlier nodes."""

_SUM_P = 31


def rowexp(program: Program, node: RowExp) -> Kernel:
    """The largest exponent over red; patterns without sign order as exponents do, so one maximum of them is enough."""
    read, axes = _reduced(program, node.x, node.spec.dims, node.red)
    j = node.x.node
    if not axes:
        return lambda values: exponents.exponent_of_magnitude(read(values[j]))

    def run(values: list[Tensor]) -> Tensor:
        bits_OR = read(values[j]).view(torch.int32).bitwise_and(0x7FFFFFFF)
        return exponents.exponent_of_bits(bits_OR.amax(axes))

    return run


def maximum(program: Program, node: Max) -> Kernel:
    """The largest over red: NaN if any, a zero is +0 (`amax` returns either zero, depending on length)."""
    read, axes = _reduced(program, node.x, node.spec.dims, node.red)
    j = node.x.node
    if node.spec.dtype is not DType.F32:

        def integer(values: list[Tensor]) -> Tensor:
            x_OR = read(values[j]).to(torch.int32)
            return x_OR.amax(axes) if axes else x_OR.clone()

        return integer
    if not axes:
        return lambda values: read(values[j]) + 0.0
    return lambda values: read(values[j]).amax(axes).add_(0.0)


def total(program: Program, node: Sum, *, trusted: bool = True) -> Kernel:
    """finish of the exact sum over red of q_31.

    trusted: values of rowexp nodes are what their definition says (not so after a hook has replaced one).
    """
    x, e, dims = node.x, node.exponent, node.spec.dims
    read, axes = _reduced(program, x, dims, node.red)
    read_e = reader(e.view, dims, program.specs[e.node], broadcast=True)
    j, k = x.node, e.node
    wide = sums_fit_f64(_SUM_P - 1, prod(node.red))
    keep = (*dims, *(1,) * len(node.red))

    def add(q_OR: Tensor) -> Tensor:
        q_OR = q_OR if wide else q_OR.to(torch.int64)
        return q_OR.sum(axes) if axes else q_OR

    if trusted and wide and is_row_exponent(program, x, e, dims, node.red):

        def fast(values: list[Tensor]) -> Tensor:
            scales = exponents.row_scales(read_e(values[k]), _SUM_P)
            q_OR = exponents.quantize_row(read(values[j]), scales, _SUM_P, len(axes)).to(torch.float64)
            return (add(q_OR).add_(0.0)).mul_(scales.up).to(torch.float32)

        return fast

    def general(values: list[Tensor]) -> Tensor:
        exponent = read_e(values[k]).to(torch.int32)
        q_OR = exponents.quantize(read(values[j]), exponent.reshape(_ones(exponent, keep)), _SUM_P)
        s_O = add(q_OR.expand((*dims, *node.red)))
        n_O = (exponent.to(torch.int64) - (_SUM_P - 1)).expand(dims)
        return exponents.finish_nan(exponents.finish(s_O, n_O), exponent)

    return general


def scatter_sum(program: Program, node: ScatterSum) -> Kernel:
    """finish of the exact sum of q_31 over those of red whose index is the first coordinate.

    Each term goes to one row of out, so that it is quantized once, by that row's exponents.
    """
    dims, red = node.spec.dims, node.red
    over = dims + red
    inner = range(1, len(over))
    x, index, e = node.x, node.index, node.exponent
    if scatters_by_comparison(node):
        return _scatter_by_comparison(program, node)
    read_x = reader(sub_view(x.view, inner), over[1:], program.specs[x.node])
    read_i = reader(sub_view(index.view, inner), over[1:], program.specs[index.node])
    read_e = reader(e.view, dims, program.specs[e.node])
    rows, rest, terms = dims[0], prod(dims[1:]), prod(red)
    number = torch.float64 if sums_fit_f64(_SUM_P - 1, terms) else torch.int64

    def run(values: list[Tensor]) -> Tensor:
        exponent_NI = read_e(values[e.node]).to(torch.int32).reshape(rows, rest)
        at_TI = read_i(values[index.node]).to(torch.int64).reshape(rest, terms).t()
        # What is out of range goes to a row that is dropped.
        at_TI = torch.where((at_TI >= 0) & (at_TI < rows), at_TI, rows)
        x_TI = read_x(values[x.node]).reshape(rest, terms).t()
        q_TI = exponents.quantize(x_TI, exponent_NI.gather(0, at_TI.clamp_max(rows - 1)), _SUM_P)
        s_NI = torch.zeros(rows + 1, rest, dtype=number)
        s_NI.scatter_add_(0, at_TI, q_TI.to(number))
        result_NI = exponents.finish(s_NI[:rows], exponent_NI.to(torch.int64) - (_SUM_P - 1))
        return exponents.finish_nan(result_NI, exponent_NI).reshape(dims)

    return run


def scatters_by_comparison(node: ScatterSum) -> bool:
    """Whether every element looks at every term, since what is added or where to depends on the row of out."""
    over = node.spec.dims + node.red
    views = node.x.view, node.index.view
    return 0 in over or not all(v.strides[0] == 0 and is_inside(v, over[: v.rank]) for v in views)


def _scatter_by_comparison(program: Program, node: ScatterSum) -> Kernel:
    """Any views: every element looks at every term."""
    dims, over = node.spec.dims, node.spec.dims + node.red
    x, index, e = node.x, node.index, node.exponent
    read_x = reader(x.view, over, program.specs[x.node])
    read_i = reader(index.view, over, program.specs[index.node])
    read_e = reader(e.view, dims, program.specs[e.node])
    own = torch.arange(dims[0]).reshape(-1, *(1,) * (len(over) - 1))  # the first coordinate, over O and R
    axes = tuple(range(len(dims), len(over)))

    def run(values: list[Tensor]) -> Tensor:
        exponent_O = read_e(values[e.node]).to(torch.int32)
        q_OR = exponents.quantize(read_x(values[x.node]), exponent_O.reshape((*dims, *(1,) * len(node.red))), _SUM_P)
        q_OR = torch.where(read_i(values[index.node]).to(torch.int64) == own, q_OR, 0.0).to(torch.int64)
        s_O = q_OR.sum(axes) if axes else q_OR
        return exponents.finish_nan(exponents.finish(s_O, exponent_O.to(torch.int64) - (_SUM_P - 1)), exponent_O)

    return run


def rank(program: Program, node: Rank) -> Kernel:
    """How many of red are ahead of the element at the last coordinate: by a stable sort where red are its row."""
    dims = node.spec.dims
    count = node.red[0]
    if ranks_by_sorting(node):
        return _rank_by_sorting(program, node)
    read = reader(node.x.view, dims + node.red, program.specs[node.x.node])
    j = node.x.node
    earlier_LR = torch.arange(count) < torch.arange(dims[-1])[:, None]

    def run(values: list[Tensor]) -> Tensor:
        order_OR = sortable(read(values[j]))
        own_O1 = order_OR.diagonal(dim1=-2, dim2=-1)[..., None]
        ahead_OR = (order_OR > own_O1) | ((order_OR == own_O1) & earlier_LR)
        return ahead_OR.sum(-1).to(torch.int32)

    return run


def ranks_by_sorting(node: Rank) -> bool:
    """Whether every element looks at its own row, so that the row's order says all of its ranks."""
    dims, view = node.spec.dims, node.x.view
    return view.strides[len(dims) - 1] == 0 and is_inside(view, dims + node.red) and dims[-1] == node.red[0]


def _rank_by_sorting(program: Program, node: Rank) -> Kernel:
    """Every element of a row looks at the same row: n log n comparisons, not n^2."""
    dims, last, j = node.spec.dims, len(node.spec.dims) - 1, node.x.node
    read = reader(sub_view(node.x.view, (*range(last), last + 1)), dims, program.specs[j])
    numbers_L = torch.arange(dims[last], dtype=torch.int32)

    def run(values: list[Tensor]) -> Tensor:
        places_O = sortable(read(values[j])).argsort(dim=-1, descending=True, stable=True)
        return torch.empty(dims, dtype=torch.int32).scatter_(-1, places_O, numbers_L.expand(dims))

    return run


def sortable(x: Tensor) -> Tensor:
    """Integers i32 that order f32 values of any shape: -inf .. -0 = +0 .. +inf < NaN."""
    raw = torch.where(x.isnan(), float("nan"), x).view(torch.int32)
    return torch.where(raw < 0, -(raw & 0x7FFFFFFF), raw)


def is_row_exponent(program: Program, x: Operand, e: Operand, dims: Sequence[int], red: Sequence[int]) -> bool:
    """Whether `e` is the exponent of exactly the terms of `x` that each element adds: then quantizing needs no clamp.

    True only when e's node is the rowexp of the same node over the same red, and both reach the same rows.
    """
    source = program.nodes[e.node]
    if not isinstance(source, RowExp) or source.x.node != x.node or 0 in (*dims, *red):
        return False
    rows = source.spec.dims
    r, n = source.x.view, len(rows)
    v, w, m = x.view, e.view, len(dims)
    if not is_inside(w, dims) or not is_inside(r, rows + source.red) or not is_inside(v, (*dims, *red)):
        return False
    if _merged(red, v.strides[m:]) != _merged(source.red, r.strides[n:]):
        return False
    start, moves = coordinates(w.offset, rows), steps(dims, w.strides, w.offset, rows)
    if start is None or moves is None or v.offset != r.offset + sum(map(mul, start, r.strides)):
        return False
    return all(
        size == 1 or (r.strides[axis] * count if axis >= 0 else 0) == stride
        for size, stride, (axis, count) in zip(dims, v.strides, moves, strict=False)
    )


def _merged(sizes: Sequence[int], strides: Sequence[int]) -> list[tuple[int, int]]:
    """Sizes and strides with neighbours that step evenly joined: equal for equal sequences of addresses."""
    merged: list[tuple[int, int]] = []
    for size, stride in zip(sizes, strides, strict=True):
        if size == 1:
            continue
        if merged and merged[-1][1] == size * stride:
            merged[-1] = (merged[-1][0] * size, stride)
        else:
            merged.append((size, stride))
    return merged


def _reduced(program: Program, x: Operand, dims: Sequence[int], red: Sequence[int]) -> tuple[Callable, tuple[int, ...]]:
    """A reader of x over dims + red, and the axes to reduce."""
    over = (*dims, *red)
    return reader(x.view, over, program.specs[x.node]), tuple(range(len(dims), len(over)))


def _ones(t: Tensor, like: Sequence[int]) -> tuple[int, ...]:
    """The shape of t followed by as many ones as `like` has further dimensions."""
    return (*t.shape, *(1,) * (len(like) - t.ndim))
