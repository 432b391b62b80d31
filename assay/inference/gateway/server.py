"""Serves a gateway until it is told to end."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Final

import uvicorn

from assay.inference.gateway.app import GatewayTerms, make_app
from assay.inference.gateway.batcher import TextBatch
from assay.inference.rows import rows_of

IDLE_S: Final = 30
ENDING_S: Final = 5
"""Answers that are being given have so long once the gateway is to end."""


def serve(
    terms: GatewayTerms, listener: socket.socket, *, rows: int, waiting: int, ready: Callable[[], None] = lambda: None
) -> None:
    """Answers until SIGINT or SIGTERM. rows: answers at once; waiting: that may wait. ready: told before the first."""
    batch = TextBatch(rows_of(terms.model, rows), waiting)
    config = uvicorn.Config(
        make_app(terms, batch),
        log_level="warning",
        access_log=False,
        lifespan="off",
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=ENDING_S,
    )
    try:
        listener.listen()
        ready()
        uvicorn.Server(config).run([listener])
    finally:
        batch.close()
