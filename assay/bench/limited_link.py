"""A link of so many bits a second, in user space: a relay of TCP that carries each piece when the link would have."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

PIECE: Final = 1 << 14
"""Bytes that are carried at once; the link is not finer than that."""

WINDOW: Final = 1 << 18
"""Bytes of the kernel's buffers on either side: what is sent ahead of the link."""


class LimitedLink:
    """Carries bytes between whoever connects to `port` and a port of this machine, each way at its own rate.

    rate: bits a second each way.
    """

    def __init__(self, to_port: int, rate: float) -> None:
        self._to_port, self._rate = to_port, rate
        self._listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        # Before it listens, so that those whom it accepts have it.
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, WINDOW)
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen()
        self.port: int = self._listener.getsockname()[1]
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
        """Ends all connections."""
        for one in (self._listener, *self._open):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._to_port))
                self._open += [near, far]
                for ends in ((near, far), (far, near)):
                    self._threads.append(threading.Thread(target=self._carry, args=ends, daemon=True))
                    self._threads[-1].start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        """The link is busy until `free_at`; a piece arrives when its last bit has left."""
        free_at = 0.0
        with suppress(OSError):
            while piece := source.recv(PIECE):
                now = time.monotonic()
                free_at = max(now, free_at) + 8 * len(piece) / self._rate
                time.sleep(max(0.0, free_at - now))
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)
