"""Which products of a program get more than their tier's bits: decided on one real batch (ADR 0021).

An operand above its limit is captured again. Where few columns of the contraction hold what is large, and a weight
names them, these columns become a product of their own: the others then have exponents of their own. Elsewhere the
operand gets more bits, as many as its error asks for.

Shapes: B batch, M rows of an operand (m of them sampled), K terms, which are the axes of the contraction multiplied
out; S the size of one of these axes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import ceil, log2

import torch
from torch import Tensor

from assay.engine.compiler.capture import Captured, capture
from assay.engine.compiler.graph import GraphFunction, trace
from assay.engine.compiler.losses import (
    PrecisionLoss,
    ProductOperand,
    limit_of,
    losses_of,
    ranked,
    row_losses,
    visit_products,
)
from assay.engine.compiler.lowering import outliers
from assay.engine.compiler.lowering.registry import FIXED14, Precision, Product, Treatment
from assay.engine.runtime.exact import limits
from assay.engine.runtime.exact.exponents import E_NONFINITE, E_ZERO, exponent_of_magnitude

_MOST_BITS = 31
_MOST_COLUMNS = 64
"""So many at 24 bits on either side are a sum of at most 52 bits, which native kernels take."""

_FEWER = 16
"""Outlier columns are at most one in so many."""

_ROWS = 512
"""Rows that a choice of columns is tried on."""

_BATCHES = 31
"""Of a product's batches so many are looked at where few rows are: a prime, so that each head has its turn."""

_ROUNDS = 8


def calibrated(
    function: GraphFunction,
    inputs: Sequence[Sequence[Tensor]],
    precision: Precision = FIXED14,
    *,
    rows: int | None = None,
) -> tuple[Captured, list[PrecisionLoss]]:
    """A program whose operands are within their limits on this batch where that is possible, and what each still loses.

    The program runs on the whole batch, node by node; of both operands of every product its error is measured as
    `losses` says, over all rows, each with all of its terms. That takes several times what the run takes.

    rows: of each operand only about so many rows are measured, evenly chosen; each still has all of its terms, so that
    a sum over tokens is judged at its full length. Errors are then means over fewer rows, no other quantity.

    Raises: as `capture`.
    """
    treatments: dict[int, Treatment] = {}
    traced = trace(function, inputs)
    for _ in range(_ROUNDS):
        captured = capture(function, inputs, precision, treatments, traced)
        report, wanted = _examined(captured, inputs, treatments, rows)
        changed = {k: _joined(treatments.get(k), t) for k, t in wanted.items()}
        if all(treatments.get(k) == t for k, t in changed.items()):
            break
        treatments |= changed
    return captured, report


def _joined(old: Treatment | None, new: Treatment) -> Treatment:
    """What was chosen stays, with the larger number of bits."""
    if old is None:
        return new
    return replace(old, bits_a=max(old.bits_a, new.bits_a), bits_b=max(old.bits_b, new.bits_b))


def _examined(
    captured: Captured, inputs: Sequence[Sequence[Tensor]], known: Mapping[int, Treatment], rows: int | None
) -> tuple[list[PrecisionLoss], dict[int, Treatment]]:
    """What every operand loses, and what the products above their limits are to get, by number of product.

    Columns are looked for once, before there are bits; what is still above its limit with them gets bits.
    """
    report: list[PrecisionLoss] = []
    wanted: dict[int, Treatment] = {}

    def see(k: int, a: ProductOperand, b: ProductOperand) -> None:
        if rows is not None:
            a, b = _thinned(a, rows), _thinned(b, rows)
        found = losses_of(captured, k, a, b)
        report.extend(found)
        own = captured.products.get(k, ())
        if own and any(loss.is_above_limit for loss in found):
            apart = None if own[0].number in known else _columns(own[0], a, b)
            treatment = apart or _bits(*found)
            wanted.update({product.number: treatment for product in own})

    visit_products(captured.program, inputs, see)
    return ranked(report), wanted


def _bits(a: PrecisionLoss, b: PrecisionLoss) -> Treatment:
    """Bits for the operands above their limits."""
    bits_a, bits_b = (_bits_of(x) if x.is_above_limit else 0 for x in (a, b))
    return Treatment(bits_a, bits_b)


