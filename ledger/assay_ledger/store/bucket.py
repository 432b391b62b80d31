"""A store behind a network, through obstore: S3 and what speaks its language, Google, Azure, plain HTTP, memory.

All of it runs on one event loop in a thread of its own. A call that takes too long is cancelled there: its connection
is closed. What had arrived is kept for the object's next read, within MAX_HALVES_BYTES, so that an object that fits no
action's time comes in several, and a large upload goes on (`assay_ledger.store.uploads`); nothing else is left behind
however often a server hangs or drips.
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections import OrderedDict
from collections.abc import Coroutine
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from assay_ledger.deadline import within_budget
from assay_ledger.store.errors import ObjectTooLarge, ObjectTruncated
from assay_ledger.store.interfaces import ObjectVersion
from assay_ledger.store.uploads import Uploads, part_bytes, version_taken

if TYPE_CHECKING:
    from obstore import GetResult, ObjectMeta
    from obstore.store import ObjectStore

_CHUNK_BYTES: Final = 1 << 16
_GRACE_S: Final = 1.0
"""For the loop's own thread, beyond the deadline that it keeps itself."""

_BROKEN_OFF: Final = re.compile(r"after \d+ retries|request or response body error")
"""How the client says that it tried again in vain: the server closes, refuses connections, or fails by its own word.

All else is an answer, and may be about one object: strangers can put objects that a bucket answers 400 for, or whose
headers no client accepts.
"""

_STATUS: Final = re.compile(r"status code: (\d{3}[\w ]*)")
_SAID: Final = re.compile(r"<(Code|Message)>([^<]{1,200})</\1>")
"""How the client passes on what the server says: behind the address of the object, twice, where no line shows it."""

_DENIED: Final = "code: AccessDenied"
"""How the client says that one key of a deletion was refused."""

RESUMED_IN_VAIN: Final = 2
"""How often in a row a download is taken up again that brings nothing new."""

MAX_HALVES_BYTES: Final = 1 << 28
"""Of objects of which a part has arrived, in all; of the one that was begun first all is kept."""

STALE_S: Final = 600.0
"""What was not asked for in so many seconds gives way to all others: the longest that an action waits, twice."""

T = TypeVar("T")


@dataclass(slots=True)
class _Half:
    """What has arrived of an object of `size` bytes."""

    size: int = 0
    version: ObjectVersion | None = None
    """None where it was written anew between two of its parts, or has no tag."""

    data: bytearray = field(default_factory=bytearray)
    begun: float = 0.0
    kept: float = 0.0
    """When it was kept for the first time and the last one, by the loop's clock."""


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="assay-bucket").start()
    return loop


def _within(work: Coroutine[Any, Any, T], seconds: float) -> T:
    """The result of a coroutine on the loop. Raises TimeoutError, ConnectionError, PermissionError, OSError."""
    from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError

    if seconds <= 0:
        work.close()
        raise TimeoutError("no time is left")
    answer: Future[T] = asyncio.run_coroutine_threadsafe(work, _loop())
    try:
        return answer.result(seconds + _GRACE_S)
    except TimeoutError:
        answer.cancel()
        raise TimeoutError(f"no answer in {seconds:.3g} s") from None
    except FileNotFoundError:
        raise
    except (PermissionDeniedError, UnauthenticatedError) as error:
        raise PermissionError(_word(error)) from None
    except BaseError as error:
        if _DENIED in str(error):
            raise PermissionError(_word(error)) from None
        kind = ConnectionError if _BROKEN_OFF.search(str(error).partition("\n")[0]) else OSError
        raise kind(_word(error)) from None


def _version_of(found: ObjectMeta) -> ObjectVersion:
    """By its tag, size and time: a tag may be an MD5 alone, of which somebody who makes both finds two with one."""
    return ObjectVersion(f"{found['e_tag']} {found['size']}", f"{found['last_modified']}")


def _word(error: Exception) -> str:
    """What the server said, if it said something: its status, and the code and words behind it."""
    text = str(error)
    status = _STATUS.search(text)
    return text if status is None else ": ".join([status[1].strip(), *(said[2] for said in _SAID.finditer(text))])


