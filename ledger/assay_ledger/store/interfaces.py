"""What actors need of a store, and what a store needs of the place where its bytes lie."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from assay.protocol.types import Digest

MAX_LISTED: Final = 4096


@dataclass(frozen=True, slots=True)
class StorePace:
    """How long a store may take: `call_s` seconds for any call, and a second for each `bytes_per_s` bytes of a body.

    An action's budget bounds both together; a store that was given `call_s` by it and took longer was silent.
    Slower than 256 KiB a second (2 Mbit) is no store for training. Who lowers `call_s` loses stores that are far away;
    who raises it waits so much longer for each of the first SILENCES calls to one that is silent.
    """

    call_s: float = 5.0
    bytes_per_s: int = 1 << 18


class StoreTraffic:
    """What one process asked of a store: calls and bytes of bodies, both ways. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.calls: dict[str, int] = {}
        """By kind: read, write, look, list, slot."""
        self.bytes_read = 0
        self.bytes_written = 0

    def add(self, kind: str, read: int = 0, written: int = 0) -> None:
        """A call was answered."""
        with self._lock:
            self.calls[kind] = self.calls.get(kind, 0) + 1
            self.bytes_read += read
            self.bytes_written += written


@dataclass(frozen=True, slots=True)
class ObjectVersion:
    """Which bytes lie at a path: another one after each time that somebody wrote there.

    `time` is None where whoever wrote them was not told it; `tag` alone may be the same for the same bytes.
    """

    tag: str
    time: str | None

    def is_of(self, later: ObjectVersion) -> bool:
        """Whether what was seen later is, as far as one can know, what was written or read as this one."""
        return self.tag == later.tag and self.time in (None, later.time)


class Backend(Protocol):
    """Where a store's bytes are. Raises TimeoutError, FileNotFoundError, PermissionError, ConnectionError, OSError.

    ConnectionError says that the store gave no answer; what is said of one object, or by a disk, is another OSError.
    `seconds` is for the whole call; reading and writing take a second more for each `bytes_per_s` bytes, but no more
    than the caller's budget has left (`deadline.within_budget`).
    """

    def read(self, path: str, max_bytes: int, seconds: float, bytes_per_s: int) -> tuple[bytes, ObjectVersion | None]:
        """The bytes, and their version where one is sure of it. Raises ObjectTooLarge, ObjectTruncated."""
        ...

    def read_range(self, path: str, start: int, length: int, max_bytes: int, seconds: float, bytes_per_s: int) -> bytes:
        """So many bytes of an object from a place on, no others; it may have `max_bytes` in all.

        Raises ObjectTooLarge, ObjectTruncated.
        """
        ...

    def write(self, path: str, data: bytes, seconds: float, bytes_per_s: int) -> ObjectVersion | None:
        """Replaces what is there; readers see the old bytes or the new ones. Gives the version, if it is told one."""
        ...

    def version(self, path: str, seconds: float) -> ObjectVersion | None:
        """Which bytes are there; None where nothing is to be read."""
        ...

    def paths(self, prefix: str, after: str, limit: int, seconds: float) -> list[str]:
        """At most `limit` paths below a prefix, after the path `after`, as far as the seconds reach."""
        ...

    def sizes(self, prefix: str, after: str, limit: int, seconds: float) -> builtins.list[tuple[str, int]]:
        """The same, each with its size in bytes."""
        ...

    def delete(self, path: str, seconds: float) -> None:
        """Removes what is there; nothing is there afterwards."""
        ...


class ArtifactStore(Protocol):
    """What actors need of a store. All methods raise StoreUnreachable and StoreDenied."""

    def put(self, data: bytes, name: str | None = None, packed: bytes | None = None) -> Digest:
        """Store bytes under their SHA-256, and a marker under `name` if given; repeating it is harmless.

        packed: what lies in the store for the bytes (`assay_ledger.store.packing`); `get` gives the bytes.
        Raises ObjectNameInvalid.
        """
        ...

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        """The bytes of a digest, hashed, however they lie in the store.

        Raises ObjectMissing, ObjectTooLarge, ObjectTruncated, ObjectMismatch.
        """
        ...

    def has(self, digest: Digest) -> bool:
        """Does the store list an object of that digest? Only `get` proves that it is the right one."""
        ...

    def is_named(self, digest: Digest, name: str) -> bool:
        """Does the store list that name of a digest? One look, however many others have it."""
        ...

    def serves(self, digest: Digest, max_bytes: int) -> bool:
        """Does it list an object of that digest whose bytes are the right ones, and give it to this account?

        They are read where somebody wrote there since this process put them or read them, and only then.
        """
        ...

    def list(self, prefix: str, limit: int = MAX_LISTED) -> tuple[tuple[str, Digest], ...]:
        """At most `limit` markers whose name is `prefix` or lies under it, sorted. Raises ObjectNameInvalid."""
        ...

    def candidates(self, name: str, after: Digest | None = None) -> Iterator[Digest]:
        """Every digest that was given exactly this name, in order, from the one after `after` on.

        Asks the store page by page, as far as it is read. Raises ObjectNameInvalid.
        """
        ...


class SlotStore(Protocol):
    """Names whose bytes change. Nothing vouches for them: what matters is signed inside, and its reader checks that.

    All methods raise ObjectNameInvalid, StoreUnreachable and StoreDenied.
    """

    def write_slot(self, name: str, data: bytes) -> None:
        """Replace what stands under a name; readers see the old bytes or the new ones."""
        ...

    def read_slot(self, name: str, max_bytes: int) -> bytes:
        """What stands under a name now. Raises ObjectMissing, ObjectTooLarge, ObjectTruncated."""
        ...

    def list_slots(self, prefix: str, limit: int = MAX_LISTED) -> tuple[str, ...]:
        """At most `limit` names under `prefix`, sorted."""
        ...
