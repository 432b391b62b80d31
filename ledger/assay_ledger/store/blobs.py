"""The artifact store: bytes by their SHA-256, in a local folder or an S3-compatible object store.

    objects/<first 2 hex digits>/<64 hex digits>    the bytes
    names/<name>/<64 hex digits>                    an empty marker: "this name was given to these bytes"
    slots/<name>                                    the latest small message under a name (heartbeats)

A store is trusted with nothing, time included. Every read is bounded before memory is taken and hashed before it is
returned; bytes that do not hash to their digest prove nothing about anybody, so all of it is UnavailableError, never
fraud. Every call ends within seconds, and a store that was silent, or broke calls off, is not asked for a while.
Markers only add: one name may stand for several digests, and the reader decides which bytes are the ones it needs.
Objects appear whole or not at all (written beside and renamed; object stores do so by nature).

Source: docs/adr/0008-store-and-keys.md; docs/stores.md.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlparse

from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.types import Digest
from assay_ledger.deadline import Breaker, waiting
from assay_ledger.store.bucket import Bucket
from assay_ledger.store.errors import (
    ObjectMismatch,
    ObjectMissing,
    ObjectNameInvalid,
    ObjectTooLarge,
    ObjectTruncated,
    StoreAddressInvalid,
    StoreDenied,
    StoreFails,
    StoreSilent,
    StoreUnreachable,
    first_line,
    remedy_for,
)
from assay_ledger.store.folder import Folder
from assay_ledger.store.interfaces import (
    MAX_LISTED,
    ArtifactStore,
    Backend,
    ObjectVersion,
    SlotStore,
    StorePace,
    StoreTraffic,
)
from assay_ledger.store.packing import unpacked
from assay_ledger.store.telling import CallListener, tell_nobody, told
from assay_ledger.store.versions import RightVersions

__all__ = [
    "ArtifactStore",
    "BlobStore",
    "ObjectMismatch",
    "ObjectMissing",
    "ObjectNameInvalid",
    "ObjectTooLarge",
    "ObjectTruncated",
    "SlotStore",
    "StoreAddressInvalid",
    "StoreDenied",
    "StorePace",
    "StoreSilent",
    "StoreUnreachable",
    "marker_of",
    "object_path",
    "open_store",
]

SURVEY_S: Final = 60.0
PAGE: Final = 1 << 16
"""Of a survey of everything that lies in a store: for how long a call may list, and how many paths."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}(/[A-Za-z0-9][A-Za-z0-9._-]{0,127}){0,7}")
_MARKER = re.compile(r"names/(.+)/([0-9a-f]{64})")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
_OF_ONE_OBJECT: Final = (StoreFails, StoreDenied)
"""What a store may say of one object, and takes another in its place. Attack: a member writes it with a key of its own
(S3 answers all others 400 or 403), or leaves it to itself alone; S3 says 403 of what is missing, too, to some."""
_RETRY: Final[dict[str, Any]] = {"max_retries": 2, "retry_timeout": timedelta(seconds=5)}
_CLIENT: Final = {"connect_timeout": "5s", "timeout": "3600s"}
"""The client's own limit is never reached: `StorePace` ends every call, by the object's size."""


