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


def replace_whole(path: Path, data: bytes) -> None:
    """Puts a file in the place of one that this process holds: readers see the former or this one. Raises OSError."""
    new = path.with_name(path.name + ".new")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether what is open still is what lies there: whoever held it before may have replaced it."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
