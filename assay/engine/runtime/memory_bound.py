"""A bound on what this process may take of the machine's memory, held by the system, while it runs others' programs.

Estimates of programs (`footprint`) come first and refuse what cannot fit; an estimate may be wrong, and a machine has
other guests. Without a bound the system then ends whichever process it likes, without a word, and its stake with it.
Here an allocation fails instead, and what asked for it is named. Where programs run on a GPU there is no bound: its
driver maps more than it uses.
"""

from __future__ import annotations

import errno
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from assay.engine.runtime import footprint
from assay.protocol.errors import ConfigError

_BESIDE = 512 << 20
"""Bytes that the process itself takes beside programs: threads, tools that compile kernels, what was fetched."""

_OF_TORCH = "can't allocate memory", "not enough memory"
"""How stock torch says it, in a RuntimeError."""


class MemoryExceeded(ConfigError):
    """A program took more memory than it was estimated to take, and than this process may have."""

    remedy = "Use a machine with more memory, or end what else runs on it; raise ASSAY_MEMORY if it is set."


@contextmanager
def bounded_memory(most: int | None = None) -> Iterator[int]:
    """In this block private memory is bounded by the system; gives the bound in bytes.

    most: bytes; unless given, what the process has and what the machine and ASSAY_MEMORY leave it. The bound is of the
    whole process, so it is for those who run one actor or one command.

    Raises:
        MemoryExceeded: an allocation failed in this process.
        UserError: BadMemoryLimit.
    """
    most = _usual() if most is None else most
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    bound = most if soft == resource.RLIM_INFINITY else min(most, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (bound, hard))
    try:
        yield bound
    except (MemoryError, RuntimeError, OSError) as error:
        if not _is_of_memory(error):
            raise
        raise MemoryExceeded(
            f"There is no memory for what a program asked for: this process may have {bound / 2**30:.1f} GiB.",
            most=bound,
        ) from error
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _usual() -> int:
    """What this process has, and what is left: of the machine without swap, and of ASSAY_MEMORY or its group."""
    status, machine = _table("/proc/self/status"), _table("/proc/meminfo")
    return status["VmData"] + min(footprint.limit() + _BESIDE, machine["MemAvailable"])


def free_memory() -> int:
    """Bytes that a program may take here now, by the machine's own account and by ASSAY_MEMORY."""
    return min(footprint.limit(), _table("/proc/meminfo")["MemAvailable"])


def _table(path: str) -> dict[str, int]:
    """Sizes of a file of the system by name, in bytes."""
    rows = (line.split() for line in Path(path).read_text(encoding="ascii", errors="replace").splitlines())
    return {row[0].rstrip(":"): int(row[1]) << 10 for row in rows if len(row) == 3 and row[2] == "kB"}


def _is_of_memory(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or any(words in str(error) for words in _OF_TORCH)
