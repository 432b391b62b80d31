"""What one asker may take: bytes of a body, seconds to send it, requests a second, and requests at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from assay_ledger.json_input import DEFAULT_DEPTH, is_deeper

BESIDE_S: Final = 30.0
"""Beyond an answer's own time: so long its request may take to be sent, and its last bytes to be read."""

LOOK_S: Final = 2.0
"""So often an answer that is not streamed asks anew whether anybody still waits for it."""

ASKERS: Final = 4096
"""Addresses whose rates are known; of more the one that asked longest ago is forgotten."""


@dataclass(frozen=True, slots=True)
class AskerLimits:
    """body: bytes. body_s: seconds until a body is there. rate: requests a second of one address, in the long run, and
    burst so many at once. open: requests of one address that are being answered, or wait for it.
    """

    body: int = 1 << 20
    body_s: float = 10.0
    rate: float = 20.0
    burst: int = 40
    open: int = 16


class RateLimit:
    """A bucket of requests per address, which fills at a rate."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._known: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, asker: str) -> float:
        """Takes one request; 0, or the seconds after which there is one to take."""
        now = self._clock()
        left, since = self._known.pop(asker, (float(self._burst), now))
        left = min(float(self._burst), left + (now - since) * self._rate)
        allowed = left >= 1.0
        self._known[asker] = (left - 1.0 if allowed else left, now)
        if len(self._known) > ASKERS:
            self._known.popitem(last=False)
        return 0.0 if allowed else (1.0 - left) / self._rate


class Limited:
    """An application behind these limits. seconds: that a request may take, its answer read to the end."""

    def __init__(self, app: ASGIApp, limits: AskerLimits, seconds: float) -> None:
        self._app, self._limits, self._rates = app, limits, RateLimit(limits.rate, limits.burst)
        self._seconds = seconds
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request: refused, or handed on with its whole body at hand."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        client = scope.get("client")
        asker = client[0] if client else ""
        wait = self._rates.wait(asker)
        if wait:
            again = {"Retry-After": str(max(1, round(wait)))}
            await _refused(429, "You ask too often.", "RateLimited", again)(scope, receive, send)
            return
        # Attack: one address takes all rows and all places to wait, and nobody else is answered.
        if self._open[asker] >= self._limits.open:
            message = f"{self._limits.open} requests of yours are open already."
            await _refused(429, message, "RateLimited", {"Retry-After": "1"})(scope, receive, send)
            return
        self._open[asker] += 1
        has_begun = False

        async def sent(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            async with asyncio.timeout(self._seconds) as limit:
                await self._answer(scope, receive, sent)
        except TimeoutError:
            if not limit.expired():
                raise
            # Attack: an answer that is read a byte at a time. What is left of it is cut off.
            if not has_begun:
                await _refused(504, "The answer was not there in time.", "AnswerLate")(scope, receive, send)
        finally:
            self._open[asker] -= 1
            if not self._open[asker]:
                del self._open[asker]

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request that may be answered."""
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.body_s):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return
                    body += message.get("body", b"")
                    if len(body) > self._limits.body:
                        await _refused(413, f"A body has {self._limits.body} bytes at most.", "BodyTooLarge")(
                            scope, receive, send
                        )
                        return
                    if not message.get("more_body", False):
                        break
        except TimeoutError:
            await _refused(408, "The body did not come in time.", "BodyLate")(scope, receive, send)
            return
        # Attack: the parser recurses over brackets until the process dies. It also reads UTF-16 and UTF-32, which are
        # not looked through here; both write a bracket with a zero byte, which no JSON in UTF-8 has.
        if b"\0" in body or is_deeper(body, DEFAULT_DEPTH):
            why = f"A body is UTF-8, nested {DEFAULT_DEPTH} levels deep at most."
            await _refused(400, why, "BadRequest")(scope, receive, send)
            return
        told = False

        async def whole() -> Message:
            nonlocal told
            if told:
                return await receive()
            told = True
            return {"type": "http.request", "body": bytes(body), "more_body": False}

        await self._app(scope, whole, send)


async def until_left(request: Request) -> None:
    """Returns once nobody waits for the answer any more."""
    is_there = True
    while is_there:
        # Attack: a byte behind the request. The server reads on, up to the end, only when it is asked once more.
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_S):
                is_there = (await request.receive())["type"] != "http.disconnect"


def error_document(
    message: str, code: str, kind: str = "invalid_request_error", **more: object
) -> dict[str, dict[str, object]]:
    """An error in OpenAI's form, with members of our own."""
    return {"error": {"message": message, "type": kind, "param": None, "code": code, **more}}


def defect_document() -> dict[str, dict[str, object]]:
    """What nobody foresaw. The log has its traceback."""
    return error_document("The server failed; its log says how. Ask again later.", "ServerFailed", "server_error")


def _refused(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse(error_document(message, code), status, (headers or {}) | {"Connection": "close"})
