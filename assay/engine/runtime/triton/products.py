"""Products by digits on tensor cores: a node as matrices, and the launch of its kernel.

Shapes: a batch of at most two dims, M rows of A, N of B, K terms. An operand whose view is no such matrix is copied
through it first.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from torch import Tensor

from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.elementwise import copy, empty
from assay.engine.runtime.triton.routes import Route
from assay.engine.runtime.values.views import is_inside, sub_view
from assay.protocol.program.nodes import Dot, Operand
from assay.protocol.program.program import Program
from assay.protocol.program.views import View, contiguous_strides
from assay.protocol.types import DType


def block_terms(terms: int) -> int:
    """Terms that one step of the loop multiplies; the interpreter takes many at once."""
    least, most = 32, 1 << 12 if backend.is_interpreted() else 64
    return min(max(1 << max(terms - 1, 0).bit_length(), least), most)


_Strides = tuple[int, int, int, int]
"""Of the batch's two dims, the own rows, the terms."""


def by_digits(program: Program, node: Dot, found: Route, parts: Sequence[tuple[int, ...]]) -> Kernel:
    """The node's kernel by a route. parts: its dims of both operands, of A alone, of B alone."""
    from assay.engine.runtime.triton.kernels.product import product

    batch, rows, columns = parts
    dims = node.spec.dims
    z0, z1 = (batch[:1], batch[1:]) if len(batch) == 2 else ((), tuple(batch))
    count = tuple(prod(dims[d] for d in which) for which in (z0, z1, rows, columns))
    a, b = _Matrix(program, node, node.a, (z0, z1, rows)), _Matrix(program, node, node.b, (z0, z1, columns))
    ea = _Matrix(program, node, node.exponent_a, (z0, z1, rows), own=True)
    eb = _Matrix(program, node, node.exponent_b, (z0, z1, columns), own=True)
    # A product comes out in the order batch, rows, columns; the node's dims may have another.
    order = (*z0, *z1, *rows, *columns)
    ordered, back = tuple(dims[d] for d in order), tuple(order.index(d) for d in range(len(dims)))
    _, m, n = count[1], count[2], count[3]
    terms = prod(node.red)
    step = block_terms(min(terms, found.terms // 2))
    chunk = 0 if terms <= found.terms else found.terms // step * step
    # Each digit's place has an accumulator: a block of several is narrower, or registers run out.
    bm, bn = _tile(m, 128), _tile(n, 128 if found.digits_a * found.digits_b == 1 else 64)
    grid = -(-m // bm), -(-n // bn), count[0] * count[1]

    def run(values: list[Tensor]) -> Tensor:
        out = empty(ordered, DType.F32)
        given = [side(values) for side in (a, b, ea, eb)]
        backend.launch(
            product, grid, *given, out, count[1], m, n, terms,
            *a.strides, *b.strides, *ea.strides[:3], *eb.strides[:3], count[1] * m * n, m * n, n, 1,
            PA=node.precision_a, PB=node.precision_b, CHUNK=chunk, BM=bm, BN=bn, BK=step,
            warps=8 if bm * bn > 1 << 12 else 4, **found.constants,
        )  # fmt: skip
        return out if back == tuple(range(len(dims))) else out.permute(back).contiguous()

    return run


def _tile(size: int, most: int) -> int:
    """Rows or columns of a block: tensor cores take 16 at least."""
    return min(max(1 << max(size - 1, 0).bit_length(), 16), most)


class _Matrix:
    """An operand as a matrix: the pointer's tensor at a run, and its strides over batch, own rows, terms."""

    def __init__(
        self, program: Program, node: Dot, x: Operand, parts: Sequence[tuple[int, ...]], *, own: bool = False
    ) -> None:
        dims, spec = node.spec.dims, program.specs[x.node]
        red = () if own else tuple(range(len(dims), len(dims) + len(node.red)))
        sizes = (*dims, *node.red)
        kept = [d for part in (*parts, red) for d in part]
        view, over = sub_view(x.view, kept), tuple(sizes[d] for d in kept)
        self._node = x.node
        strides = [_stride(x.view, part, sizes) for part in (*parts, red)]
        self._copy, self._offset = None, view.offset
        if not is_inside(view, over) or None in strides or spec.dtype.is_storage:
            # Copied through the view, its elements lie in a row.
            whole = dict(zip(kept, contiguous_strides(over), strict=True))
            self._copy, self._offset = copy(spec.dtype, view, over), 0
            strides = [whole[part[-1]] if part else 0 for part in (*parts, red)]
        z0, z1, rows, terms = (s or 0 for s in strides)
        self.strides: _Strides = (z0, z1, rows, terms)

    def __call__(self, values: list[Tensor]) -> Tensor:
        """The tensor whose first element is the operand's."""
        source = values[self._node]
        return self._copy(source) if self._copy is not None else source.reshape(-1)[self._offset :]


def _stride(view: View, part: Sequence[int], sizes: Sequence[int]) -> int | None:
    """The one stride by which dims that are counted together move; None where there is none."""
    stride: int | None = 0
    span = 1
    for d in reversed(part):
        if sizes[d] == 1:
            continue
        if span == 1:
            stride = view.strides[d]
        elif stride is None or view.strides[d] != stride * span:
            return None
        span *= sizes[d]
    return stride
