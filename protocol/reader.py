"""A cursor over hostile bytes: bounds are checked before anything is taken, and one named error is raised."""

from __future__ import annotations

from math import prod

from .errors import FraudError
from .nodes import Operand
from .tensors import MAX_NUMEL, MAX_RANK
from .views import View


class MalformedError(FraudError):
    """Bytes are not the encoding of anything."""

    remedy = "Refuse the object: its sender does not follow the protocol."


class Reader:
    """A cursor over hostile bytes; every method raises MalformedError at the end of the data."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count > len(self.data) - self.at:
            raise MalformedError(f"{count} bytes are missing at offset {self.at}.")
        self.at += count
        return self.data[self.at - count : self.at]

    def uint(self, size: int) -> int:
        """The next big-endian unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "big")

    def int64(self) -> int:
        """The next big-endian i64."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def dims(self) -> tuple[int, ...]:
        """rank u8 and dims u64[rank], at most 8 of a product up to 2^40."""
        rank = self.uint(1)
        if rank > MAX_RANK:
            raise MalformedError(f"Rank {rank} is above {MAX_RANK}.")
        dims = tuple(self.uint(8) for _ in range(rank))
        if max(dims, default=0) > MAX_NUMEL or prod(dims) > MAX_NUMEL:
            raise MalformedError(f"Dims {list(dims)} hold more than 2^40 elements.")
        return dims

    def operand(self, rank: int) -> Operand:
        """An operand whose view has this rank."""
        node, found = self.uint(4), self.uint(1)
        if found != rank:
            raise MalformedError(f"A view of rank {found} is read over {rank} dimensions.")
        offset = self.int64()
        triples = [(self.int64(), self.int64(), self.int64()) for _ in range(rank)]
        strides, lo, hi = (tuple(t[f] for t in triples) for f in range(3))
        return Operand(node, View(offset, strides, lo, hi, self.uint(8)))

    def end(self) -> None:
        """Nothing may follow."""
        if self.at != len(self.data):
            raise MalformedError(f"{len(self.data) - self.at} bytes are left over.")
