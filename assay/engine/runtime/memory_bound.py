"""A bound on what this process may take of the machine's memory, held by the system, while it runs others' programs.

Estimates of programs (`footprint`) come first and refuse what cannot fit; an estimate may be wrong, and a machine has
other guests. Without a bound the system then ends whichever process it likes, without a word, and its stake with it.
Here an allocation fails instead, and what asked for it is named. Where programs run on a GPU there is no bound: its
driver maps more than it uses; nor where the system does not say what a process has (macOS).
"""

from __future__ import annotations

import errno
import resource
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from assay.engine.runtime import footprint
from assay.engine.runtime.triton import backend
from assay.protocol.errors import ConfigError

_BESIDE = 512 << 20
"""Bytes that the process itself takes beside programs: threads, tools that compile kernels, what was fetched."""

RENEWED_S = 5.0
"""Between two looks at what the machine has free."""

_ACCOUNT = Path("/proc/meminfo")
"""Linux's account of its memory; other systems have none there."""

_OF_TORCH = "can't allocate memory", "not enough memory"
"""How stock torch says it, in a RuntimeError."""


class MemoryExceeded(ConfigError):
    """A program took more memory than it was estimated to take, and than this process may have."""

    remedy = "Use a machine with more memory, or end what else runs on it; raise ASSAY_MEMORY if it is set."


class GpuFailed(ConfigError):
    """A GPU, its driver or its compiler failed while a program ran there."""

    remedy = "Look whether `nvidia-smi` and `assay doctor` see the GPU, then start again; or run by --device cpu."


def bounded_here() -> AbstractContextManager[object]:
    """Bounds the memory of this process while it runs strangers' programs, on a CPU: see `bounded_memory`. On a GPU,
    what its driver refuses is named alike, and that it failed.
    """
    from assay.engine.runtime.executor import KernelVariant, usual_variant

    return _named_on_gpus() if usual_variant() is KernelVariant.TRITON else bounded_memory()


@contextmanager
def _named_on_gpus() -> Iterator[None]:
    """Raises MemoryExceeded: the GPU has no memory left; GpuFailed."""
    try:
        yield
    except Exception as error:  # a compiler's are of no class of Python's
        if backend.lacks_memory(error):
            raise MemoryExceeded(
                f"The GPU has no memory for what a program asked for ({str(error).splitlines()[0]}).",
                remedy="Use a GPU with more memory, end what else runs on it, or run by --device cpu.",
            ) from error
        if not backend.is_of_the_gpu(error):
            raise
        raise GpuFailed(f"The GPU failed while a program ran there ({backend.in_one_line(error)}).") from error


@contextmanager
def bounded_memory(most: int | None = None, renewed_s: float = RENEWED_S) -> Iterator[int]:
    """In this block private memory is bounded by the system; gives the bound in bytes, as it is at first.

    most: bytes; unless given, what the process has and what the machine and ASSAY_MEMORY leave it, looked at anew every
    `renewed_s` seconds: an actor that starts while others hold memory must not lack it in a game an hour later. The
    bound is of the whole process, so it is for those who run one actor or one command.

    Raises:
        MemoryExceeded: an allocation failed in this process.
        UserError: BadMemoryLimit.
    """
    if most is None and not _ACCOUNT.exists():
        yield footprint.limit()
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)

    def bind(wanted: int) -> int:
        found = wanted if soft == resource.RLIM_INFINITY else min(wanted, soft)
        resource.setrlimit(resource.RLIMIT_DATA, (found, hard))
        return found

    over = threading.Event()
    renewing: threading.Thread | None = None
    if most is None:
        ceiling = _table("/proc/self/status")["VmData"] + footprint.limit() + _BESIDE
        bound = bind(_usual(ceiling))

        def renew() -> None:
            while not over.wait(renewed_s):
                bind(_usual(ceiling))

        renewing = threading.Thread(target=renew, daemon=True, name="assay-memory")
        renewing.start()
    else:
        bound = bind(most)
    try:
        with named_memory():
            yield bound
    finally:
        over.set()
        if renewing is not None:
            renewing.join()
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


@contextmanager
def named_memory() -> Iterator[None]:
    """In this block an allocation that fails has a name. Raises MemoryExceeded."""
    try:
        yield
    except (MemoryError, RuntimeError, OSError) as error:
        if not _is_of_memory(error):
            raise
        bound = resource.getrlimit(resource.RLIMIT_DATA)[0]
        now = footprint.limit() if bound == resource.RLIM_INFINITY else bound
        raise MemoryExceeded(
            f"There is no memory for what a program asked for: this process may have {now / 2**30:.1f} GiB.",
            most=now,
        ) from error


def _usual(ceiling: int) -> int:
    """What this process has and what the machine has free, without swap; `ceiling` at most."""
    status, machine = _table("/proc/self/status"), _table("/proc/meminfo")
    return min(ceiling, status["VmData"] + machine["MemAvailable"])


def free_memory() -> int:
    """Bytes that a program may take here now, by the machine's own account and by ASSAY_MEMORY."""
    if not _ACCOUNT.exists():
        return footprint.limit()
    return min(footprint.limit(), _table("/proc/meminfo")["MemAvailable"])


def _table(path: str) -> dict[str, int]:
    """Sizes of a file of the system by name, in bytes."""
    rows = (line.split() for line in Path(path).read_text(encoding="ascii", errors="replace").splitlines())
    return {row[0].rstrip(":"): int(row[1]) << 10 for row in rows if len(row) == 3 and row[2] == "kB"}


def _is_of_memory(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM
    return isinstance(error, MemoryError) or any(words in str(error) for words in _OF_TORCH)
