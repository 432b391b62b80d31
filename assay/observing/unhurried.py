"""A text stream for whoever must not wait: what is written is kept, and a thread of its own hands it on.

A terminal that is stopped, a pipe whose reader sleeps or has gone, a file on a full disk: an actor that waited for one
of them, or ended by it, would lose the game that it stands in for a line that nobody reads.
"""

from __future__ import annotations

import io
import os
import threading
from collections import deque
from contextlib import suppress
from typing import Final, TextIO

KEPT_CHARACTERS: Final = 1 << 20
"""What may wait; above it the newest is dropped, and said once there is room."""

AT_END_S: Final = 2.0
"""How long the end waits for what was not handed on yet."""


class UnhurriedStream(io.TextIOBase):
    """Writes to `out` in its own time, and never raises for it. Ends with `finish`."""

    def __init__(self, out: TextIO, kept: int = KEPT_CHARACTERS) -> None:
        self._out, self._most = out, kept
        self._waits: deque[str] = deque()
        self._characters = 0
        self._dropped = 0
        self._is_writing = False
        self._is_over = False
        self._changed = threading.Condition()
        threading.Thread(target=self._hand_on, daemon=True, name="assay-words").start()

    def write(self, text: str) -> int:
        """Keeps a text to be written."""
        with self._changed:
            if self._characters + len(text) > self._most:
                self._dropped += 1
            else:
                self._waits.append(text)
                self._characters += len(text)
                self._changed.notify_all()
        return len(text)

    def flush(self) -> None:
        """Waits for nothing."""

    def writable(self) -> bool:
        """See TextIOBase."""
        return True

    def isatty(self) -> bool:
        """Whether people look at it."""
        with suppress(OSError, ValueError):
            return self._out.isatty()
        return False

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """That of what is written to."""
        return getattr(self._out, "encoding", None) or "utf-8"

    def fileno(self) -> int:
        """That of what is written to. Raises OSError where it has none."""
        return self._out.fileno()

    def finish(self, seconds: float = AT_END_S) -> bool:
        """Waits until all is written, or so long; False where something is lost."""
        with self._changed:
            is_done = self._changed.wait_for(lambda: not self._waits and not self._is_writing, seconds)
            self._is_over = True
            self._changed.notify_all()
        return is_done

    def _hand_on(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waits or self._is_over)
                if not self._waits:
                    return
                text, dropped = "".join(self._waits), self._dropped
                self._waits.clear()
                self._characters = self._dropped = 0
                self._is_writing = True
            if dropped:
                text += f"({dropped} lines were not written: nobody read them)\n"
            with suppress(OSError, ValueError):
                self._put(text)
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    def _put(self, text: str) -> None:
        try:
            place = self._out.fileno()
        except OSError:
            self._out.write(text)
            self._out.flush()
            return
        # Past Python's buffer: whoever holds its lock in a write that never returns holds up the end of the process.
        data = text.encode(self.encoding, "backslashreplace")
        while data:
            data = data[os.write(place, data) :]
