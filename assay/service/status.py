"""What a service shows of its children: one health, one readiness, and how often each was started."""

from __future__ import annotations

import urllib.error
from collections.abc import Iterator
from importlib.metadata import version
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from assay.observing import names
from assay.observing.metrics import Sample, family
from assay.service.backoff import ChildState
from assay.service.keeping import Child, Children
from assay_ledger.chain.node import direct

ASK_S: Final = 2.0
"""How long a child may take to say whether it is ready."""


class ServiceStatus(Collector):
    """Is shown by a StatusServer."""

    def __init__(self, children: Children) -> None:
        self._children = children
        self._registry = CollectorRegistry()
        self._registry.register(self)

    @property
    def is_alive(self) -> bool:
        """Whether every child runs and turns, or is done: one that was given up, or waits to be started, is not."""
        return all(c.state is ChildState.DONE or _answers(c, "/health") for c in self._children.all)

    def conditions(self) -> dict[str, bool]:
        """Of each child by name, whether it is ready."""
        return {c.entry.name: c.state is ChildState.DONE or _answers(c, "/ready") for c in self._children.all}

    def text(self) -> bytes:
        """The service's own metrics; each child has a page of its own."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        """See Collector."""
        children = self._children.all
        yield family(names.BUILD_INFO, [((version("assay"),), 1.0)])
        # A role whose run is over has ended for good, and as it should: at 0 it would raise an alert for ever.
        left = [c for c in children if c.state is not ChildState.DONE]
        up: list[Sample] = [((c.entry.name, c.entry.role), float(c.state is ChildState.RUNNING)) for c in left]
        yield family(names.CHILD_UP, up)
        yield family(names.CHILD_STARTS, [((c.entry.name,), float(c.starts)) for c in children])


def _answers(child: Child, path: str) -> bool:
    """Whether it runs, and where it shows metrics at a port that is known, answers this page with 200."""
    if child.state is not ChildState.RUNNING:
        return False
    place = child.entry.metrics
    if place is None or place.endswith(":0"):
        return True
    try:
        with direct().open(f"http://{place}{path}", timeout=ASK_S) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False
