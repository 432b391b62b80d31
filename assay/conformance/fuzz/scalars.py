"""Random well-typed scalar programs, every operation among them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Final

from assay.conformance.fuzz.values import word
from assay.protocol.arithmetic.scalar import CONSTANTS, MAX_INSTRUCTIONS, SIGNATURES, Instruction, Op, ScalarProgram
from assay.protocol.arithmetic.words import MASK_32, canonical
from assay.protocol.types import DType

_CONSTANT: Final = {
    DType.F32: Op.CONST_F32,
    DType.I32: Op.CONST_I32,
    DType.I64: Op.CONST_I64,
    DType.BOOL: Op.CONST_BOOL,
}
_FROM_I32: Final = {DType.F32: (Op.I32_TO_F32, Op.BITS_F32), DType.I64: (Op.I32_TO_I64,), DType.BOOL: (Op.I32_TO_BOOL,)}
_TO_I32: Final = {DType.F32: (Op.F32_TO_I32, Op.F32_BITS), DType.I64: (Op.I64_TO_I32,), DType.BOOL: (Op.BOOL_TO_I32,)}


def scalar_program(rng: Random, operands: Sequence[DType], result: DType) -> ScalarProgram:
    """A program on operands of these types (storage types allowed) whose last register has this value type."""
    types = [d.value_type for d in operands]
    code: list[Instruction] = []

    def emit(instruction: Instruction, dtype: DType) -> None:
        code.append(instruction)
        types.append(dtype)

    for _ in range(rng.choice((0, 1, 2, 3, 5, 8, 13, MAX_INSTRUCTIONS - 3))):
        op = rng.choice(list(Op))
        if op in CONSTANTS:
            emit(_constant(rng, op), SIGNATURES[op][1])
            continue
        wanted = _wanted(rng, op, types)
        held = [[r for r, d in enumerate(types) if d is w] for w in wanted]
        if all(held):
            emit(Instruction(op, *(rng.choice(r) for r in held)), wanted[1] if op is Op.SELECT else SIGNATURES[op][1])
    if not types:
        emit(_constant(rng, _CONSTANT[result]), result)
    if types[-1] is not result and types[-1] is not DType.I32:
        emit(Instruction(rng.choice(_TO_I32[types[-1]]), len(types) - 1), DType.I32)
    if types[-1] is not result:
        emit(Instruction(rng.choice(_FROM_I32[result]), len(types) - 1), result)
    return ScalarProgram(tuple(operands), tuple(code))


def _wanted(rng: Random, op: Op, types: Sequence[DType]) -> tuple[DType, ...]:
    if op is not Op.SELECT:
        return SIGNATURES[op][0]
    chosen = rng.choice(types) if types else DType.F32
    return DType.BOOL, chosen, chosen


def _constant(rng: Random, op: Op) -> Instruction:
    dtype = SIGNATURES[op][1]
    return Instruction(op, imm=canonical(dtype, word(rng, dtype)) & (1 if dtype is DType.BOOL else MASK_32))
