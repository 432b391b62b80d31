"""Serves the relay until it is told to end."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from assay.inference.gateway.server import ENDING_S
from assay.web.connection import server_config
from assay.web.observed import ObservedServer, ServerObserver, observed

if TYPE_CHECKING:
    from starlette.types import ASGIApp


def serve_relay(
    app: ASGIApp,
    listener: socket.socket,
    *,
    ready: Callable[[], None] = lambda: None,
    observer: ServerObserver | None = None,
) -> None:
    """Answers until SIGINT or SIGTERM. ready: told before the first."""
    config = server_config(observed(app, observer), ending_s=ENDING_S)
    listener.listen()
    ready()
    ObservedServer(config, observer).run([listener])
