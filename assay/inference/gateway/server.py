"""Serves a gateway until it is told to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from assay.inference.gateway.app import GatewayTerms, make_app
from assay.inference.gateway.batcher import TextBatch
from assay.inference.rows import rows_of
from assay.protocol.errors import UnavailableError

if TYPE_CHECKING:
    from starlette.types import ASGIApp

CONNECTIONS: Final = 512
"""Connections at once; one more is closed."""

HEAD_S: Final = 10.0
"""So long a connection may take until the head of its request is there."""

STALL_S: Final = 30.0
"""So long nothing of an answer that waits to be sent may be read."""

IDLE_S: Final = 30
ENDING_S: Final = 5
"""Answers that are being given have so long once the gateway is to end."""


def serve(
    terms: GatewayTerms, listener: socket.socket, *, rows: int, waiting: int, ready: Callable[[], None] = lambda: None
) -> None:
    """Answers until SIGINT or SIGTERM. rows: answers at once; waiting: that may wait. ready: told before the first."""
    serve_batch(terms, TextBatch(rows_of(terms.model, rows), waiting), listener, ready=ready)


def server_config(app: ASGIApp) -> uvicorn.Config:
    """How gateways and relays listen: bounded, patient, and without a word of their own."""
    return uvicorn.Config(
        app,
        http=Patient,
        ws="none",
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=ENDING_S,
    )


def serve_batch(
    terms: GatewayTerms, batch: TextBatch, listener: socket.socket, *, ready: Callable[[], None] = lambda: None
) -> None:
    """The same with a batch that is there, and that ends with it.

    Raises UnavailableError (GatewayFailed) once the batch failed, so that whoever looks after the process restarts it.
    """
    config = server_config(make_app(terms, batch))
    try:
        listener.listen()
        ready()
        _Server(config, batch).run([listener])
    finally:
        batch.close()
    if batch.error is not None:
        raise UnavailableError(
            f"The gateway's batch failed ({type(batch.error).__name__}).",
            code="GatewayFailed",
            remedy="Start it again; the log says what failed.",
        )


class _Server(uvicorn.Server):
    """A server that ends when its batch does."""

    def __init__(self, config: uvicorn.Config, batch: TextBatch) -> None:
        super().__init__(config)
        self._batch = batch

    async def on_tick(self, counter: int) -> bool:
        """Asked ten times a second whether to end."""
        return await super().on_tick(counter) or not self._batch.is_alive


class Patient(H11Protocol):
    """A connection that waits for a head, and for an answer to be read, but not for ever."""

    _late: asyncio.TimerHandle | None = None
    _stalled: asyncio.TimerHandle | None = None

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

    def data_received(self, data: bytes) -> None:
        """See asyncio.Protocol."""
        super().data_received(data)
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

    def _look(self) -> None:
        """The time for a head runs from its first byte, or from the start, and no byte of it starts it anew."""
        if self.cycle is not None and not self.cycle.response_complete:
            _cancel(self._late)
            self._late = None
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_S, self.transport.abort)


def _cancel(*timers: asyncio.TimerHandle | None) -> None:
    for timer in timers:
        if timer is not None:
            timer.cancel()
