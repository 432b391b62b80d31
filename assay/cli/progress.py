"""What takes long says that it goes on: a bar at a terminal, elsewhere a line now and then; what is short says nothing.

All of it is said on stderr: stdout is data.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress
from rich.table import Column

from assay.cli.common import talk
from assay.durations import duration

if TYPE_CHECKING:
    from assay_ledger.store.blobs import BlobStore

AFTER_S: Final = 1.0
"""From when on a bar is drawn: what is over sooner would only flicker."""

EVERY_S: Final = 5.0
"""Between two plain lines, and before the first."""

DRAWN_EVERY_S: Final = 0.2

Measure = Callable[[], str]
"""Words on how far something is, asked now and then from another thread."""


class LongWork:
    """One thing that may take long, and how many of its parts are done."""

    def __init__(self, doing: str, total: int | None = None, measure: Measure = lambda: "") -> None:
        self.doing, self.total, self.done = doing, total, 0
        self._measure, self._began, self._is_over = measure, time.monotonic(), threading.Event()
        self._thread = threading.Thread(target=self._tell, name="progress", daemon=True)

    def __call__(self, count: int = 1) -> None:
        """So many more parts are done."""
        self.done += count

    def begin(self) -> None:
        """Tells of itself from now on, if it is long."""
        self._thread.start()

    def end(self) -> None:
        """Tells nothing more; what was drawn is gone."""
        self._is_over.set()
        self._thread.join()

    def line(self) -> str:
        """How far it is, for where nothing is drawn."""
        parts = [] if self.total is None else [f"{self.done} of {self.total}"]
        parts += [said for said in (self._measure(),) if said]
        return f"{self.doing}: {', '.join([*parts, f'{duration(round(time.monotonic() - self._began))} so far'])}"

    def _tell(self) -> None:
        if talk.is_terminal:
            if not self._is_over.wait(AFTER_S):
                self._draw()
            return
        while not self._is_over.wait(EVERY_S):
            talk.print(self.line(), markup=False, soft_wrap=True)

    def _draw(self) -> None:
        counted: list[ProgressColumn] = [] if self.total is None else [MofNCompleteColumn()]
        with RichProgress(
            TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True, overflow="ellipsis")),
            BarColumn(bar_width=16),
            *counted,
            TextColumn("{task.fields[said]}", markup=False, table_column=Column(no_wrap=True)),
            TimeElapsedColumn(),
            console=talk,
            transient=True,
            auto_refresh=False,
            get_time=time.monotonic,
        ) as drawn:
            task = drawn.add_task(self.doing, total=self.total, said="")
            drawn.tasks[0].start_time = self._began
            while not self._is_over.wait(DRAWN_EVERY_S):
                drawn.update(task, completed=self.done, said=self._measure(), refresh=True)


_begun = threading.Lock()
"""Held while something is told: what it does inside is a part of it, and a terminal has one place to draw in."""


@contextmanager
def progress(doing: str, total: int | None = None, measure: Measure = lambda: "") -> Iterator[LongWork]:
    """A block that may take long. It gets what it calls after each of its `total` parts, where these are known."""
    work = LongWork(doing, total, measure)
    if not _begun.acquire(blocking=False):
        yield work
        return
    try:
        work.begin()
        yield work
    finally:
        work.end()
        _begun.release()


@contextmanager
def told_steps(measure: Measure = lambda: "") -> Iterator[Callable[[str], None]]:
    """A block of steps: what it gets says each as it begins, and that it goes on while it lasts."""
    with ExitStack() as stack:

        def say(text: str) -> None:
            stack.close()
            talk.print(text, markup=False, soft_wrap=True)
            stack.enter_context(progress(text, measure=measure))

        yield say


def moved(store: BlobStore) -> Measure:
    """How much a store gave and took from now on."""
    before = _bytes_of(store)
    return lambda: size(_bytes_of(store) - before)


def written(folder: Path) -> Measure:
    """How much lies in folders that are made beside one, under its name, before they take its place."""

    def measure() -> str:
        try:
            files = (file for beside in folder.parent.glob(f".{folder.name}-*") for file in beside.rglob("*"))
            return size(sum(file.stat().st_size for file in files if file.is_file()))
        except OSError:  # it took its place meanwhile
            return ""

    return measure


def size(count: int) -> str:
    """Bytes as people read them; nothing for none."""
    if count < 1_000_000:
        return f"{count / 1e3:.0f} kB" if count else ""
    return f"{count / 1e6:.1f} MB" if count < 1_000_000_000 else f"{count / 1e9:.2f} GB"


def _bytes_of(store: BlobStore) -> int:
    return store.traffic.bytes_read + store.traffic.bytes_written
