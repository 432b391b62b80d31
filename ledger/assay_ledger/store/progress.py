"""What an actor keeps on disk of its own long runs (`assay.training.long_runs.Progress`), a folder for each.

    <folder>/roots         36 bytes a root (steps done u32, root), and 4 of their SHA-256
    <folder>/<steps>       a state

A root that a crash cut short was never relied upon; one that the disk altered would lose a game, hence the checks.
States are checked against their roots by whoever reads them. A disk that takes nothing costs a crash its progress and
no game that is played meanwhile: roots stay in memory until they can be written, and a state is not kept.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from assay.protocol.types import Digest
from assay_ledger.disk_told import DiskTold
from assay_ledger.new_file import sync_folder

ROOTS: Final = "roots"
_ENTRY: Final = 40

_TOLD: Final = DiskTold(logging.getLogger("assay.progress"))
"""Of all folders: each round has one of its own."""


class ProgressFolder:
    """A folder of one run's progress; it is made when something is kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unwritten: dict[int, Digest] = {}
        self._roots = dict(self._read())

    @property
    def roots(self) -> Mapping[int, Digest]:
        """State roots that are known, by the number of steps done."""
        return self._roots

    def note(self, roots: Mapping[int, Digest]) -> None:
        """Adds roots; they are on disk when it returns, unless the disk takes nothing."""
        if not roots:
            return
        self._roots |= roots
        self._unwritten |= roots
        data = b"".join(_entry(step, root) for step, root in sorted(self._unwritten.items()))
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with (self.folder / ROOTS).open("ab", buffering=0) as file:
                # What an earlier life, or a full disk, cut short.
                file.truncate(_ENTRY * (file.tell() // _ENTRY))
                if file.write(data) < len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                os.fsync(file.fileno())
        except OSError as error:
            text = "%s cannot be written (%s): a crash now would cost its progress."
            _TOLD.refused(len(data), text, self.folder, error)
        else:
            self._unwritten = {}
            _TOLD.took(len(data), self.folder)

    def kept(self) -> Sequence[int]:
        """The numbers of steps after which a state is kept, in ascending order."""
        with suppress(OSError):
            return sorted(int(entry.name) for entry in os.scandir(self.folder) if entry.name.isdecimal())
        return []

    def put(self, step: int, data: bytes) -> None:
        """Keeps a state, whole or not at all; none where the disk takes nothing."""
        fresh = self.folder / f"{step}.new"
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with fresh.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            fresh.replace(self.folder / str(step))
            sync_folder(self.folder)
            _TOLD.took(len(data), self.folder)
        except OSError as error:
            with suppress(OSError):
                fresh.unlink(missing_ok=True)
            _TOLD.refused(len(data), "The state after step %d is not kept: %s", step, error)

    def get(self, step: int) -> bytes | None:
        """A state as it was put, not checked; None where it cannot be read."""
        try:
            return (self.folder / str(step)).read_bytes()
        except OSError:
            return None

    def drop(self, step: int) -> None:
        """Forgets a state."""
        with suppress(OSError):
            (self.folder / str(step)).unlink()

    def remove(self) -> None:
        """Forgets all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self._roots = {}

    def _read(self) -> list[tuple[int, Digest]]:
        try:
            data = (self.folder / ROOTS).read_bytes()
        except OSError:
            return []
        entries = [data[at : at + _ENTRY] for at in range(0, len(data), _ENTRY)]
        found = [(int.from_bytes(entry[:4], "big"), Digest(entry[4:36])) for entry in entries]
        return [pair for pair, entry in zip(found, entries, strict=True) if _entry(*pair) == entry]


def remove_before(folder: Path, oldest: int) -> None:
    """Forgets what `folder` keeps of rounds before the oldest: its folders are named by a round, `<round>` or
    `<round>-...`; what has another name stays."""
    with suppress(OSError):
        for kept in list(os.scandir(folder)):
            number = kept.name.partition("-")[0]
            if number.isdecimal() and int(number) < oldest:
                shutil.rmtree(kept.path, ignore_errors=True)


def _entry(step: int, root: Digest) -> bytes:
    body = step.to_bytes(4, "big") + root
    return body + sha256(body).digest()[:4]
