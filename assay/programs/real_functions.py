"""Functions that a scalar program writes out, found again: over real numbers they are what they stand for.

A program's exp is a polynomial of 24 bits. Computed in float64 it is that polynomial, not exp, and a model that
amplifies rounding amplifies the difference too. Where the instructions are exactly those of a function of
`protocol.arithmetic.functions`, applied to any value, the function itself is computed. Whatever else stands there is
computed as it stands.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn.functional import gelu

from assay.engine.compiler.ir import elementary
from assay.engine.compiler.ir.pointwise import EMIT
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import CONSTANTS, Op, ScalarProgram, arity_of
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.types import DType

_EITHER_WAY = frozenset({Op.F32_ADD, Op.F32_MUL, Op.F32_MIN, Op.F32_MAX, Op.F32_EQ, Op.I32_ADD, Op.I32_AND})
"""Of what functions are made of: where the builder puts arguments in the order in which they came to be."""

TrueFunction = Callable[..., Tensor]
"""Of f64 tensors, the function's operands."""


@dataclass(frozen=True, slots=True)
class Found:
    """In which registers of a scalar program the operands of a function are."""

    function: TrueFunction
    operands: tuple[int, ...]

    def value(self, registers: Sequence[Tensor]) -> Tensor:
        """The function of these registers, f64."""
        return self.function(*(registers[k] for k in self.operands))


@dataclass(frozen=True, slots=True)
class _Form:
    """A function as the scalar machine has it: its instructions, the last of which is its value."""

    program: ScalarProgram
    function: TrueFunction


def _tail(t: Tensor) -> Tensor:
    """P(N > t) e^(t^2 / 2) of a standard normal N."""
    ratio: Tensor = torch.special.erfcx(t / math.sqrt(2.0)) / 2.0
    return ratio


def _gelu(x: Tensor, gauss_x: Tensor) -> Tensor:
    """gelu from a map of its own that holds e^(-x^2 / 2), wherever the program reads that."""
    t = x.abs()
    return torch.where(t < 0.7, gelu(x), x.clamp_min(0.0) - t * _tail(t) * gauss_x)


def _gelu_grad(x: Tensor, gauss_x: Tensor) -> Tensor:
    t = x.abs()
    tail = gauss_x * (_tail(t) - t / math.sqrt(2.0 * math.pi))
    return torch.where(x < 0.0, tail, 1.0 - tail)


def _gelu_tanh_gradient(gradient: Tensor, x: Tensor) -> Tensor:
    wide = torch.zeros_like(x + gradient)
    found: Tensor = torch.ops.aten.gelu_backward.default(gradient + wide, x + wide, approximate="tanh")
    return found


_FUNCTIONS: Mapping[str, tuple[Callable[..., Reg], int, TrueFunction]] = {
    "exp": (functions.exp, 1, torch.exp),
    "log": (functions.log, 1, torch.log),
    "log2": (elementary.log2, 1, torch.log2),
    "exp2": (elementary.exp2, 1, torch.exp2),
    "sigmoid": (functions.sigmoid, 1, torch.sigmoid),
    "tanh": (functions.tanh, 1, torch.tanh),
    "erf": (functions.erf, 1, torch.erf),
    "sin": (functions.sin, 1, torch.sin),
    "cos": (functions.cos, 1, torch.cos),
    "atan2": (elementary.atan2, 2, torch.atan2),
    "gauss": (functions.gauss, 1, lambda x: torch.exp(x * x / -2.0)),
    "gelu": (functions.gelu, 2, _gelu),
    "gelu_grad": (functions.gelu_grad, 2, _gelu_grad),
    "gelu_tanh": (functions.gelu_tanh, 1, lambda x: gelu(x, approximate="tanh")),
    "gelu_tanh_gradient": (lambda b, *r: EMIT["gelu_tanh_gradient"](b, list(r)), 2, _gelu_tanh_gradient),
}


@cache
def _forms() -> dict[Op, list[_Form]]:
    """The functions by the operation that they end with, the longest first: gelu holds a sigmoid."""
    forms: dict[Op, list[_Form]] = {}
    for write, count, function in _FUNCTIONS.values():
        b = ScalarBuilder([DType.F32] * count)
        program = b.build(write(b, *(b.operand(k) for k in range(count))))
        forms.setdefault(Op(program.instructions[-1].op), []).append(_Form(program, function))
    for same in forms.values():
        same.sort(key=lambda form: -len(form.program.instructions))
    return forms


def functions_in(code: ScalarProgram) -> dict[int, Found]:
    """The functions that a scalar program holds, by the register of their value."""
    found: dict[int, Found] = {}
    first = len(code.operands)
    for k, i in enumerate(code.instructions):
        for form in _forms().get(Op(i.op), ()):
            places = _places(form.program, code, first + k)
            if places is not None:
                found[first + k] = Found(form.function, places)
                break
    return found


def _places(form: ScalarProgram, code: ScalarProgram, register: int) -> tuple[int, ...] | None:
    """The registers of a form's operands where `register` holds its value; None where it holds something else."""
    if register - len(code.operands) + 1 < len(form.instructions):
        return None
    known = _matched(form, code, len(form.operands) + len(form.instructions) - 1, register, {})
    return None if known is None else tuple(known[k] for k in range(len(form.operands)))


def _matched(
    form: ScalarProgram, code: ScalarProgram, wanted: int, register: int, known: dict[int, int]
) -> dict[int, int] | None:
    """What else is known of a form's registers if its register `wanted` is the code's `register`; None if it is not."""
    if wanted in known:
        return known if known[wanted] == register else None
    if wanted < len(form.operands):
        return {**known, wanted: register}
    if register < len(code.operands):
        return None
    i, j = form.instructions[wanted - len(form.operands)], code.instructions[register - len(code.operands)]
    op = Op(i.op)
    if i.op != j.op or (op in CONSTANTS and i.imm != j.imm):
        return None
    count = 0 if op in CONSTANTS else arity_of(op)
    ours, theirs = (i.a, i.b, i.c)[:count], (j.a, j.b, j.c)[:count]
    for order in (theirs, theirs[::-1]) if op in _EITHER_WAY else (theirs,):
        now: dict[int, int] | None = known
        for a, b in zip(ours, order, strict=True):
            now = None if now is None else _matched(form, code, a, b, now)
        if now is not None:
            return {**now, wanted: register}
    return None
