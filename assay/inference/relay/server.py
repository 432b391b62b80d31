"""Serves the relay until it is told to end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from assay.inference.gateway.server import ENDING_S, TELLING_S
from assay.web.connection import server_config
from assay.web.observed import ObservedServer, ServerObserver, observed

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp


def serve_relay(
    app: ASGIApp,
    listener: socket.socket,
    *,
    ready: Callable[[], None] = lambda: None,
    end: Callable[[], None] = lambda: None,
    observer: ServerObserver | None = None,
) -> None:
    """Answers until SIGINT or SIGTERM. ready: told before the first; end: called when who still waits is to be told."""
    config = server_config(observed(app, observer), ending_s=ENDING_S)
    listener.listen()
    ready()
    _RelayServer(config, observer, end).run([listener])


class _RelayServer(ObservedServer):
    """A server that tells whoever waits for an answer that it ends."""

    def __init__(self, config: uvicorn.Config, observer: ServerObserver | None, end: Callable[[], None]) -> None:
        super().__init__(config, observer)
        self._end = end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends within ENDING_S."""
        asyncio.get_running_loop().call_later(ENDING_S - TELLING_S, self._end)
        await super().shutdown(sockets)
