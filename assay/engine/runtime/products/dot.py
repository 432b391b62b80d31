"""Executors of dot: the view algebra that finds the matrix product in a node, and the product variants that compute it.

Shapes, each of several dims multiplied out: B those of both operands, M of A alone, N of B alone, K what is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor

from assay.engine.runtime.exact import exponents
from assay.engine.runtime.products import product_variants
from assay.engine.runtime.products.freivalds import ProductCheck
from assay.engine.runtime.products.native_dot import DotKernels, NativeDot, native_dot
from assay.engine.runtime.products.native_plan import checker
from assay.engine.runtime.stock.reduce import Kernel, is_row_exponent
from assay.engine.runtime.values.dtypes import from_bytes
from assay.engine.runtime.values.views import ViewReader, reader, sub_view
from assay.protocol.arithmetic.words import as_i32
from assay.protocol.program.nodes import Const, Dot, Operand
from assay.protocol.program.program import Program
from assay.protocol.types import DType

Check = Callable[[Tensor, Tensor, Tensor], None]
"""Sees operands [B, M, K], [B, N, K] and product [B, M, N] of a run, and may raise."""

Due = Callable[[], bool]
"""Whether the product of this run is to be checked."""


@dataclass(frozen=True)
class _Side:
    """One operand of a product: over (batch, own, red), with exponents over (batch, own)."""

    node: int
    exponent_node: int
    read: ViewReader
    read_exponent: ViewReader
    precision: int
    fast: bool
    bounded: bool
    batch: tuple[int, ...]
    own: tuple[int, ...]
    red: tuple[int, ...]

    def quantized(self, values: list[Tensor]) -> tuple[Tensor, Tensor, Tensor | None]:
        """q [batch, own, red] in floats, the exponents, and the finishing factors [batch, own] where e is in range."""
        x, e = self.read(values[self.node]), self.read_exponent(values[self.exponent_node])
        shape = (prod(self.batch), prod(self.own), prod(self.red))
        if self.fast:
            scales = exponents.row_scales(e, self.precision)
            q = exponents.quantize_row(x, scales, self.precision, len(self.red))
            return q.reshape(shape), e, scales.up.expand((*self.batch, *self.own)).reshape(shape[:2])
        e = e.to(torch.int32)
        up = None
        if self.bounded:
            up = exponents.row_scales(e, self.precision).up.expand((*self.batch, *self.own)).reshape(shape[:2])
        q = exponents.quantize(x, e.reshape((*e.shape, *(1,) * len(self.red))), self.precision)
        return q.expand((*self.batch, *self.own, *self.red)).reshape(shape), e, up


def dot(
    program: Program,
    node: Dot,
    *,
    trusted: bool = True,
    other: bool = False,
    native: DotKernels | None = None,
    check: Check | None = None,
    due: Due = lambda: True,
) -> tuple[Kernel, str]:
    """A kernel for the node and the name of its product variant.

    trusted: values of rowexp nodes are what their definition says (not so after a hook has replaced one). other: take
    another product variant than usual. native: by these kernels where they fit. check: sees operands and
    product of the runs that are due.
    """
    dims, red = node.spec.dims, node.red
    parts = groups(node)
    if parts is None or 0 in dims or 0 in red:
        return _by_element(program, node), "elementwise"
    batch, rows, columns = parts
    a = _side(program, node.a, node.exponent_a, node.precision_a, batch, rows, node, trusted)
    b = _side(program, node.b, node.exponent_b, node.precision_b, batch, columns, node, trusted)
    # A product comes out in the order batch, rows, columns; the node's dims may have another.
    order = (*batch, *rows, *columns)
    ordered = tuple(dims[d] for d in order)
    back = tuple(order.index(d) for d in range(len(dims)))
    straight = back == tuple(range(len(dims)))

    def arranged(result_BMN: Tensor) -> Tensor:
        result = result_BMN.reshape(ordered)
        return result if straight else result.permute(back).contiguous()

    own = native_dot(native, program, node, parts, (a.fast, b.fast)) if native and not other else None
    if own is not None:
        return NativeProduct(own, a, b, arranged, check, due), own.name
    counts = prod(a.batch), prod(a.own), prod(b.own), prod(red)
    product_variant = product_variants.choose(node.precision_a, node.precision_b, *counts, other=other)

    def run(values: list[Tensor]) -> Tensor:
        qa_BMK, ea, up_a_BM = a.quantized(values)
        qb_BNK, eb, up_b_BN = b.quantized(values)
        s_BMN = product_variant.multiply(qa_BMK, qb_BNK)
        if check is not None and due():
            check(qa_BMK, qb_BNK, s_BMN)
        if up_a_BM is not None and up_b_BN is not None and s_BMN.dtype is torch.float64:
            result_BMN = s_BMN.add_(0.0).mul_(up_a_BM[:, :, None]).mul_(up_b_BN[:, None, :]).to(torch.float32)
        else:
            result_BMN = _finished(a, b, ea, eb, s_BMN)
        return arranged(result_BMN)

    return run, product_variant.name


def _finished(a: _Side, b: _Side, ea: Tensor, eb: Tensor, s_BMN: Tensor) -> Tensor:
    """The results [B, M, N] of exact sums, for any exponents, which are over the dims of batch and own."""
    ea_BM1 = ea.to(torch.int64).expand((*a.batch, *a.own)).reshape(s_BMN.shape[0], -1, 1)
    eb_B1N = eb.to(torch.int64).expand((*b.batch, *b.own)).reshape(s_BMN.shape[0], 1, -1)
    n_BMN = ea_BM1 + eb_B1N - (a.precision - 1) - (b.precision - 1)
    return exponents.finish_nan(exponents.finish(s_BMN, n_BMN), ea_BM1, eb_B1N)


class NativeProduct:
    """A product by the native kernels, which may be called without it (`own`) in runs that do not check it.

    A due check sees the native sums, and this run's results are rounded from them: by native code again, but none that
    packs or multiplies, or by stock torch where that is not built. The bits are the same.
    """

    def __init__(
        self, own: NativeDot, a: _Side, b: _Side, arranged: Callable[[Tensor], Tensor], check: Check | None, due: Due
    ) -> None:
        self.own = own
        self._a, self._b, self._arranged, self._check, self._due = a, b, arranged, check, due

    def __call__(self, values: list[Tensor], out: Tensor | None = None) -> Tensor:
        """The node's value; in `out` (f32 of its dims, contiguous) if given."""
        if self._check is None or not self._due():
            return self.own.run(values, out)
        if isinstance(self._check, ProductCheck) and checker() is not None:
            return self._check.native(self.own, values, out)
        s_BMN = self.own.sums(values)
        (qa_BMK, ea, _), (qb_BNK, eb, _) = self._a.quantized(values), self._b.quantized(values)
        self._check(qa_BMK, qb_BNK, s_BMN)
        result = self._arranged(_finished(self._a, self._b, ea, eb, s_BMN))
        return result if out is None else out.copy_(result)


