"""The integers that some terms of a sum or dot contribute, and the one rounding of their total.

Exponents are known beforehand, over all terms: quantizing needs them (docs/protocol.md, section 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import torch
from torch import Tensor

from assay.engine.runtime.exact import exponents
from assay.engine.runtime.products import product_variants
from assay.engine.runtime.products.dot import Check
from assay.engine.runtime.values.views import reader
from assay.protocol.program.nodes import Dot, Operand, Sum
from assay.protocol.trees.tensors import TensorSpec

_SUM_P = 31

PartValues = dict[int, Tensor]
"""Values by node, as the operands of a sliced node count them."""


def partial_sum(
    node: Sum | Dot, values: PartValues, specs: dict[int, TensorSpec], check: Check | None = None
) -> Tensor:
    """The exact sum over the node's terms of its quantized products, i64 [dims]; check: sees a dot's, and may raise."""
    if isinstance(node, Sum):
        q = _quantized(node.x, node.exponent, _SUM_P, node, values, specs).to(torch.int64)
        axes = tuple(range(len(node.spec.dims), q.ndim))
        s = q.expand((*q.shape[: len(node.spec.dims)], *node.red))
        return (s.sum(axes) if axes else s).expand(node.spec.dims).contiguous()
    qa = _quantized(node.a, node.exponent_a, node.precision_a, node, values, specs)
    qb = _quantized(node.b, node.exponent_b, node.precision_b, node, values, specs)
    return _product(qa, qb, node, check)


def finished(node: Sum | Dot, total: Tensor, values: PartValues, specs: dict[int, TensorSpec]) -> Tensor:
    """The node's value f32 [dims] from the exact sum over all terms, one rounding."""
    dims = node.spec.dims
    if isinstance(node, Sum):
        e = _exponent(node.exponent, dims, values, specs)
        n = e.to(torch.int64) - (_SUM_P - 1)
        return exponents.finish_nan(exponents.finish(total, n.expand(dims)), e).contiguous()
    ea, eb = (_exponent(o, dims, values, specs) for o in (node.exponent_a, node.exponent_b))
    n = ea.to(torch.int64) + eb.to(torch.int64) - (node.precision_a - 1) - (node.precision_b - 1)
    return exponents.finish_nan(exponents.finish(total, n.expand(dims)), ea, eb).contiguous()


def _exponent(e: Operand, dims: Sequence[int], values: PartValues, specs: dict[int, TensorSpec]) -> Tensor:
    """Exponents over dims, size 1 where they do not change; i32."""
    return reader(e.view, dims, specs[e.node], broadcast=True)(values[e.node]).to(torch.int32)


def _quantized(
    x: Operand, e: Operand, p: int, node: Sum | Dot, values: PartValues, specs: dict[int, TensorSpec]
) -> Tensor:
    """q_p over dims + red in f64, size 1 where nothing changes."""
    over = node.spec.dims + node.red
    raw = reader(x.view, over, specs[x.node], broadcast=True)(values[x.node])
    exponent = _exponent(e, node.spec.dims, values, specs)
    return exponents.quantize(raw, exponent.reshape((*exponent.shape, *(1,) * len(node.red))), p)


def _product(qa: Tensor, qb: Tensor, node: Dot, check: Check | None) -> Tensor:
    """sum over red of qa qb, i64 [dims], as one batched matrix product."""
    dims, red = node.spec.dims, node.red
    rank = len(dims)
    batch = [d for d in range(rank) if qa.shape[d] > 1 and qb.shape[d] > 1]
    rows = [d for d in range(rank) if qa.shape[d] > 1 and qb.shape[d] == 1]
    columns = [d for d in range(rank) if qa.shape[d] == 1 and qb.shape[d] > 1]
    rest = [d for d in range(rank) if qa.shape[d] == 1 and qb.shape[d] == 1]
    inner = list(range(rank, rank + len(red)))
    batches, m, n = (prod(dims[d] for d in group) for group in (batch, rows, columns))
    terms = prod(red)
    a, b = (
        q.expand((*q.shape[:rank], *red)).permute((*rest, *batch, *own, *other, *inner))
        for q, own, other in ((qa, rows, columns), (qb, columns, rows))
    )
    a = a.reshape(batches, m, terms)
    b = b.reshape(batches, n, terms)
    product_variant = product_variants.choose(node.precision_a, node.precision_b, batches, m, n, terms)
    s = product_variant.multiply(a, b).to(torch.int64)
    if check is not None:
        check(a, b, s)
    order = [*rest, *batch, *rows, *columns]
    s = s.reshape([1 if d in rest else dims[d] for d in order])
    back = [order.index(d) for d in range(rank)]
    return s.permute(back).expand(dims).contiguous()
