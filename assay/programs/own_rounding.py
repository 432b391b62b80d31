"""Whether every node of a program is off its own real value by no more than the rounding of its own grid."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from assay.engine.runtime.exact.exponents import E_NONFINITE, power_of_two
from assay.engine.runtime.executor import Executor
from assay.programs.real_program import RealProgram
from assay.protocol.program.leaf import SUM_PRECISION
from assay.protocol.program.nodes import Dot, Gather, Max, Operand, RowExp, ScatterSum, Sum

_LAST_PLACE = 2.0**-24
_SMALLEST = 2.0**-149


def first_off_grid(real: RealProgram, state: Sequence[Sequence[Tensor]]) -> int | None:
    """The first product, sum, largest or gathered element of one exact step that is no rounding of its real value.

    Each is computed over real numbers from what the exact step gave it. A product may be off by one step of its grid
    per term and operand, and by the last place of its result; what only moves or compares may not be off at all. Maps
    are the scalar machine's, which kernels are compared with elsewhere.
    """
    program = real.program
    values: list[Tensor | None] = [None] * len(program.nodes)
    found: list[int] = []

    def see(k: int, value: Tensor) -> Tensor:
        values[k] = value.to(torch.float64) if value.dtype is torch.float32 else value.clone()
        if not found and _is_off(real, k, values):  # type: ignore[arg-type]
            found.append(k)
        for j in real.dead.get(k, ()):
            values[j] = None
        return value

    Executor(program).run(state, see)
    return found[0] if found else None


def _is_off(real: RealProgram, k: int, values: Sequence[Tensor]) -> bool:
    node = real.program.nodes[k]
    if not isinstance(node, Dot | Sum | ScatterSum | Max | Gather | RowExp):
        return False
    expected, exact = real.kernels[k](values), values[k]
    if not expected.is_floating_point():
        return not torch.equal(expected.to(torch.int64), exact.to(torch.int64))
    # Rows that are not finite say so; what is too large for f32 is infinite there.
    usual = exact.isfinite()
    off = (expected - exact).abs() > _allowed(real, node, values, expected)
    return bool((off & usual).any() or (exact.isnan() & expected.isfinite()).any())


def _allowed(
    real: RealProgram, node: Dot | Sum | ScatterSum | Max | Gather | RowExp, values: Sequence[Tensor], expected: Tensor
) -> Tensor:
    """How far each element may be off, f64 in the node's dims."""
    last = expected.abs() * _LAST_PLACE + _SMALLEST

    def grid(exponent: Operand, precision: int) -> Tensor:
        e = real.read(exponent, node.spec.dims)(values).clamp_max(E_NONFINITE)
        return power_of_two(e - (precision - 1))

    if isinstance(node, Sum | ScatterSum):
        return last + node.terms * grid(node.exponent, SUM_PRECISION)
    if isinstance(node, Dot):
        product = real.product(node)
        a, b = grid(node.exponent_a, node.precision_a), grid(node.exponent_b, node.precision_b)
        sizes_a = product(values, torch.abs, torch.ones_like)
        sizes_b = product(values, torch.ones_like, torch.abs)
        return last + sizes_a * b + sizes_b * a + node.terms * a * b
    return torch.zeros_like(expected)
