"""What a process shows over HTTP, read as Prometheus and a service manager read it."""

from __future__ import annotations

import json
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from assay_ledger.chain.node import direct

Samples = dict[str, list[tuple[dict[str, str], float]]]

SOON_S = 180.0
"""For two looks of a probe and an answer."""


def page(place: str, path: str) -> tuple[int, bytes]:
    """Status and body of one page."""
    try:
        with direct().open(f"http://{place}{path}", timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def judged(place: str, path: str) -> tuple[int, Any]:
    """Status and document of /health or /ready."""
    status, body = page(place, path)
    return status, json.loads(body)


def samples_of(text: bytes) -> Samples:
    """Samples by name, each with its labels, as Prometheus' own parser reads them."""
    found: Samples = {}
    for family in text_string_to_metric_families(text.decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def scrape(place: str) -> Samples:
    """The samples of a process."""
    status, body = page(place, "/metrics")
    assert status == 200
    return samples_of(body)


def wait_until(place: str, holds: Callable[[Samples], bool]) -> Samples:
    """Until what a process shows is so."""
    end = time.monotonic() + SOON_S
    while not holds(found := scrape(place)):
        assert time.monotonic() < end, {n: v for n, v in found.items() if "rpc" not in n and "_store" not in n}
        time.sleep(0.2)
    return found


def counted(samples: Samples, name: str, label: str) -> dict[str, float]:
    """What was counted by one label, without zeros."""
    return {has[label]: n for has, n in samples.get(name, []) if n}


def one(samples: Samples, name: str, **labels: str) -> float:
    """The value of the one sample with these labels, 0 where there is none."""
    values = [value for has, value in samples.get(name, []) if labels.items() <= has.items()]
    assert len(values) < 2, (name, labels, values)
    return values[0] if values else 0.0


def free_place() -> str:
    """A place on this machine that nobody listened on a moment ago."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"
