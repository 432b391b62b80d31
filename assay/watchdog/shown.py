"""What a watch shows of itself: the alarms that stand, and when it looked last."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from assay.observing import names
from assay.observing.metrics import BUSY_S, IDLE_S, Sample
from assay.observing.names import MetricName
from assay.watchdog.alarms import Alarm, AlarmKind, gravity_of


class LookMetrics:
    """The part of a process's metrics that is a watch's; told by its loop of each look. every: seconds between two."""

    def __init__(self, every: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._turned_at, self._is_busy = clock(), True
        self._looked_at: float | None = None
        self._standing = Counter[AlarmKind]()

    def begun(self) -> None:
        """A look begins; it may compute a disputed round again."""
        self._turned_at, self._is_busy = self._clock(), True

    def looked(self, alarms: Iterable[Alarm]) -> None:
        """It ended, and these alarms stand."""
        self._standing = Counter(alarm.kind for alarm in alarms)
        self._turned_at = self._looked_at = self._clock()

    def rests(self) -> None:
        """What it found was told, and the next look is waited for."""
        self._turned_at, self._is_busy = self._clock(), False

    @property
    def is_alive(self) -> bool:
        """Whether looks begin in time, and end."""
        return self._clock() - self._turned_at <= (BUSY_S if self._is_busy else self._every + IDLE_S)

    def conditions(self) -> dict[str, bool]:
        """See ProcessPart."""
        return {"looked": self._looked_at is not None}

    def states(self) -> Iterator[tuple[MetricName, list[Sample]]]:
        """See ProcessPart. Every kind, so that an alarm that ends is a zero and no gap."""
        if self._looked_at is None:
            return
        standing = self._standing
        yield names.LOOK_AGE, [((), self._clock() - self._looked_at)]
        yield names.ALARMS, [((kind.value, gravity_of(kind)), standing[kind]) for kind in AlarmKind]
