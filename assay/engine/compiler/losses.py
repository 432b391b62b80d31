"""What quantization costs a program on a real batch: per operand of every product, its error and what becomes zero.

One element far above the rest of its row sets the row's exponent, and the others are rounded by its size. How much of
the *total* is lost then says nothing: the large element is in the total. So the error is held against what the others
say: the product without the few terms of each row that contribute most. Products with a softmax's output or gradient
are held against all of themselves: the token attended to, or the target, is what they say.

Shapes: B batch, M rows of an operand, K terms; small letters are a piece of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

import torch
from torch import Tensor

from assay.engine.compiler.capture import Captured
from assay.engine.runtime.exact import exponents
from assay.engine.runtime.executor import Executor, cpu_variant
from assay.engine.runtime.values.views import reader
from assay.protocol.program.nodes import Const, Dot, Operand
from assay.protocol.program.program import Program

LIMIT = 7e-4
"""Two operands at their limits make a product within 1e-3."""

_COARSE = 10
"""Bits up to which even rows have errors of some 2^(2-p): there the limit is 2^(4-p)."""

_FEW = 64
"""One term of so many is an outlier at most."""

_SHORT = 16
"""Rows of fewer terms have no outliers: all of their terms count."""

_AT_ONCE = 1 << 22
"""Elements of an operand that are looked at together: binary64 copies of all would be several times a step's memory."""


@dataclass(frozen=True, slots=True)
class PrecisionLoss:
    """What one operand of one product loses at `bits`.

    error: root mean square of the product's error that this operand's rounding makes, over that of the product without
    the few largest terms of each row (whole: of all of the product). zeroed, worst: the share of the non-zero elements
    that become zero, of all and of the worst row.
    """

    node: int
    side: str
    bits: int
    error: float
    zeroed: float
    worst: float
    source: str
    whole: bool = False

    @property
    def is_above_limit(self) -> bool:
        """Whether the error is more than an operand of these bits may have."""
        return self.error > limit_of(self.bits)


def limit_of(bits: int) -> float:
    """The error that an operand of so many bits may have; of few bits, four times what they cost an even row."""
    return 2.0 ** (4 - bits) if bits <= _COARSE else LIMIT


