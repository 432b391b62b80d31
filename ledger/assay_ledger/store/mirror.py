"""One store that is written to in the background (`mirrored.MirroredStore`).

What it refuses waits behind the rest and is tried ever more seldom; what does not fit is not mirrored; both are said.
"""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Final

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest
from assay_ledger.store.blobs import BlobStore, ObjectMismatch
from assay_ledger.store.errors import StoreSilent

QUEUE_BYTES: Final = 1 << 28
QUEUE_CALLS: Final = 4096
"""What may wait for one mirror; above it the newest is not mirrored. An object that is larger waits as its digest."""

RETRY_S: Final = 2.0
MOST_RETRY_S: Final = 600.0
"""Between two tries of what was refused: each twice as late. Not of bytes in memory that a silent store did not take,
of which nothing was sent."""

_LOG = logging.getLogger("assay.store")


@dataclass(frozen=True, slots=True)
class CopiedWrite:
    """The write of an object that no queue holds: read from the store that took it."""

    source: BlobStore
    digest: Digest
    size: int
    wanted: bytes
    """SHA-256 of its bytes as they are stored."""
    name: str | None

    def __call__(self, store: BlobStore) -> None:
        """Raises ObjectMismatch where its source has other bytes by now."""
        stored = self.source.get_stored(self.digest, self.size)
        if sha256(stored).digest() != self.wanted:
            raise ObjectMismatch(f"{self.source.location} has other bytes than it took.")
        store.put_as(self.digest, stored, self.name)


@dataclass(slots=True, eq=False)
class _Waiting:
    """A write that its mirror has not taken. Times by `time.monotonic`, in seconds."""

    write: Callable[[BlobStore], object]
    size: int
    due: float = -math.inf
    pause: float = 0.0

    def refused(self, error: UnavailableError) -> None:
        """When it is tried again."""
        is_held = not isinstance(self.write, CopiedWrite)
        self.pause = RETRY_S if is_held and isinstance(error, StoreSilent) else min(2 * self.pause, MOST_RETRY_S)
        # Attack: other bytes in its place, all of which are read every ten minutes for as long as the process lives.
        # Whoever puts the right ones there again has them mirrored anew.
        self.pause = math.inf if isinstance(error, ObjectMismatch) else max(self.pause, RETRY_S)
        self.due = time.monotonic() + self.pause

    def anew(self) -> None:
        """It is tried at once, as at first."""
        if self.pause != math.inf:
            self.due, self.pause = -math.inf, 0.0


class Mirror:
    """What a store has not refused yet in order, then what it has; slots, of which only the latest counts, by name.

    Objects and their names may come in any order. A slot that was refused is not tried again, so that nothing older
    follows a newer one.
    """

    def __init__(self, store: BlobStore, queue_bytes: int) -> None:
        self.store = store
        self._most = queue_bytes
        self._waits: deque[_Waiting] = deque()
        self._refused: list[_Waiting] = []
        self._bytes = 0
        self._slots: dict[str, bytes] = {}
        self._refused_slots: set[str] = set()
        self._changed = threading.Condition()
        self._is_started = False
        self._is_well = True
        self.dropped = 0

    def put(self, source: BlobStore, digest: Digest, stored: bytes, name: str | None) -> None:
        """Queues an object that another store took; what does not fit is dropped and said."""
        if len(stored) > self._most:
            waiting = _Waiting(CopiedWrite(source, digest, len(stored), sha256(stored).digest(), name), 0)
        else:
            waiting = _Waiting(lambda s: s.put_as(digest, stored, name), len(stored))
        with self._changed:
            if self._bytes + waiting.size > self._most or len(self._waits) + len(self._refused) >= QUEUE_CALLS:
                self.dropped += 1
                if self.dropped & (self.dropped - 1) == 0:  # said at the 1st, 2nd, 4th, ...
                    _LOG.warning(
                        "%s does not keep up: %d objects are not mirrored to it.", self.store.location, self.dropped
                    )
                return
            self._waits.append(waiting)
            self._bytes += waiting.size
            self._wake()

    def slot(self, name: str, data: bytes) -> None:
        """Queues the latest bytes of a slot in place of earlier ones."""
        with self._changed:
            self._slots[name] = data
            self._wake()

    @property
    def waiting(self) -> int:
        """Writes that the store has not taken yet."""
        with self._changed:
            return len(self._waits) + len(self._refused) + len(self._slots)

    def flush(self, seconds: float) -> bool:
        """Tries what was refused at once, and waits until nothing waits any more; False where that takes longer."""
        with self._changed:
            for waiting in self._refused:
                waiting.anew()
            self._changed.notify_all()
            return self._changed.wait_for(lambda: not (self._waits or self._refused or self._slots), seconds)

    def _wake(self) -> None:
        if not self._is_started:
            self._is_started = True
            threading.Thread(target=self._run, daemon=True, name="assay-mirror").start()
        self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not (self._slots or self._next()):
                    self._changed.wait(self._rest())
                name = next(iter(self._slots), None)
                data = None if name is None else self._slots[name]
                waiting = self._next()
            if name is not None and data is not None:
                error = self._tried(lambda s: s.write_slot(name, data))  # noqa: B023 (called at once)
                (self._refused_slots.add if error else self._refused_slots.discard)(name)
                with self._changed:
                    if self._slots.get(name) is data:
                        del self._slots[name]  # a heartbeat that failed is worth no second try
            error = None if waiting is None else self._tried(waiting.write)
            with self._changed:
                if waiting is not None:
                    self._settle(waiting, error)
                self._changed.notify_all()
            if not self._is_well and not self._refused and not self._refused_slots:
                self._is_well = True
                _LOG.warning("%s takes what is written to it again.", self.store.location)
            if error is not None:
                time.sleep(RETRY_S)

    def _next(self) -> _Waiting | None:
        """What is written next: what was not refused yet, then what is due again."""
        # Attack: one object that a store refuses for good, and all that comes after it waits.
        if self._waits:
            return self._waits[0]
        due = min(self._refused, key=lambda waiting: waiting.due, default=None)
        return due if due is not None and due.due <= time.monotonic() else None

    def _rest(self) -> float | None:
        """Seconds until something that was refused is due; None: nothing was."""
        if not self._refused:
            return None
        first = min(waiting.due for waiting in self._refused)
        return min(max(first - time.monotonic(), 0.0), MOST_RETRY_S)

    def _settle(self, waiting: _Waiting, error: UnavailableError | None) -> None:
        if self._waits and self._waits[0] is waiting:
            self._waits.popleft()
        else:
            self._refused.remove(waiting)
        if error is None:
            self._bytes -= waiting.size
        else:
            waiting.refused(error)
            self._refused.append(waiting)

    def _tried(self, write: Callable[[BlobStore], object]) -> UnavailableError | None:
        """What the store says against a write."""
        try:
            write(self.store)
        except UnavailableError as error:
            # Once until nothing is refused any more: a mirror that takes nothing must not be found out when it is read.
            _LOG.log(
                logging.WARNING if self._is_well else logging.INFO,
                "%s does not take what is written to it: %s",
                *(self.store.location, error.message),
            )
            self._is_well = False
            return error
        return None
