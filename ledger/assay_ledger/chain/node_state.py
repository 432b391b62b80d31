"""The file of a local chain's state, and a copy of it.

anvil writes the file in its place. Bad luck: it is killed meanwhile (a machine that is busy at Ctrl-C, a power cut), or
the disk is full; what is left is the beginning of a state, from which no chain goes on.
"""

from __future__ import annotations

import json
import os
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

STATE: Final = "state.json"
COPY: Final = "state.before.json"


def mend_state(folder: Path) -> bool:
    """Puts the copy in the place of a state that is cut short; whether it did. Raises OSError."""
    state, copy = folder / STATE, folder / COPY
    if not state.exists() or _is_whole(state) or not _is_whole(copy):
        return False
    _copy(copy, state)
    return True


@dataclass
class StateCopy:
    """Keeps the copy while a chain runs; whoever has the chain looks now and then."""

    folder: Path
    _seen: tuple[int, int] = (0, 0)
    _copied: tuple[int, int] = (0, 0)

    def look(self) -> None:
        """Copies a state that two looks found alike. A disk that refuses leaves the copy that there was."""
        state = self.folder / STATE
        with suppress(OSError):
            found = _mark(state)
            if found == self._seen != self._copied and _ends(state):
                fresh = self.folder / f"{COPY}.new"
                try:
                    _copy(state, fresh)
                    if _mark(state) == found:
                        fresh.replace(self.folder / COPY)
                        self._copied = found
                finally:
                    fresh.unlink(missing_ok=True)
            self._seen = found


def _mark(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_size, found.st_mtime_ns


def _ends(path: Path) -> bool:
    """Whether a document may end where this file does; that it is one is looked at when it is needed."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 8))
        return file.read().rstrip().endswith(b"}")


def _is_whole(path: Path) -> bool:
    try:
        return isinstance(json.loads(path.read_bytes()), dict)
    except (OSError, ValueError):
        return False


def _copy(source: Path, target: Path) -> None:
    """Whole or not at all, and on disk."""
    beside = target.with_name(f".{target.name}")
    try:
        with source.open("rb") as read, beside.open("wb") as out:
            shutil.copyfileobj(read, out)
            out.flush()
            os.fsync(out.fileno())
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
