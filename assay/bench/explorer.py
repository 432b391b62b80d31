"""How long readers of the explorer wait: many at once on a long run that goes on growing, pages of every kind."""

from __future__ import annotations

import json
import os
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
from assay.bench.page_readers import AGAIN
from assay.explorer.documents import hexed
from assay.explorer.reader import RunReader
from assay.explorer.server import serve_reader
from assay_ledger.chain.client import Head

BAR_S: Final = 0.5
"""What p99 is to stay under."""

SLICE: Final = 5_000
PER_BLOCK: Final = 16
"""Events that come every second while pages are read."""

RUNS: Final = 3
"""Of each load; the median counts, and all are told."""

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
    """What is measured. A reader opens a page, reads it for `pause` seconds on average while `live.js` asks for it
    again, and goes on, for `seconds`; without a pause it asks for one page after another and for none again. Each load
    `runs` times."""

    events: int
    readers: int
    seconds: float
    pauses: tuple[float, ...]
    runs: int = RUNS


def measure(terms: ReadingTerms, say: Callable[[str], None]) -> dict[str, Any]:
    """Fills a reader, serves it, and lets readers read, without a pause and with one."""
    reader, told = RunReader(ImaginedRun()), None
    began, worked, taken = time.monotonic(), time.process_time(), 0
    source = imagined_events(reader.run, terms.events + 10_000)
    while taken < terms.events and (told := list(islice(source, SLICE))):
        reader.take(reader.known, told, _head(told))
        taken += len(told)
    seconds, worked = time.monotonic() - began, time.process_time() - worked
    say(f"{taken:,} events folded in {seconds:.0f} s")
    reader.heard()
    reader.follow()
    document: dict[str, Any] = {
        "events": taken,
        "events_per_s": round(taken / seconds),
        "events_per_cpu_s": round(taken / worked),
        "readers": terms.readers,
        "memory_mb_before": _memory_mb(),
        "bar_s": BAR_S,
        "loads": [],
    }
    with serve_reader(reader, 0) as server, _growing(reader, source):
        for pause in terms.pauses:
            cpu = time.process_time()
            runs = [_load(server.url, pages_of(reader), terms, pause) for _ in range(terms.runs)]
            cpu = time.process_time() - cpu
            runs.sort(key=lambda rows: rows[-1].p99_s)
            rows = runs[len(runs) // 2]
            pages, answers = (next(row for row in rows if row.kind == kind) for kind in ("pages", "all"))
            document["loads"].append(
                {
                    "pause_s": pause,
                    "pages_per_s": round(pages.answers / terms.seconds, 1),
                    "answers_per_s": round(answers.answers / terms.seconds, 1),
                    "p50_s": pages.p50_s,
                    "p99_s": pages.p99_s,
                    "p99_s_of_runs": [next(row.p99_s for row in run if row.kind == "pages") for run in runs],
                    "met": pages.p99_s < BAR_S,
                    "processors": round(cpu / (terms.runs * terms.seconds), 2),
                    "machine_load": round(os.getloadavg()[0], 1),
                    "kinds": [asdict(row) for row in rows],
                }
            )
            say(f"pause {pause} s: {pages.answers / terms.seconds:.0f} pages/s, p99 {pages.p99_s:.3f} s")
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


def _load(url: str, paths: dict[str, list[str]], terms: ReadingTerms, pause: float) -> list[PageTimes]:
    """By kind; the last but one are all pages, the last all answers, pages that were asked for again among them."""
    command = [sys.executable, "-m", "assay.bench.page_readers", url]
    done = subprocess.run(
        [*command, str(terms.readers), str(terms.seconds), str(pause)],
        input=json.dumps(paths),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    found["pages"] = [second for kind, seconds in found.items() if kind != AGAIN for second in seconds]
    found["all"] = [*found["pages"], *found.get(AGAIN, [])]
    return [_times(kind, seconds) for kind, seconds in found.items()]


def _times(kind: str, seconds: list[float]) -> PageTimes:
    cuts = statistics.quantiles(seconds, n=100, method="inclusive") if len(seconds) > 1 else seconds * 99
    return PageTimes(kind, len(seconds), round(cuts[49], 4), round(cuts[98], 4), round(max(seconds), 4))


@contextmanager
def _growing(reader: RunReader, source: Iterator[ToldEvent]) -> Iterator[None]:
    """Events go on coming while the block lasts."""
    stop = threading.Event()

    def grow() -> None:
        while not stop.wait(1.0) and (told := list(islice(source, PER_BLOCK))):
            reader.take(reader.known, told, _head(told))
            reader.heard()

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
