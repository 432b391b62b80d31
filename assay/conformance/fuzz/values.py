"""Hostile elements: what a stranger may write into a slot, whether or not a store would.

Patterns and words lie where arithmetic is delicate; slots are drawn in moods, since a tensor of nothing but odd values
is NaN after one operation.
"""

from __future__ import annotations

from random import Random
from typing import Final

from assay.protocol.arithmetic.words import canonical, to_bytes
from assay.protocol.program.program import Program
from assay.protocol.trees.state import ListBytes
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

FLOATS: Final = (
    *(0x00000000, 0x80000000),  # zeros
    *(0x00000001, 0x80000001, 0x007FFFFF, 0x807FFFFF, 0x00800000, 0x80800000),  # subnormals and the least normals
    *(0x3F800000, 0xBF800000, 0x3F7FFFFF, 0x3F800001, 0x3F000000, 0xBF000000),  # one and its neighbours
    *(0x4B000000, 0x4AFFFFFF, 0x4B7FFFFF, 0x4F000000, 0xCF000000, 0x4EFFFFFF),  # halves vanish; the ends of i32
    *(0x5F000000, 0xDF000000, 0x7F7FFFFF, 0xFF7FFFFF),  # the ends of i64 and of f32
    *(0x7F800000, 0xFF800000),  # infinities
    *(0x7FC00000, 0x7FC00001, 0xFFC00000, 0x7F800001, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF, 0x7FA00000),  # NaNs
)
"""Delicate binary32 patterns, quiet and signalling NaNs with payloads among them."""

INTEGERS: Final = (
    *(0, 1, -1, 2, -2, 3, 5, 7, 8, 31, 32, 33, 63, 64),
    *(-148, -149, -150, -126, 127, 128, 129, 130),  # exponents about their ends
    *(1 << 15, -(1 << 15), (1 << 16) - 1, 1 << 24, (1 << 24) + 1),
    *((1 << 31) - 1, -(1 << 31), (1 << 31) - 2, 1 - (1 << 31)),
)
"""Delicate i32 numbers."""

LONGS: Final = (*INTEGERS, 1 << 31, 1 << 32, -(1 << 32), (1 << 53) + 1, (1 << 63) - 1, -(1 << 63), 1 - (1 << 63))
"""Delicate i64 numbers."""

BOOLS: Final = (0, 1, 2, 3, 127, 128, 254, 255)
"""Bytes of a bool; all but 0 mean true."""


def word(rng: Random, dtype: DType) -> int:
    """A delicate element of a type, raw: not always one that a store writes."""
    match dtype:
        case DType.F32:
            chance = rng.random()
            if chance < 0.4:
                return rng.choice(FLOATS)
            return rng.getrandbits(32) if chance < 0.6 else moderate(rng)
        case DType.I32:
            return rng.choice(INTEGERS) if rng.random() < 0.7 else rng.getrandbits(32)
        case DType.I64:
            return rng.choice(LONGS) if rng.random() < 0.7 else rng.getrandbits(64)
        case DType.BOOL:
            return rng.choice(BOOLS)
        case _:
            size = 8 * dtype.size
            return rng.choice((0, 1, (1 << size) - 1, 1 << (size - 1), rng.getrandbits(size), rng.getrandbits(3)))


def moderate(rng: Random) -> int:
    """The pattern of an ordinary number, between 2^-8 and 2^8 or so."""
    return rng.getrandbits(1) << 31 | rng.randint(119, 134) << 23 | rng.getrandbits(23)


def elements(rng: Random, spec: TensorSpec) -> bytes:
    """The bytes of a tensor in one of several moods: delicate, ordinary with few odd ones, small, or all the same."""
    count, dtype = spec.numel, spec.dtype
    mood = rng.random()
    if mood < 0.3:
        words = [word(rng, dtype) for _ in range(count)]
    elif mood < 0.6:
        words = [_ordinary(rng, dtype) for _ in range(count)]
        for _ in range(rng.choice((0, 1, 1, 3)) if count else 0):
            words[rng.randrange(count)] = word(rng, dtype)
    elif mood < 0.85:
        scale = rng.randint(1, 254)
        words = [_scaled(rng, dtype, scale) for _ in range(count)]
    else:
        words = [word(rng, dtype)] * count
    return to_bytes(dtype, words)


def canonical_elements(rng: Random, spec: TensorSpec) -> bytes:
    """The same for a constant of a well-formed program: one NaN, bools of 0 and 1."""
    return to_bytes(spec.dtype, [canonical(spec.dtype, word(rng, spec.dtype)) for _ in range(spec.numel)])


def hostile_state(rng: Random, program: Program) -> ListBytes:
    """Bytes for every slot of X."""
    return tuple(tuple(elements(rng, program.specs[k]) for k in nodes) for nodes in program.input_nodes)


def _ordinary(rng: Random, dtype: DType) -> int:
    match dtype:
        case DType.F32:
            return moderate(rng)
        case DType.BOOL:
            return rng.getrandbits(1)
        case _:
            return rng.randint(-2, 12)


def _scaled(rng: Random, dtype: DType, scale: int) -> int:
    """Numbers of one magnitude: exponents around one, however huge or small; small indices."""
    if dtype is DType.F32:
        return rng.getrandbits(1) << 31 | max(scale - rng.randint(0, 3), 0) << 23 | rng.getrandbits(23)
    return rng.randint(0, 5) if dtype is not DType.BOOL else rng.choice(BOOLS)
