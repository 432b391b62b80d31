"""A connection of HTTP/1.1 that is bounded: in heads, in requests that wait, and in time.

The parser is compiled (llhttp, by httptools) and the event loop as well (libuv, by uvloop); neither bounds a head, and
uvicorn starts no clock before a request is there.
"""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING, Any, Final, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

if TYPE_CHECKING:
    from starlette.types import ASGIApp

CONNECTIONS: Final = 512
"""Connections at once; for one more the one that has asked nothing for longest is closed, or it where all are busy."""

HEAD_S: Final = 10.0
"""So long a connection may take until the head of its request is there."""

STALL_S: Final = 30.0
"""So often it is looked at whether what waits to be sent is read; where nothing was, twice, nobody reads it."""

HEAD_BYTES: Final = 1 << 14
"""Of a request's line, fields and trailers, together; and of what comes while no part of a request becomes whole."""

FIELDS: Final = 64
"""Of a head and its trailers."""

PIPELINED: Final = 8
"""Requests that wait behind the one that is answered, on one connection."""

WAITING_BODY: Final = 1 << 18
"""Bytes of the body of a request that waits so."""

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
        # What it says is said in our log: in its form, without what is secret, and waiting for nobody.
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=ending_s,
    )


_ENDS: Final = count()


class BoundedConnection(HttpToolsProtocol):
    """A connection that waits for a request, and for an answer to be read, but not for ever."""

    _answered: RequestResponseCycle | None = None
    _is_head_whole = True
    _head_bytes = _fields = 0
    _heard = False
    """Whether some part of a request became whole: the parser keeps what is not, however long it is."""
    _unfinished = 0
    """Bytes that came since."""
    _is_deaf = False
    """Nothing more is taken; the connection ends when what was taken is answered."""
    _late: asyncio.TimerHandle | None = None
    _next_look: asyncio.TimerHandle | None = None
    _unread: int | None = None
    _rests_since = 0
    """Counts answers that ended, and connections that began."""

    def connection_made(self, transport: Any) -> None:
        """See asyncio.Protocol."""
        is_full = len(self.connections) >= CONNECTIONS
        super().connection_made(transport)
        self._rests_since = next(_ENDS)
        if is_full:
            self._make_room()
        self._expect()
        self._next_look = self.loop.call_later(STALL_S, self._look_at_reader)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.Protocol."""
        _cancel(self._late, self._next_look)
        self._late = self._next_look = None
        super().connection_lost(exc)
        # uvicorn tells the request that came last, not the one that is being answered before it.
        for cycle in (self._answered, *(cycle for cycle, _ in self.pipeline)):
            if cycle is not None:
                cycle.disconnected = cycle.disconnected or not cycle.response_complete
                cycle.message_event.set()

    def on_response_complete(self) -> None:
        """An answer is given."""
        self._rests_since = next(_ENDS)
        super().on_response_complete()

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        if self._is_deaf:
            return
        self._unset_keepalive_if_required()
        self._heard = False
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self._refuse()
        self._unfinished = 0 if self._heard else self._unfinished + len(data)
        # Attack: a field, or the size of a chunk, that never ends.
        if self._unfinished > HEAD_BYTES:
            self.transport.abort()
        self._expect()

    # --- what the parser says; an error here refuses the request

    def on_message_begin(self) -> None:
        """A request begins."""
        super().on_message_begin()
        self._heard, self._is_head_whole = True, False
        self._head_bytes = self._fields = 0

    def on_url(self, url: bytes) -> None:
        """A piece of the request's line."""
        self._take(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A field of a head; or of trailers, which nobody asked for: they are counted, and say nothing."""
        self._fields += 1
        self._take(len(name) + len(value))
        if not self._is_head_whole:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """A head is whole."""
        self._heard = self._is_head_whole = True
        # Attack: ten thousand short requests in one piece, each of which takes some kilobytes here.
        if len(self.pipeline) >= PIPELINED:
            raise _RequestRefused("too many requests wait")
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        self._heard = True
        if self.cycle is not self._answered and len(self.cycle.body) + len(body) > WAITING_BODY:
            raise _RequestRefused("a request that waits has a large body")
        super().on_body(body)

    def on_message_complete(self) -> None:
        """A request is whole."""
        self._heard = True
        super().on_message_complete()

    # --- inside

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def _feed(self, data: bytes) -> None:
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            # Clients that would rather speak HTTP/2 ask so, and are answered in this one. The parser takes what follows
            # for the other protocol: what of it is the request's body is read by another one.
            self.cycle.keep_alive = False
            framing = [b"%s: %s\r\n" % field for field in self.headers if field[0] in _FRAMING]
            self._is_deaf = not framing
            if framing:
                self.cycle.more_body = True
                self.parser = httptools.HttpRequestParser(_BodyOf(self))
                head = b"POST / HTTP/1.1\r\n" + b"".join(framing) + b"\r\n"
                self.parser.feed_data(head + data[upgrade.args[0] :])

    def _refuse(self) -> None:
        """Behind requests that are still to be answered nothing more is taken; else whoever asked is told."""
        last: RequestResponseCycle | None = self.cycle
        if last is not None and last.more_body and last is not self._answered:
            # The body that broke off is of a request that waits: it is not answered.
            self.pipeline.popleft()
            last = self.pipeline[0][0] if self.pipeline else self._answered
            self.cycle = last  # type: ignore[assignment]
        if last is None or last.response_complete or (last.more_body and not last.response_started):
            self.send_400_response("Invalid HTTP request received.")
        else:
            last.keep_alive = False
            self._is_deaf = True

    @property
    def _rests(self) -> bool:
        """Whether nobody is answered here."""
        return (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing()

    def _make_room(self) -> None:
        """Attack: connections that ask nothing, until the process may open no more files; opened anew as they are
        closed, so that nobody else has one."""
        others = [other for other in self.connections if other is not self and cast(BoundedConnection, other)._rests]
        oldest = min(others, key=lambda other: cast(BoundedConnection, other)._rests_since, default=self)
        oldest.transport.abort()

    def _take(self, size: int) -> None:
        self._heard = True
        self._head_bytes += size
        if self._fields > FIELDS or self._head_bytes > HEAD_BYTES:
            raise _RequestRefused("the head is too large")

    def _expect(self) -> None:
        """The time for a head runs from its first byte, or from the start, and no byte of it starts it anew."""
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._late)
            self._late = None
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.abort)

    def _look_at_reader(self) -> None:
        """Ends a connection of which nothing is read, be it open or about to be closed."""
        waits = self.transport.get_write_buffer_size()
        # While an answer is made more may come than is read meanwhile.
        is_growing = self.cycle is not None and not self.cycle.response_complete and not self.flow.write_paused
        if waits and not is_growing and self._unread is not None and waits >= self._unread:
            self.transport.abort()
            return
        self._unread = waits if waits and not is_growing else None
        self._next_look = self.loop.call_later(STALL_S, self._look_at_reader)


class _BodyOf:
    """Hears the body of a request whose head was read by another parser, and nothing that comes behind it."""

    def __init__(self, connection: BoundedConnection) -> None:
        self._connection, self._is_whole = connection, False

    def on_body(self, body: bytes) -> None:
        if not self._is_whole:
            self._connection.on_body(body)

    def on_message_complete(self) -> None:
        if not self._is_whole:
            self._is_whole = True
            self._connection.on_message_complete()


_FRAMING: Final = (b"content-length", b"transfer-encoding")


class _RequestRefused(Exception):
    """A request that is not read on."""


def _cancel(*timers: asyncio.TimerHandle | None) -> None:
    for timer in timers:
        if timer is not None:
            timer.cancel()
