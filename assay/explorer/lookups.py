"""What a node or a store has to be asked besides events: once each, by a thread where pages must not wait."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from typing import Any, Final, TypeVar, cast

from assay.protocol.errors import AssayError, UnavailableError

T = TypeVar("T")

UNANSWERED: Final[ContextVar[list[object] | None]] = ContextVar("unanswered", default=None)
"""Where whoever makes a page is told what was not there yet."""

AGAIN_AFTER_S: Final = 10.0
"""What failed is asked for again when somebody wants it, at most this often."""

MOST_WAITING: Final = 10_000
"""Whoever asks for more things at once than this asks again later."""


class Lookups:
    """Answers by key, `most` of them. Without `start`, whoever asks waits for the answer."""

    def __init__(self, name: str, most: int = 50_000) -> None:
        self._name, self._most = name, most
        self._answers: OrderedDict[Hashable, object] = OrderedDict()
        self._failed: dict[Hashable, tuple[float, AssayError]] = {}
        self._queue: deque[tuple[Hashable, Callable[[], object]]] = deque()
        self._waiting: set[Hashable] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._stops = False
        self.version = 0
        """Counts the answers that came in the background."""

    def start(self) -> None:
        """From here on a thread asks, and whoever wants an answer that is not there yet is told so."""
        self._stops = False
        self._thread = threading.Thread(target=self._work, name=f"explorer-{self._name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The thread ends after the question that it is at."""
        with self._changed:
            self._stops = True
            self._changed.notify_all()

    def get(self, key: Hashable, ask: Callable[[], T]) -> T:
        """The answer. Raises what `ask` raises, and UnavailableError (BeingFetched) while it is on its way."""
        with self._changed:
            if key in self._answers:
                self._answers.move_to_end(key)
                return cast(T, self._answers[key])
        if self._thread is None:
            found = ask()
            self._keep(key, found)
            return found
        if (unanswered := UNANSWERED.get()) is not None:
            unanswered.append(key)
        with self._changed:
            at, error = self._failed.get(key, (0.0, None))
            is_late = error is None or time.monotonic() - at > AGAIN_AFTER_S
            if is_late and key not in self._waiting and len(self._queue) < MOST_WAITING:
                self._waiting.add(key)
                self._queue.append((key, ask))
                self._changed.notify_all()
        if error is not None:
            raise error
        raise UnavailableError("It is being fetched.", code="BeingFetched", remedy="Look again in a moment.")

    def find(self, key: Hashable, ask: Callable[[], T]) -> T | None:
        """The same; None while it is on its way. Raises what `ask` raises where nobody fetches in the background."""
        try:
            return self.get(key, ask)
        except AssayError:
            if self._thread is None:
                raise
            return None

    def forget(self, wanted: Callable[[Any], bool] = lambda _: True) -> None:
        """Drops answers by their keys."""
        with self._changed:
            for key in [key for key in self._answers if wanted(key)]:
                del self._answers[key]

    def _keep(self, key: Hashable, found: object) -> None:
        with self._changed:
            self._answers[key] = found
            self._failed.pop(key, None)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)

    def _work(self) -> None:
        while True:
            with self._changed:
                while not self._queue and not self._stops:
                    self._changed.wait()
                if self._stops:
                    return
                key, ask = self._queue.popleft()
            try:
                self._keep(key, ask())
            except Exception as error:  # the thread outlives whatever an answer is made of
                known = error if isinstance(error, AssayError) else odd(error)
                with self._changed:
                    self._failed[key] = time.monotonic(), known
                    while len(self._failed) > MOST_WAITING:
                        del self._failed[next(iter(self._failed))]
            with self._changed:
                self._waiting.discard(key)
                self.version += 1


def odd(error: Exception) -> AssayError:
    """What is said where an answer is none that anybody foresaw."""
    return UnavailableError(
        f"What came back makes no sense ({type(error).__name__}: {error}).", code="RpcError", remedy="Try again."
    )
