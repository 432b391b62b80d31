"""Captured programs on disk, by the digest of everything that they follow from.

A program is a few kilobytes of descriptors, its capture seconds of tracing; several processes of one machine want the
same. The cache is a convenience: what it holds is decoded like a stranger's file, and made again when it is damaged.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch

from assay.checkout import user_cache
from assay.protocol.errors import AssayError
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import decode_program, encode_program

_PACKAGES = ("protocol", "engine", "training")


def cache_folder() -> Path:
    """Where programs are kept: `$ASSAY_CACHE`, else the user's cache folder."""
    return user_cache() / "programs"


@cache
def source_digest() -> str:
    """The digest of the code that capture runs through, so that a change of it makes every entry stale."""
    digest = sha256(torch.__version__.encode())
    root = Path(__file__).resolve().parents[2]
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


def cached_program(description: Mapping[str, Any], make: Callable[[], Program]) -> Program:
    """The program that `make` captures, from the cache where this description (plain JSON) has been captured before."""
    text = json.dumps({**description, "source": source_digest()}, sort_keys=True)
    path = cache_folder() / f"{sha256(text.encode()).hexdigest()}.program"
    try:
        return decode_program(path.read_bytes())
    except (OSError, AssayError):
        program = make()
    _write(path, encode_program(program))
    return program


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