def groups(node: Dot) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]] | None:
    """The dims that both operands, only A, and only B depend on; None when an exponent depends on the other's dims."""
    batch: list[int] = []
    rows: list[int] = []
    columns: list[int] = []
    for d in range(len(node.spec.dims)):
        in_a, in_b, in_ea, in_eb = (
            _depends(o, d, node.spec.dims) for o in (node.a, node.b, node.exponent_a, node.exponent_b)
        )
        if (in_a or in_ea) and (in_b or in_eb):
            batch.append(d)
        elif in_b or in_eb:
            columns.append(d)
        else:
            rows.append(d)
    return (tuple(batch), tuple(rows), tuple(columns)) if _splits(node, rows, columns) else None


def _splits(node: Dot, rows: Sequence[int], columns: Sequence[int]) -> bool:
    """Whether each operand is free to be read at index 0 of the dims that it does not depend on."""
    dims = node.spec.dims
    return all(not _depends(o, d, dims) for o in (node.a, node.exponent_a) for d in columns) and all(
        not _depends(o, d, dims) for o in (node.b, node.exponent_b) for d in rows
    )


def _depends(operand: Operand, d: int, dims: Sequence[int]) -> bool:
    """Whether the value read changes along dim d of out."""
    view = operand.view
    return (dims[d] > 1 and view.strides[d] != 0) or view.lo[d] > 0 or view.hi[d] < dims[d]


def _side(
    program: Program,
    x: Operand,
    e: Operand,
    p: int,
    batch: tuple[int, ...],
    own: tuple[int, ...],
    node: Dot,
    trusted: bool,
) -> _Side:
    dims, red = node.spec.dims, node.red
    keep = (*batch, *own)
    kept = tuple(dims[d] for d in keep)
    inner = tuple(range(len(dims), len(dims) + len(red)))
    fast = trusted and is_row_exponent(program, x, e, dims, red)
    return _Side(
        x.node,
        e.node,
        reader(sub_view(x.view, (*keep, *inner)), (*kept, *red), program.specs[x.node]),
        reader(sub_view(e.view, keep), kept, program.specs[e.node], broadcast=True),
        p,
        fast,
        _is_bounded(program, e),
        tuple(dims[d] for d in batch),
        tuple(dims[d] for d in own),
        red,
    )


def _by_element(program: Program, node: Dot) -> Kernel:
    """Any views: quantize both operands over out + red and add the products in int64, a slice of out at a time."""
    dims, red = node.spec.dims, node.red
    over = dims + red
    read_a = reader(node.a.view, over, program.specs[node.a.node])
    read_b = reader(node.b.view, over, program.specs[node.b.node])
    read_ea = reader(node.exponent_a.view, dims, program.specs[node.exponent_a.node])
    read_eb = reader(node.exponent_b.view, dims, program.specs[node.exponent_b.node])
    axes = tuple(range(len(dims), len(over)))
    inner = (1,) * len(red)

    def run(values: list[Tensor]) -> Tensor:
        ea, eb = (
            r(values[o.node]).to(torch.int32) for r, o in ((read_ea, node.exponent_a), (read_eb, node.exponent_b))
        )
        qa = exponents.quantize(read_a(values[node.a.node]), ea.reshape((*dims, *inner)), node.precision_a)
        qb = exponents.quantize(read_b(values[node.b.node]), eb.reshape((*dims, *inner)), node.precision_b)
        s = qa.to(torch.int64) * qb.to(torch.int64)
        s = s.sum(axes) if axes else s
        n = ea.to(torch.int64) + eb.to(torch.int64) - (node.precision_a - 1) - (node.precision_b - 1)
        return exponents.finish_nan(exponents.finish(s, n), ea, eb)

    return run


def _is_bounded(program: Program, e: Operand) -> bool:
    """Whether a constant exponent, and its fill, lie where the tables of finishing factors reach."""
    node = program.nodes[e.node]
    if not isinstance(node, Const) or node.spec.dtype is not DType.I32:
        return False
    values = from_bytes(node.spec.dtype, node.spec.dims, program.consts[node.root])
    is_fill_bounded = exponents.E_ZERO <= as_i32(e.view.fill) < exponents.E_NONFINITE
    return is_fill_bounded and bool(((values >= exponents.E_ZERO) & (values < exponents.E_NONFINITE)).all())
