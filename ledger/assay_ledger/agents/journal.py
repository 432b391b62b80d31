"""An actor's journal: what must survive a crash and cannot be recomputed, and what is expensive to recompute.

JSON lines in the actor's data folder, one entry each, synced to disk before the transaction that depends on it is sent
(salts of hidden leaves and of committed challenges), and then for results of replays, by content. A line that a crash
cut short was never relied upon and is dropped. Source: docs/adr/0007-actors.md.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from assay.protocol.errors import ConfigError, InvariantError
from assay_ledger.json_input import JsonRefused, parse_json

FILE: Final = "journal.jsonl"
MAX_LINE_BYTES: Final = 1 << 20

Entry = dict[str, Any]


class JournalInUse(ConfigError):
    """Another process works in this data folder."""

    remedy = "Stop the other process, or give each actor a --data-dir of its own."


class Journal:
    """Entries in the order in which they were written; one process at a time.

    Raises JournalInUse.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.path = folder / FILE
        self._file = self.path.open("a+b")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise JournalInUse(f"{self.path} is held by another process.") from None
        self._entries = self._load()

    def append(self, kind: str, **values: Any) -> None:
        """Writes an entry and returns once it is on disk. Bytes are kept as hex digits."""
        entry: Entry = {"kind": kind, **{name: _plain(value) for name, value in values.items()}}
        line = json.dumps(entry, sort_keys=True).encode() + b"\n"
        if len(line) > MAX_LINE_BYTES:
            raise InvariantError(f"A journal entry of kind {kind!r} has {len(line)} bytes.")
        self._file.write(line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._entries.append(json.loads(line))

    def entries(self, kind: str) -> Iterator[Entry]:
        """All entries of a kind, oldest first."""
        return (entry for entry in self._entries if entry["kind"] == kind)

    def close(self) -> None:
        """Lets another process have the folder; harmless when repeated."""
        self._file.close()

    def _load(self) -> list[Entry]:
        """The whole lines of the file; whatever a crash left behind them is cut off."""
        self._file.seek(0)
        entries, end = [], 0
        for line in self._file:
            try:
                entry = parse_json(line, max_bytes=MAX_LINE_BYTES) if line.endswith(b"\n") else None
            except JsonRefused:
                entry = None
            if not isinstance(entry, dict) or not isinstance(entry.get("kind"), str):
                break
            entries.append(entry)
            end += len(line)
        self._file.truncate(end)
        return entries


def _plain(value: Any) -> Any:
    """The value as JSON holds it."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return value
