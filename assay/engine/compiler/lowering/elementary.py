"""Further elementary functions: logarithms and powers of other bases, angles, hyperbolic functions, remainders."""

from __future__ import annotations

import math
from typing import Any

import torch

from assay.engine.compiler.ir.value import Literal
from assay.engine.compiler.ir.values import Fill, Tensorlike, number
from assay.engine.compiler.lowering.pointwise import check_held
from assay.engine.compiler.lowering.registry import RULES, Context, Unsupported, lowers
from assay.protocol.types import DType

aten = torch.ops.aten
F32, I32, BOOL = DType.F32, DType.I32, DType.BOOL


def _f32(ctx: Context, x: Any) -> Any:
    return x if isinstance(x, Literal) else ctx.cast(x, F32)


def _apply(ctx: Context, op: str, *args: Any) -> Tensorlike:
    """An operation of f32 on tensors and numbers, all converted."""
    return ctx.values.pointwise(op, [_f32(ctx, a) for a in args], F32)


lowers(aten.log2.default)(lambda ctx, x: _apply(ctx, "log2", x))
lowers(aten.exp2.default)(lambda ctx, x: _apply(ctx, "exp2", x))
lowers(aten.atan2.default)(lambda ctx, y, x: _apply(ctx, "atan2", y, x))
lowers(aten.atan.default)(lambda ctx, x: _apply(ctx, "atan2", x, 1.0))
lowers(aten.log10.default)(lambda ctx, x: _apply(ctx, "mul", _apply(ctx, "log", x), 1.0 / math.log(10.0)))
lowers(aten.erfc.default)(lambda ctx, x: _apply(ctx, "sub", 1.0, _apply(ctx, "erf", x)))
lowers(aten.tan.default)(lambda ctx, x: _apply(ctx, "div", _apply(ctx, "sin", x), _apply(ctx, "cos", x)))


def _beside(ctx: Context, x: Tensorlike) -> Tensorlike:
    """sqrt(1 - x^2) as sqrt((1 - x) (1 + x)), which keeps its digits near 1."""
    return _apply(ctx, "sqrt", _apply(ctx, "mul", _apply(ctx, "sub", 1.0, x), _apply(ctx, "add", 1.0, x)))


lowers(aten.asin.default)(lambda ctx, x: _apply(ctx, "atan2", x, _beside(ctx, x)))
lowers(aten.acos.default)(lambda ctx, x: _apply(ctx, "atan2", _beside(ctx, x), x))


@lowers(aten.sinh.default)
def _sinh(ctx: Context, x: Tensorlike) -> Tensorlike:
    """(expm1(x) - expm1(-x)) / 2, which keeps small results."""
    up, down = (RULES[aten.expm1.default](ctx, v) for v in (x, _apply(ctx, "neg", x)))
    return _apply(ctx, "mul", _apply(ctx, "sub", up, down), 0.5)


@lowers(aten.cosh.default)
def _cosh(ctx: Context, x: Tensorlike) -> Tensorlike:
    up, down = _apply(ctx, "exp", x), _apply(ctx, "exp", _apply(ctx, "neg", x))
    return _apply(ctx, "mul", _apply(ctx, "add", up, down), 0.5)


def _with_sign(ctx: Context, size: Tensorlike, of: Tensorlike) -> Tensorlike:
    below = ctx.values.pointwise("lt", [_f32(ctx, of), number(F32, 0.0)], BOOL)
    return ctx.values.pointwise("select", [below, _apply(ctx, "neg", size), size], F32)


@lowers(aten.asinh.default)
def _asinh(ctx: Context, x: Tensorlike) -> Tensorlike:
    """log1p(|x| + x^2 / (1 + sqrt(x^2 + 1))) with the sign of x, for |x| up to 2^63."""
    square = _apply(ctx, "mul", x, x)
    root = _apply(ctx, "sqrt", _apply(ctx, "add", square, 1.0))
    more = _apply(ctx, "div", square, _apply(ctx, "add", root, 1.0))
    return _with_sign(ctx, _apply(ctx, "log1p", _apply(ctx, "add", _apply(ctx, "abs", x), more)), x)


@lowers(aten.acosh.default)
def _acosh(ctx: Context, x: Tensorlike) -> Tensorlike:
    """log1p(t + sqrt(t (t + 2))) for t = x - 1, for x up to 2^63."""
    t = _apply(ctx, "sub", x, 1.0)
    root = _apply(ctx, "sqrt", _apply(ctx, "mul", t, _apply(ctx, "add", t, 2.0)))
    return _apply(ctx, "log1p", _apply(ctx, "add", t, root))


@lowers(aten.atanh.default)
def _atanh(ctx: Context, x: Tensorlike) -> Tensorlike:
    """log1p(2 x / (1 - x)) / 2 of |x|, with the sign of x."""
    size = _apply(ctx, "abs", x)
    ratio = _apply(ctx, "div", _apply(ctx, "add", size, size), _apply(ctx, "sub", 1.0, size))
    return _with_sign(ctx, _apply(ctx, "mul", _apply(ctx, "log1p", ratio), 0.5), x)


