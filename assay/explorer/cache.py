"""Pages that are rendered once for everybody: kept while nothing that they show has changed, named by their content.

A page knows what it is about: events of another round, member or game leave it as it is. What took long to make is
shown for ten times as long, so that no page takes more than a tenth of a processor, however many people ask for it and
however fast the chain grows. Nothing is shown for longer than `LONGEST_S` after anything at all has changed.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay.explorer.lookups import UNANSWERED

MOST_BYTES: Final = 128 << 20
"""Of all pages kept; the ones asked for longest ago go first."""

SHARE: Final = 10
"""How many times as long as it took to make an answer is shown."""

LEAST_S: Final = 2.0
"""An answer is shown for so long anyhow: whoever looks at a page asks for it again every 4 s."""

LONGEST_S: Final = 30.0
"""After so long an answer is made anew, however long that takes: what changes with the clock alone is no older."""

AT_ONCE: Final = 2
"""Answers that are made at the same time, the first asked for first; more would only take turns at one interpreter."""

PACKED_FROM: Final = 1_024
"""Bytes from which an answer is sent compressed to whoever can read that."""

PACKED_LEVEL: Final = 3

NOT_KEPT: Final = ("/api/v1/stream",)


@dataclass(frozen=True, slots=True)
class PageState:
    """What a page is made of now: `shown` is what no page may be late with, `about` changes with what the page is
    about (None: it is about everything), `asked` with what was asked for besides events, `everything` with anything."""

    shown: object
    about: object
    asked: object
    everything: object


@dataclass(slots=True)
class KeptAnswer:
    """A whole answer: `state` is what it was made of, at a second `made` of the monotonic clock; it is shown anyway
    `until` another. `waits`: something it shows was still being asked for. `packed` is the body compressed, once."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    tag: str
    state: PageState
    made: float
    until: float
    waits: bool
    packed: bytes | None = None

    def is_fresh(self, state: PageState) -> bool:
        """Whether it may be shown, what pages are made of being this by now."""
        # Attack, or bad luck: a node that stands still, and readers who take an old page for the run as it is.
        if self.state.shown != state.shown:
            return False
        now = time.monotonic()
        if self.state == state or now <= self.until:
            return True
        is_same = state.about is not None and self.state.about == state.about
        return is_same and not (self.waits and self.state.asked != state.asked) and now <= self.made + LONGEST_S

    @property
    def size(self) -> int:
        """Bytes that it takes."""
        return len(self.body) + len(self.packed or b"")


class PageCache:
    """Answers GET requests from what was made before. `state_of` tells what the page of a path (and of a query) is made
    of now; None keeps none."""

    def __init__(self, app: ASGIApp, state_of: Callable[[str, bytes], PageState | None]) -> None:
        self._app, self._state_of = app, state_of
        self._kept: OrderedDict[bytes, KeptAnswer] = OrderedDict()
        self._bytes = 0
        self._making: dict[bytes, asyncio.Future[KeptAnswer | None]] = {}
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        is_read = scope["type"] == "http" and scope["method"] in ("GET", "HEAD")
        state = self._state_of(scope["path"], scope["query_string"]) if is_read else None
        if state is None or scope["path"] in NOT_KEPT:
            await self._app(scope, receive, send)
            return
        key = scope["raw_path"] + b"?" + scope["query_string"]
        answer = self._fresh(key, state)
        while answer is None:
            others = self._making.get(key)
            if others is None:
                answer = await self._make(key, state, scope, receive)
            else:
                answer = await asyncio.shield(others)
        await self._send(answer, scope, send)

    def _fresh(self, key: bytes, state: PageState) -> KeptAnswer | None:
        found = self._kept.get(key)
        if found is None or not found.is_fresh(state):
            return None
        self._kept.move_to_end(key)
        return found

    async def _make(self, key: bytes, state: PageState, scope: Scope, receive: Receive) -> KeptAnswer:
        """Runs the application once for all who ask for the same."""
        promise: asyncio.Future[KeptAnswer | None] = asyncio.get_running_loop().create_future()
        self._making[key] = promise
        try:
            async with self._turns:
                answer = await self._run(state, {**scope, "method": "GET"}, receive)
            if answer.status == 200:
                self._keep(key, answer)
            promise.set_result(answer)
            return answer
        finally:
            del self._making[key]
            if not promise.done():
                promise.set_result(None)

    async def _run(self, state: PageState, scope: Scope, receive: Receive) -> KeptAnswer:
        began, unanswered = time.monotonic(), list[object]()
        status, headers, parts = 500, (), list[bytes]()

        async def collect(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], tuple(message["headers"])
            else:
                parts.append(message.get("body", b""))

        token = UNANSWERED.set(unanswered)
        try:
            await self._app(scope, receive, collect)
        finally:
            UNANSWERED.reset(token)
        body, now = b"".join(parts), time.monotonic()
        tag = hashlib.blake2b(body, digest_size=12).hexdigest()
        until = now + min(LONGEST_S, max(LEAST_S, SHARE * (now - began)))
        return KeptAnswer(status, headers, body, tag, state, began, until, bool(unanswered))

    def _keep(self, key: bytes, answer: KeptAnswer) -> None:
        old = self._kept.pop(key, None)
        self._kept[key] = answer
        self._count(answer.size - (0 if old is None else old.size))

    def _count(self, more: int) -> None:
        self._bytes += more
        while self._bytes > MOST_BYTES:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= gone.size

    def _packed(self, key: bytes, answer: KeptAnswer) -> bytes:
        """The body compressed: once for everybody."""
        if answer.packed is None:
            answer.packed = gzip.compress(answer.body, PACKED_LEVEL, mtime=0)
            if self._kept.get(key) is answer:
                self._count(len(answer.packed))
        return answer.packed

    async def _send(self, answer: KeptAnswer, scope: Scope, send: Send) -> None:
        """The answer, or 304 where whoever asks has it already."""
        asked = dict(scope["headers"])
        left = (b"etag", b"cache-control", b"vary")
        headers = [(name, value) for name, value in answer.headers if name not in left]
        status, body = answer.status, answer.body
        if status == 200:
            packs = len(body) >= PACKED_FROM and b"gzip" in asked.get(b"accept-encoding", b"")
            tag = f'"{answer.tag}-gzip"' if packs else f'"{answer.tag}"'
            headers += [(b"etag", tag.encode()), (b"cache-control", b"no-cache"), (b"vary", b"accept-encoding")]
            if answer.tag.encode() in asked.get(b"if-none-match", b""):
                status, body, packs = 304, b"", False
            if packs:
                body = self._packed(scope["raw_path"] + b"?" + scope["query_string"], answer)
                headers.append((b"content-encoding", b"gzip"))
            if status == 304 or packs:
                headers = [(name, value) for name, value in headers if name != b"content-length"]
                headers = [h for h in headers if h[0] != b"content-type"] if status == 304 else headers
            if packs:
                headers.append((b"content-length", str(len(body)).encode()))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
