"""Elementwise operations: arithmetic, comparisons, selection, casts and constants."""

from __future__ import annotations

import math
from typing import Any

import torch

from assay.engine import ops
from assay.engine.compiler.ir.strided import Strided
from assay.engine.compiler.ir.value import Literal
from assay.engine.compiler.ir.values import Fill, Tensorlike, number
from assay.engine.compiler.lowering.registry import RULES, Context, Unsupported, lowers
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.types import DType

aten = torch.ops.aten


def _operands(ctx: Context, *args: Any) -> list[Any]:
    """Arguments in the type that PyTorch computes in."""
    computed = _computed(*args)
    return [ctx.cast(a, computed) for a in args]


_RANGES = {DType.U8: (0, 1 << 8), DType.I8: (-(1 << 7), 1 << 7), DType.U16: (0, 1 << 16)}


def check_held(*args: Any) -> None:
    """Raises Unsupported of a number that narrow integers beside it do not hold: PyTorch would wrap it as well."""
    kinds = {a.dtype for a in args if isinstance(a, Strided | Fill)}
    low, high = _RANGES.get(next(iter(kinds)), (0, 0)) if len(kinds) == 1 else (0, 0)
    for a in args:
        if high and isinstance(a, int) and not low <= a < high:
            raise Unsupported(f"the number {a}, which {next(iter(kinds)).name} does not hold (convert to int32 first)")


def _computed(*args: Any) -> DType:
    """The type that arguments are promoted to: f32 over i32 over bool, a tensor of a kind over numbers of it."""
    kinds = []
    for a in args:
        if isinstance(a, Strided | Fill | Literal):
            kinds.append(a.dtype.value_type)
        elif isinstance(a, bool):
            kinds.append(DType.BOOL)
        else:
            kinds.append(DType.F32 if isinstance(a, float) else DType.I32)
    for wanted in (DType.F32, DType.I32):
        if wanted in kinds:
            return wanted
    return DType.BOOL


def _binary(op: str, *, floating: bool = False) -> Any:
    def rule(ctx: Context, x: Any, y: Any, *, alpha: Any = 1) -> Tensorlike:
        x, y = _operands(ctx, x, y)
        computed = _computed(x, y)
        if computed is DType.BOOL or (floating and computed is not DType.F32):
            computed = DType.F32 if floating else DType.I32
            x, y = ctx.cast(x, computed), ctx.cast(y, computed)
        if alpha != 1:
            y = ctx.apply("mul", y, number(computed, alpha))
        return ctx.cast(ctx.values.pointwise(op, [x, y], computed), ctx.dtype)

    return rule


for _targets, _name in (
    ((aten.add.Tensor, aten.add.Scalar), "add"),
    ((aten.sub.Tensor, aten.sub.Scalar), "sub"),
    ((aten.mul.Tensor, aten.mul.Scalar), "mul"),
    ((aten.maximum.default,), "maximum"),
    ((aten.minimum.default,), "minimum"),
):
    lowers(*_targets)(_binary(_name))
lowers(aten.div.Tensor, aten.div.Scalar)(_binary("div", floating=True))


@lowers(aten.rsub.Tensor, aten.rsub.Scalar)
def _reversed_sub(ctx: Context, x: Any, y: Any, alpha: Any = 1) -> Tensorlike:
    return RULES[aten.sub.Tensor](ctx, y, x, alpha=alpha)


def _unary(op: str, *, floating: bool = True) -> Any:
    def rule(ctx: Context, x: Tensorlike) -> Tensorlike:
        return ctx.apply(op, ctx.cast(x, DType.F32 if floating else x.dtype.value_type))

    return rule


for _target, _name in (
    (aten.sqrt.default, "sqrt"),
    (aten.rsqrt.default, "rsqrt"),
    (aten.exp.default, "exp"),
    (aten.log.default, "log"),
    (aten.log1p.default, "log1p"),
    (aten.tanh.default, "tanh"),
    (aten.sigmoid.default, "sigmoid"),
    (aten.erf.default, "erf"),
    (aten.sin.default, "sin"),
    (aten.cos.default, "cos"),
    (aten.reciprocal.default, "reciprocal"),
    (aten.silu.default, "silu"),
    (aten.sign.default, "sign"),
):
    lowers(_target)(_unary(_name))
lowers(aten.neg.default)(_unary("neg", floating=False))
lowers(aten.abs.default)(_unary("abs", floating=False))


def _whole(op: str) -> Any:
    def rule(ctx: Context, x: Tensorlike) -> Tensorlike:
        return ctx.apply(op, x) if x.dtype is DType.F32 else x  # f32 would hold 24 bits of an integer

    return rule


lowers(aten.floor.default)(_whole("floor"))
lowers(aten.ceil.default)(_whole("ceil"))
lowers(aten.trunc.default)(_whole("trunc"))
lowers(aten.round.default)(_whole("round"))


@lowers(aten.relu.default)
def _relu(ctx: Context, x: Tensorlike) -> Tensorlike:
    return ctx.apply("relu", x) if x.dtype is DType.F32 else ctx.apply("maximum", ctx.cast(x, DType.I32), 0)