class BlobStore:
    """An ArtifactStore and SlotStore over a folder or what obstore reaches: memory, S3 and what speaks its language.

    Safe to use from several threads. Every kind of call has a breaker of its own: a store that answers listings and
    hangs on objects is not asked for objects. `clock` gives seconds that never run back.
    """

    def __init__(
        self,
        backend: Backend,
        location: str,
        pace: StorePace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._backend = backend
        self._pace = pace or StorePace()
        self.right = RightVersions()
        self._breakers = {kind: Breaker(self._pace.call_s, clock) for kind in ("read", "write", "look", "list", "slot")}
        self.location = location
        self.traffic = StoreTraffic()
        self._on_call: CallListener = tell_nobody

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"

    def tell_calls(self, listener: CallListener) -> None:
        """From now on a listener is told of every call; see CallListener."""
        self._on_call = listener

    def put(self, data: bytes, name: str | None = None, packed: bytes | None = None) -> Digest:
        digest = Digest(hashlib.sha256(data).digest())
        self.put_as(digest, data if packed is None else packed, name)
        return digest

    def put_as(self, digest: Digest, stored: bytes, name: str | None = None) -> None:
        """Puts what stands for the bytes of a digest: themselves, or packed ones."""
        if name is not None:
            _check_name(name)
        # Always written: it replaces a damaged copy, and the rename shows either the old or the new one.
        self.right.note(digest, self._write(object_path(digest), stored, "write"))
        if name is not None:
            self._write(f"names/{name}/{digest.hex()}", b"", "write")

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        return self.get_sized(digest, max_bytes)[0]

    def get_sized(self, digest: Digest, max_bytes: int) -> tuple[bytes, int]:
        """The same, and how many bytes they take in the store."""
        stored, version = self._read(object_path(digest), max_bytes, "read")
        actual = hashlib.sha256(stored).digest()
        if actual == digest:
            self.right.note(digest, version)
            return stored, len(stored)
        data = unpacked(stored, max_bytes)
        if data is not None:
            # Attack: planes of the right sizes with other numbers in them.
            actual = hashlib.sha256(data).digest()
        if data is None or actual != digest:
            raise ObjectMismatch(f"{object_path(digest)} in {self.location} hashes to {actual.hex()}.")
        self.right.note(digest, version)
        return data, len(stored)

    def get_stored(self, digest: Digest, max_bytes: int) -> bytes:
        """What lies there for the bytes of a digest, not hashed."""
        return self._read(object_path(digest), max_bytes, "read")[0]

    def get_range(self, digest: Digest, start: int, length: int, max_bytes: int) -> bytes:
        """Some bytes of an object of at most `max_bytes` as they lie, not hashed: whoever asks holds a hash of these.

        Of an object that lies packed they are others.
        """
        path = object_path(digest)
        with self._asking(path, "read") as seconds:
            data = self._backend.read_range(path, start, length, max_bytes, seconds, self._pace.bytes_per_s)
        self.traffic.add("read", read=len(data))
        return data

    def has(self, digest: Digest) -> bool:
        return self._lists(object_path(digest))

    def is_named(self, digest: Digest, name: str) -> bool:
        return self._lists(f"names/{name}/{digest.hex()}")

    def _lists(self, path: str) -> bool:
        try:
            return self._version(path) is not None
        except _OF_ONE_OBJECT as error:
            self._check_others(error)
            return False

    def _check_others(self, error: UnavailableError) -> None:
        """Raises StoreFails where the store fails as it failed of one object also of one that nobody can have written.

        Bad luck: a disk or a bucket that fails of everything is no store that lost it all: whoever holds something puts
        it there again at each look, gigabytes each time.
        """
        if isinstance(error, StoreFails):
            with suppress(StoreDenied):  # S3 says that of what is missing, to some
                self._version(object_path(Digest(os.urandom(32))))

    def serves(self, digest: Digest, max_bytes: int) -> bool:
        try:
            version = self._version(object_path(digest))
            if version is None or self.right.has(digest, version):
                return version is not None
            # Attack: other bytes in the place of the right ones: whoever may write and not delete can do that.
            self.get(digest, max_bytes)
        except _OF_ONE_OBJECT as error:
            self._check_others(error)
            return False
        except StoreUnreachable:
            raise
        except UnavailableError:
            return False
        return True

    def _version(self, path: str) -> ObjectVersion | None:
        with self._asking(path, "look") as seconds:
            found = self._backend.version(path, seconds)
        self.traffic.add("look")
        return found

    def list(self, prefix: str, limit: int = MAX_LISTED) -> tuple[tuple[str, Digest], ...]:
        _check_name(prefix)
        return tuple(sorted({marker for path in self._paths(prefix, "", limit) if (marker := marker_of(path))}))

    def candidates(self, name: str, after: Digest | None = None) -> Iterator[Digest]:
        _check_name(name)
        last = "" if after is None else f"names/{name}/{after.hex()}"
        # A store that shows the same page again must not be read for ever.
        while paths := [path for path in self._paths(name, last, MAX_LISTED) if path > last]:
            yield from (marker[1] for path in paths if (marker := marker_of(path)) and marker[0] == name)
            last = max(paths)

    def _paths(self, prefix: str, after: str, limit: int) -> builtins.list[str]:
        with self._asking(prefix, "list") as seconds:
            found = self._backend.paths(f"names/{prefix}", after, limit, seconds)
        self.traffic.add("list")
        return found

    def write_slot(self, name: str, data: bytes) -> None:
        _check_name(name)
        self._write(f"slots/{name}", data, "slot")

    def read_slot(self, name: str, max_bytes: int) -> bytes:
        _check_name(name)
        return self._read(f"slots/{name}", max_bytes, "slot")[0]

    def list_slots(self, prefix: str, limit: int = MAX_LISTED) -> tuple[str, ...]:
        _check_name(prefix)
        with self._asking(prefix, "slot") as seconds:
            paths = self._backend.paths(f"slots/{prefix}", "", limit, seconds)
        self.traffic.add("slot")
        names = {path.removeprefix("slots/") for path in paths}
        return tuple(sorted(name for name in names if _NAME.fullmatch(name)))

    def entries(self, top: str) -> Iterator[tuple[str, int]]:
        """Every path below `objects`, `names` or `slots` with its size in bytes, in the order of paths.

        For whoever keeps a store, not for actors: a page may take SURVEY_S.
        """
        last = ""
        while True:
            with self._asking(top, "list") as seconds:
                found = self._backend.sizes(top, last, PAGE, max(seconds, SURVEY_S))
            self.traffic.add("list")
            # A store that shows the same page again must not be read for ever.
            page = sorted(entry for entry in found if entry[0] > last)
            if not page:
                return
            yield from page
            last = page[-1][0]

    def delete(self, path: str) -> None:
        """Removes what `entries` listed there; nothing is there afterwards."""
        with self._asking(path, "write") as seconds:
            self._backend.delete(path, seconds)
        self.traffic.add("write")

    def _read(self, path: str, max_bytes: int, kind: str) -> tuple[bytes, ObjectVersion | None]:
        """At most `max_bytes` bytes: a store that announces, or sends, more must not cost us the memory."""
        with self._asking(path, kind) as seconds:
            data, version = self._backend.read(path, max_bytes, seconds, self._pace.bytes_per_s)
        self.traffic.add(kind, read=len(data))
        return data, version

    def _write(self, path: str, data: bytes, kind: str) -> ObjectVersion | None:
        with self._asking(path, kind) as seconds:
            version = self._backend.write(path, data, seconds, self._pace.bytes_per_s)
        self.traffic.add(kind, written=len(data))
        return version

    @contextmanager
    def _asking(self, path: str, kind: str) -> Iterator[float]:
        """One call as `_calling` makes it, of which the listener is told."""
        with told(self._on_call, kind), self._calling(path, kind) as seconds:
            yield seconds

    @contextmanager
    def _calling(self, path: str, kind: str) -> Iterator[float]:
        """One call, unless the store rests: gives its seconds, notes whether it was answered, and names errors."""
        breaker = self._breakers[kind]
        if rests := breaker.rests_for:
            raise StoreSilent(f"{self.location} did not answer and is not asked for another {rests:.0f} s.")
        asked = breaker.asked()
        try:
            with waiting(self._pace.call_s) as seconds:
                yield seconds
        except TimeoutError as error:
            # Cut short by a caller with little time left: that says nothing about the store. Who had a call's seconds
            # and was cut short in the body was too slow for what waits: another store may be faster.
            if seconds >= self._pace.call_s:
                breaker.silent(asked)
            raise StoreSilent(f"{self.location} does not answer ({path}: {first_line(error)}).") from None
        except AssayError:
            breaker.answered()
            raise
        except FileNotFoundError:
            breaker.answered()
            raise ObjectMissing(f"{path} is missing in {self.location}.") from None
        except PermissionError as error:
            breaker.answered()
            why, remedy = first_line(error), remedy_for(error)
            raise StoreDenied(f"{self.location} refuses access ({why}).", remedy=remedy) from None
        except ConnectionError as error:
            # A store that breaks every call off costs each its retries: it rests like one that is silent.
            breaker.silent(asked)
            why, remedy = first_line(error), remedy_for(error)
            raise StoreUnreachable(f"{self.location} breaks off ({why}).", remedy=remedy) from None
        except OSError as error:
            breaker.answered()
            raise StoreFails(f"{self.location} fails ({first_line(error)}).", remedy=remedy_for(error)) from None
        else:
            breaker.answered()


def open_store(location: str | Path, pace: StorePace | None = None) -> BlobStore:
    """The store at a folder (made if need be) or an address: s3://, gs://, az://, http(s)://, file://, memory://.

    Credentials and endpoints come from the environment (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_ALLOW_HTTP, ...).
    Nothing is asked of the store yet. Raises StoreAddressInvalid.
    """
    try:
        named = folder_named(str(location))
        if named is not None:
            folder = named.expanduser().resolve()
            return BlobStore(Folder(folder), str(folder), pace)
    except (OSError, ValueError) as error:
        raise StoreAddressInvalid(f"{location} cannot be used as a store ({first_line(error)}).") from None
    return BlobStore(_bucket(str(location)), str(location), pace)


def folder_named(location: str) -> Path | None:
    """The folder of a store that lies in one, by its path or its address; as written. Raises ValueError."""
    scheme = _SCHEME.match(location)
    if scheme is None:
        return Path(location)
    return Path(unquote(urlparse(location).path)) if scheme[1] == "file" else None


def _bucket(location: str) -> Bucket:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError:
        raise StoreAddressInvalid(
            f"{location} cannot be used as a store: obstore, which reads buckets, is not installed.",
            remedy="Name a folder; `assay doctor` says what has no build for this machine.",
        ) from None
    options: Any = {}
    if not location.startswith("memory:"):
        plain = location.startswith("http:") or os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
        options = {"client_options": {**_CLIENT, "allow_http": plain}, "retry_config": _RETRY}
    try:
        return Bucket(from_url(location, **options))
    except (BaseError, OSError, ValueError) as error:
        raise StoreAddressInvalid(f"{location} cannot be used as a store ({first_line(error)}).") from None


def object_path(digest: Digest) -> str:
    """Where a digest's bytes lie. Raises ObjectNameInvalid."""
    text = digest.hex()
    if len(text) != 64:
        raise ObjectNameInvalid(f"A digest has 32 bytes, not {len(digest)}.")
    return f"objects/{text[:2]}/{text}"


def marker_of(path: str) -> tuple[str, Digest] | None:
    """Name and digest of a marker's path; None for whatever else lies there."""
    match = _MARKER.fullmatch(path)
    return (match[1], Digest(bytes.fromhex(match[2]))) if match and _NAME.fullmatch(match[1]) else None


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ObjectNameInvalid(f"{name!r} cannot name an object.")
