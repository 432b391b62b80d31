"""One node as the native kernels run it; which nodes they leave to stock torch, and why."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int64
from dataclasses import dataclass
from math import prod
from typing import Any

from assay.engine.runtime.fused.layout import (
    CCode,
    CDot,
    CGather,
    COp,
    CRandom,
    CScatterSum,
    CView,
    Mode,
    NodeKernels,
    OpKind,
    Strategy,
)
from assay.engine.runtime.fused.scalars import Extent, assemble
from assay.engine.runtime.fused.spaces import Reading, Space, fits, joined
from assay.engine.runtime.products.dot import NativeProduct
from assay.engine.runtime.stock.reduce import is_row_exponent
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.program.nodes import Dot, Gather, Map, Max, Node, Operand, Random, RowExp, ScatterSum, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.types import DType

TILE = 512
"""Elements per tile: a dozen of them fit the first cache."""

_RUN = 192
"""Elements of the last dimension from which on a tile is part of one run of it."""

_SHORT = 8
"""Terms below which adding several columns at a time beats adding along a row."""


_FEW = 64
"""Terms up to which one term of many elements is copied at a time where a view has no better order."""


@dataclass(frozen=True)
class Compiled:
    """A node for the kernels. keep: what the structure points to."""

    op: COp
    keep: tuple[Any, ...]
    unit: int
    """Elements that belong together: work may be cut at its multiples (numel when it may not be cut)."""


def compile_node(program: Program, k: int, node: Node, kernels: NodeKernels) -> Compiled | str:
    """The node for the kernels, or the reason why stock torch computes it."""
    if node.spec.numel == 0:
        return "no elements"
    match node:
        case Map():
            return _map(program, k, node, kernels)
        case RowExp() | Max() | Sum():
            return _reduction(program, k, node)
        case Gather():
            return _gather(program, k, node)
        case ScatterSum():
            return _scatter_sum(program, k, node)
        case Random():
            drawn = CRandom(node.stream, node.key, node.step)
            return _op(OpKind.RANDOM, k, node, Space((node.spec.numel,), 1, ()), [], random=drawn)
        case _:
            return f"no kernel for {node.family.name.lower()}"


def compile_product(program: Program, k: int, node: Dot, kernel: object) -> Compiled | str:
    """A dot node whose kernel in Python is a native one, to be called without Python; or why not."""
    if not isinstance(kernel, NativeProduct):
        return "no native product for these precisions and views"
    if any(program.specs[o.node].dtype is not DType.I32 for o in (node.exponent_a, node.exponent_b)):
        return "exponents that are not i32"
    function, plan, sources, threaded = kernel.own.for_c()
    space = Space((node.spec.numel,), 1, ())
    dot = CDot(function, plan, *sources, int(threaded))
    return _op(OpKind.DOT, k, node, space, [], dot=dot, unit=node.spec.numel, keep=(kernel,))


def _reading(program: Program, operand: Operand, view: View | None = None) -> Reading:
    return Reading(operand.node, program.specs[operand.node].dtype, view or operand.view)


def _op(
    kind: OpKind,
    k: int,
    node: Node,
    space: Space,
    modes: Sequence[Mode],
    *,
    unit: int = 1,
    keep: tuple[Any, ...] = (),
    **fields: int | ctypes.Structure,
) -> Compiled:
    views = (CView * max(len(modes), 1))(*(space.c_view(r, m) for r, m in zip(space.readings, modes, strict=True)))
    op = COp(
        kind=kind,
        node=k,
        dtype=node.spec.dtype,
        numel=node.spec.numel,
        out_rank=space.out,
        space=space.c_space(),
        n_views=len(modes),
        views=ctypes.addressof(views),
        **fields,
    )
    return Compiled(op, (views, *keep), unit)


def _map(program: Program, k: int, node: Map, kernels: NodeKernels) -> Compiled | str:
    specs = [program.specs[o.node] for o in node.operands]
    scalar = ScalarProgram.decode(node.code, [s.dtype for s in specs])
    space = joined(node.spec.dims, (), [_reading(program, o) for o in node.operands])
    if not space.readings:
        space = Space((node.spec.numel,), 1, ())
    by_runs = space.inner >= _RUN and any(not (space.constant(r) or space.contiguous(r)) for r in space.readings)
    modes = [_mode(space, r, by_runs) for r in space.readings]
    extents = [_extent(mode) for mode in modes]
    code = assemble(scalar, node.spec.dtype, extents, kernels.functions)
    if len(code.slots) > kernels.slots:
        return "more constants than the kernels have room for"
    tile = TILE // space.inner * space.inner if Mode.REPEATED in modes else TILE
    steps = (CCode * len(code.steps))(*(CCode(*s) for s in code.steps))
    constants = b"".join(s if isinstance(s, bytes) else bytes(8) for s in code.slots)
    cells = ctypes.create_string_buffer(constants, len(constants))
    base = ctypes.addressof(cells)
    slots = (c_int64 * len(code.slots))(
        *(base + 8 * n if isinstance(s, bytes) else s for n, s in enumerate(code.slots))
    )
    return _op(
        OpKind.MAP,
        k,
        node,
        space,
        modes,
        keep=(steps, cells, slots),
        tile=tile,
        by_runs=int(by_runs),
        n_code=len(code.steps),
        n_first=code.n_first,
        n_slots=len(code.slots),
        slot_bytes=TILE * (8 if code.is_wide else 4),
        code=ctypes.addressof(steps),
        constants=ctypes.addressof(slots),
    )


def _mode(space: Space, r: Reading, by_runs: bool) -> Mode:
    if space.constant(r):
        return Mode.SCALAR
    if space.contiguous(r):
        return Mode.DIRECT
    if r.bounded(space.sizes):
        return Mode.STRIDED
    if by_runs:
        return Mode.ROW_SCALAR if r.view.strides[-1] == 0 else Mode.STRIDED
    if space.inner <= TILE and not any(r.view.strides[:-1]):
        return Mode.REPEATED
    return Mode.STRIDED


def _extent(mode: Mode) -> Extent:
    return {Mode.SCALAR: Extent.NODE, Mode.ROW_SCALAR: Extent.RUN}.get(mode, Extent.TILE)


def _over_red(e: Operand, red: Sequence[int]) -> View:
    """A view over out as one over out + red."""
    v, n = e.view, len(red)
    return View(v.offset, v.strides + (0,) * n, v.lo + (0,) * n, v.hi + tuple(red), v.fill)


def _reduction(program: Program, k: int, node: RowExp | Max | Sum) -> Compiled | str:
    if node.terms == 0:
        return "no terms"
    # One term is a row of one, so that there is always a dimension to reduce.
    red = node.red or (1,)
    x = _reading(program, node.x, node.x.view if node.red else _over_red(node.x, red))
    readings = [x]
    if isinstance(node, Sum):
        readings.append(_reading(program, node.exponent, _over_red(node.exponent, red)))
    space = joined(node.spec.dims, red, readings)
    if not fits(space):
        return "too many dimensions"
    kind = {RowExp: OpKind.ROWEXP, Max: OpKind.MAX, Sum: OpKind.SUM}[type(node)]
    strategy = _strategy(space, node.spec.dtype if isinstance(node, Max) else DType.F32, node.terms)
    own = int(isinstance(node, Sum) and is_row_exponent(program, node.x, node.exponent, node.spec.dims, node.red))
    modes = [Mode.STRIDED] * len(readings)
    return _op(kind, k, node, space, modes, strategy=strategy, terms=node.terms, own_exponents=own)


def _strategy(space: Space, computed: DType, terms: int) -> Strategy:
    x, outer = space.readings[0], space.out
    fits_columns = outer > 0 and computed is DType.F32 and x.dtype is DType.F32
    general = Strategy.BY_PLANES if fits_columns and terms <= _FEW else Strategy.BY_TILES
    if x.bounded(space.sizes) or x.dtype is not computed:
        return general
    strides = x.view.strides
    columns = fits_columns and strides[outer - 1] == 1
    if strides[-1] == 1 and not (columns and space.inner < _SHORT):
        return Strategy.BY_ROWS
    return Strategy.BY_COLUMNS if columns else general


def _gather(program: Program, k: int, node: Gather) -> Compiled | str:
    dims = node.spec.dims
    v = node.table.view
    if any(lo > 0 or hi < n for n, lo, hi in zip((node.size, *dims), v.lo, v.hi, strict=True)):
        return "a bounded view of a table"
    table = _reading(program, node.table, View(v.offset, v.strides[1:], v.lo[1:], v.hi[1:], v.fill))
    index = _reading(program, node.index)
    space = joined(dims, (), [table, index])
    if space.readings[1].bounded(space.sizes):
        return "a bounded view of an index"
    same = int(bool(space.sizes) and space.readings[1].view.strides[-1] == 0)
    return _op(OpKind.GATHER, k, node, space, [Mode.STRIDED] * 2, gather=CGather(node.size, v.strides[0], same))


def _scatter_sum(program: Program, k: int, node: ScatterSum) -> Compiled | str:
    """Views over (rest of out, red): of the three the exponents alone may depend on the row, the index not on rest."""
    dims, red = node.spec.dims, node.red
    rest = dims[1:]
    if 0 in red:
        return "no terms"
    readings = []
    for operand, view in (
        (node.x, node.x.view),
        (node.index, node.index.view),
        (node.exponent, _over_red(node.exponent, red)),
    ):
        by_row = dims[0] > 1 and view.strides[0] and operand is not node.exponent
        if by_row or view.lo[0] > 0 or view.hi[0] < dims[0]:
            return "operands depend on the row"
        readings.append(
            _reading(program, operand, View(view.offset, view.strides[1:], view.lo[1:], view.hi[1:], view.fill))
        )
    space = joined(rest, red, readings)
    x, index, _ = space.readings
    if any(r.bounded(space.sizes) for r in space.readings):
        return "bounded views"
    if any(s for s, n in zip(index.view.strides[: space.out], space.sizes, strict=False) if n > 1):
        return "an index per element"
    strides = x.view.strides[: space.out]
    straight = strides == tuple(prod(space.sizes[d + 1 : space.out]) for d in range(space.out))
    mode = Mode.DIRECT if straight and x.dtype is DType.F32 else Mode.STRIDED
    return _op(
        OpKind.SCATTER_SUM,
        k,
        node,
        space,
        [mode, Mode.STRIDED, Mode.STRIDED],
        scatter_sum=CScatterSum(space.out, dims[0], node.exponent.view.strides[0]),
        terms=node.terms,
        unit=node.spec.numel,
    )