@lowers(aten.gelu.default)
def _gelu(ctx: Context, x: Tensorlike, *, approximate: str = "none") -> Tensorlike:
    if approximate == "tanh":
        return ctx.apply("gelu_tanh", x)
    return ctx.apply("gelu", x, ctx.apply("gauss", x))


@lowers(aten.gelu_backward.default)
def _gelu_backward(ctx: Context, gradient: Tensorlike, x: Tensorlike, *, approximate: str = "none") -> Tensorlike:
    if approximate == "tanh":
        return ctx.apply("gelu_tanh_gradient", gradient, x)
    return ctx.apply("gelu_gradient", gradient, x, ctx.apply("gauss", x))


@lowers(aten.pow.Tensor_Scalar)
def _pow(ctx: Context, x: Tensorlike, exponent: float) -> Tensorlike:
    if ctx.dtype is not DType.F32:
        return ctx.apply("power", ctx.cast(x, DType.I32), parameters=(int(exponent),))
    x = ctx.cast(x, DType.F32)
    if exponent == -0.5:
        return ctx.apply("rsqrt", x)
    quarters = abs(exponent) * 4
    if quarters != int(quarters) or abs(exponent) > 64:
        return RULES[aten.pow.Tensor_Tensor](ctx, x, float(exponent))
    whole, rest = divmod(int(quarters), 4)
    factors = [ctx.apply("power", x, parameters=(whole,))] if whole or not rest else []
    root = ctx.apply("sqrt", x) if rest else x
    factors += [root] * (rest >= 2) + ([ctx.apply("sqrt", root)] if rest % 2 else [])
    power = factors[0]
    for factor in factors[1:]:
        power = ctx.apply("mul", power, factor)
    return ctx.apply("reciprocal", power) if exponent < 0 else power


@lowers(aten.pow.Scalar)
def _power_of(ctx: Context, base: float, x: Tensorlike) -> Tensorlike:
    """exp(x log base), whose relative error is about |x log base| roundings."""
    if base <= 0 or ctx.dtype is not DType.F32:
        return RULES[aten.pow.Tensor_Tensor](ctx, float(base), x)
    return ctx.apply("exp", ctx.apply("mul", ctx.cast(x, DType.F32), math.log(base)))


@lowers(aten.expm1.default)
def _expm1(ctx: Context, x: Tensorlike) -> Tensorlike:
    """tanh(x / 2) (exp(x) + 1), which keeps small results."""
    x = ctx.cast(x, DType.F32)
    half = ctx.apply("tanh", ctx.apply("mul", x, 0.5))
    return ctx.apply("mul", half, ctx.apply("add", ctx.apply("exp", x), 1.0))


@lowers(aten.isnan.default)
def _isnan(ctx: Context, x: Tensorlike) -> Tensorlike:
    return ctx.apply("ne", x, x, dtype=DType.BOOL)


def _comparison(op: str) -> Any:
    def rule(ctx: Context, x: Any, y: Any) -> Tensorlike:
        check_held(x, y)
        x, y = _operands(ctx, x, y)
        if _computed(x, y) is DType.BOOL and op not in ("eq", "ne"):
            x, y = ctx.cast(x, DType.I32), ctx.cast(y, DType.I32)
        return ctx.values.pointwise(op, [x, y], DType.BOOL)

    return rule


for _targets, _name in (
    ((aten.eq.Tensor, aten.eq.Scalar), "eq"),
    ((aten.ne.Tensor, aten.ne.Scalar), "ne"),
    ((aten.lt.Tensor, aten.lt.Scalar), "lt"),
    ((aten.le.Tensor, aten.le.Scalar), "le"),
    ((aten.gt.Tensor, aten.gt.Scalar), "gt"),
    ((aten.ge.Tensor, aten.ge.Scalar), "ge"),
):
    lowers(*_targets)(_comparison(_name))


def _word(ctx: Context, a: Any) -> Any:
    """An operand as 32 bits, which a number may also say without a sign."""
    is_unsigned = isinstance(a, int) and 1 << 31 <= a < 1 << 32
    return ctx.cast(a - (1 << 32) if is_unsigned else a, DType.I32)


def _logical(op: str, bitwise: str) -> Any:
    def rule(ctx: Context, *args: Any) -> Tensorlike:
        computed = _computed(*args)
        if computed is DType.BOOL:
            return ctx.values.pointwise(op, [ctx.cast(a, DType.BOOL) for a in args], DType.BOOL)
        return ctx.cast(ctx.values.pointwise(bitwise, [_word(ctx, a) for a in args], DType.I32), ctx.dtype)

    return rule


lowers(aten.bitwise_and.Tensor, aten.bitwise_and.Scalar)(_logical("logical_and", "bit_and"))
lowers(aten.bitwise_or.Tensor, aten.bitwise_or.Scalar)(_logical("logical_or", "bit_or"))
lowers(aten.bitwise_not.default)(_logical("logical_not", "bit_not"))


