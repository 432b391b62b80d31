"""An actor's journal: what must survive a crash and cannot be recomputed, and what is expensive to recompute.

JSON lines in the actor's data folder, one entry each, with the first 8 bytes of the SHA-256 of the rest as `sum`, so
that damage costs the line that it is in and no other. What a transaction depends on is synced to disk before it is
sent. What can be computed again (results of replays, by content) is kept in memory while the disk takes nothing, and
written once it does: a full disk costs work after a crash, never a game. A line that a crash cut short was never
relied upon and is dropped. Source: docs/adr/0007-actors.md; docs/adr/0057-stores.md.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from io import FileIO
from pathlib import Path
from typing import Any, Final

from assay.protocol.errors import ConfigError, InvariantError, UnavailableError
from assay.protocol.types import Address
from assay_ledger.agents.folder_form import FolderNewer, check_form
from assay_ledger.disk_told import DiskTold
from assay_ledger.json_input import JsonRefused, parse_json
from assay_ledger.new_file import sync_folder

FILE: Final = "journal.jsonl"
MAX_LINE_BYTES: Final = 1 << 20
SUM: Final = "sum"
RUN: Final = "run"
"""The kind of the entry that says whose rounds all others are about."""

_LOG = logging.getLogger("assay.journal")
_OBJECT: Final = re.compile(rb"\{[^{}]*\}")
"""An entry wherever it stands: where a line's end is damaged, two stand in one line."""

Entry = dict[str, Any]


class JournalInUse(ConfigError):
    """Another process works in this data folder."""

    remedy = "Stop the other process, or give each actor a --data-dir of its own."


class FolderUnusable(ConfigError):
    """A data folder cannot be made, or its journal cannot be read."""

    remedy = "Check the path, its permissions and its disk, or name another --data-dir."


class FolderOfAnotherRun(ConfigError):
    """What a data folder holds is about another run."""

    remedy = "Name a --data-dir of its own for each run; a new one will do."


class DiskRefuses(UnavailableError):
    """The disk does not take what must be on it before the actor may go on."""

    remedy = "Make room on the disk of the data folder; the actor tries again by itself."


