"""Element words: the one way in which values of every element type are written between the parts of the protocol.

A raw word is a uint256 as `ILeaf` passes it: f32 its 32 bits, i8, i32 and i64 sign-extended to 256 bits, u8 and u16
zero-extended, bool its byte. A word is *canonical* when it is what a store writes: the one NaN, a bool of 0 or 1.
The scalar machine's words are raw words mod 2^64. Parts of reductions are int256.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from assay.protocol.arithmetic import f32
from assay.protocol.digests import Buffer
from assay.protocol.types import DType

Word = int
"""A uint256."""

WORD_BITS = 256
MASK_32 = (1 << 32) - 1
MASK_64 = (1 << 64) - 1
MASK_256 = (1 << WORD_BITS) - 1

_FORMATS = {
    DType.F32: "I",
    DType.I32: "i",
    DType.I64: "q",
    DType.BOOL: "B",
    DType.U8: "B",
    DType.I8: "b",
    DType.U16: "H",
}


def sign_extend(word: int, bits: int) -> Word:
    """The uint256 whose low `bits` bits are the word's and whose others repeat the highest of them."""
    return (signed(word, bits)) & MASK_256


def signed(word: int, bits: int = WORD_BITS) -> int:
    """The two's complement integer in the low `bits` bits of a word."""
    word &= (1 << bits) - 1
    return word - (1 << bits) if word >> (bits - 1) else word


def as_i32(word: Word) -> int:
    """The i32 that a reader of i32 sees: the low 32 bits, signed. Storage types are read so as well."""
    return signed(word, 32)


def as_f32(word: Word) -> f32.Bits:
    """The canonical binary32 pattern that a reader of f32 sees: the low 32 bits."""
    return f32.canonical(word & MASK_32)


def canonical(dtype: DType, word: int) -> Word:
    """The raw word that an element of this type has after the word was stored in it and loaded again."""
    match dtype:
        case DType.F32:
            return f32.canonical(word & MASK_32)
        case DType.BOOL:
            return int(word != 0)
        case DType.U8 | DType.U16:
            return word & ((1 << 8 * dtype.size) - 1)
        case _:
            return sign_extend(word, 8 * dtype.size)


def from_bytes(dtype: DType, data: Buffer) -> list[Word]:
    """The raw words of little-endian elements as they stand there; length a multiple of the element size."""
    values = struct.unpack(f"<{len(data) // dtype.size}{_FORMATS[dtype]}", data)
    if dtype in (DType.I32, DType.I64, DType.I8):
        return [v & MASK_256 for v in values]
    return list(values)


def to_bytes(dtype: DType, words: Sequence[Word]) -> bytes:
    """The little-endian elements with these raw words; the bits above the element's size are dropped."""
    if dtype in (DType.I32, DType.I64, DType.I8):
        return struct.pack(f"<{len(words)}{_FORMATS[dtype]}", *(signed(w, 8 * dtype.size) for w in words))
    mask = (1 << 8 * dtype.size) - 1
    return struct.pack(f"<{len(words)}{_FORMATS[dtype]}", *(w & mask for w in words))


def from_ints(dtype: DType, values: Sequence[int]) -> list[Word]:
    """Canonical raw words of Python integers (f32: patterns)."""
    return [canonical(dtype, v) for v in values]
