"""Serves a gateway until it is told to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final

import uvicorn

from assay.inference.gateway.app import GatewayTerms, make_app
from assay.inference.gateway.batcher import TextBatch
from assay.protocol.errors import UnavailableError
from assay.web.connection import server_config
from assay.web.observed import ObservedServer, ServerObserver, observed

ENDING_S: Final = 5
"""Answers that are being given have so long once the gateway is to end."""

TELLING_S: Final = 1
"""Of it, for telling whoever still waits then, who owes nothing."""


def serve_batch(
    terms: GatewayTerms,
    batch: TextBatch,
    listener: socket.socket,
    *,
    ready: Callable[[], None] = lambda: None,
    observer: ServerObserver | None = None,
) -> None:
    """Answers until SIGINT or SIGTERM; the batch ends with it. ready: told before the first.

    Raises UnavailableError (GatewayFailed) once the batch failed, so that whoever looks after the process restarts it.
    """
    config = server_config(observed(make_app(terms, batch), observer), ending_s=ENDING_S)
    try:
        listener.listen()
        ready()
        _Server(config, batch, observer).run([listener])
    finally:
        batch.close()
    if batch.error is not None:
        raise UnavailableError(
            f"The gateway's batch failed ({type(batch.error).__name__}).",
            code="GatewayFailed",
            remedy="Start it again; the log says what failed.",
        )


class _Server(ObservedServer):
    """A server that ends when its batch does."""

    def __init__(self, config: uvicorn.Config, batch: TextBatch, observer: ServerObserver | None) -> None:
        super().__init__(config, observer)
        self._batch = batch

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends within ENDING_S."""
        asyncio.get_running_loop().call_later(ENDING_S - TELLING_S, self._batch.end)
        await super().shutdown(sockets)

    async def on_tick(self, counter: int) -> bool:
        """Asked ten times a second whether to end."""
        return await super().on_tick(counter) or not self._batch.is_alive