class Journal:
    """Entries in the order in which they were written; one process at a time. `damaged`: numbers of lines, from 1 on,
    that the disk altered; what they said is lost and said so.

    Raises JournalInUse, FolderNewer, FolderUnusable.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / FILE
        self._file = _opened(self.path)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            self._file.close()
            if not isinstance(error, BlockingIOError):  # else its owner looks for a process that is not there
                raise FolderUnusable(f"{self.path} cannot be locked: {error.strerror}.") from None
            raise JournalInUse(f"{self.path} is held by another process.") from None
        try:
            check_form(folder)
        except FolderNewer:
            self._file.close()
            raise
        self.damaged: Sequence[int] = ()
        self._end = 0
        self._unwritten: list[bytes] = []
        self._told = DiskTold(_LOG)
        self._entries = self._load()
        sync_folder(folder)

    def keep_to(self, run: Address) -> None:
        """Notes whose rounds the entries are about, where nothing says so. Raises FolderOfAnotherRun, and is closed.

        Attack on oneself: two runs start from one model, by other data or another rate. The work of the first is a lie
        in the second, and what was replayed in the first says nothing of the second.
        """
        noted = next((str(entry[RUN]) for entry in self.entries(RUN)), None)
        if noted is None:
            self.note(RUN, run=run)
        elif noted != run.hex():
            self.close()
            raise FolderOfAnotherRun(f"{self.path} is about the run 0x{noted}, not 0x{run.hex()}.")

    def append(self, kind: str, **values: Any) -> None:
        """Writes an entry and returns once it is on disk. Bytes are kept as hex digits. Raises DiskRefuses."""
        entry, line = _line(kind, values)
        try:
            self._write([*self._unwritten, line])
        except OSError as error:
            raise DiskRefuses(f"{self.path} cannot be written: {error}.") from None
        self._entries.append(entry)

    def note(self, kind: str, **values: Any) -> None:
        """The same for what can be computed again: while the disk takes nothing it is kept in memory."""
        entry, line = _line(kind, values)
        self._entries.append(entry)
        try:
            self._write([*self._unwritten, line])
        except OSError as error:
            self._unwritten.append(line)
            self._told.refused(
                len(line),
                "%s cannot be written (%s): make room on its disk. The actor goes on from memory; a crash now would "
                "cost the work behind %d entries.",
                *(self.path, error, len(self._unwritten)),
            )

    def entries(self, kind: str) -> Iterator[Entry]:
        """All entries of a kind, oldest first."""
        return (entry for entry in self._entries if entry["kind"] == kind)

    def close(self) -> None:
        """Lets another process have the folder; harmless when repeated."""
        if self._unwritten and not self._file.closed:
            with suppress(OSError):
                self._write(self._unwritten)
        self._file.close()

    def _write(self, lines: Sequence[bytes]) -> None:
        """All of the lines, or none; then nothing is unwritten. Raises OSError."""
        data = b"".join(lines)
        try:
            left = memoryview(data)
            while left:
                left = left[self._file.write(left) :]
            os.fsync(self._file.fileno())
        except OSError:
            with suppress(OSError):
                self._file.truncate(self._end)
            raise
        self._end += len(data)
        self._unwritten = []
        self._told.took(len(data), self.path)

    def _load(self) -> list[Entry]:
        """The entries of the file; a last line that a crash cut short is cut off, a damaged one is passed over."""
        self._file.seek(0)
        data = self._file.readall()
        self._end = data.rfind(b"\n") + 1
        if self._end < len(data):
            with suppress(OSError):  # of a disk that takes nothing: nothing is written behind it either
                self._file.truncate(self._end)
        entries, damaged, has_sums = list[Entry](), list[int](), False
        for number, line in enumerate(data[: self._end].split(b"\n")[:-1], 1):
            found = _parse(line)
            # Files of earlier releases have no sums; once there was one, an entry without is a damaged one.
            if found is not None and (SUM in found or not has_sums):
                has_sums = has_sums or SUM in found
                entries.append(found)
                continue
            damaged.append(number)
            parts = (_parse(match.group()) for match in _OBJECT.finditer(line))
            entries += [part for part in parts if part is not None and SUM in part]
        if damaged:
            numbers = ", ".join(map(str, damaged))
            _LOG.warning("%s is damaged in line %s: what stood there is computed again.", self.path, numbers)
        self.damaged = tuple(damaged)
        return [{name: value for name, value in entry.items() if name != SUM} for entry in entries]


def _opened(path: Path) -> FileIO:
    """The file, which is made where there is none; to read alone where its disk takes nothing. Raises FolderUnusable.

    Bad luck: after a power cut a disk is mounted read-only, and whoever is in a game must play it all the same.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        return path.open("a+b", buffering=0)
    except OSError as error:
        try:
            found = path.open("rb", buffering=0)
        except OSError:
            raise FolderUnusable(f"{path.parent} cannot be used: {error}.") from None
        _LOG.warning("%s cannot be written (%s): the actor goes on from memory.", path, error)
        return found


def run_of(folder: Path) -> Address | None:
    """The run that a folder's journal is about, whoever works there; None where it does not say."""
    try:
        with (folder / FILE).open("rb") as file:
            found = (_parse(line.rstrip(b"\n")) for line in file)
            return next((Address(bytes.fromhex(entry[RUN])) for entry in found if entry and entry["kind"] == RUN), None)
    except OSError:
        return None


def _line(kind: str, values: dict[str, Any]) -> tuple[Entry, bytes]:
    """An entry as it is read back, and its line. Raises InvariantError."""
    entry: Entry = {"kind": kind, **{name: _plain(value) for name, value in values.items()}}
    line = json.dumps({SUM: _sum(entry), **entry}, sort_keys=True).encode() + b"\n"
    if len(line) > MAX_LINE_BYTES:
        raise InvariantError(f"A journal entry of kind {kind!r} has {len(line)} bytes.")
    return json.loads(json.dumps(entry)), line


def _parse(line: bytes) -> Entry | None:
    """The entry of a line, None where it is none or its sum is another's."""
    try:
        entry = parse_json(line, max_bytes=MAX_LINE_BYTES)
    except JsonRefused:
        return None
    if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
        return None
    rest = {name: value for name, value in entry.items() if name != SUM}
    return None if SUM in entry and entry[SUM] != _sum(rest) else entry


def _sum(entry: Entry) -> str:
    return sha256(json.dumps(entry, sort_keys=True).encode()).digest()[:8].hex()


def _plain(value: Any) -> Any:
    """The value as JSON holds it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
