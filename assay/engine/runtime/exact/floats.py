"""Checks that no thread flushes subnormal numbers to zero: any library can switch that on, thread by thread."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor

from assay.protocol.errors import InvariantError

_PER_THREAD = 1 << 15
"""Elements that make torch give work to one more thread."""

_PROBED = ((0x00800000, 1), (0x3F000000, 0x3F800000), (0x00400000, 1))
"""Bits of 2^-126 and 2^-149, of what they are multiplied by, and of the products."""


def flushes_subnormals() -> bool:
    """Whether some worker thread loses subnormal results (2^-126 / 2) or operands (2^-149 * 1)."""
    threads = torch.get_num_threads()
    x, y, kept = _probe(2 if threads == 1 else threads * _PER_THREAD)
    return not torch.equal((x * y).view(torch.int32), kept)


@lru_cache(maxsize=4)
def _probe(count: int) -> tuple[Tensor, Tensor, Tensor]:
    """Two factors f32 [count], and the bits i32 of their products where no thread flushes; made by integers alone."""
    bits = [torch.tensor(pair, dtype=torch.int32, device="cpu").repeat(count // 2) for pair in _PROBED]
    return bits[0].view(torch.float32), bits[1].view(torch.float32), bits[2]


def check_float_environment() -> None:
    """Before a run: clear flush-to-zero and check every worker thread.

    Raises:
        InvariantError: FlushToZero, when subnormals are still lost.
    """
    torch.set_flush_denormal(False)
    if flushes_subnormals():
        raise _flushing("flushes subnormal numbers to zero; its results would be refuted")


def check_float_environment_held() -> None:
    """After a run: no thread flushes. Looks before it clears, since what was flushed in between is lost already.

    Raises:
        InvariantError: FlushToZero, when some library switched it on during the run; it is cleared for the next one.
    """
    if flushes_subnormals():
        torch.set_flush_denormal(False)
        raise _flushing("began to flush subnormal numbers to zero during a run; its results are not to be trusted")


def _flushing(what: str) -> InvariantError:
    return InvariantError(
        f"A thread of this process {what}.",
        code="FlushToZero",
        remedy="Find the library that was built with -ffast-math, or run with OMP_NUM_THREADS=1.",
    )
