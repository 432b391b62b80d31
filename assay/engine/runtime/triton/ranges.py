"""What values the registers of a scalar program can have: where they are small, a kernel needs fewer operations.

Pure Python. Of an f32 register the bounds are of its numbers: it may be NaN besides.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from fractions import Fraction

from assay.protocol.arithmetic.scalar import CONSTANTS, SIGNATURES, Instruction, Op
from assay.protocol.types import DType

Range = tuple[float, float]
"""The least and the greatest value, both of them values that an f32 or an i32 can have, or infinite."""

I32: Range = (-(1 << 31), (1 << 31) - 1)
EXPONENTS: Range = (-149, 129)
"""Of what RowExp and F32_EXPONENT give."""


def ranges(
    instructions: Sequence[Instruction], operands: Sequence[DType], given: Sequence[Range | None] | None = None
) -> list[Range | None]:
    """Per register, operands first: its range; None for what is neither f32 nor i32, or not looked at.

    given: the operands' ranges where something is known of them.
    """
    found: list[Range | None] = [_ANY.get(dtype) for dtype in operands]
    found = [known or some for known, some in zip(given or [None] * len(found), found, strict=True)]
    for i in instructions:
        given = [found[r] if r < len(found) else None for r in (i.a, i.b, i.c)]
        found.append(_result(Op(i.op), i.imm, given))
    return found


_ANY: dict[DType, Range] = {
    DType.F32: (-math.inf, math.inf),
    DType.I32: I32,
    DType.U8: (0, 255),
    DType.I8: (-128, 127),
    DType.U16: (0, 65535),
}


def _result(op: Op, imm: int, given: Sequence[Range | None]) -> Range | None:
    """What is known of a result: by its operation, else by its type."""
    found = _by_operation(op, imm, given)
    return _ANY.get(SIGNATURES[op][1]) if found is None and op is not Op.SELECT and op not in CONSTANTS else found


def _by_operation(op: Op, imm: int, given: Sequence[Range | None]) -> Range | None:
    a, b, c = given
    match op:
        case Op.CONST_F32:
            number: float = struct.unpack("<f", imm.to_bytes(4, "little"))[0]
            return None if math.isnan(number) else (number, number)
        case Op.CONST_I32:
            return imm - (imm >> 31 << 32), imm - (imm >> 31 << 32)
        case Op.BOOL_TO_I32:
            return 0, 1
        case Op.F32_EXPONENT:
            return EXPONENTS
        case Op.SELECT:
            return (min(b[0], c[0]), max(b[1], c[1])) if b and c else None
    if a is None:
        return None
    match op:
        case Op.F32_RINT | Op.F32_FLOOR:
            return (math.floor(a[0]), math.ceil(a[1])) if math.isfinite(a[0]) and math.isfinite(a[1]) else a
        case Op.I32_TO_F32:  # of more bits than an f32 has it may be rounded up
            return a if max(-a[0], a[1]) <= 1 << 24 else (I32[0], I32[1] + 1)
        case Op.F32_TO_I32:  # NaN gives 0
            least, most = (int(max(min(x, I32[1]), I32[0])) for x in a)
            return min(least, 0), max(most, 0)
    if b is None:
        return None
    match op:
        case Op.F32_MIN | Op.I32_MIN:
            return min(a[0], b[0]), min(a[1], b[1])
        case Op.F32_MAX | Op.I32_MAX:
            return max(a[0], b[0]), max(a[1], b[1])
        case Op.F32_MUL:
            return _product(a, b)
        case Op.I32_SUB:
            low, high = a[0] - b[1], a[1] - b[0]
            return (low, high) if I32[0] <= low and high <= I32[1] else I32
    return None


def _product(a: Range, b: Range) -> Range:
    """Of finite ranges: integers on either side of the exact products, which rounding keeps between f32 values."""
    if not all(map(math.isfinite, (*a, *b))):
        return -math.inf, math.inf
    products = [Fraction(x) * Fraction(y) for x in a for y in b]
    low, high = math.floor(min(products)), math.ceil(max(products))
    return (low, high) if max(-low, high) <= 1 << 24 else (-math.inf, math.inf)
