"""Where a server of this machine listens."""

from __future__ import annotations

import socket

from assay.protocol.errors import ConfigError


def listen(who: str, host: str, port: int) -> socket.socket:
    """A socket bound there, not yet listening; port 0 takes a free one. `who` is named where it cannot be had.

    Raises:
        ConfigError: PortInUse.
    """
    # With its protocol named, event loops send each write at once (TCP_NODELAY). Else a body that is written behind its
    # head waits until the peer acknowledges that, up to 40 ms later.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(
            f"{who} cannot listen on {host}:{port} ({error.strerror}).",
            code="PortInUse",
            remedy="Name another port, or 0 for a free one.",
        ) from None
    return listener
