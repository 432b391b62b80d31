"""What was told and has not ended, on disk: what ends while nobody watches is told as ended after the next start."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from assay.watchdog.alarms import Alarm, AlarmKind, Standing, changes
from assay_ledger.json_input import JsonRefused, parse_json

KNOWN_S: Final = 360.0
"""After so many seconds a watch has raised whatever holds: what is silent or stands still is known by looking for a
while, the longest for `stale_after`. Less, and an alarm is cleared that the next look raises again."""

MAX_BYTES: Final = 1 << 20


class ToldAlarms:
    """What one watch tells of, kept in a file; a disk that refuses it costs the ends of what ended meanwhile."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path, self._clock, self._begun = path, clock, clock()
        self._written = self._left = dict(_read(path))
        """Told by a process before, and not seen since."""
        self._standing: Standing = {}

    def changes(self, after: Standing, *, is_read: bool) -> list[tuple[bool, Alarm]]:
        """See `alarms.changes`. is_read: whether the run was read, so that what is not in `after` may have ended.

        What is told by this is written before; `are_told` is called once it was.
        """
        self._left = {key: alarm for key, alarm in self._left.items() if key not in after}
        found = changes(self._standing, after)
        self._write({**self._left, **self._standing, **after})
        self._standing = after
        if is_read and self._clock() - self._begun > KNOWN_S:
            found += changes(self._left, {})
            self._left = {}
        return found

    def are_told(self) -> None:
        """What has ended need not be told again."""
        self._write({**self._left, **self._standing})

    def _write(self, standing: Standing) -> None:
        if standing.keys() == self._written.keys():
            return
        rows = [{"kind": str(alarm.kind), "about": alarm.about, "text": alarm.text} for alarm in standing.values()]
        beside = self._path.with_suffix(".new")
        try:
            if rows:
                beside.write_text(json.dumps(rows))
                beside.rename(self._path)
            else:
                self._path.unlink(missing_ok=True)
        except OSError:
            return
        self._written = dict(standing)


def _read(path: Path) -> Standing:
    """What a file says; nothing where it cannot be read: alarms that hold are raised anyway."""
    try:
        rows = parse_json(path.read_bytes(), max_bytes=MAX_BYTES)
        alarms = [Alarm(AlarmKind(row["kind"]), str(row["about"]), str(row["text"])) for row in rows]
    except (OSError, JsonRefused, KeyError, TypeError, ValueError):
        return {}
    return {alarm.key: alarm for alarm in alarms}
