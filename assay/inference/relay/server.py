"""Serves the relay until it is told to end."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn

from assay.inference.gateway.server import ENDING_S, IDLE_S, Patient

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def serve_relay(app: ASGIApp, listener: socket.socket, *, ready: Callable[[], None] = lambda: None) -> None:
    """Answers until SIGINT or SIGTERM. ready: told before the first."""
    config = uvicorn.Config(
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
    listener.listen()
    ready()
    uvicorn.Server(config).run([listener])