@lowers(aten.erfinv.default)
def _erfinv(ctx: Context, y: Tensorlike) -> Tensorlike:
    """To 5 ulp, by w = -log((1 - y) (1 + y)); infinite at -1 and 1, NaN beyond."""
    inside = _apply(ctx, "mul", _apply(ctx, "sub", 1.0, y), _apply(ctx, "add", 1.0, y))
    w = _apply(ctx, "neg", _apply(ctx, "log", inside))
    near, far = _apply(ctx, "erfinv_near", w), _apply(ctx, "erfinv_far", w)
    is_near = ctx.values.pointwise("lt", [w, number(F32, 5.0)], BOOL)
    return _apply(ctx, "mul", y, ctx.values.pointwise("select", [is_near, near, far], F32))


@lowers(aten.pow.Tensor_Tensor)
def _pow(ctx: Context, x: Any, y: Any) -> Tensorlike:
    """x^y by logarithms to base 2; a number as exponent that `pow.Tensor_Scalar` has a closer form for takes that."""
    if ctx.dtype is not F32:
        raise Unsupported("powers of integers by tensors (convert to float32 first)")
    x, y = _f32(ctx, x), _f32(ctx, y)
    return _apply(ctx, "power_of", x, y, _apply(ctx, "log2", _apply(ctx, "abs", x)))


def fmod(ctx: Context, x: Any, y: Any) -> Tensorlike:
    """x - y trunc(x / y), exact for |x / y| < 2^20, ten bits of the quotient at a time; beyond, bits of no meaning."""
    return _apply(ctx, "fmod", _apply(ctx, "fmod", x, _apply(ctx, "mul", y, 1024.0)), y)


def remainder(ctx: Context, x: Any, y: Any) -> Tensorlike:
    """As `fmod`, with the sign of y."""
    return _apply(ctx, "remainder_of", fmod(ctx, x, y), y)


def _integers(ctx: Context, op: str, *args: Any) -> Tensorlike:
    check_held(*args)
    return ctx.values.pointwise(op, [a if isinstance(a, Literal) else ctx.cast(a, I32) for a in args], I32)


def _integer_rest(ctx: Context, x: Any, y: Any, quotient: Tensorlike) -> Tensorlike:
    return _integers(ctx, "sub", x, _integers(ctx, "mul", quotient, y))


@lowers(aten.fmod.Tensor, aten.fmod.Scalar)
def _fmod(ctx: Context, x: Any, y: Any) -> Tensorlike:
    if ctx.dtype is F32:
        return fmod(ctx, x, y)
    return ctx.cast(_integer_rest(ctx, x, y, _integers(ctx, "integer_truncated_divide", x, y)), ctx.dtype)


@lowers(aten.remainder.Tensor, aten.remainder.Scalar, aten.remainder.Scalar_Tensor)
def _remainder(ctx: Context, x: Any, y: Any) -> Tensorlike:
    if ctx.dtype is F32:
        return remainder(ctx, x, y)
    return ctx.cast(_integer_rest(ctx, x, y, _integers(ctx, "integer_floor_divide", x, y)), ctx.dtype)


@lowers(aten.div.Tensor_mode, aten.div.Scalar_mode)
def _divide(ctx: Context, x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensorlike:
    if rounding_mode is None:
        return RULES[aten.div.Tensor](ctx, x, y)
    if ctx.dtype is not F32:
        op = "integer_floor_divide" if rounding_mode == "floor" else "integer_truncated_divide"
        return ctx.cast(_integers(ctx, op, x, y), ctx.dtype)
    if rounding_mode == "trunc":
        return _apply(ctx, "trunc", _apply(ctx, "div", x, y))
    # As Python divides: without the remainder, the quotient is an integer but for its rounding.
    return _apply(ctx, "round", _apply(ctx, "div", _apply(ctx, "sub", x, remainder(ctx, x, y)), y))


@lowers(aten.isinf.default)
def _isinf(ctx: Context, x: Tensorlike) -> Tensorlike:
    if x.dtype is not F32:
        return Fill(BOOL, x.shape, 0)
    return ctx.values.pointwise("eq", [_apply(ctx, "abs", x), number(F32, math.inf)], BOOL)


@lowers(aten.logical_xor.default)
def _exclusive(ctx: Context, x: Tensorlike, y: Tensorlike) -> Tensorlike:
    return ctx.values.pointwise("ne", [ctx.cast(x, BOOL), ctx.cast(y, BOOL)], BOOL)


@lowers(aten.hypot.default)
def _hypot(ctx: Context, x: Tensorlike, y: Tensorlike) -> Tensorlike:
    """sqrt(x^2 + y^2), which is infinite from 2^64 on."""
    return _apply(ctx, "sqrt", _apply(ctx, "add", _apply(ctx, "mul", x, x), _apply(ctx, "mul", y, y)))


@lowers(aten.copysign.Tensor, aten.copysign.Scalar)
def _copysign(ctx: Context, x: Tensorlike, sign: Any) -> Tensorlike:
    return _apply(ctx, "copysign", x, sign)