def _bits_of(loss: PrecisionLoss) -> int:
    """Bits that bring an operand below its limit, each of which halves its error, and one more for other batches."""
    enough = loss.bits + ceil(log2(loss.error / limit_of(_MOST_BITS)))
    return min(enough + (enough != limits.NATIVE_PRECISIONS[-1]), _MOST_BITS)


def _columns(product: Product, a: ProductOperand, b: ProductOperand) -> Treatment | None:
    """The fewest columns without which both operands are within their limits, where there are such."""
    a, b = _sampled(a), _sampled(b)
    weights_BK = a.energy, b.energy
    best: Treatment | None = None
    for axis in product.cuttable:
        size = product.axes[axis]
        order_S = _by_size(product, axis, weights_BK)
        count = 1
        while count <= min(_MOST_COLUMNS, size // _FEWER) and (best is None or count < len(best.columns)):
            columns = order_S[:count]
            kept_S = torch.ones(size, dtype=torch.bool)
            kept_S[columns] = False
            if _is_enough(_spread(product, axis, kept_S), a, b, weights_BK, whole=product.sensitive):
                best = Treatment(axis=axis, columns=tuple(sorted(columns.tolist())))
                break
            count *= 2
    return best


def _by_size(product: Product, axis: int, weights_BK: tuple[Tensor, Tensor]) -> Tensor:
    """The columns of one axis, i64 [S], the largest over an ordinary one of either operand first."""
    worst_S = torch.zeros(product.axes[axis], dtype=torch.float64)
    for w_BK in weights_BK:
        others = [d for d in range(len(product.axes)) if d != axis]
        own_S = w_BK.sum(0).reshape(product.axes).sum(others) if others else w_BK.sum(0)
        usual = own_S[own_S > 0].median() if bool((own_S > 0).any()) else torch.tensor(1.0)
        worst_S = torch.maximum(worst_S, own_S / usual)
    return worst_S.argsort(descending=True, stable=True)


def _spread(product: Product, axis: int, kept_S: Tensor) -> Tensor:
    """A mask of one axis as one of all terms, bool [K]."""
    shape = [product.axes[axis] if d == axis else 1 for d in range(len(product.axes))]
    return kept_S.reshape(shape).expand(product.axes).reshape(-1)


def _is_enough(
    kept_K: Tensor, a: ProductOperand, b: ProductOperand, weights_BK: tuple[Tensor, Tensor], *, whole: bool
) -> bool:
    """Whether both operands are within their limits with the kept terms and the others in two products."""
    pairs = (a, weights_BK[1]), (b, weights_BK[0])
    found = [_row_losses(side.x * kept_K, side.bits, other, whole=whole) for side, other in pairs]
    reported = min(others for _, others in found)
    for (side, other), (lost, _) in zip(pairs, found, strict=True):
        apart, _ = _row_losses(side.x * ~kept_K, outliers.BITS, other, whole=True)
        if lost + apart > limit_of(side.bits) ** 2 * reported:
            return False
    return True


def _row_losses(x_BmK: Tensor, bits: int, weights_BK: Tensor, *, whole: bool) -> tuple[float, float]:
    """Mean squares of the error and of what the others say, per row under an exponent of its own."""
    lost, reported, _, _ = row_losses(x_BmK, exponent_of_magnitude(x_BmK).amax(2), bits, weights_BK, whole=whole)
    return float(lost.mean()), float(reported.mean())


def _thinned(side: ProductOperand, rows: int) -> ProductOperand:
    """About so many rows of a side, of few of its batches; both sides of a product have the same batches."""
    batches = side.x.shape[0]
    count = min(batches, _BATCHES)
    chosen_b = torch.arange(count) * batches // max(count, 1)
    return _sampled(replace(side, x=side.x[chosen_b], e=side.e[chosen_b]), rows)


def _sampled(side: ProductOperand, wanted: int = _ROWS) -> ProductOperand:
    """A side of few rows, evenly chosen; rows that are not finite are left out."""
    batches, rows, _ = side.x.shape
    step = max(batches * rows // wanted, 1)
    chosen_m = torch.arange(0, rows, min(step, max(rows, 1)))
    x_BmK, e_Bm = side.x[:, chosen_m], side.e[:, chosen_m]
    finite_Bm = e_Bm < E_NONFINITE
    return replace(side, x=torch.where(finite_Bm[..., None], x_BmK, 0.0), e=torch.where(finite_Bm, e_Bm, E_ZERO))
