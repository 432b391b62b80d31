"""How long readers of the explorer wait: many at once on a long run that goes on growing, pages of every kind."""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Final

from assay.bench.imagined_run import ImaginedRun, ToldEvent, imagined_events
from assay.explorer.documents import hexed
from assay.explorer.reader import RunReader
from assay.explorer.server import serve_reader
from assay_ledger.chain.client import Head

BAR_S: Final = 0.5
"""What p99 is to stay under."""

SLICE: Final = 5_000
PER_BLOCK: Final = 16
"""Events that come every second while pages are read."""

SAMPLE: Final = 300
"""Pages of a kind that readers choose from."""


@dataclass(frozen=True, slots=True)
class PageTimes:
    """Of one kind of page: answers, and seconds until they were there."""

    kind: str
    answers: int
    p50_s: float
    p99_s: float
    worst_s: float


@dataclass(frozen=True, slots=True)
class ReadingTerms:
    """What is measured: `pause` seconds on average between two pages of a reader, for `seconds`."""

    events: int
    readers: int
    seconds: float
    pauses: tuple[float, ...]


def measure(terms: ReadingTerms, say: Callable[[str], None]) -> dict[str, Any]:
    """Fills a reader, serves it, and lets readers read, without a pause and with one."""
    reader, told = RunReader(ImaginedRun()), None
    began, taken = time.monotonic(), 0
    source = imagined_events(reader.run, terms.events + 10_000)
    while taken < terms.events and (told := list(islice(source, SLICE))):
        reader.take(reader.known, told, _head(told))
        taken += len(told)
    seconds = time.monotonic() - began
    say(f"{taken:,} events folded in {seconds:.0f} s")
    reader.follow()
    document: dict[str, Any] = {
        "events": taken,
        "events_per_s": round(taken / seconds),
        "readers": terms.readers,
        "memory_mb_before": _memory_mb(),
        "bar_s": BAR_S,
        "loads": [],
    }
    with serve_reader(reader, 0) as server, _growing(reader, source):
        for pause in terms.pauses:
            rows, answers = _load(server.url, pages_of(reader), terms, pause)
            worst = max(row.p99_s for row in rows)
            document["loads"].append(
                {
                    "pause_s": pause,
                    "pages_per_s": round(answers / terms.seconds, 1),
                    "p99_s": rows[-1].p99_s,
                    "worst_kind_p99_s": worst,
                    "met": rows[-1].p99_s < BAR_S,
                    "kinds": [asdict(row) for row in rows],
                }
            )
            say(f"pause {pause} s: {answers / terms.seconds:.0f} pages/s, p99 {rows[-1].p99_s:.3f} s")
    return document | {"memory_mb_peak": _memory_mb()}


def pages_of(reader: RunReader) -> dict[str, list[str]]:
    """Addresses of pages by kind, spread over the whole run."""
    with reader.reading():
        shelves, rounds = reader.shelves, len(reader.state.books.commitments.rounds)
        seats = reader.run.charter.training.seats
        every = max(1, rounds * seats // SAMPLE)
        works, findings = shelves.works[::every], shelves.findings[::every]
        return {
            "front": ["/"],
            "round": [f"/rounds/{number}" for number in range(0, rounds, max(1, rounds // SAMPLE))],
            "commitment": [f"/commitments/{work.round}/{work.seat}" for work in works],
            "generation": [f"/generations/{number}" for number in range(0, rounds, max(1, rounds // SAMPLE))],
            "epoch": [f"/epochs/{number}" for number in range(0, rounds, max(1, rounds // SAMPLE))],
            "tenure": [f"/tenures/{number}" for number in range(1, seats + 1)],
            "ticket": [f"/tickets/{number}" for number in range(1, seats + 1)],
            "finding": [f"/findings/{hexed(record.id)}" for record in findings],
            "findings": [f"/findings?cursor={number}" for number in range(0, len(shelves.findings), 997)],
            "game": [f"/games/{game.game_id}" for game in shelves.games] or ["/"],
            "member": [f"/actors/{hexed(who)}" for who in reader.money.people],
            "events": [f"/events?cursor={number}" for number in range(100, len(reader.events), 9_973)],
            "events about": [f"/events?about={hexed(who)}" for who in reader.money.people],
            "search": [f"/search?q={hexed(work.digest)}" for work in works],
            "money": ["/money"],
            "card": ["/card"],
            "list": [f"/api/v1/commitments?cursor={number}" for number in range(0, len(shelves.works), 997)],
        }


def _load(url: str, paths: dict[str, list[str]], terms: ReadingTerms, pause: float) -> tuple[list[PageTimes], int]:
    command = [sys.executable, "-m", "assay.bench.page_readers", url]
    done = subprocess.run(
        [*command, str(terms.readers), str(terms.seconds), str(pause)],
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    found["all"] = [second for seconds in found.values() for second in seconds]
    rows = [_times(kind, seconds) for kind, seconds in sorted(found.items(), key=lambda pair: pair[0] == "all")]
    return rows, len(found["all"])


def _times(kind: str, seconds: list[float]) -> PageTimes:
    cuts = statistics.quantiles(seconds, n=100) if len(seconds) > 1 else seconds * 99
    return PageTimes(kind, len(seconds), round(cuts[49], 4), round(cuts[98], 4), round(max(seconds), 4))


@contextmanager
def _growing(reader: RunReader, source: Iterator[ToldEvent]) -> Iterator[None]:
    """Events go on coming while the block lasts."""
    stop = threading.Event()

    def grow() -> None:
        while not stop.wait(1.0) and (told := list(islice(source, PER_BLOCK))):
            reader.take(reader.known, told, _head(told))

    thread = threading.Thread(target=grow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _head(told: list[ToldEvent]) -> Head:
    _, found, at = told[-1]
    return Head(found.block, at)


def _memory_mb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
