"""A new file that is there whole or not at all: by a link, and where the file system has none, in its place at once.

Once it is written its name is on disk too: after a power cut it is where it was said to be.
"""

from __future__ import annotations

import errno
import os
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

_NO_LINKS: Final = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})
"""What FAT, exFAT and some file systems of networks say to a link."""


def write_new(path: Path, data: bytes) -> None:
    """Writes a file that its owner alone can read, and replaces none. Raises FileExistsError, OSError."""
    try:
        _write_linked(path, data)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _write_in_place(path, data)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Names that were given in a folder are on disk when it returns; where its file system cannot say so, no matter."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _write_linked(path: Path, data: bytes) -> None:
    descriptor, temporary = tempfile.mkstemp(prefix=".new-", dir=path.parent)  # mode 0600
    try:
        _write(descriptor, data)
        os.link(temporary, path)
    finally:
        Path(temporary).unlink()


def _write_in_place(path: Path, data: bytes) -> None:
    """A reader may see half of it meanwhile; a write that fails takes it away again."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        _write(descriptor, data)
    except BaseException:
        path.unlink()
        raise


def _write(descriptor: int, data: bytes) -> None:
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
