"""Calls to others that may never return: each is cut off after seconds, and what is waited in all is bounded.

    Budget      seconds that one action may wait for others; its own calculation does not count
    Lane        threads for calls that nothing can interrupt; one that outlasts its seconds is left behind
    Breaker     somebody who gave no answer twice is not asked for a while

Source: docs/adr/0027-time-of-stores-and-nodes.md.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from contextvars import ContextVar
from queue import SimpleQueue
from typing import Final, TypeVar

MAX_LOST: Final = 8
"""Threads of a lane that may hang at once; beyond it every call is refused at once. A thread costs about 100 KB."""

SILENCES: Final = 2
REST_S: Final = 5.0
MAX_REST_S: Final = 60.0
"""A minute is what others wait for somebody at a round's stages (`grace`): who rests longer is not back in time."""

T = TypeVar("T")


class Budget:
    """Seconds that are left for waiting. `clock` gives seconds that never run back."""

    def __init__(self, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.left = seconds
        self.clock = clock

    @contextmanager
    def charged(self) -> Iterator[None]:
        """What the block takes is spent."""
        start = self.clock()
        try:
            yield
        finally:
            self.left = max(self.left - (self.clock() - start), 0.0)


_BUDGET: ContextVar[Budget | None] = ContextVar("assay_budget", default=None)


@contextmanager
def waiting_at_most(seconds: float, clock: Callable[[], float] = time.monotonic) -> Iterator[Budget]:
    """All calls to stores in this block together may wait so long; in a narrower block, no longer than that.

    A narrower block has the clock of the wider one.
    """
    outer = _BUDGET.get()
    budget = Budget(seconds, clock) if outer is None else Budget(min(seconds, outer.left), outer.clock)
    given = budget.left
    token = _BUDGET.set(budget)
    try:
        yield budget
    finally:
        _BUDGET.reset(token)
        if outer is not None:
            outer.left = max(outer.left - (given - budget.left), 0.0)


@contextmanager
def waiting(seconds: float) -> Iterator[float]:
    """A call that may take `seconds`: gives how long it may take now, and spends what it takes from the budget."""
    budget = _BUDGET.get()
    if budget is None:
        yield seconds
        return
    with budget.charged():
        yield min(seconds, budget.left)


def within_budget(seconds: float) -> float:
    """How much of `seconds` a call may take now, where it takes more than it could say to `waiting`."""
    budget = _BUDGET.get()
    return seconds if budget is None else min(seconds, budget.left)


class _Thread:
    """A thread that runs one call after another until one of them was left behind."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[tuple[Future[object], Callable[[], object]]] = SimpleQueue()
        self.is_lost = False
        threading.Thread(target=self._run, daemon=True, name="assay-lane").start()

    def _run(self) -> None:
        while not self.is_lost:
            answer, call = self.calls.get()
            try:
                result = call()
            except BaseException as error:  # it belongs to the caller that waits for it
                answer.set_exception(error)
            else:
                answer.set_result(result)
            del answer, call


class Lane:
    """Runs calls in threads of its own, as many at once as there are callers. Safe to use from any thread."""

    def __init__(self, max_lost: int = MAX_LOST) -> None:
        self._max_lost = max_lost
        self._lock = threading.Lock()
        self._idle: list[_Thread] = []
        self.lost = 0
        """Calls that were left behind and have not returned yet."""

    def call(self, function: Callable[[], T], seconds: float) -> T:
        """The function's result. Raises TimeoutError when it takes longer, or when too many others hang already."""
        if seconds <= 0:
            raise TimeoutError("no time is left")
        with self._lock:
            if self.lost >= self._max_lost:
                raise TimeoutError(f"{self.lost} earlier calls hang")
            worker = self._idle.pop() if self._idle else _Thread()
        answer: Future[T] = Future()
        worker.calls.put((answer, function))  # type: ignore[arg-type]
        try:
            return answer.result(seconds)
        except TimeoutError:
            if answer.done():
                raise
            with self._lock:
                worker.is_lost = True
                self.lost += 1
            answer.add_done_callback(self._found)
            raise TimeoutError(f"no answer in {seconds:.3g} s") from None
        finally:
            if not worker.is_lost:
                with self._lock:
                    self._idle.append(worker)

    def _found(self, _: Future[T]) -> None:
        with self._lock:
            self.lost -= 1


class Breaker:
    """A party silent SILENCES times in a row is not asked again for a while, twice as long after each further time.

    A hiccup ends many calls, those side by side and those that fail at once: all that fails within the `call_s` seconds
    of a silent call, or while it lasts, is one silence. `clock` gives seconds that never run back.
    """

    def __init__(self, call_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._call_s = call_s
        self._clock = clock
        self._silences = 0
        self._same_until = float("-inf")
        self._until = float("-inf")

    @property
    def rests_for(self) -> float:
        """Seconds until somebody may ask again; 0 when now."""
        return max(self._until - self._clock(), 0.0)

    def asked(self) -> float:
        """When a call begins, for `silent`."""
        return self._clock()

    def silent(self, asked: float) -> None:
        """The call that began at `asked` had no answer, or was broken off."""
        if asked < self._same_until:
            return
        now = self._clock()
        self._same_until = max(now, asked + self._call_s)
        self._silences += 1
        if self._silences >= SILENCES:
            # All that fails within a call's seconds is one silence: a shorter rest would be none.
            rest = max(REST_S, self._call_s) * 2 ** min(self._silences - SILENCES, 16)
            self._until = now + min(rest, max(MAX_REST_S, self._call_s))

    def answered(self) -> None:
        """Somebody answered, whatever it was."""
        self._silences = 0
        self._until = float("-inf")
