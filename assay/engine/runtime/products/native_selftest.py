"""What the native products must get right before they are used: extremes of their digits, and hard roundings.

A product is exact by an inequality, but a processor, a compiler or a hypervisor may be wrong where arithmetic is right
(`torch._int_mm` without VNNI is). The expected results come from the general stock-torch formulas in 64-bit integers.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from assay.engine.runtime.exact import exponents, limits
from assay.engine.runtime.exact.limits import NativeVariant
from assay.protocol.program.nodes import Dot, Input, Operand
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

ProductCase = tuple[str, tuple[Tensor, Tensor, Tensor, Tensor]]
"""A name, and A [B, M, K], its exponents [B, M], B [B, N, K], its exponents [B, N]."""


def matrix_program(shape: tuple[int, int, int, int], pa: int, pb: int) -> tuple[Program, Dot]:
    """A program of four inputs as in `ProductCase`, and the dot node over them; shape: batch, rows, columns, terms."""
    batch, rows, columns, terms = shape
    inputs = tuple(
        Input(TensorSpec(dtype, dims), 0, k)
        for k, (dtype, dims) in enumerate(
            (
                (DType.F32, (batch, rows, terms)),
                (DType.I32, (batch, rows)),
                (DType.F32, (batch, columns, terms)),
                (DType.I32, (batch, columns)),
            )
        )
    )
    dims, over = (batch, rows, columns), shape

    def operand(node: int, strides: tuple[int, ...]) -> Operand:
        sizes = over[: len(strides)]
        return Operand(node, View(0, strides, (0,) * len(strides), sizes))

    node = Dot(
        TensorSpec(DType.F32, dims),
        (terms,),
        pa,
        pb,
        operand(0, (rows * terms, terms, 0, 1)),
        operand(2, (columns * terms, 0, terms, 1)),
        operand(1, (rows, 1, 0)),
        operand(3, (columns, 0, 1)),
    )
    return Program(inputs, (4,), ()), node


def expected(case: tuple[Tensor, Tensor, Tensor, Tensor], pa: int, pb: int) -> tuple[Tensor, Tensor]:
    """The sums i64 [B, M, N] and the results, by general formulas."""
    a, ea, b, eb = case
    qa, qb = (exponents.quantize(x, e[..., None], p).to(torch.int64) for x, e, p in ((a, ea, pa), (b, eb, pb)))
    sums = torch.bmm(qa, qb.transpose(1, 2))
    n = ea[:, :, None].to(torch.int64) + eb[:, None, :].to(torch.int64) - (pa - 1) - (pb - 1)
    return sums, exponents.finish_nan(exponents.finish(sums, n), ea[:, :, None], eb[:, None, :])


def cases(pa: int, pb: int, limit: int) -> Iterator[ProductCase]:
    """Extremes of both operands, ramps through all digits, and rows of every exponent; at most `limit` terms."""
    for rows, columns, terms in ((1, 1, 1), (17, 8, 8), (33, 24, 96), (5, 40, 700), (3, 5, 4099)):
        if terms > limit:
            continue
        ea, eb = (torch.full((1, n), p - 1, dtype=torch.int32) for n, p in ((rows, pa), (columns, pb)))
        tops = 2.0 ** (pa - 1), 2.0 ** (pb - 1)
        for name, x, y in (
            ("all largest", 1.0, 1.0),
            ("largest by smallest", 1.0, -1.0),
            ("all smallest", -1.0, -1.0),
            ("low digits lowest", -1 + 2.0 ** (2 - pa), -1 + 2.0 ** (2 - pb)),
        ):
            a, b = torch.full((1, rows, terms), x * tops[0]), torch.full((1, columns, terms), y * tops[1])
            yield f"{name} at {rows}x{columns}x{terms}", (a, ea, b, eb)
        yield (
            f"ramps at {rows}x{columns}x{terms}",
            (_ramp(rows, terms, tops[0], 7919), ea, _ramp(columns, terms, tops[1], 104729), eb),
        )
        wide = [torch.arange(n, dtype=torch.int32)[None] * 61 % 277 - 148 for n in (rows, columns)]
        scaled = [
            (_ramp(n, terms, 1.0, 31).to(torch.float64) * exponents.power_of_two(e)[..., None]).to(torch.float32)
            for n, e in zip((rows, columns), wide, strict=True)
        ]
        yield f"exponents at {rows}x{columns}x{terms}", (scaled[0], wide[0], scaled[1], wide[1])


def own_cases(pa: int, pb: int, limit: int) -> Iterator[ProductCase]:
    """Rows under their own exponents: whole panels of ordinary ones; some of zeros, subnormals, what is not finite.

    Of the last, sums of more columns than a tile has wait for terms that are packed later.
    """
    for rows, columns, terms in ((16, 16, 32), (32, 17, 96), (49, 33, 2080)):
        if terms > limit:
            continue
        ordinary = [_ramp(n, terms, 1.0, step) for n, step in ((rows, 7919), (columns, 104729))]
        for x in ordinary:
            x[0, 2, ::2] = 1 - 2.0**-24  # is rounded up to 2^e
        yield f"own exponents at {rows}x{columns}x{terms}", _with_own(*ordinary)
        if terms > _ALL_KINDS:
            continue
        wide = []
        for x in ordinary:
            e = torch.arange(x.shape[1], dtype=torch.int32)[None] * 61 % 277 - 148
            x = (x.to(torch.float64) * exponents.power_of_two(e)[..., None]).to(torch.float32)
            x[0, 1], x[0, 3] = 0.0, torch.finfo(torch.float32).max
            wide.append(x)
        yield f"own exponents of all sizes at {rows}x{columns}x{terms}", _with_own(*wide)
        wide[0][0, 5, 7], wide[1][0, 6, 9] = float("inf"), float("nan")
        yield f"own exponents of what is not finite at {rows}x{columns}x{terms}", _with_own(*wide)


_ALL_KINDS = 96
"""Terms up to which a shape is tried with rows of all kinds: more would be felt where a process begins."""


def _with_own(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    ea, eb = (exponents.exponent_of_magnitude(x.abs().amax(-1)) for x in (a, b))
    return a, ea, b, eb


def at_the_limit(
    variant: NativeVariant, pa: int, pb: int, terms: int
) -> tuple[tuple[Tensor, Tensor, Tensor, Tensor], Tensor]:
    """Five rows of the largest operands, as in `ProductCase`, and their sums i64 [1, 5, 5].

    All of one sign, in turn, half by half, all digits at their ends, and a full low half before the first full run.
    """
    x, y = limits.largest(pa), limits.largest(pb)
    first = 2 * min(limits.run(x, y), _BLOCK) if variant is NativeVariant.PAIRS else 4
    a, b = (_extremes(variant, p, terms, first, odd) for p, odd in ((pa, 255.0), (pb, 257.0)))
    ea, eb = (torch.full((1, len(q)), p - 1, dtype=torch.int32) for q, p in ((a, pa), (b, pb)))
    sums = torch.zeros(1, len(a), len(b), dtype=torch.int64)
    for k in range(0, terms, _PART):  # exact in binary64: no sum of products is above 2^52
        sums[0] += (a[:, k : k + _PART].to(torch.float64) @ b[:, k : k + _PART].to(torch.float64).t()).to(torch.int64)
    return (a[None], ea, b[None], eb), sums


_PART = 1 << 15

_BLOCK = 256
"""Pairs after which the kernels empty the low half in any case; equal to `BLOCK_PAIRS`."""


def _extremes(variant: NativeVariant, p: int, terms: int, first: int, odd: float) -> Tensor:
    """Rows [5, terms] of f32 integers up to the largest q_p; the last has one odd value among its first terms."""
    top = 127.0 if p == 8 else float(limits.largest(p))
    rows = torch.full((5, terms), top)
    rows[1, 1::2] = -top
    rows[2, terms // 2 :] = -top
    digits = limits.digits(variant, p)
    ends = [d << digits.shift * i for i, d in enumerate(digits.largest)]
    rows[3] = min(float(ends[-1] - sum(ends[:-1])), top)
    # 255 by 257 alone in the first run leave 65,535 to the next one.
    rows[4, :first] = 0.0
    rows[4, 0] = min(top, odd)
    return rows


def _ramp(rows: int, terms: int, top: float, step: int) -> Tensor:
    """Values through [-top, top] in an order that mixes them, f32 [1, rows, terms]."""
    span = 1 << 15
    at = torch.arange(rows * terms, dtype=torch.float64).mul_(step).remainder_(span + 1).sub_(span / 2)
    return (
        at.mul_(top * 2 / span).round_().to(torch.float32).reshape(1, rows, terms)
        if top > 1
        else (at.mul_(2 / span).to(torch.float32).reshape(1, rows, terms))
    )
