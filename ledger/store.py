"""The artifact store: bytes by their SHA-256, in a local folder or an S3-compatible object store.

    objects/<first 2 hex digits>/<64 hex digits>    the bytes
    names/<name>/<64 hex digits>                    an empty marker: "this name was given to these bytes"
    slots/<name>                                    the latest small message under a name (heartbeats)

A store is trusted with nothing. Every read is bounded before memory is taken and hashed before it is returned; bytes
that do not hash to their digest prove nothing about anybody, so all of it is UnavailableError, never fraud. Markers
only add: one name may stand for several digests, and whoever reads decides which bytes are the ones it needs.
Objects appear whole or not at all (obstore writes beside and renames; object stores do so by nature).

Source: design sections 5 (files named by digest, bounded before allocation) and 10.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from assay.protocol.errors import AssayError, ConfigError, UnavailableError, UsageError
from assay.protocol.types import Digest

if TYPE_CHECKING:
    from obstore.store import ObjectStore

MAX_LISTED: Final = 4096
MAX_CANDIDATES: Final = 64
"""Objects that are tried for one name: a flood of false ones costs this many reads."""
_CHUNK_BYTES: Final = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}(/[A-Za-z0-9][A-Za-z0-9._-]{0,127}){0,7}")
_MARKER = re.compile(r"names/(.+)/([0-9a-f]{64})")
_SCHEME = re.compile(r"([a-z][a-z0-9+.-]*)://")
_RETRY: Final[dict[str, Any]] = {"max_retries": 3, "retry_timeout": timedelta(seconds=30)}
_CLIENT: Final = {"connect_timeout": "5s", "timeout": "600s"}


class ObjectMissing(UnavailableError):
    """The store has no object of that digest."""

    remedy = "Wait for whoever published it, or name another store that has it."


class ObjectTooLarge(UnavailableError):
    """The object is larger than its place in the protocol allows; none of it was kept."""

    remedy = "Whoever put it there is at fault: fetch it from another store."


class ObjectTruncated(UnavailableError):
    """Fewer bytes arrived than the store announced."""

    remedy = "Try again; if it stays so, fetch the object from another store."


class ObjectMismatch(UnavailableError):
    """The bytes do not hash to the digest they are stored under."""

    remedy = "The copy is damaged: fetch it from another store, or ask its publisher to put it again."


class StoreDenied(UnavailableError):
    """The store refuses this account."""

    remedy = "Check the credentials (AWS_ACCESS_KEY_ID and the like, or the folder's permissions)."


class StoreUnreachable(UnavailableError):
    """The store does not answer, or its disk or bucket fails."""

    remedy = "Check the store's address and that it is up; then try again."


class StoreAddressInvalid(ConfigError):
    """What was given as a store is neither a folder nor a supported address."""

    remedy = "Name a folder, or an address such as s3://bucket/prefix."


class ObjectNameInvalid(UsageError):
    """A name that the index cannot hold."""

    remedy = "Use letters, digits, dots, dashes and underscores in at most 8 parts divided by slashes."


class ArtifactStore(Protocol):
    """What actors need of a store. All methods raise StoreUnreachable and StoreDenied."""

    def put(self, data: bytes, name: str | None = None) -> Digest:
        """Store bytes under their SHA-256, and a marker under `name` if given; repeating it is harmless.

        Raises ObjectNameInvalid.
        """
        ...

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        """The bytes of a digest, hashed. Raises ObjectMissing, ObjectTooLarge, ObjectTruncated, ObjectMismatch."""
        ...

    def has(self, digest: Digest) -> bool:
        """Does the store list an object of that digest? Only `get` proves that it is the right one."""
        ...

    def list(self, prefix: str, limit: int = MAX_LISTED) -> tuple[tuple[str, Digest], ...]:
        """At most `limit` markers whose name is `prefix` or lies under it, sorted. Raises ObjectNameInvalid."""
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


class BlobStore:
    """An ArtifactStore and SlotStore over obstore: folders, memory, S3 and what speaks its language."""

    def __init__(self, backend: ObjectStore, location: str) -> None:
        self._backend = backend
        self.location = location

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.location!r})"

    def put(self, data: bytes, name: str | None = None) -> Digest:
        import obstore

        if name is not None:
            _check_name(name)
        digest = Digest(hashlib.sha256(data).digest())
        with self._errors(_object_path(digest)):
            # Always written: it replaces a damaged copy, and the rename shows either the old or the new one.
            obstore.put(self._backend, _object_path(digest), data)
            if name is not None:
                obstore.put(self._backend, f"names/{name}/{digest.hex()}", b"")
        return digest

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        data = self._read(_object_path(digest), max_bytes)
        actual = hashlib.sha256(data).digest()
        if actual != digest:
            raise ObjectMismatch(f"{_object_path(digest)} in {self.location} hashes to {actual.hex()}.")
        return data

    def has(self, digest: Digest) -> bool:
        import obstore

        path = _object_path(digest)
        try:
            with self._errors(path):
                obstore.head(self._backend, path)
        except ObjectMissing:
            return False
        return True

    def list(self, prefix: str, limit: int = MAX_LISTED) -> tuple[tuple[str, Digest], ...]:
        _check_name(prefix)
        found: set[tuple[str, Digest]] = set()
        for path in self._paths(f"names/{prefix}"):
            # Whatever else lies there was not put there by this program.
            match = _MARKER.fullmatch(path)
            if match and _NAME.fullmatch(match[1]):
                found.add((match[1], Digest(bytes.fromhex(match[2]))))
            if len(found) >= limit:
                break
        return tuple(sorted(found))

    def write_slot(self, name: str, data: bytes) -> None:
        import obstore

        _check_name(name)
        with self._errors(f"slots/{name}"):
            obstore.put(self._backend, f"slots/{name}", data)

    def read_slot(self, name: str, max_bytes: int) -> bytes:
        _check_name(name)
        return self._read(f"slots/{name}", max_bytes)

    def list_slots(self, prefix: str, limit: int = MAX_LISTED) -> tuple[str, ...]:
        _check_name(prefix)
        found: set[str] = set()
        for path in self._paths(f"slots/{prefix}"):
            if _NAME.fullmatch(name := path.removeprefix("slots/")):
                found.add(name)
            if len(found) >= limit:
                break
        return tuple(sorted(found))

    def _read(self, path: str, max_bytes: int) -> bytes:
        """At most `max_bytes` bytes: a store that announces, or sends, more must not cost us the memory."""
        import obstore

        with self._errors(path):
            found = obstore.get(self._backend, path)
            announced = found.meta["size"]
            chunks, size = [], 0
            if announced <= max_bytes:
                for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
                    size += len(chunk)
                    if size > max_bytes:
                        break
                    chunks.append(bytes(chunk))
        if max(announced, size) > max_bytes:
            raise ObjectTooLarge(f"{path} in {self.location} has more than the {max_bytes} bytes it may have.")
        if size < announced:
            raise ObjectTruncated(f"{path} in {self.location} ended after {size} of {announced} bytes.")
        return b"".join(chunks)

    def _paths(self, prefix: str) -> Iterator[str]:
        import obstore

        with self._errors(prefix):
            for batch in obstore.list(self._backend, prefix=prefix):
                yield from (entry["path"] for entry in batch)

    @contextmanager
    def _errors(self, path: str) -> Iterator[None]:
        """obstore's errors as ours."""
        from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

        try:
            yield
        except AssayError:
            raise
        except FileNotFoundError:
            raise ObjectMissing(f"{path} is missing in {self.location}.") from None
        except (PermissionDeniedError, UnauthenticatedError, PermissionError) as error:
            raise StoreDenied(f"{self.location} refuses access ({_first_line(error)}).") from None
        except (BaseError, OSError) as error:
            raise StoreUnreachable(f"{self.location} fails ({_first_line(error)}).") from None


