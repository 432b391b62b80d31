"""Words and programs for tests of the scalar machine: heavy in zeros, subnormals, ties, NaN payloads and extremes."""

from __future__ import annotations

import random

from assay.protocol.arithmetic.scalar import (
    CONSTANTS,
    SIGNATURES,
    Instruction,
    Op,
    ScalarProgram,
    arity_of,
    infer_types,
)
from assay.protocol.types import DType

F32, I32, I64, BOOL = DType.F32, DType.I32, DType.I64, DType.BOOL

FLOAT_EDGES = (
    *(0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000),
    *(0x33800000, 0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40200000),
    *(0x4AFFFFFF, 0x4B000000, 0x4B000001, 0x4B7FFFFF, 0x4B800000, 0x4EFFFFFF, 0x4F000000, 0x5EFFFFFF, 0x5F000000),
    *(0x7EFFFFFF, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF),
)
FIELDS = (0, 1, 2, 23, 24, 25, 100, 126, 127, 128, 149, 150, 151, 157, 158, 159, 189, 190, 191, 253, 254, 255)
I32_EDGES = (0, 1, -1, 2**31 - 1, -(2**31), -(2**31) + 1, 31, 32, 33, 255, 256)
I64_EDGES = (0, 1, -1, 2**63 - 1, -(2**63), 2**31, -(2**31) - 1, 2**53 + 1)


def float_pattern(source: random.Random) -> int:
    """A binary32 pattern; NaNs keep whatever payload comes out."""
    kind = source.random()
    if kind < 0.3:
        return source.getrandbits(32)
    if kind < 0.55:
        return source.choice(FLOAT_EDGES) | source.getrandbits(1) << 31
    mantissa = source.choice((0, 1, 0x3FFFFF, 0x400000, 0x7FFFFF, source.getrandbits(23)))
    return source.getrandbits(1) << 31 | source.choice(FIELDS) << 23 | mantissa


def i64_word(source: random.Random) -> int:
    """A signed 64-bit number: any height, edges, and midpoints of 24-bit numbers with their neighbours."""
    midpoint = ((1 << 25 | source.getrandbits(24) << 1 | 1) << source.randrange(38)) + source.choice((-1, 0, 1))
    number = source.choice((source.getrandbits(63) >> source.randrange(63), midpoint, source.choice(I64_EDGES)))
    return number if number < 0 else source.choice((number, -number))


def i32_word(source: random.Random) -> int:
    """A signed 32-bit number: any, edges, and the small ones that exponents are."""
    return source.choice((source.getrandbits(32) - 2**31, source.choice(I32_EDGES), source.randrange(-320, 320)))


def word(source: random.Random, dtype: DType) -> int:
    """An operand of a value type as raw bits say it: a NaN may have any payload."""
    match dtype:
        case DType.F32:
            return float_pattern(source)
        case DType.I32:
            return i32_word(source)
        case DType.I64:
            return i64_word(source)
        case _:
            return source.getrandbits(1)


def operation(op: Op, types: tuple[DType, ...] | None = None) -> ScalarProgram:
    """The program of one operation on its operands; SELECT chooses between the two types given."""
    if op in CONSTANTS:
        return ScalarProgram((), (Instruction(op, imm=1),))
    operands = types or ((BOOL, F32, F32) if op is Op.SELECT else SIGNATURES[op][0])
    a, b, c = (*range(arity_of(op)), 0, 0, 0)[:3]
    return ScalarProgram(operands, (Instruction(op, a, b, c),))


def random_program(source: random.Random, length: int) -> ScalarProgram:
    """A well-formed program of random operations on random earlier registers."""
    operands = tuple(source.choice((F32, F32, I32, I64, BOOL)) for _ in range(source.randrange(1, 6)))
    types = list(operands)
    code: list[Instruction] = []
    while len(code) < length:
        op = source.choice(list(Op))
        if op is Op.CONST_F32:
            instruction = Instruction(op, imm=source.choice([e for e in FLOAT_EDGES if e <= 0x7F800000]))
        elif op in CONSTANTS:
            instruction = Instruction(op, imm=source.getrandbits(1 if op is Op.CONST_BOOL else 32))
        else:
            wanted = SIGNATURES[op][0] if op is not Op.SELECT else (BOOL, *[source.choice(types)] * 2)
            choices = [[r for r, t in enumerate(types) if t is w] for w in wanted]
            if not all(choices):
                continue
            a, b, c = (*(source.choice(rs[-4:] + rs[:1]) for rs in choices), 0, 0, 0)[:3]
            instruction = Instruction(op, a, b, c)
        code.append(instruction)
        types = infer_types(operands, code)
    return ScalarProgram(operands, tuple(code))
