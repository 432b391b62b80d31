"""Disks that take nothing more: the system refuses what this process writes, as a full file system does."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def writing_nothing(beyond: int = 0) -> Iterator[None]:
    """In this block no file of this process grows beyond so many bytes: every write to it fails with EFBIG."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (beyond, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