def get_named(store: ArtifactStore, name: str, max_bytes: int, accept: Callable[[bytes], bool]) -> bytes:
    """The first of at most MAX_CANDIDATES objects given a name that `accept` finds to be the right one.

    Anybody may give any bytes a name, so `accept` recomputes what the name promises (a root, say). Raises ObjectMissing
    when nothing has the name, ObjectMismatch when nothing that has it is accepted, and what `list` raises.
    """
    candidates = [digest for listed, digest in store.list(name, MAX_CANDIDATES) if listed == name]
    if not candidates:
        raise ObjectMissing(f"No object is named {name}.")
    reasons = []
    for digest in candidates:
        try:
            data = store.get(digest, max_bytes)
        except (ObjectMissing, ObjectTooLarge, ObjectTruncated, ObjectMismatch) as error:
            reasons.append(error.code)
            continue
        if accept(data):
            return data
        reasons.append("not what the name says")
    raise ObjectMismatch(f"Of {len(candidates)} objects named {name} none is the right one ({', '.join(reasons[:8])}).")


def open_store(location: str | Path) -> BlobStore:
    """The store at a folder (made if need be) or an address: s3://, gs://, az://, http(s)://, file://, memory://.

    Credentials and endpoints come from the environment (AWS_ENDPOINT_URL, AWS_ACCESS_KEY_ID, AWS_ALLOW_HTTP, ...).
    Nothing is asked of the store yet. Raises StoreAddressInvalid.
    """
    from obstore.exceptions import BaseError
    from obstore.store import LocalStore, from_url

    scheme = _SCHEME.match(str(location))
    try:
        if scheme is None:
            folder = Path(location).expanduser().resolve()
            return BlobStore(LocalStore(folder, mkdir=True), str(folder))
        options: Any = {}
        if scheme[1] not in ("file", "memory"):
            plain = scheme[1] == "http" or os.environ.get("AWS_ALLOW_HTTP", "").lower() in ("1", "true")
            options = {"client_options": {**_CLIENT, "allow_http": plain}, "retry_config": _RETRY}
        return BlobStore(from_url(str(location), **options), str(location))
    except (BaseError, OSError, ValueError) as error:
        raise StoreAddressInvalid(f"{location} cannot be used as a store ({_first_line(error)}).") from None


def _object_path(digest: Digest) -> str:
    text = digest.hex()
    if len(text) != 64:
        raise ObjectNameInvalid(f"A digest has 32 bytes, not {len(digest)}.")
    return f"objects/{text[:2]}/{text}"


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise ObjectNameInvalid(f"{name!r} cannot name an object.")


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
