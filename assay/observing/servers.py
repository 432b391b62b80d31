"""What a server of answers shows: whether its event loop turns, what became of requests, and what they brought in."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Histogram

from assay.observing import names
from assay.observing.metrics import Sample
from assay.observing.names import MetricName

LOOP_S: Final = 30.0
"""An event loop that has not turned for so long answers nobody: it turns ten times a second."""

ANSWERS: Final = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
"""Bounds in seconds: the last but one is what an answer may take unless its server is told otherwise."""

COMPLETIONS: Final = "/v1/completions"
"""The path whose answers are timed: lists and refusals take no time, and would hide how long those take."""


class ServerMetrics:
    """Is a ServerObserver, and the part of a process's metrics that is a server's.

    counts: what is kept elsewhere and read at each scrape. wants: conditions of readiness beside that it serves.
    """

    def __init__(self, registry: CollectorRegistry, clock: Callable[[], float] = time.monotonic) -> None:
        self.counts: dict[MetricName, Callable[[], int]] = {}
        self.wants: dict[str, Callable[[], bool]] = {}
        self._clock = clock
        self._ticked_at: float | None = None
        name = names.SERVED_REQUESTS
        requests = Counter(name.name, name.text, name.labels, registry=registry)
        # Looked up once: a request is counted by one addition.
        self._classes = [requests.labels("none"), *(requests.labels(f"{digit}xx") for digit in range(1, 6))]
        name = names.ANSWER_SECONDS
        self._seconds = Histogram(name.name, name.text, registry=registry, buckets=ANSWERS)

    def ticked(self) -> None:
        """See ServerObserver."""
        self._ticked_at = self._clock()

    def answered(self, path: str, status: int, seconds: float) -> None:
        """See ServerObserver."""
        self._classes[status // 100].inc()
        if status == 200 and path == COMPLETIONS:
            self._seconds.observe(seconds)

    @property
    def is_alive(self) -> bool:
        """Whether the event loop turns; what only starts, and loads a model, is alive."""
        return self._ticked_at is None or self._clock() - self._ticked_at <= LOOP_S

    def conditions(self) -> dict[str, bool]:
        """See ProcessPart."""
        is_serving = self._ticked_at is not None and self.is_alive
        return {"serving": is_serving} | {name: holds() for name, holds in self.wants.items()}

    def states(self) -> Iterator[tuple[MetricName, list[Sample]]]:
        """See ProcessPart."""
        for name, count in self.counts.items():
            yield name, [((), count())]
