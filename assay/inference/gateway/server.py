"""Serves a gateway until it is told to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

import uvicorn

from assay.inference.gateway.app import GatewayTerms, make_app
from assay.inference.gateway.batcher import TextBatch
from assay.inference.rows import rows_of
from assay.protocol.errors import UnavailableError
from assay.web.connection import server_config

ENDING_S: Final = 5
"""Answers that are being given have so long once the gateway is to end."""

TELLING_S: Final = 1
"""Of it, for telling whoever still waits then, who owes nothing."""


def serve(
    terms: GatewayTerms, listener: socket.socket, *, rows: int, waiting: int, ready: Callable[[], None] = lambda: None
) -> None:
    """Answers until SIGINT or SIGTERM. rows: answers at once; waiting: that may wait. ready: told before the first."""
    serve_batch(terms, TextBatch(rows_of(terms.model, rows), waiting), listener, ready=ready)


def serve_batch(
    terms: GatewayTerms, batch: TextBatch, listener: socket.socket, *, ready: Callable[[], None] = lambda: None
) -> None:
    """The same with a batch that is there, and that ends with it.

    Raises UnavailableError (GatewayFailed) once the batch failed, so that whoever looks after the process restarts it.
    """
    config = server_config(make_app(terms, batch), ending_s=ENDING_S)
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

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends within ENDING_S."""
        asyncio.get_running_loop().call_later(ENDING_S - TELLING_S, self._batch.end)
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Asked ten times a second whether to end."""
        return await super().on_tick(counter) or not self._batch.is_alive