def _shift(op: str) -> Any:
    def rule(ctx: Context, x: Any, count: Any) -> Tensorlike:
        if not isinstance(x, Strided | Fill) or x.dtype.value_type is not DType.I32:
            raise Unsupported("a shift of anything but i32")
        if not isinstance(count, int) or not 0 <= count < 32:
            raise Unsupported("a shift by anything but a number from 0 to 31")
        return ctx.apply(op, ctx.cast(x, DType.I32), count)

    return rule


lowers(aten.bitwise_left_shift.Tensor_Scalar, aten.__lshift__.Scalar)(_shift("shift_left"))
lowers(aten.bitwise_right_shift.Tensor_Scalar, aten.__rshift__.Scalar)(_shift("shift_right"))


@lowers(aten.bitwise_xor.Tensor, aten.bitwise_xor.Scalar)
def _xor(ctx: Context, x: Any, y: Any) -> Tensorlike:
    if _computed(x, y) is DType.BOOL:
        return ctx.values.pointwise("ne", [ctx.cast(x, DType.BOOL), ctx.cast(y, DType.BOOL)], DType.BOOL)
    return ctx.values.pointwise("bit_xor", [_word(ctx, x), _word(ctx, y)], DType.I32)


@lowers(aten.logical_and.default, aten.logical_or.default, aten.logical_not.default)
def _logical_any(ctx: Context, *args: Any) -> Tensorlike:
    name = {1: "logical_not"}.get(len(args), "logical_and")
    return ctx.values.pointwise(name, [ctx.cast(a, DType.BOOL) for a in args], DType.BOOL)


lowers(aten.logical_or.default)(
    lambda ctx, x, y: ctx.values.pointwise("logical_or", [ctx.cast(a, DType.BOOL) for a in (x, y)], DType.BOOL)
)


@lowers(aten.where.self)
def _where(ctx: Context, condition: Tensorlike, x: Any, y: Any) -> Tensorlike:
    x, y = _operands(ctx, x, y)
    return ctx.values.pointwise("select", [ctx.cast(condition, DType.BOOL), x, y], _computed(x, y))


@lowers(aten.clamp.default)
def _clamp(ctx: Context, x: Tensorlike, low: Any = None, high: Any = None) -> Tensorlike:
    for op, bound in (("maximum", low), ("minimum", high)):
        if bound is not None:
            check_held(x, bound)
            x = ctx.apply(op, *_operands(ctx, x, bound))
    return x


@lowers(aten.leaky_relu.default)
def _leaky_relu(ctx: Context, x: Tensorlike, slope: float = 0.01) -> Tensorlike:
    above = ctx.apply("lt", Literal(DType.F32, 0), x, dtype=DType.BOOL)
    return ctx.apply("select", above, x, ctx.apply("mul", x, slope), dtype=DType.F32)


@lowers(aten.hardtanh.default)
def _hardtanh(ctx: Context, x: Tensorlike, low: float = -1.0, high: float = 1.0) -> Tensorlike:
    return _clamp(ctx, x, low, high)


@lowers(aten.copy.default)
def _copy(ctx: Context, _: Tensorlike, source: Tensorlike, *__: Any) -> Tensorlike:
    return ctx.values.expand(ctx.cast(source, ctx.dtype), ctx.shape)


@lowers(aten.full.default, aten.full_like.default, aten.scalar_tensor.default, aten.new_full.default)
def _full(ctx: Context, *args: Any, **_: Any) -> Tensorlike:
    return Fill(ctx.dtype, ctx.shape, number(ctx.dtype.value_type, args[-1]).word)


@lowers(
    aten.zeros.default,
    aten.zeros_like.default,
    aten.new_zeros.default,
    aten.empty.memory_format,
    aten.empty_like.default,
    aten.empty_permuted.default,
    aten.empty_strided.default,
    aten.new_empty.default,
    aten.new_empty_strided.default,
)
def _zeros(ctx: Context, *_args: Any, **_: Any) -> Tensorlike:
    return Fill(ctx.dtype, ctx.shape, 0)


@lowers(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def _ones(ctx: Context, *_args: Any, **_: Any) -> Tensorlike:
    return Fill(ctx.dtype, ctx.shape, number(ctx.dtype.value_type, 1).word)


@lowers(aten.arange.start_step, aten.arange.default, aten.arange.start)
def _arange(ctx: Context, *args: Any, **_: Any) -> Tensorlike:
    start, stop, step = {1: (0, args[0], 1), 2: (*args[:2], 1), 3: args}[len(args)]
    dtype = {DType.F32: torch.float32, DType.I32: torch.int32}.get(ctx.dtype)
    if dtype is None:
        raise Unsupported(f"a range of {ctx.dtype.name}")
    return ctx.values.const(ctx.dtype, ctx.shape, to_bytes(torch.arange(start, stop, step, dtype=dtype)))


lowers(ops.MULHI_U32)(lambda ctx, a, b: ctx.values.pointwise("mulhi_u32", [a, b], DType.I32))
