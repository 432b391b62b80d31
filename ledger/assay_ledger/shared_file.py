"""A file that several processes add to and replace, one at a time; the lock is its own, and nothing lies beside it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held_alone(path: Path) -> Iterator[None]:
    """In this block nobody else holds the file, which is made where there is none. Waits for whoever does.

    Raises OSError.
    """
    while True:
        with path.open("ab") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            if _is_at(path, held.fileno()):
                yield
                return


def replace_whole(path: Path, *parts: bytes | memoryview) -> None:
    """Puts a file in the place of another, which only this process writes: readers see the former or this one, and who
    has mapped the former keeps it. Nothing has changed where it raises OSError.
    """
    new = path.with_name(path.name + ".new")
    try:
        with new.open("wb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError:
        new.unlink(missing_ok=True)
        raise


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether what is open still is what lies there: whoever held it before may have replaced it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
