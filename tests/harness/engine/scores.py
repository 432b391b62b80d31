"""Scores that need not be stored, and everything that reads them by tiles."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType


def dropped() -> ScalarProgram:
    """The score where its random word is not negative, else 0; a score past the end of a tile would be large."""
    s = ScalarBuilder([DType.F32, DType.I32])
    return s.build(s.select(s.lt(s.operand(1), s.i32(0)), s.f32(0.0), s.add(s.operand(0), s.f32(2.0**20))))


def readers(*, is_output: bool = False, few: bool = False) -> tuple[Program, list[list[Tensor]]]:
    """Scores of 2 heads, 20 by 14, with dropout; rows and columns are reduced, and multiplied from either side."""
    heads, m, n, d = 2, 20, 14, 7
    specs = [TensorSpec(DType.F32, (heads, rows, d)) for rows in (m, n)] + [TensorSpec(DType.I32, (2,))]
    b = ProgramBuilder([specs])
    q, k, key = (b.input(0, i) for i in range(3))
    eq, ek = b.rowexp(q, 1), b.rowexp(k, 1)
    scores = b.dot(q.unsqueeze(2), k.unsqueeze(1), eq.unsqueeze(2), ek.unsqueeze(1), (heads, m, n), (d,), 14, 14)
    kept = b.map(dropped(), [scores, b.random(3, key, key, (heads, m, n))], (heads, m, n))
    columns = kept.permute(0, 2, 1)
    ew, down = b.rowexp(q.permute(0, 2, 1), 1), b.rowexp(columns, 1)
    back = b.dot(
        q.permute(0, 2, 1).unsqueeze(2), columns.unsqueeze(1), ew.unsqueeze(2), down.unsqueeze(1),
        (heads, d, n), (m,), 14, 22,
    )  # fmt: skip
    ends = [b.max(scores, 1), back]
    if not few:
        e, turned = b.rowexp(kept, 1), k.permute(0, 2, 1)
        both = e.unsqueeze(2), b.rowexp(turned, 1).unsqueeze(1)
        mixed = b.dot(kept.unsqueeze(2), turned.unsqueeze(1), *both, (heads, m, d), (n,), 22, 14)
        ends += [b.sum(kept, 1, e), b.sum(columns, 1, down), mixed]
    program = b.build([[*ends, *([kept] if is_output else [])]])
    torch.manual_seed(6)
    x = [torch.randn(s.dims) * torch.exp2(torch.randint(-20, 20, (*s.dims[:2], 1))) for s in specs[:2]]
    x[0][0, 3], x[1][1, 2, 1], x[0][1, 4, 0] = 0.0, float("inf"), float("nan")
    return program, [[*x, torch.tensor([5, -6], dtype=torch.int32)]]
