"""16-bit numbers: a u16 slot holds their bits, a step widens them, computes in f32 and its tier, and rounds at the end.

Inside a program bfloat16 and float16 are f32: a cast to them is noted, for the report, and changes nothing.
"""

from __future__ import annotations

from typing import Any

import torch

from assay.engine import ops
from assay.engine.compiler.ir.values import Tensorlike
from assay.engine.compiler.lowering.registry import SIXTEEN, Context, lowers, program_dtype
from assay.protocol.types import DType

aten = torch.ops.aten


@lowers(ops.FLOATS_OF)
def _floats_of(ctx: Context, bits: Tensorlike, dtype: torch.dtype) -> Tensorlike:
    return ctx.values.pointwise(f"widen_{SIXTEEN[dtype]}", [bits], DType.F32)


@lowers(ops.BITS_OF)
def _bits_of(ctx: Context, x: Tensorlike, dtype: torch.dtype) -> Tensorlike:
    return ctx.values.pointwise(f"narrow_{SIXTEEN[dtype]}", [ctx.cast(x, DType.F32)], DType.U16)


@lowers(torch.ops.prims.convert_element_type.default)
def _convert(ctx: Context, x: Tensorlike, dtype: torch.dtype) -> Tensorlike:
    _note(ctx)
    return ctx.cast(x, program_dtype(dtype))


@lowers(aten._to_copy.default)
def _to_copy(ctx: Context, x: Tensorlike, **_: Any) -> Tensorlike:
    _note(ctx)
    return ctx.cast(x, ctx.dtype)


def _note(ctx: Context) -> None:
    if ctx.result.dtype in SIXTEEN:
        ctx.narrowed.setdefault(ctx.values.source, SIXTEEN[ctx.result.dtype])
