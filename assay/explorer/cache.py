"""Pages that are rendered once for everybody: kept while nothing that they show has changed, named by their content.

What took long to make is shown for ten times as long, so that no page takes more than a tenth of a processor, however
many people ask for it and however fast the chain grows.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_BYTES: Final = 128 << 20
"""Of all pages kept; the ones asked for longest ago go first."""

SHARE: Final = 10
"""How many times as long as it took to make an answer is shown."""

LONGEST_S: Final = 30.0
"""After so long an answer is made anew, however long that takes."""

NOT_KEPT: Final = ("/api/v1/stream",)


State = tuple[object, object]


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """A whole answer: `state` is what it was made of; it is shown anyway `until` a second of the monotonic clock."""

    status: int
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes
    tag: bytes
    state: State
    until: float


class PageCache:
    """Answers GET requests from what was made before. `state_of` tells what pages are made of now, first what no page
    may be late with, then the rest; None keeps none."""

    def __init__(self, app: ASGIApp, state_of: Callable[[], State | None]) -> None:
        self._app, self._state_of = app, state_of
        self._kept: OrderedDict[bytes, KeptAnswer] = OrderedDict()
        self._bytes = 0
        self._making: dict[bytes, asyncio.Future[KeptAnswer | None]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        state = self._state_of() if scope["type"] == "http" and scope["method"] in ("GET", "HEAD") else None
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
        await _send(answer, scope, send)

    def _fresh(self, key: bytes, state: State) -> KeptAnswer | None:
        found = self._kept.get(key)
        if found is None or found.state[0] != state[0]:
            return None
        if found.state != state and time.monotonic() > found.until:
            return None
        self._kept.move_to_end(key)
        return found

    async def _make(self, key: bytes, state: State, scope: Scope, receive: Receive) -> KeptAnswer:
        """Runs the application once for all who ask for the same."""
        promise: asyncio.Future[KeptAnswer | None] = asyncio.get_running_loop().create_future()
        self._making[key] = promise
        try:
            answer = await self._run(state, {**scope, "method": "GET"}, receive)
            if answer.status == 200:
                self._keep(key, answer)
            promise.set_result(answer)
            return answer
        finally:
            del self._making[key]
            if not promise.done():
                promise.set_result(None)

    async def _run(self, state: State, scope: Scope, receive: Receive) -> KeptAnswer:
        began = time.monotonic()
        status, headers, parts = 500, (), list[bytes]()

        async def collect(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], tuple(message["headers"])
            else:
                parts.append(message.get("body", b""))

        await self._app(scope, receive, collect)
        body, now = b"".join(parts), time.monotonic()
        tag = b'"' + hashlib.blake2b(body, digest_size=12).hexdigest().encode() + b'"'
        return KeptAnswer(status, headers, body, tag, state, now + min(LONGEST_S, SHARE * (now - began)))

    def _keep(self, key: bytes, answer: KeptAnswer) -> None:
        old = self._kept.pop(key, None)
        self._bytes += len(answer.body) - (0 if old is None else len(old.body))
        self._kept[key] = answer
        while self._bytes > MOST_BYTES:
            _, gone = self._kept.popitem(last=False)
            self._bytes -= len(gone.body)


async def _send(answer: KeptAnswer, scope: Scope, send: Send) -> None:
    """The answer, or 304 where whoever asks has it already."""
    asked = [value for name, value in scope["headers"] if name == b"if-none-match"]
    headers = [(name, value) for name, value in answer.headers if name not in (b"etag", b"cache-control")]
    status, body = answer.status, answer.body
    if status == 200:
        headers += [(b"etag", answer.tag), (b"cache-control", b"no-cache")]
        if any(answer.tag in value for value in asked):
            status, body = 304, b""
            headers = [(name, value) for name, value in headers if name not in (b"content-length", b"content-type")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})
