"""Searches of many blocks in as many queries as a node wants: each provider limits blocks, results or bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from assay.protocol.errors import UnavailableError

GROW_AFTER: Final = 8
"""Queries that were answered in a row, after which twice as many blocks are tried: a dense stretch ends."""

L = TypeVar("L")


class RangeRefused(UnavailableError):
    """The node gives no logs of so many blocks at once, or of one block with so many."""

    code = "RpcError"
    remedy = "Name another node: this one refuses to search even a single block."


class LogRanges:
    """How many blocks one query may name, as far as it is known of this node."""

    def __init__(self) -> None:
        self.blocks: int | None = None
        """None until something was refused."""
        self._answered = 0

    def read(self, ask: Callable[[int, int], list[L]], first: int, last: int) -> list[L]:
        """What `ask(low, high)` gives for all blocks from `first` to `last`, in their order.

        Raises RangeRefused for one block that is refused by itself, and what else `ask` raises.
        """
        found: list[L] = []
        while first <= last:
            high = last if self.blocks is None else min(last, first + self.blocks - 1)
            try:
                found += ask(first, high)
            except RangeRefused:
                if high == first:
                    raise
                self.blocks, self._answered = (high - first + 1) // 2, 0
                continue
            first = high + 1
            self._answered += 1
            if self.blocks is not None and self._answered >= GROW_AFTER:
                self.blocks, self._answered = 2 * self.blocks, 0
        return found
