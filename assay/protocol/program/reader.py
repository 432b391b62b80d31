"""A cursor over hostile bytes: bounds are checked before anything is taken, and one named error is raised."""

from __future__ import annotations

from math import prod

from assay.protocol.errors import FraudError
from assay.protocol.program.nodes import Operand
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import MAX_NUMEL, MAX_RANK


class MalformedError(FraudError):
    """Bytes are not the encoding of anything; `rule` is the number of the rule that they break."""

    remedy = "Refuse the object: its sender does not follow the protocol."

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{message} ({rule})", rule=rule)
        self.rule = rule


class Reader:
    """A cursor over hostile bytes; every method raises MalformedError at the end of the data."""

    __slots__ = ("_left_over", "_missing", "at", "data")

    def __init__(self, data: bytes, missing: str = "MAL-13", left_over: str = "MAL-14") -> None:
        """Bytes, and the rules that are broken where some are missing or left over."""
        self.data = data
        self.at = 0
        self._missing, self._left_over = missing, left_over

    def take(self, count: int) -> bytes:
        """The next `count` bytes."""
        if count > len(self.data) - self.at:
            raise MalformedError(self._missing, f"{count} bytes are missing at offset {self.at}.")
        self.at += count
        return self.data[self.at - count : self.at]

    def uint(self, size: int) -> int:
        """The next big-endian unsigned integer of `size` bytes."""
        return int.from_bytes(self.take(size), "big")

    def int64(self) -> int:
        """The next big-endian i64."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def dims(self) -> tuple[int, ...]:
        """rank u8 and dims u64[rank]: at most 8, each and their product at most 2^40 (MAL-4 to MAL-6)."""
        rank = self.uint(1)
        if rank > MAX_RANK:
            raise MalformedError("MAL-4", f"Rank {rank} is above {MAX_RANK}.")
        dims = tuple(self.uint(8) for _ in range(rank))
        if max(dims, default=0) > MAX_NUMEL:
            raise MalformedError("MAL-5", f"Of dims {list(dims)} one is above 2^40.")
        if prod(dims) > MAX_NUMEL:
            raise MalformedError("MAL-6", f"Dims {list(dims)} hold more than 2^40 elements.")
        return dims

    def operand(self, rank: int) -> Operand:
        """An operand whose view has this rank."""
        node, found = self.uint(4), self.uint(1)
        if found != rank:
            raise MalformedError("MAL-7", f"A view of rank {found} is read over {rank} dimensions.")
        offset = self.int64()
        triples = [(self.int64(), self.int64(), self.int64()) for _ in range(rank)]
        strides, lo, hi = (tuple(t[f] for t in triples) for f in range(3))
        return Operand(node, View(offset, strides, lo, hi, self.uint(8)))

    def end(self) -> None:
        """Nothing may follow."""
        if self.at != len(self.data):
            raise MalformedError(self._left_over, f"{len(self.data) - self.at} bytes are left over.")
