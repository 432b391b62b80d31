"""Where tests keep their files: in memory, where this machine has room.

Actors sync what they write before they act on it, and on a disk their tests wait for that as long as they compute. What
is tested is that they ask for it, and that what is there after a kill is enough.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

import psutil

from assay_ledger.processes.scratch import ScratchDir

MEMORY = Path("/dev/shm")
LEAST_FREE = 4 << 30
"""Bytes free in it, and twice as many in the machine's memory. 400 tests of commands leave 31 MB."""

MOST_KEPT = 64 << 20
"""Bytes of a file that is kept on the disk."""


class MemoryFolder:
    """A folder in memory that all temporary files of this process and of its children go to, until `close`.

    It is gone when this process is, however it ends.
    """

    def __init__(self) -> None:
        self._disk = tempfile.gettempdir()
        tempfile.tempdir = str(MEMORY)
        self._scratch = ScratchDir("tests")
        tempfile.tempdir = None
        os.environ["TMPDIR"] = str(self._scratch.path)

    def close(self, keep: bool) -> Path | None:
        """Removes it. `keep`: copies it to the disk before, large files left out, and says where it is."""
        del os.environ["TMPDIR"]
        tempfile.tempdir = None
        kept = Path(self._disk) / self._scratch.path.name if keep else None
        if kept is not None:
            # Processes that are ending may take something away meanwhile, and some folders are denied on purpose.
            with contextlib.suppress(OSError):
                shutil.copytree(self._scratch.path, kept, symlinks=True, dirs_exist_ok=True, ignore=_uncopied)
        self._scratch.remove()
        return kept


def memory_folder() -> MemoryFolder | None:
    """None where somebody has said by TMPDIR where files go, or where memory is short or runs no programs."""
    if "TMPDIR" in os.environ:
        return None
    try:
        found = os.statvfs(MEMORY)
    except OSError:
        return None
    is_roomy = found.f_bavail * found.f_frsize >= LEAST_FREE
    is_roomy = is_roomy and psutil.virtual_memory().available >= 2 * LEAST_FREE
    may_run = not found.f_flag & os.ST_NOEXEC and os.access(MEMORY, os.W_OK)
    return MemoryFolder() if is_roomy and may_run else None


def _uncopied(folder: str, names: list[str]) -> list[str]:
    """Sockets and pipes, which no copy has a use for, and files of holes, of which a copy would fill the disk."""
    return [name for name in names if not _is_copied(Path(folder) / name)]


def _is_copied(path: Path) -> bool:
    if path.is_symlink() or path.is_dir():
        return True
    return path.is_file() and path.stat().st_size <= MOST_KEPT
