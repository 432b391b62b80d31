"""Operands that products keep packed, once for all products that packed the same: programs of other sizes of batches
multiply by the same weights.
"""

from __future__ import annotations

import hashlib
from weakref import WeakValueDictionary

from torch import Tensor


class PackedPool:
    """Memory by what it holds, u8 [n], for as long as some product has it."""

    def __init__(self) -> None:
        self._known: WeakValueDictionary[bytes, Tensor] = WeakValueDictionary()

    def __len__(self) -> int:
        return len(self._known)

    def one_of(self, memory: Tensor, start: int, count: int) -> Tensor:
        """Memory that holds the same `count` bytes from its own line's start on; this one where there is none."""
        held = memory[start : start + count]
        return self._known.setdefault(hashlib.blake2b(held.numpy().data, digest_size=32).digest(), memory)
