"""Uploads of large objects to a bucket, which go on when an action's time is over: the next put of one waits for it.

    put             an object's upload begins, or goes on, and is waited for as long as the caller may
    time is over    it goes on in the background, unless others of MAX_WAITING_BYTES in all do so already
    put again       what was taken meanwhile is looked at, since others may have written or deleted it

One that brings nothing within the time that its next parts may take ends by itself, and begins anew when it is put
again. All of it runs on the loop of `assay_ledger.store.bucket`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from assay_ledger.store.interfaces import ObjectVersion

if TYPE_CHECKING:
    from obstore.store import ObjectStore

UPLOAD_BYTES: Final = 5 << 20
MOST_PARTS: Final = 10_000
"""A larger object is uploaded in parts, of which S3 takes so many: more would be refused after 49 GiB of them."""

AT_ONCE: Final = 4
"""Parts that are under way; more of them, and a server that takes nothing any more is found out later."""

MAX_WAITING_BYTES: Final = 1 << 28
"""Of objects whose uploads go on though nobody waits for them, in all; the first may have any size."""

MAX_TAKEN: Final = 256
"""Uploads that ended while nobody waited, of which it is known."""

Look = Callable[[], Awaitable[ObjectVersion | None]]


def part_bytes(size: int) -> int:
    """Bytes of a part of an object of that size."""
    return max(UPLOAD_BYTES, -(-size // MOST_PARTS))


@dataclass(slots=True)
class _Upload:
    size: int
    task: asyncio.Task[ObjectVersion | None]


class Uploads:
    """Of one bucket, by path. Whoever puts an object under its digest puts right bytes, however they are packed."""

    def __init__(self, backend: ObjectStore) -> None:
        self._backend = backend
        self._uploads: dict[str, _Upload] = {}

    async def put(
        self, path: str, data: bytes, allowed: float, seconds: float, bytes_per_s: int, look: Look
    ) -> ObjectVersion | None:
        """Uploads an object, or goes on with it, for the `allowed` seconds.

        Raises TimeoutError, ConnectionError where nothing is taken any more, obstore's errors.
        """
        async with asyncio.timeout(allowed):
            upload = self._uploads.get(path)
            if upload is not None and (upload.size != len(data) or await self._is_gone(upload, look)):
                self._end(path, upload)
                upload = None
            if upload is None:
                put = self._put(path, data, seconds, bytes_per_s)
                upload = self._uploads[path] = _Upload(len(data), asyncio.get_running_loop().create_task(put))
                # An error of an upload that nobody waits for is nobody's: the next put begins it anew.
                upload.task.add_done_callback(lambda task: task.cancelled() or task.exception())
            try:
                taken = await asyncio.shield(upload.task)
            except asyncio.CancelledError:
                if upload.task.cancelled():
                    raise TimeoutError("its upload was given up for others") from None
                self._leave(path, upload)
                raise
            except BaseException:
                self._end(path, upload)
                raise
            self._end(path, upload)
            return taken

    async def _is_gone(self, upload: _Upload, look: Look) -> bool:
        """Whether one that ended failed, or is not what is there: others may have written over it since."""
        from obstore.exceptions import BaseError

        if not upload.task.done():
            return False
        if upload.task.cancelled() or upload.task.exception() is not None:
            return True
        try:
            taken, found = upload.task.result(), await look()
        except BaseError:
            return True
        return taken is None or found is None or not taken.is_of(found)

    def _leave(self, path: str, upload: _Upload) -> None:
        """The time of whoever waited for it is over."""
        others = sum(other.size for other in self._uploads.values() if other is not upload and not other.task.done())
        if others and others + upload.size > MAX_WAITING_BYTES:
            self._end(path, upload)
        while len(self._uploads) > MAX_TAKEN:
            self._end(*next(iter(self._uploads.items())))

    def _end(self, path: str, upload: _Upload) -> None:
        upload.task.cancel()
        if self._uploads.get(path) is upload:
            del self._uploads[path]

    async def _put(self, path: str, data: bytes, seconds: float, bytes_per_s: int) -> ObjectVersion | None:
        import obstore

        size, part, loop = len(data), part_bytes(len(data)), asyncio.get_running_loop()
        end = loop.time() + seconds + size / bytes_per_s
        try:
            async with asyncio.timeout_at(end) as limit:

                async def parts() -> AsyncIterator[bytes]:
                    for at in range(0, size, part):
                        # Bad luck: a server that is started anew, and a connection that nobody ends.
                        limit.reschedule(min(end, loop.time() + seconds + (AT_ONCE + 1) * part / bytes_per_s))
                        yield data[at : at + part]

                put = obstore.put_async(self._backend, path, parts(), chunk_size=part, max_concurrency=AT_ONCE)
                return version_taken((await put)["e_tag"], size)
        except TimeoutError:
            if loop.time() < end:
                raise ConnectionError("it takes nothing any more") from None
            raise


def version_taken(tag: str | None, size: int) -> ObjectVersion | None:
    """What a server says of what it took: its tag, and not its time."""
    return None if tag is None else ObjectVersion(f"{tag} {size}", None)
