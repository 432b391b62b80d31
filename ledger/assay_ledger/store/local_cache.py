"""An actor's own copies of what it published or fetched, by name, so that an unavailable store takes nothing from it.

    <folder>/run/<name>        what every round needs: programs and data
    <folder>/<round>/<name>    what was published or read in a round; what is read again later moves there

Copies are advice like everything in a store: their reader recomputes what a name promises. A cache that cannot
be written or read is an empty one: the actor works on from the store.
Source: docs/adr/0017-copies.md.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, Final

from assay.mapped_files import MappedFile
from assay.protocol.errors import UnavailableError
from assay_ledger.disk_told import DiskTold
from assay_ledger.new_file import sync_folder
from assay_ledger.store.folder import read_regular

LASTING: Final = "run"
"""The folder that no round's end removes."""

_COMPARED_BYTES: Final = 1 << 24

_LASTING_KINDS: Final = ("programs/", "tensors/")
_LOG = logging.getLogger("assay.local_cache")


class LocalCache:
    """Copies in a folder of the actor's own. Names are those of `assay_ledger.store.objects`; nothing here raises."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._round = 0
        self._oldest = 0
        self._told = DiskTold(_LOG)

    def turn(self, latest: int, oldest: int) -> None:
        """Copies go to the latest round from now on; those last used before the oldest are removed."""
        self._round = latest
        if oldest == self._oldest:
            return
        self._oldest = oldest
        for number in self._rounds():
            if number < oldest:
                shutil.rmtree(self._folder / str(number), ignore_errors=True)

    def put(self, name: str, data: bytes) -> None:
        """Keeps a copy; it appears whole or not at all, and is on disk when it returns."""
        if not _holds(self._place(name), data):
            self.fill(name, lambda out: out.write(data))

    def get(self, name: str, max_bytes: int) -> bytes | None:
        """The copy under a name, not checked against it; None where there is none of at most so many bytes."""
        path = self._place(name)
        for found in (path, *(self._folder / str(n) / name for n in reversed(self._rounds()))):
            data = self._read(found, max_bytes)
            if data is not None:
                if found != path:
                    self._move(found, path)
                return data
        return None

    def mapped(self, name: str, size: int, fits: Callable[[memoryview], bool]) -> memoryview | None:
        """A lasting copy of so many bytes as memory, once it is found right; a damaged one is dropped."""
        path = self._place(name)
        try:
            mapping = MappedFile.open(path, size, fits)
            if mapping.is_right():
                return mapping.view
        except OSError as error:
            if path.exists():
                _LOG.warning("The copy of %s cannot be used: %s", name, error)
        self.drop(name)
        return None

    def lacks(self, name: str, size: int) -> int:
        """Bytes that its disk has no room for, of a copy of so many that may be begun; 0 where nobody knows."""
        path = self._place(name)
        half = path.with_name(path.name + ".new")
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            there = half.stat().st_size if half.exists() else 0
            return max(size - there - shutil.disk_usage(self._folder).free, 0)
        return 0

    def fill(self, name: str, write: Callable[[BinaryIO], object], *, goes_on: bool = False) -> None:
        """Keeps a copy that is written piece by piece; it appears when all of it is there.

        With `goes_on`, what `write` had written when it was unavailable stays, and the next call finds it in its file.
        Raises nothing of its own, but what `write` raises beside OSError.
        """
        path = self._place(name)
        fresh, is_half = path.with_name(path.name + ".new"), False
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not goes_on:
                fresh.unlink(missing_ok=True)
            with fresh.open("r+b" if goes_on and fresh.exists() else "x+b") as out:
                write(out)
                out.flush()
                os.fsync(out.fileno())
            fresh.replace(path)
            sync_folder(path.parent)
            self._told.took(_size(path), self._folder)
        except OSError as error:
            self._told.refused(_size(fresh) + 1, "No copy of %s is kept: %s", name, error)
        except UnavailableError:
            is_half = goes_on and fresh.stat().st_size > 0
            raise
        finally:
            if not is_half:
                with suppress(OSError):
                    fresh.unlink(missing_ok=True)

    def drop(self, name: str) -> None:
        """Forgets a copy that turned out to be damaged; the next one is kept in its place."""
        with suppress(OSError):
            self._place(name).unlink()

    def _place(self, name: str) -> Path:
        return self._folder / (LASTING if name.startswith(_LASTING_KINDS) else str(self._round)) / name

    def _rounds(self) -> list[int]:
        with suppress(OSError):
            return sorted(int(entry.name) for entry in os.scandir(self._folder) if entry.name.isdecimal())
        return []

    @staticmethod
    def _read(path: Path, max_bytes: int) -> bytes | None:
        try:
            return read_regular(str(path), max_bytes)
        except (OSError, UnavailableError):
            return None

    @staticmethod
    def _move(old: Path, new: Path) -> None:
        with suppress(OSError):
            new.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            old.replace(new)


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def _holds(path: Path, data: bytes) -> bool:
    """Whether a file has these bytes; a part of them is in memory at a time."""
    view = memoryview(data)
    try:
        for at in range(0, max(len(data), 1), _COMPARED_BYTES):
            part = view[at : at + _COMPARED_BYTES]
            if read_regular(str(path), len(data), start=at, length=len(part)) != part:
                return False
        return path.stat().st_size == len(data)
    except (OSError, UnavailableError):
        return False
