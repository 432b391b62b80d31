"""Programs that this process has in use: several readers of one decode and check it once."""

from __future__ import annotations

from hashlib import sha256
from typing import Final
from weakref import WeakValueDictionary

from assay.protocol.program.program import Program
from assay.protocol.program.programfile import decode_program

MAX_PROGRAM_BYTES: Final = 1 << 28

_IN_USE: Final[WeakValueDictionary[bytes, Program]] = WeakValueDictionary()
"""By the SHA-256 of their files."""


def decoded(data: bytes, most: int) -> Program:
    """The program of a file of at most so many bytes. Raises what `decode_program` does."""
    digest = sha256(data).digest()
    program = _IN_USE.get(digest) if len(data) <= most else None
    if program is None:
        program = _IN_USE[digest] = decode_program(data, most)
    return program
