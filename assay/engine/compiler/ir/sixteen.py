"""bfloat16 and float16 as bits of a u16 slot: how the scalar machine widens them exactly and rounds to them once.

Ties go to even, subnormals are kept, a NaN becomes the one that PyTorch writes. Each is registers of i32 (the bits) to
f32, or back.
"""

from __future__ import annotations

from assay.protocol.arithmetic.scalar import Op
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.types import DType

_EXPONENTS_APART = 112
"""Between the exponent biases of f32 and float16."""


def _and(b: ScalarBuilder, x: Reg, mask: int) -> Reg:
    return b.apply(Op.I32_AND, x, b.i32(mask))


def _left(b: ScalarBuilder, x: Reg, count: int) -> Reg:
    return b.apply(Op.I32_SHL, x, b.i32(count))


def _right(b: ScalarBuilder, x: Reg, count: int) -> Reg:
    return b.apply(Op.I32_SHR_LOGICAL, x, b.i32(count))


def _or(b: ScalarBuilder, x: Reg, y: Reg) -> Reg:
    return b.apply(Op.I32_OR, x, y)


def _without_tail(b: ScalarBuilder, bits: Reg, tail: int) -> Reg:
    """The bits of an f32 without the last `tail` ones, rounded to nearest, ties to even; a carry moves the exponent."""
    odd = _and(b, _right(b, bits, tail), 1)
    return _right(b, b.add(b.add(bits, b.i32((1 << (tail - 1)) - 1)), odd), tail)


def widen_bfloat16(b: ScalarBuilder, r: list[Reg]) -> Reg:
    """A bfloat16 is the upper half of an f32."""
    return b.apply(Op.BITS_F32, _left(b, r[0], 16))


def narrow_bfloat16(b: ScalarBuilder, r: list[Reg]) -> Reg:
    """The nearest bfloat16; the one NaN stays one, since its rest is empty."""
    return _without_tail(b, b.apply(Op.F32_BITS, r[0]), 16)


def widen_float16(b: ScalarBuilder, r: list[Reg]) -> Reg:
    """Mantissa and exponent in their new places, and one exact product, which moves subnormals too."""
    size = _and(b, r[0], 0x7FFF)
    moved = _left(b, size, 13)
    finite = b.scale2(b.apply(Op.BITS_F32, moved), b.i32(_EXPONENTS_APART))
    other = b.apply(Op.BITS_F32, _or(b, moved, b.i32(0x7F800000)))
    wide = b.select(b.lt(size, b.i32(0x7C00)), finite, other)
    return b.apply(Op.BITS_F32, _or(b, b.apply(Op.F32_BITS, wide), _left(b, _and(b, r[0], 0x8000), 16)))


def narrow_float16(b: ScalarBuilder, r: list[Reg]) -> Reg:
    """The nearest float16: infinity from 65520 on, multiples of 2^-24 below 2^-14."""
    bits = b.apply(Op.F32_BITS, r[0])
    size = _and(b, bits, 0x7FFFFFFF)
    normal = b.sub(_without_tail(b, size, 13), b.i32(_EXPONENTS_APART << 10))
    small = b.cast(b.apply(Op.F32_RINT, b.scale2(b.abs(r[0]), b.i32(24))), DType.I32)
    finite = b.select(b.lt(size, b.i32(0x38800000)), small, b.minimum(normal, b.i32(0x7C00)))
    found = b.select(b.lt(b.i32(0x7F800000), size), b.i32(0x7E00), finite)
    return _or(b, found, _and(b, _right(b, bits, 16), 0x8000))
