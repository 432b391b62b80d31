"""How often a node is asked whether there is something new: a fraction of the time between blocks, as they come in, and
of a silence that lasts; at once where a block was announced.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from statistics import median
from typing import Final

SHARE: Final = 8
"""A new block is noticed within an eighth of the time between blocks."""

SILENT_SHARE: Final = 16
"""What ends a silence is noticed within a sixteenth of it: while a round trains nothing happens for long."""

LEAST_S: Final = 0.05
MOST_S: Final = 2.0
BEHIND: Final = 4
"""A head that is so little lower is one of another node behind the same URL, and says nothing about the pace."""

SEEN: Final = 9
"""Intervals between new heads that count."""

STOP_S: Final = 0.25
"""Between two looks of a waiter at whether it shall end."""


class PollPace:
    """The period of polling, from the times at which new heads were seen. `clock` gives seconds that never run back."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._head: int | None = None
        self._at = 0.0
        self._intervals: deque[float] = deque(maxlen=SEEN)
        self._news = threading.Condition()
        self._announced = -1
        self._is_woken = False
        """Whether somebody was woken since the newest head was seen."""

    def saw(self, number: int) -> None:
        """Notes the number of the newest block."""
        if self._head is not None and self._head - BEHIND <= number <= self._head:
            return
        now = self._clock()
        if self._head is not None:
            # Several blocks at once are what one slow look at a fast chain finds.
            self._intervals.append((now - self._at) / max(1, number - self._head))
        self._head, self._at, self._is_woken = number, now, False

    @property
    def period(self) -> float:
        """Seconds between two looks: short until the pace of the chain is known."""
        if not self._intervals:
            return LEAST_S
        silence = self._clock() - self._at
        return min(max(median(self._intervals) / SHARE, silence / SILENT_SHARE, LEAST_S), MOST_S)

    def announce(self, number: int) -> None:
        """Somebody says that there is a block of this number; it is believed once for each head that is seen."""
        with self._news:
            self._announced = number
            self._news.notify_all()

    def wait(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> None:
        """Waits so many seconds, or until a block is announced that was not seen, or until `stop`.

        Attack: a stranger's server that announces without end has its user ask the node without end, until the node's
        provider answers no more. Between two heads that were seen, one announcement is believed.
        """
        end = time.monotonic() + seconds
        with self._news:
            while not stop() and (left := end - time.monotonic()) > 0:
                if self._announced > (self._head or 0) and not self._is_woken:
                    self._is_woken = True
                    return
                self._news.wait(min(left, STOP_S))
