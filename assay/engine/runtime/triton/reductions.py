"""Nodes that reduce: every element is an exact integer of its terms, so any order and any cut gives the same bits.

Shapes: ROWS elements of out and TERMS terms of each at a time; partial results stay in a block until the end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from torch import Tensor

from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.elementwise import empty, functions, memory, text_of
from assay.engine.runtime.triton.reading import Span, is_narrow, load_lines
from assay.engine.runtime.values.views import is_inside
from assay.protocol.program.nodes import Dot, Max, Operand, Rank, RowExp, ScatterSum, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.types import DType

_ARGUMENTS = "out, ROWS: tl.constexpr, TERMS: tl.constexpr"
_LEAST = -(1 << 31)


class _ReductionText:
    """The text of one reduction under way, and the nodes that its pointers are of."""

    def __init__(self, program: Program, dims: Sequence[int], red: Sequence[int]) -> None:
        self.program = program
        self.out, self.red = Span("o", tuple(dims)), Span("r", tuple(red))
        self.sources: list[int] = []
        self.before: list[str] = []
        self.terms: list[str] = []
        self.after: list[str] = []
        self.narrow = prod(dims) < 1 << 31 and prod(red) < 1 << 31

    def row(self, name: str, x: Operand) -> None:
        """Loads an operand over out before the terms."""
        self.narrow = self.narrow and is_narrow(x.view, self.out.dims)
        self.before += load_lines(name, self._pointer(x.node), self._type(x), x.view, "live", self.out)

    def term(self, name: str, x: Operand) -> None:
        """Loads an operand over out and red, a block of terms at a time."""
        self.narrow = self.narrow and is_narrow(x.view, (*self.out.dims, *self.red.dims))
        pointer = self._pointer(x.node)
        self.terms += load_lines(name, pointer, self._type(x), x.view, "here", self.out, self.red)

    def kernel(self, total: str) -> Kernel:
        """The node's kernel. total: the block [ROWS, TERMS] that the terms are taken into."""
        count, number = prod(self.red.dims), "tl.program_id(0)" if self.narrow else "tl.program_id(0).to(tl.int64)"
        body = [
            f"o = ({number} * ROWS + tl.arange(0, ROWS))[:, None]",
            f"live = o < {prod(self.out.dims)}",
            *self.before,
            f"total = {total}",
            f"for first in range(0, {count}, TERMS):",
            f"    r = (first + tl.arange(0, TERMS)).to(tl.{'int32' if self.narrow else 'int64'})[None, :]",
            f"    here = live & (r < {count})",
            *(f"    {line}" for line in self.terms),
            *self.after,
            "tl.store(out + o, result, mask=live)",
        ]
        pointers = "".join(f"p{i}, " for i in range(len(self.sources)))
        made = backend.kernel_of(text_of(pointers + _ARGUMENTS, body), "kernel", functions())
        return self._launcher(made, count)

    def _launcher(self, kernel: object, count: int) -> Kernel:
        dims, sources = self.out.dims, self.sources
        elements = prod(dims)
        rows, terms = blocks(elements, count)

        def run(values: list[Tensor]) -> Tensor:
            out = empty(dims, self.result)
            if elements:
                given = [memory(values[j]) for j in sources]
                backend.launch(kernel, (-(-elements // rows),), *given, out, ROWS=rows, TERMS=terms)
            return out

        return run

    result = DType.F32
    """The element type of out."""

    def _pointer(self, node: int) -> str:
        self.sources.append(node)
        return f"p{len(self.sources) - 1}"

    def _type(self, x: Operand) -> DType:
        return self.program.specs[x.node].dtype


def blocks(elements: int, terms: int) -> tuple[int, int]:
    """ROWS and TERMS of a program, powers of two: long rows by themselves, short ones several together."""
    most = 1 << 16 if backend.is_interpreted() else 1 << 11
    width = min(1 << max(terms - 1, 0).bit_length(), most)
    return min(1 << max(elements - 1, 0).bit_length(), max(most // width, 1)), width


def rowexp(program: Program, node: RowExp) -> Kernel:
    """The largest exponent over red; patterns without sign order as exponents do."""
    made = _ReductionText(program, node.spec.dims, node.red)
    made.term("x", node.x)
    made.terms.append("total = tl.maximum(total, tl.where(here, bits_of(x) & 0x7FFFFFFF, 0))")
    made.after.append("result = exponent_of_bits(tl.max(total, 1, keep_dims=True))")
    made.result = DType.I32
    return made.kernel("tl.zeros([ROWS, TERMS], tl.int32)")


def maximum(program: Program, node: Max) -> Kernel:
    """The largest over red: NaN if any, a zero is +0."""
    made = _ReductionText(program, node.spec.dims, node.red)
    made.term("x", node.x)
    is_float = node.spec.dtype is DType.F32
    made.terms.append(f"total = tl.maximum(total, tl.where(here, {'order_of(x)' if is_float else 'x'}, {_LEAST}))")
    made.after.append("result = tl.max(total, 1, keep_dims=True)")
    if is_float:
        made.after.append("result = from_bits(result ^ ((result >> 31) & 0x7FFFFFFF))")
    made.result = node.spec.dtype
    return made.kernel(f"tl.full([ROWS, TERMS], {_LEAST}, tl.int32)")


def total(program: Program, node: Sum) -> Kernel:
    """finish of the exact sum over red of q_31."""
    made = _ReductionText(program, node.spec.dims, node.red)
    made.row("e", node.exponent)
    made.term("x", node.x)
    made.terms.append("total += tl.where(here, quantized(x, e, 31), 0).to(tl.int64)")
    return _summed(made)


def dot(program: Program, node: Dot) -> Kernel:
    """Any product, term by term in i64: what no tensor core takes."""
    made = _ReductionText(program, node.spec.dims, node.red)
    made.row("ea", node.exponent_a)
    made.row("eb", node.exponent_b)
    made.term("a", node.a)
    made.term("b", node.b)
    made.terms += [
        f"qa = quantized(a, ea, {node.precision_a}).to(tl.int64)",
        f"qb = quantized(b, eb, {node.precision_b}).to(tl.int64)",
        "total += tl.where(here, qa * qb, 0)",
    ]
    made.before += [
        "is_nan = (ea >= 129) | (eb >= 129)",
        # Beyond these every finite result is 0 alike, and the sum of both cannot wrap.
        "e = tl.minimum(tl.maximum(ea, -1000), 129) + tl.minimum(tl.maximum(eb, -1000), 129)",
    ]
    shift = node.precision_a + node.precision_b - 2
    made.after += [
        f"result = finished(tl.sum(total, 1, keep_dims=True), e - {shift})",
        'result = tl.where(is_nan, float("nan"), result)',
    ]
    return made.kernel("tl.zeros([ROWS, TERMS], tl.int64)")


def _summed(made: _ReductionText) -> Kernel:
    """The one rounding of sums of q_31 by the exponent e."""
    made.after.append("result = finished_or_nan(tl.sum(total, 1, keep_dims=True), e, 30)")
    return made.kernel("tl.zeros([ROWS, TERMS], tl.int64)")


def rank(program: Program, node: Rank) -> Kernel:
    """How many of red are ahead of the element at the last coordinate; ties by index."""
    dims, last = node.spec.dims, len(node.spec.dims) - 1
    made = _ReductionText(program, dims, node.red)
    made.row("own", Operand(node.x.node, _diagonal(node.x.view, last)))
    made.term("x", node.x)
    made.before += ["mine = order_of(own)", f"place = o % {dims[last]}" if dims[last] > 1 else "place = o * 0"]
    made.terms += [
        "key = order_of(x)",
        "ahead = (key > mine) | ((key == mine) & (r < place))",
        "total += tl.where(here & ahead, 1, 0)",
    ]
    made.after.append("result = tl.sum(total, 1, keep_dims=True)")
    made.result = DType.I32
    return made.kernel("tl.zeros([ROWS, TERMS], tl.int32)")


def _diagonal(view: View, last: int) -> View:
    """A view over out and one reduced dim, read where the reduced coordinate is the last one of out."""
    lo, hi = max(view.lo[last], view.lo[last + 1]), min(view.hi[last], view.hi[last + 1])
    strides = (*view.strides[:last], view.strides[last] + view.strides[last + 1])
    return View(view.offset, strides, (*view.lo[:last], lo), (*view.hi[:last], hi), view.fill)


def scatter_sum(program: Program, node: ScatterSum) -> Kernel:
    """finish of the exact sum of q_31 over those of red whose index is the first coordinate."""
    dims, x, index = node.spec.dims, node.x, node.index
    over = dims + node.red
    if all(o.view.strides[0] == 0 and is_inside(o.view, over) for o in (x, index)) and 0 not in over:
        return _scatter(program, node)
    made = _ReductionText(program, dims, node.red)
    made.row("e", node.exponent)
    made.term("x", x)
    made.term("at", index)
    made.before.append(f"own = o // {prod(dims[1:])}" if prod(dims[1:]) > 1 else "own = o")
    made.terms.append("total += tl.where(here & (at == own), quantized(x, e, 31), 0).to(tl.int64)")
    return _summed(made)


def _scatter(program: Program, node: ScatterSum) -> Kernel:
    """Each term goes to one row of out: integers are added where they fall, in any order, and rounded afterwards."""
    dims, red = node.spec.dims, node.red
    rest, terms = prod(dims[1:]), prod(red)
    inner, red_span, row = Span("i", dims[1:]), Span("r", red), Span("row", dims[:1])
    of_x, of_index = (View(v.offset, v.strides[1:], v.lo[1:], v.hi[1:], v.fill) for v in (node.x.view, node.index.view))
    types = [program.specs[o.node].dtype for o in (node.x, node.index, node.exponent)]
    narrow = rest * terms < 1 << 31 and all(
        is_narrow(v, d) for v, d in ((of_x, dims[1:] + red), (of_index, dims[1:] + red), (node.exponent.view, dims))
    )
    number = "tl.program_id(0)" if narrow else "tl.program_id(0).to(tl.int64)"
    body = [
        f"t = {number} * BLOCK + tl.arange(0, BLOCK)",
        f"live = t < {rest * terms}",
        f"i = t // {terms}",
        f"r = t % {terms}",
        *load_lines("at", "index", types[1], of_index, "live", inner, red_span),
        f"row = tl.where((at >= 0) & (at < {dims[0]}), at, 0).to(tl.{'int32' if narrow else 'int64'})",
        f"live = live & (at >= 0) & (at < {dims[0]})",
        *load_lines("x", "source", types[0], of_x, "live", inner, red_span),
        *load_lines("e", "exponent", types[2], node.exponent.view, "live", row, inner),
        f"tl.atomic_add(work + row.to(tl.int64) * {rest} + i, quantized(x, e, 31).to(tl.int64), mask=live)",
    ]
    text = text_of("source, index, exponent, work, BLOCK: tl.constexpr", body)
    add = backend.kernel_of(text, "kernel", functions())
    finish = _finishing(program, node)
    size = 1 << 14 if backend.is_interpreted() else 1 << 10

    def run(values: list[Tensor]) -> Tensor:
        work = empty(dims, DType.I64).zero_()
        given = [memory(values[o.node]) for o in (node.x, node.index, node.exponent)]
        backend.launch(add, (-(-rest * terms // size),), *given, work, BLOCK=size)
        return finish(work, given[2])

    return run


def _finishing(program: Program, node: ScatterSum) -> Callable[[Tensor, Tensor], Tensor]:
    """The one rounding of finished integer sums i64 of the node's dims."""
    dims = node.spec.dims
    span, e = Span("o", dims), node.exponent
    body = [
        "o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)",
        f"live = o < {prod(dims)}",
        *load_lines("e", "exponent", program.specs[e.node].dtype, e.view, "live", span),
        "total = tl.load(work + o, mask=live, other=0)",
        "tl.store(out + o, finished_or_nan(total, e, 30), mask=live)",
    ]
    kernel = backend.kernel_of(text_of("exponent, work, out, BLOCK: tl.constexpr", body), "kernel", functions())
    size = 1 << 14 if backend.is_interpreted() else 1 << 10

    def run(work: Tensor, exponent: Tensor) -> Tensor:
        out = empty(dims, DType.F32)
        backend.launch(kernel, (-(-prod(dims) // size),), exponent, work, out, BLOCK=size)
        return out

    return run
