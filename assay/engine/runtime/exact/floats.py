"""Checks that no thread flushes subnormal numbers to zero: any library can switch that on, thread by thread."""

from __future__ import annotations

import torch

from assay.protocol.errors import InvariantError

_PER_THREAD = 1 << 15
"""Elements that make torch give work to one more thread."""


def flushes_subnormals() -> bool:
    """Whether some worker thread loses subnormal results (2^-126 / 2) or operands (2^-149 + 0)."""
    threads = torch.get_num_threads()
    count = 1 if threads == 1 else threads * _PER_THREAD
    smallest = torch.full((count,), 1, dtype=torch.int32).view(torch.float32)
    normal = torch.full((count,), 2.0**-126)
    kept = (normal * 0.5 != 0.0) & ((smallest + 0.0).view(torch.int32) == 1)
    return not bool(kept.all())


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
