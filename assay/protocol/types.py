"""Units and element types that every part of the protocol shares."""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NewType

Digest = NewType("Digest", bytes)
"""A 32-byte SHA-256 or keccak-256 digest."""

Address = NewType("Address", bytes)
"""A 20-byte account or contract address."""

Wei = NewType("Wei", int)
"""An amount of a token in its smallest unit."""

Step = NewType("Step", int)
"""An inner optimizer step, counted from the genesis of the run."""

Round = NewType("Round", int)
"""A round of the run, counted from 0."""

BeaconRound = NewType("BeaconRound", int)
"""A round of a beacon, counted from 1; no round of training."""

Seat = NewType("Seat", int)
"""The index of a solver's seat in the roster of a round."""

SEATS: Final = 8
"""Seats of a run, and update slots of its outer program; equal to `SEAT_COUNT` in IRounds.sol."""


class Status(IntEnum):
    """How a commitment or an outer root ended; the integers equal `Status` in IRounds.sol."""

    OPEN = 0
    VOID = 1
    CONVICTED = 2
    FINAL = 3


class DType(IntEnum):
    """The element types of tensors; the integers are the codes on chain (docs/protocol/arithmetic.md).

    u8, i8 and u16 are storage types: they load exactly as i32 and are stored as the low bits of an i32.
    """

    F32 = 0
    I32 = 1
    I64 = 2
    BOOL = 3
    U8 = 4
    I8 = 5
    U16 = 6

    @property
    def size(self) -> int:
        """Bytes that one element occupies in a tensor leaf."""
        return _SIZES[self]

    @property
    def is_storage(self) -> bool:
        """Whether elements are computed as i32 and only stored in this type."""
        return self in (DType.U8, DType.I8, DType.U16)

    @property
    def value_type(self) -> DType:
        """The type of a scalar register that holds an element of this type."""
        return DType.I32 if self.is_storage else self

    @property
    def is_float(self) -> bool:
        """Whether elements are binary32 patterns."""
        return self is DType.F32


_SIZES: dict[DType, int] = {
    DType.F32: 4,
    DType.I32: 4,
    DType.I64: 8,
    DType.BOOL: 1,
    DType.U8: 1,
    DType.I8: 1,
    DType.U16: 2,
}
