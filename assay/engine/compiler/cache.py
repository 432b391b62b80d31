"""Captured programs on disk, by the digest of everything that they follow from.

A program is a few kilobytes of descriptors, its capture seconds of tracing; several processes of one machine want the
same. The cache is a convenience, and who trains another program than the others loses its stake: an entry is taken only
where it is its owner's alone to write, holds the digest of its name and its bytes, and decodes like a stranger's file;
else the program is made again.
"""

from __future__ import annotations

import json
import os
import stat
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from assay.checkout import user_cache
from assay.protocol.errors import AssayError
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import decode_program, encode_program

_PACKAGES = ("protocol", "engine", "training", "inference", "bench")
"""What capture runs through, and the modules that are captured under a name."""

_DIGEST = 32


def cache_folder() -> Path:
    """Where programs are kept: `$ASSAY_CACHE`, else the user's cache folder."""
    return user_cache() / "programs"


@cache
def source_digest() -> str:
    """The digest of the code that capture runs through, so that a change of it makes every entry stale."""
    digest = sha256(f"{torch.__version__} {sys.version_info[:2]}".encode())
    root = Path(__file__).resolve().parents[2]
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def cached_program(description: Mapping[str, Any], make: Callable[[], Program]) -> Program:
    """The program that `make` captures, from the cache where this description (plain JSON) has been captured before."""
    text = json.dumps({**description, "source": source_digest()}, sort_keys=True)
    name = sha256(text.encode())
    path = cache_folder() / f"{name.hexdigest()}.program"
    held = _held(path, name.digest())
    if held is not None:
        with suppress(AssayError):
            return decode_program(held)
    program = make()
    data = encode_program(program)
    _write(path, sha256(name.digest() + data).digest() + data)
    return program


def _held(path: Path, name: bytes) -> bytes | None:
    """The bytes of an entry that this user wrote under this name; None where there is none."""
    try:
        with path.open("rb") as file:
            status, found = os.fstat(file.fileno()), file.read()
    except OSError:
        return None
    # A file that somebody else put there, or can write, may hold any program.
    is_own = status.st_uid == os.getuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    # A file that is cut off, changed, or under another entry's name.
    is_whole = sha256(name + found[_DIGEST:]).digest() == found[:_DIGEST]
    return found[_DIGEST:] if is_own and is_whole else None


def _write(path: Path, data: bytes) -> None:
    """Put a file there whole or not at all; a folder that cannot be written only costs time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except OSError:
        return