@dataclass(frozen=True, slots=True)
class ProductOperand:
    """One operand of a product: x f32 [B, M, K], exponents i32 [B, M].

    shared: its rows were scaled beforehand and have one constant exponent, so that each row counts by itself.
    """

    x: Tensor
    e: Tensor
    bits: int
    shared: bool

    @property
    def energy(self) -> Tensor:
        """The mean square of every term over the rows, f64 [B, K]; elements that are not finite are 0."""
        found = torch.zeros(self.x.shape[0], self.x.shape[2], dtype=torch.float64)
        for at, rows, part in self.parts():
            del rows
            found[at] += _finite(part).square().sum(1)
        return found.div_(max(self.x.shape[1], 1))

    def parts(self) -> Iterator[tuple[slice, slice, Tensor]]:
        """The operand in pieces of batches and rows, f32 [b, m, K]."""
        batches, rows, terms = self.x.shape
        m = min(max(_AT_ONCE // max(terms, 1), 1), max(rows, 1))
        b = max(_AT_ONCE // max(terms * m, 1), 1)
        for i in range(0, batches, b):
            for j in range(0, rows, m):
                yield slice(i, i + b), slice(j, j + m), self.x[i : i + b, j : j + m]


def losses(captured: Captured, inputs: Sequence[Sequence[Tensor]]) -> list[PrecisionLoss]:
    """What both operands of every product lose on these inputs, the largest error over its limit first."""
    found: list[PrecisionLoss] = []
    visit_products(captured.program, inputs, lambda k, a, b: found.extend(losses_of(captured, k, a, b)))
    return ranked(found)


def ranked(found: Sequence[PrecisionLoss]) -> list[PrecisionLoss]:
    """The largest error over its limit first."""
    return sorted(found, key=lambda loss: -loss.error / limit_of(loss.bits))


def losses_of(captured: Captured, k: int, a: ProductOperand, b: ProductOperand) -> tuple[PrecisionLoss, PrecisionLoss]:
    """What both operands of product k lose.

    What the others say is the smaller of what either operand finds: where outliers stand elsewhere in every row of one,
    only that one knows its largest terms.
    """
    source = captured.sources.get(k, "")
    whole = any(product.sensitive for product in captured.products.get(k, ()))
    lost = _lost(a, b.energy, whole=whole), _lost(b, a.energy, whole=whole)
    reported = min(each.reported for each in lost)
    first, second = (
        PrecisionLoss(k, name, side.bits, each.error_over(reported), each.zeroed, each.worst, source, whole)
        for name, side, each in zip("AB", (a, b), lost, strict=True)
    )
    return first, second


def visit_products(
    program: Program, inputs: Sequence[Sequence[Tensor]], see: Callable[[int, ProductOperand, ProductOperand], None]
) -> None:
    """Run the program and show every product with its operands, as the run reads them.

    On the CPU, whichever device is asked for: values are shown there, and a GPU would compile a kernel for every node.
    """
    dots = {k: n for k, n in enumerate(program.nodes) if isinstance(n, Dot)}
    last_use = {o.node: k for k, n in dots.items() for o in (n.a, n.b, n.exponent_a, n.exponent_b)}
    values: dict[int, Tensor] = {}

    def keep(k: int, value: Tensor) -> Tensor:
        if k in last_use:
            values[k] = value
        if k in dots:
            see(k, *sides(program, dots[k], values))
            for j in [j for j in values if last_use[j] == k]:
                del values[j]
        return value

    Executor(program, variant=cpu_variant()).run(inputs, keep)


def sides(program: Program, node: Dot, values: Mapping[int, Tensor]) -> tuple[ProductOperand, ProductOperand]:
    """Both operands of a dot node, from the values of the nodes that it reads."""
    dims = node.spec.dims
    read_a, e_a = _read(program, node, node.a, node.exponent_a, values)
    read_b, e_b = _read(program, node, node.b, node.exponent_b, values)
    both = [d for d in range(len(dims)) if read_a.shape[d] > 1 and read_b.shape[d] > 1]
    pairs = (
        (read_a, e_a, node.precision_a, node.exponent_a),
        (read_b, e_b, node.precision_b, node.exponent_b),
    )
    a, b = (_side(program, node, both, *pair) for pair in pairs)
    return a, b


def _read(program: Program, node: Dot, x: Operand, e: Operand, values: Mapping[int, Tensor]) -> tuple[Tensor, Tensor]:
    """An operand over dims + red and its exponents over dims, size 1 along the dims of out where neither changes."""
    dims, red = node.spec.dims, node.red
    read = reader(x.view, (*dims, *red), program.specs[x.node], broadcast=True)(values[x.node])
    exponent = reader(e.view, dims, program.specs[e.node], broadcast=True)(values[e.node]).to(torch.int32)
    shape = torch.broadcast_shapes(read.shape[: len(dims)], exponent.shape)
    return read.expand(*shape, *red), exponent.expand(shape)


def _side(
    program: Program, node: Dot, both: Sequence[int], x: Tensor, e: Tensor, bits: int, exponent: Operand
) -> ProductOperand:
    rank = len(node.spec.dims)
    own = [d for d in range(rank) if d not in both]
    order = (*both, *own)
    batches, rows = prod(x.shape[d] for d in both), prod(x.shape[d] for d in own)
    flat = x.permute(*order, *range(rank, x.ndim)).reshape(batches, rows, node.terms)
    return ProductOperand(
        flat, e.permute(order).reshape(batches, rows), bits, isinstance(program.nodes[exponent.node], Const)
    )


@dataclass(frozen=True, slots=True)
class _MeanSquares:
    """Mean squares per element of the product: of the error, and of what the others say; shares of elements zeroed.

    relative: of rows with a constant exponent, the mean of error over what the others say, row by row.
    """

    error: float
    reported: float
    relative: float | None
    zeroed: float
    worst: float

    def error_over(self, reported: float) -> float:
        if self.relative is not None:
            return self.relative**0.5
        return (self.error / reported) ** 0.5 if reported > 0 else 0.0


def _lost(side: ProductOperand, weights: Tensor, *, whole: bool) -> _MeanSquares:
    error = reported = relative = worst = 0.0
    zeros = elements = 0
    for at, rows, part in side.parts():
        lost, others, gone, present = row_losses(part, side.e[at, rows], side.bits, weights[at], whole=whole)
        error, reported = error + float(lost.sum()), reported + float(others.sum())
        relative += float(torch.where(others > 0, lost / others, 0.0).sum())
        zeros, elements = zeros + int(gone.sum()), elements + int(present.sum())
        worst = max(worst, float((gone / present.clamp_min(1)).amax()))
    count = max(side.e.numel(), 1)
    zeroed = zeros / max(elements, 1)
    return _MeanSquares(error / count, reported / count, relative / count if side.shared else None, zeroed, worst)


def row_losses(
    x: Tensor, e: Tensor, bits: int, weights: Tensor, *, whole: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Per row [b, m]: squares of the error and of what the others say, f64; elements made zero, and not zero, i64.

    x: f32 [b, m, K]; e: i32 [b, m]; weights: f64 [b, K], the mean squares that the terms are multiplied by.
    whole: all terms say something.
    A row that is not finite has no error: its result is NaN.
    """
    exact_bmK = _finite(x)
    q_bmK = exponents.quantize(x, e[..., None], bits)
    unit_bm = exponents.power_of_two(e.to(torch.int64) - (bits - 1))
    lost_bmK = (q_bmK * unit_bm[..., None] - exact_bmK).square_() * weights[:, None]
    reported_bmK = exact_bmK.square() * weights[:, None]
    few = ceil(x.shape[2] / _FEW) if x.shape[2] >= _SHORT and not whole else 0
    if few:
        # Set to zero, not subtracted: beside a square of 1e17 and more, binary64 would keep nothing of the others.
        reported_bmK.scatter_(2, reported_bmK.topk(few, 2)[1], 0.0)
    present_bmK = exact_bmK != 0
    usable_bm = e < exponents.E_NONFINITE
    gone_bm = (present_bmK & (q_bmK == 0)).sum(2)
    return (
        lost_bmK.sum(2) * usable_bm,
        reported_bmK.sum(2) * usable_bm,
        gone_bm * usable_bm,
        present_bmK.sum(2) * usable_bm,
    )


def _finite(x: Tensor) -> Tensor:
    return x.to(torch.float64).nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
