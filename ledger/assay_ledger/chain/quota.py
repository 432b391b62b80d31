"""How often one node is asked, over all connections of a process to it: what its provider allows."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Quota:
    """Requests per second to one node, a second's worth at once. `clock` gives seconds that never run back."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second, self._clock, self._lock = per_second, clock, threading.Lock()
        self._left, self._at = max(per_second, 1.0), clock()

    def take(self) -> float:
        """Seconds to wait before the next request; it counts as sent."""
        if not self._per_second:
            return 0.0
        with self._lock:
            now = self._clock()
            self._left = min(self._left + (now - self._at) * self._per_second, max(self._per_second, 1.0)) - 1
            self._at = now
            return max(0.0, -self._left / self._per_second)
