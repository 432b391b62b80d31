"""A connection of HTTP/1.1 that is bounded: in heads, in requests that wait, and in time.

The parser is compiled (llhttp, by httptools) and the event loop as well (libuv, by uvloop); neither bounds a head, and
uvicorn starts no clock before a request is there.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

if TYPE_CHECKING:
    from starlette.types import ASGIApp

CONNECTIONS: Final = 512
"""Connections at once; one more is closed."""

HEAD_S: Final = 10.0
"""So long a connection may take until the head of its request is there."""

STALL_S: Final = 30.0
"""So long nothing of an answer that waits to be sent may be read."""

HEAD_BYTES: Final = 1 << 14
"""Of a request's line, fields and trailers, together."""

FIELDS: Final = 64
"""Of a head and its trailers."""

PIPELINED: Final = 8
"""Requests that wait behind the one that is answered, on one connection."""

IDLE_S: Final = 30
"""A connection that nobody asks anything on is closed after so long."""


def server_config(app: ASGIApp, *, ending_s: int) -> uvicorn.Config:
    """How a server listens: bounded, patient, and without a word of its own.

    ending_s: answers that are being given have so long once the server is to end.
    """
    return uvicorn.Config(
        app,
        loop="uvloop",
        http=BoundedConnection,
        ws="none",
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=ending_s,
    )


class BoundedConnection(HttpToolsProtocol):
    """A connection that waits for a head, and for an answer to be read, but not for ever."""

    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None
    _answered: RequestResponseCycle | None = None
    _is_in_head = False
    _head_bytes = _fields = 0
    _unfinished = 0
    """Bytes that came while a head was not whole: the parser keeps a field until it is."""

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        # Attack: connections that ask nothing, until the process may open no more files.
        if len(self.connections) >= CONNECTIONS:
            transport.abort()
        super().connection_made(transport)
        self._look()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        _cancel(self._late, self._stalled)
        self._late = self._stalled = None
        super().connection_lost(exc)
        # uvicorn tells the request that came last, not the one that is being answered before it.
        for cycle in (self._answered, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None:
                cycle.disconnected = cycle.disconnected or not cycle.response_complete
                cycle.message_event.set()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        super().data_received(data)
        self._unfinished = self._unfinished + len(data) if self._is_in_head else 0
        # Attack: a field that never ends.
        if self._unfinished > HEAD_BYTES:
            self.transport.abort()
        self._look()

    def pause_writing(self) -> None:
        """See asyncio.Protocol."""
        super().pause_writing()
        if self._stalled is None:
            self._stalled = self.loop.call_later(STALL_S, self.transport.abort)

    def resume_writing(self) -> None:
        """See asyncio.Protocol."""
        super().resume_writing()
        _cancel(self._stalled)
        self._stalled = None

    # --- what the parser says; an error here is answered by 400 and the end of the connection

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._is_in_head = True
        self._head_bytes = self._fields = 0

    def on_url(self, url: bytes) -> None:
        """A piece of the request's line."""
        self._take(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of a head, or of trailers."""
        self._fields += 1
        self._take(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head is whole."""
        self._is_in_head = False
        # Attack: ten thousand short requests in one piece, each of which takes some kilobytes here.
        if len(self.pipeline) >= PIPELINED:
            raise _HeadRefused("too many requests wait")
        super().on_headers_complete()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _unsupported_upgrade_warning(self) -> None:
        """Who asks for another protocol is answered in this one, and the parser takes nothing more behind that."""
        if self.cycle is not None:
            self.cycle.keep_alive = False

    def _take(self, size: int) -> None:
        self._head_bytes += size
        if self._fields > FIELDS or self._head_bytes > HEAD_BYTES:
            raise _HeadRefused("the head is too large")

    def _look(self) -> None:
        """The time for a head runs from its first byte, or from the start, and no byte of it starts it anew."""
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._late)
            self._late = None
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.abort)


class _HeadRefused(Exception):
    """A request that is not read on."""


def _cancel(*timers: asyncio.TimerHandle | None) -> None:
    for timer in timers:
        if timer is not None:
            timer.cancel()
