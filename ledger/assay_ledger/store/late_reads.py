"""Reads of large objects in folders that outlast whoever asked for them: they go on, and who asks again waits for them.

Begun anew, each beside those before it, none would come to its end: a model in a folder of a network or on a slow disk,
and actions whose time is shorter than its reading.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event
from typing import Final

from assay_ledger.deadline import Lane
from assay_ledger.store.interfaces import ObjectVersion

LARGE: Final = 1 << 20
"""Bytes of an object from which on what was cut short is kept."""

MAX_LATE_BYTES: Final = 1 << 28
"""Of all reads that go on or have come, together, beside the newest: memory of whoever asks for none of them again."""

HANGS_S: Final = 3600.0
"""What lasts longer has lost its answer, and is asked for anew."""

KEPT_S: Final = 600.0
"""So long what has come waits for who asks again, who may have it from another store by now: a model is gigabytes."""

ReadFile = tuple[bytes, ObjectVersion]


class LateRead:
    """A read of an object of `size` bytes, once that is known, and what came of it."""

    def __init__(self) -> None:
        self.size = 0
        self.begun = time.monotonic()
        self.ended = Event()
        self.ended_at = 0.0
        self.found: ReadFile | None = None

    @property
    def is_stale(self) -> bool:
        """Whether nobody has asked for what came, or what has not come lasts too long."""
        now = time.monotonic()
        return now - self.begun >= HANGS_S or (self.ended.is_set() and now - self.ended_at >= KEPT_S)


class LateReads:
    """Reads through a lane; safe for threads. `version`: which file lies at a path, asked for in so many seconds."""

    def __init__(self, lane: Lane, version: Callable[[str, float], ObjectVersion | None]) -> None:
        self._lane, self._version = lane, version
        self._late: dict[str, LateRead] = {}
        """By path, the newest last."""

    def read(self, path: str, read: Callable[[LateRead], ReadFile], max_bytes: int, seconds: float) -> ReadFile:
        """What `read` gives, which says the size once it knows it. Raises TimeoutError, and what `read` raises."""
        until = time.monotonic() + seconds
        for other, each in list(self._late.items()):
            if other != path and each.is_stale:
                self._late.pop(other, None)
        late = self._late.get(path)
        if late is not None and time.monotonic() - late.begun < HANGS_S:
            if not late.ended.wait(seconds):
                raise TimeoutError("its reading goes on")
            found = late.found
            # Others may have put other bytes there since.
            is_there = found is not None and found[1] == self._version(path, until - time.monotonic())
            self._late.pop(path, None)
            if found is not None and is_there and len(found[0]) <= max_bytes:
                return found
        begun = LateRead()

        def run() -> ReadFile:
            try:
                begun.found = found = read(begun)
                return found
            finally:
                begun.ended_at = time.monotonic()
                begun.ended.set()

        try:
            return self._lane.call(run, until - time.monotonic())
        except TimeoutError:
            if begun.size >= LARGE:
                self._keep(path, begun)
            raise

    def _keep(self, path: str, late: LateRead) -> None:
        self._late.pop(path, None)
        # Other threads keep and take theirs meanwhile.
        others = list(self._late.items())
        total = sum(each.size for _, each in others)
        for other, each in others:
            if total > MAX_LATE_BYTES:
                self._late.pop(other, None)
                total -= each.size
        self._late[path] = late
