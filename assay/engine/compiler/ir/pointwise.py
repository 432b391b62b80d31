"""Elementwise operations by name: how each is written in the scalar machine.

Arithmetic takes registers of one type; lowering inserts casts. Composite operations (gelu and its gradient) are one
entry each, so that what they share is computed once.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from assay.engine.compiler.ir import elementary, sixteen
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import Op
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.types import DType

Emit = Callable[..., Reg]
"""(builder, registers, parameters...) to the result."""

_GELU_SCALE = 2.0 * math.sqrt(2.0 / math.pi)
_GELU_CUBE = 0.044715


def _one(function: Callable[[ScalarBuilder, Reg], Reg]) -> Emit:
    return lambda b, r: function(b, r[0])


def _two(function: Callable[[ScalarBuilder, Reg, Reg], Reg]) -> Emit:
    return lambda b, r: function(b, r[0], r[1])


def _op(op: Op) -> Emit:
    return lambda b, r: b.apply(op, *r)


def _neg(b: ScalarBuilder, r: list[Reg]) -> Reg:
    return b.neg(r[0]) if r[0].dtype is DType.F32 else b.sub(b.i32(0), r[0])


def _abs(b: ScalarBuilder, r: list[Reg]) -> Reg:
    return b.abs(r[0]) if r[0].dtype is DType.F32 else b.maximum(r[0], b.sub(b.i32(0), r[0]))


def _equal(b: ScalarBuilder, r: list[Reg]) -> Reg:
    if r[0].dtype is DType.BOOL:
        return b.eq(*(b.cast(x, DType.I32) for x in r))
    return b.eq(r[0], r[1])


def _floor(b: ScalarBuilder, x: Reg) -> Reg:
    return b.apply(Op.F32_FLOOR, x)


def _trunc(b: ScalarBuilder, x: Reg) -> Reg:
    return b.select(b.lt(x, b.f32(0.0)), b.neg(_floor(b, b.neg(x))), _floor(b, x))


def _sign(b: ScalarBuilder, r: list[Reg]) -> Reg:
    zero, one = b.f32(0.0), b.f32(1.0)
    unit = b.select(b.lt(r[0], zero), b.f32(-1.0), one)
    return b.select(b.logical_not(b.apply(Op.BOOL_OR, b.lt(r[0], zero), b.lt(zero, r[0]))), b.mul(r[0], zero), unit)


def _relu(b: ScalarBuilder, x: Reg) -> Reg:
    return b.maximum(x, b.f32(0.0))


def _silu(b: ScalarBuilder, x: Reg) -> Reg:
    return b.mul(x, functions.sigmoid(b, x))


def _gelu_tanh_gradient(b: ScalarBuilder, r: list[Reg]) -> Reg:
    """gradient times the derivative of x sigmoid(u), u = x (s + s c x^2)."""
    gradient, x = r
    square, one = b.mul(x, x), b.f32(1.0)
    inner = b.mul(x, b.add(b.f32(_GELU_SCALE), b.mul(square, b.f32(_GELU_SCALE * _GELU_CUBE))))
    slope = b.add(b.f32(_GELU_SCALE), b.mul(square, b.f32(3 * _GELU_SCALE * _GELU_CUBE)))
    s = functions.sigmoid(b, inner)
    return b.mul(gradient, b.mul(s, b.add(one, b.mul(b.mul(x, slope), b.sub(one, s)))))


def _log1p(b: ScalarBuilder, x: Reg) -> Reg:
    """log(1 + x) by the rounded sum u: log(u) x / (u - 1) corrects for what u lost; x itself where u is 1."""
    one = b.f32(1.0)
    u = b.add(x, one)
    rest = b.sub(u, one)
    corrected = b.mul(functions.log(b, u), b.div(x, rest))
    usual = b.lt(b.abs(rest), b.f32(math.inf))
    return b.select(b.eq(rest, b.f32(0.0)), x, b.select(usual, corrected, functions.log(b, u)))


def _power(b: ScalarBuilder, r: list[Reg], exponent: int) -> Reg:
    """x to a small non-negative integer, by squaring."""
    result: Reg | None = None
    square = r[0]
    while exponent:
        if exponent & 1:
            result = square if result is None else b.mul(result, square)
        exponent >>= 1
        if exponent:
            square = b.mul(square, square)
    if result is None:
        return b.f32(1.0) if r[0].dtype is DType.F32 else b.i32(1)
    return result


def _fold_exponent(b: ScalarBuilder, r: list[Reg]) -> Reg:
    """p 2^e for the exponent e of a row that p weighs; NaN where the row is not finite and p is not zero."""
    p, e = r
    usable = b.apply(Op.BOOL_OR, b.lt(e, b.i32(129)), b.eq(p, b.f32(0.0)))
    return b.select(usable, b.scale2(p, e), b.f32(math.nan))


def _remove_exponent(b: ScalarBuilder, r: list[Reg]) -> Reg:
    """v 2^-e: a row scaled so that its largest element is below 1 and at least one half."""
    return b.scale2(r[0], b.sub(b.i32(0), r[1]))


def _exponent_power(b: ScalarBuilder, r: list[Reg]) -> Reg:
    """2^(e - start - 30) where the exponent e lies in the 31 from `start` on, else 0."""
    above = b.sub(r[0], r[1])
    inside = b.apply(Op.BOOL_AND, b.le(b.i32(0), above), b.lt(above, b.i32(31)))
    return b.select(inside, b.scale2(b.f32(1.0), b.sub(above, b.i32(30))), b.f32(0.0))


def _exponent_of_powers(b: ScalarBuilder, r: list[Reg]) -> Reg:
    """A bound on the exponents whose powers the sum adds; 129 for the window of NaN and infinity, -149 for none."""
    total, start = r
    bound = b.add(b.apply(Op.F32_EXPONENT, total), b.add(start, b.i32(29)))
    finite = b.select(b.lt(bound, b.i32(128)), bound, b.i32(128))
    found = b.select(b.lt(start, b.i32(129)), finite, b.i32(129))
    return b.select(b.eq(total, b.f32(0.0)), b.i32(-149), found)


EMIT: dict[str, Emit] = {
    "constant": lambda b, r: r[0],
    "copy": lambda b, r: r[0],
    "cast": lambda b, r, dtype: b.cast(r[0], dtype),
    "add": _two(ScalarBuilder.add),
    "sub": _two(ScalarBuilder.sub),
    "mul": _two(ScalarBuilder.mul),
    "div": _two(ScalarBuilder.div),
    "maximum": _two(ScalarBuilder.maximum),
    "minimum": _two(ScalarBuilder.minimum),
    "neg": _neg,
    "abs": _abs,
    "sqrt": lambda b, r: b.sqrt(r[0]),
    "rsqrt": _one(functions.rsqrt),
    "reciprocal": lambda b, r: b.div(b.f32(1.0), r[0]),
    "exp": _one(functions.exp),
    "log": _one(functions.log),
    "log1p": _one(_log1p),
    "tanh": _one(functions.tanh),
    "sigmoid": _one(functions.sigmoid),
    "erf": _one(functions.erf),
    "sin": _one(functions.sin),
    "cos": _one(functions.cos),
    "silu": _one(_silu),
    "relu": _one(_relu),
    "gelu_tanh": _one(functions.gelu_tanh),
    "gelu_tanh_gradient": _gelu_tanh_gradient,
    "gauss": _one(functions.gauss),
    "gelu": lambda b, r: functions.gelu(b, r[0], r[1]),
    "gelu_gradient": lambda b, r: b.mul(r[0], functions.gelu_grad(b, r[1], r[2])),
    "power": _power,
    "floor": _one(_floor),
    "ceil": lambda b, r: b.neg(_floor(b, b.neg(r[0]))),
    "trunc": _one(_trunc),
    "round": _op(Op.F32_RINT),
    "sign": _sign,
    "eq": _equal,
    "ne": lambda b, r: b.logical_not(_equal(b, r)),
    "lt": _two(ScalarBuilder.lt),
    "le": _two(ScalarBuilder.le),
    "gt": lambda b, r: b.lt(r[1], r[0]),
    "ge": lambda b, r: b.le(r[1], r[0]),
    "select": lambda b, r: b.select(r[0], r[1], r[2]),
    "logical_and": _op(Op.BOOL_AND),
    "logical_or": _op(Op.BOOL_OR),
    "logical_not": _op(Op.BOOL_NOT),
    "bit_and": _op(Op.I32_AND),
    "bit_or": _op(Op.I32_OR),
    "bit_xor": _op(Op.I32_XOR),
    "bit_not": _op(Op.I32_NOT),
    "shift_left": _op(Op.I32_SHL),
    "shift_right": _op(Op.I32_SHR_ARITH),
    "widen_bfloat16": sixteen.widen_bfloat16,
    "narrow_bfloat16": sixteen.narrow_bfloat16,
    "widen_float16": sixteen.widen_float16,
    "narrow_float16": sixteen.narrow_float16,
    "mulhi_u32": _op(Op.I32_MULHI_U32),
    "log2": _one(elementary.log2),
    "exp2": _one(elementary.exp2),
    "power_of": lambda b, r: elementary.power_of(b, *r),
    "copysign": _two(elementary.copysign),
    "atan2": _two(elementary.atan2),
    "erfinv_near": _one(elementary.erfinv_near),
    "erfinv_far": _one(elementary.erfinv_far),
    "fmod": _two(elementary.fmod),
    "remainder_of": _two(elementary.remainder_of),
    "integer_truncated_divide": _two(elementary.integer_truncated_divide),
    "integer_floor_divide": _two(elementary.integer_floor_divide),
    "fold_exponent": _fold_exponent,
    "remove_exponent": _remove_exponent,
    "exponent_power": _exponent_power,
    "exponent_of_powers": _exponent_of_powers,
}
