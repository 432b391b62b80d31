"""The files that data is made of, in an order that no file system, locale or command line decides."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, Final

from assay.protocol.errors import ConfigError, UserError
from assay_ledger.json_input import is_deeper

MAX_FILES: Final = 1 << 24
"""Of one conversion: their names and digests are held in memory and stand in the card."""

MAX_DEPTH: Final = 64

MAX_NESTED: Final = 64
"""Brackets of JSON."""

_CHUNK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file. name: its own, below a folder its path there with `/`, which is what it is sorted by."""

    name: str
    path: Path

    def document(self) -> dict[str, object]:
        """Name, size in bytes and SHA-256, for a card. Raises UserError (DataUnreadable)."""
        with reading(self.path) as stream:
            digest, size = digest_of(stream)
        return {"name": self.name, "bytes": size, "sha256": digest}


def json_of(data: bytes) -> Any:
    """The JSON in bytes of a stranger's. Raises ValueError.

    Attack: brackets in brackets, which overflow the parser's stack and end the process.
    """
    if is_deeper(data, MAX_NESTED):
        raise ValueError(f"brackets lie more than {MAX_NESTED} deep")
    return json.loads(data.decode("utf-8"), parse_constant=_no_number)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number in JSON")


@contextmanager
def reading(path: Path) -> Iterator[BinaryIO]:
    """A block that reads a regular file. Raises UserError (DataUnreadable)."""
    try:
        # A FIFO that somebody named would be waited for without end.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise unreadable(path, "it is no regular file")
            yield stream
    except OSError as error:
        raise unreadable(path, error.strerror or "it cannot be opened") from error


def digest_of(stream: BinaryIO) -> tuple[str, int]:
    """SHA-256 in hex and the number of bytes of what a stream still holds."""
    size, digest = 0, hashlib.sha256()
    while chunk := stream.read(_CHUNK):
        size += len(chunk)
        digest.update(chunk)
    return digest.hexdigest(), size


def files_of(sources: Sequence[Path]) -> list[SourceFile]:
    """Every file among and below the sources, by the bytes of their names. What begins with a dot is left out.

    Links to files are followed; links to folders are not.

    Raises:
        UserError: DataUnreadable; LinkedFolder; NoData, where there is no file; NameTwice, two of one name.
    """
    found: list[SourceFile] = []
    for source in sources:
        if source.is_dir():
            found.extend(_below(source, "", 0))
        else:
            found.append(SourceFile(source.name, source))
    found.sort(key=lambda file: os.fsencode(file.name))
    if not found:
        raise UserError("The sources hold no file.", code="NoData", remedy="Name files, or folders with files in them.")
    for a, b in pairwise(found):
        if a.name == b.name:
            raise UserError(
                f"{a.path} and {b.path} have one name, by which sources are put in order.",
                code="NameTwice",
                remedy="Rename one of them, or name the folder that holds both.",
            )
    return found


def unreadable(path: Path, why: str) -> UserError:
    """What is said of a file that cannot be read."""
    return UserError(
        f"The data file {path} cannot be read: {why}.",
        code="DataUnreadable",
        remedy="Check the path, its permissions, and that the file is whole.",
    )


def lacking(package: str, what: str) -> ConfigError:
    """What is said where an optional package is missing."""
    return ConfigError(
        f"{what} need the package {package}, which is not installed.",
        code="PackageMissing",
        remedy=f"Install it beside assay: pip install {package}, or all of them: pip install 'assay[data]'.",
    )


def _below(folder: Path, prefix: str, depth: int) -> Iterator[SourceFile]:
    """Files below a folder. Attack: a link to a folder above makes a tree without end."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError as error:
        raise unreadable(folder, error.strerror or "it cannot be listed") from error
    if depth > MAX_DEPTH or len(entries) > MAX_FILES:
        raise unreadable(folder, f"folders may lie {MAX_DEPTH} deep and hold {MAX_FILES} files")
    for entry in entries:
        path = Path(entry.path)
        if entry.name.startswith("."):
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _below(path, f"{prefix}{entry.name}/", depth + 1)
        elif path.is_dir():
            raise UserError(
                f"{path} is a link to a folder; such links may lead in a circle, and are not followed.",
                code="LinkedFolder",
                remedy="Put the folder itself there, or name it as a source of its own.",
            )
        else:
            yield SourceFile(f"{prefix}{entry.name}", path)
