"""What quantization costs a program on a real batch: per product, the share of row mass that is rounded to zero.

One exponent per row of a heavy-tailed operand rounds the tail to zero, and that is a bias, not noise. Above 1 % the
operand gets more bits, or, at the limit, the report says so (design, section 3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from assay.engine import exponents
from assay.engine.capture import Captured, capture
from assay.engine.executor import Executor
from assay.engine.graph import Function, trace
from assay.engine.lowering.registry import FIXED14, Precision
from assay.engine.views import reader
from assay.protocol.nodes import Dot, Operand
from assay.protocol.program import Program

LIMIT = 0.01
"""Share of row mass above which an operand gets more bits."""

_STEP, _MOST = 4, 26
"""Bits added at a time, and the most that an operand gets."""

_MAX_BITS = 62


@dataclass(frozen=True, slots=True)
class Loss:
    """What one operand of one product loses: `share` of the sum of magnitudes, worst and mean over rows, at `bits`."""

    node: int
    side: str
    bits: int
    share: float
    mean: float
    source: str


def losses(captured: Captured, inputs: Sequence[Sequence[Tensor]]) -> list[Loss]:
    """The share of row mass rounded to zero for both operands of every product, the largest first."""
    program = captured.program
    dots = {k: n for k, n in enumerate(program.nodes) if isinstance(n, Dot)}
    wanted = {o.node for n in dots.values() for o in (n.a, n.b, n.exponent_a, n.exponent_b)}
    values: dict[int, Tensor] = {}

    def keep(k: int, value: Tensor) -> Tensor:
        if k in wanted:
            values[k] = value
        return value

    Executor(program).run(inputs, keep)
    found = []
    for k, node in dots.items():
        for side, x, e, p in (
            ("A", node.a, node.exponent_a, node.precision_a),
            ("B", node.b, node.exponent_b, node.precision_b),
        ):
            worst, mean = _share(program, node, x, e, p, values)
            found.append(Loss(k, side, p, worst, mean, captured.sources.get(k, "")))
    return sorted(found, key=lambda loss: -loss.share)


def _share(
    program: Program, node: Dot, x: Operand, e: Operand, p: int, values: Mapping[int, Tensor]
) -> tuple[float, float]:
    """The largest and the mean share over the rows of one operand; rows that are zero or not finite lose nothing."""
    dims, red = node.spec.dims, node.red
    read = reader(x.view, (*dims, *red), program.specs[x.node], broadcast=True)(values[x.node]).double()
    exponent = reader(e.view, dims, program.specs[e.node], broadcast=True)(values[e.node]).to(torch.int32)
    q = exponents.quantize(read, exponent.reshape((*exponent.shape, *(1,) * len(red))), p)
    axes = tuple(range(len(dims), len(dims) + len(red)))
    mass = read.abs()
    lost = torch.where(q == 0, mass, 0.0)
    total, gone = (mass.sum(axes), lost.sum(axes)) if axes else (mass, lost)
    share = torch.where((total > 0) & total.isfinite(), gone / total, 0.0)
    return (float(share.amax()), float(share.mean())) if share.numel() else (0.0, 0.0)


def calibrated(
    function: Function, inputs: Sequence[Sequence[Tensor]], precision: Precision = FIXED14, limit: float = LIMIT
) -> tuple[Captured, list[Loss]]:
    """A program whose products lose at most `limit` of any row on this batch, and what each still loses.

    Operands above the limit are captured again with more bits, up to 26; what stays above it is in the report.
    """
    raised: dict[int, int] = {}
    traced = trace(function, inputs)
    while True:
        captured = capture(function, inputs, precision, raised, traced)
        report = losses(captured, inputs)
        wanted = dict(raised)
        for loss in report:
            if loss.share <= limit:
                break
            value = captured.operand_values[loss.node][loss.side == "B"]
            wanted[value] = min(max(wanted.get(value, 0), loss.bits) + _STEP, _MOST)
        if wanted == raised:
            return captured, report
        raised = wanted