class Bucket:
    """See `assay_ledger.store.interfaces.Backend`, whose errors those of obstore come out as."""

    def __init__(self, backend: ObjectStore) -> None:
        self._backend = backend
        self._halves: OrderedDict[str, _Half] = OrderedDict()
        """By path, the one that was kept last at the end; of the loop's thread alone."""
        self._uploads = Uploads(backend)

    def read(self, path: str, max_bytes: int, seconds: float, bytes_per_s: int) -> tuple[bytes, ObjectVersion | None]:
        """The bytes of an object. The size that is announced, if it is allowed, adds to the time."""
        most = within_budget(seconds + max_bytes / bytes_per_s)
        return _within(self._read(path, max_bytes, seconds, bytes_per_s, most), most)

    async def _read(
        self, path: str, max_bytes: int, seconds: float, bytes_per_s: int, most: float
    ) -> tuple[bytes, ObjectVersion | None]:
        from obstore.exceptions import BaseError

        half = self._halves.pop(path, None) or _Half()
        had = len(half.data)
        try:
            await self._go_on(path, half, max_bytes, seconds, bytes_per_s, most)
        except (TimeoutError, asyncio.CancelledError):
            self._keep(path, half)
            raise
        except BaseError:
            # A server that refuses what is missing may have another object by now: then all of it is asked for again.
            if len(half.data) > had:
                self._keep(path, half)
            raise
        if len(half.data) < half.size:
            raise ObjectTruncated(f"{path} ended after {len(half.data)} of {half.size} bytes.")
        return bytes(half.data), half.version

    async def _go_on(
        self, path: str, half: _Half, max_bytes: int, seconds: float, bytes_per_s: int, most: float
    ) -> None:
        """Reads what is missing of an object."""
        import obstore
        from obstore.exceptions import BaseError

        start, data = asyncio.get_running_loop().time(), half.data
        if data and len(data) == half.size:  # the time was over when its last byte had come
            return
        async with asyncio.timeout(seconds) as limit:
            if data:
                found = await self._rest(path, half)
            else:
                found = await obstore.get_async(self._backend, path)
                half.size = int(found.meta["size"])
                # Attack: a server without tags, whose times are whole seconds, or none: who is quick writes unseen.
                half.version = None if found.meta["e_tag"] is None else _version_of(found.meta)
            if half.size > max_bytes:
                raise ObjectTooLarge(f"{path} has {half.size} bytes; it may have {max_bytes}.")
            limit.reschedule(start + min(seconds + (half.size - len(data)) / bytes_per_s, most))
            in_vain = 0
            while True:
                had = len(data)
                try:
                    async for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
                        data += chunk
                        if len(data) > max_bytes:
                            raise ObjectTooLarge(f"{path} goes on after the {max_bytes} bytes that it may have.")
                    return
                except BaseError:
                    # Attack: a byte a connection. The time that the size allows ends that, as it ends dripping.
                    in_vain = in_vain + 1 if len(data) == had else 0
                    if in_vain > RESUMED_IN_VAIN or not data:
                        raise
                    found = await self._rest(path, half)

    def _keep(self, path: str, half: _Half) -> None:
        """Keeps what has arrived of an object for its next read; of a small one, which may be a message, nothing."""
        if len(half.data) >= _CHUNK_BYTES:
            half.kept = asyncio.get_running_loop().time()
            half.begun = half.begun or half.kept
            self._halves[path] = half
        while len(self._halves) > 1 and sum(len(h.data) for h in self._halves.values()) > MAX_HALVES_BYTES:
            del self._halves[self._least_wanted()]

    def _least_wanted(self) -> str:
        """What goes first: what nobody asks for any more, else the oldest but the one that was begun first.

        Bad luck: of large objects that are asked for in turn the newest took what had come of the others, for ever.
        """
        now, oldest = asyncio.get_running_loop().time(), next(iter(self._halves))
        if now - self._halves[oldest].kept > STALE_S:
            return oldest
        first = min(self._halves, key=lambda path: self._halves[path].begun)
        return next(path for path in self._halves if path != first)

    async def _rest(self, path: str, half: _Half) -> GetResult:
        """An object from the byte on at which its download broke off: what has arrived is not asked for again."""
        import obstore

        found = await obstore.get_async(self._backend, path, options={"range": (len(half.data), half.size)})
        if int(found.meta["size"]) != half.size:
            raise ObjectTruncated(f"{path} had {half.size} bytes and now has {found.meta['size']}.")
        if half.version != _version_of(found.meta):
            half.version = None
        return found

    def read_range(self, path: str, start: int, length: int, max_bytes: int, seconds: float, bytes_per_s: int) -> bytes:
        """Some bytes of an object, by a range request; a server that ignores the range is cut off."""
        allowed = within_budget(seconds + length / bytes_per_s)

        async def read() -> bytes:
            import obstore

            async with asyncio.timeout(allowed):
                found = await obstore.get_async(self._backend, path, options={"range": (start, start + length)})
                if int(found.meta["size"]) > max_bytes:
                    raise ObjectTooLarge(f"{path} has {found.meta['size']} bytes; it may have {max_bytes}.")
                data = bytearray()
                async for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
                    data += chunk
                    if len(data) > length:
                        raise ObjectTooLarge(f"{path} goes on after the {length} bytes that were asked for.")
            if len(data) < length:
                raise ObjectTruncated(f"{path} gave {len(data)} of the {length} bytes that were asked for.")
            return bytes(data)

        return _within(read(), allowed)

    def write(self, path: str, data: bytes, seconds: float, bytes_per_s: int) -> ObjectVersion | None:
        """Puts an object; the upload of a large one goes on when the caller's time is over, for its next put."""
        allowed = within_budget(seconds + len(data) / bytes_per_s)
        part = part_bytes(len(data))
        # A message that comes late would be written over a newer one.
        if len(data) > part and path.startswith("objects/"):
            look = partial(self._look, path)
            return _within(self._uploads.put(path, data, allowed, seconds, bytes_per_s, look), allowed)

        async def write() -> ObjectVersion | None:
            import obstore

            async with asyncio.timeout(allowed):
                taken = await obstore.put_async(self._backend, path, data, chunk_size=part)
            return version_taken(taken["e_tag"], len(data))

        return _within(write(), allowed)

    def version(self, path: str, seconds: float) -> ObjectVersion | None:
        """Which object is there; None where there is none."""

        async def look() -> ObjectVersion | None:
            async with asyncio.timeout(seconds):
                return await self._look(path)

        return _within(look(), seconds)

    async def _look(self, path: str) -> ObjectVersion | None:
        import obstore

        try:
            return _version_of(await obstore.head_async(self._backend, path))
        except FileNotFoundError:
            return None

    def paths(self, prefix: str, after: str, limit: int, seconds: float) -> list[str]:
        """At most `limit` paths below a prefix and after a path, in the store's order; those that came in time."""
        return [path for path, _ in self.sizes(prefix, after, limit, seconds)]

    def sizes(self, prefix: str, after: str, limit: int, seconds: float) -> list[tuple[str, int]]:
        """The same, each with its size."""
        found: list[tuple[str, int]] = []

        async def walk() -> None:
            import obstore

            async with asyncio.timeout(seconds):
                async for batch in obstore.list(self._backend, prefix=prefix, offset=after or None):
                    found.extend((entry["path"], int(entry["size"])) for entry in batch)
                    if len(found) >= limit:
                        return

        try:
            _within(walk(), seconds)
        except TimeoutError:
            if not found:
                raise
        return found[:limit]

    def delete(self, path: str, seconds: float) -> None:
        """Deletes an object."""

        async def delete() -> None:
            import obstore

            async with asyncio.timeout(seconds):
                await obstore.delete_async(self._backend, path)

        with suppress(FileNotFoundError):
            _within(delete(), seconds)
