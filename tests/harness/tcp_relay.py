"""A wire to a server that can be cut, or carry nothing while its connections stay open."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class TcpRelay:
    """Carries bytes between whoever connects to `port` and the server at a port of this machine."""

    def __init__(self, to_port: int) -> None:
        self._to_port = to_port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._open: list[socket.socket] = []
        self._flows = threading.Event()
        self._flows.set()
        self._parted = threading.Event()
        self.taken = 0
        """Connections so far."""
        threading.Thread(target=self._accept, daemon=True).start()

    def hush(self) -> None:
        """From now on nothing arrives from the server."""
        self._flows.clear()

    def part(self) -> None:
        """Ends all connections, and each new one as it comes, until they are joined again."""
        self._parted.set()
        self.cut()

    def join(self) -> None:
        """New connections are carried again."""
        self._parted.clear()

    def cut(self) -> None:
        """Ends all connections; new ones are taken."""
        with self._lock:
            ends, self._open = self._open, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._parted.is_set():
                    near.close()
                    continue
                far = socket.create_connection(("127.0.0.1", self._to_port))
                with self._lock:
                    self._open += [near, far]
                    self.taken += 1
                threading.Thread(target=self._carry, args=(near, far, False), daemon=True).start()
                threading.Thread(target=self._carry, args=(far, near, True), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if is_answer:
                    self._flows.wait()
                target.sendall(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.close()
        self._flows.set()
        self.cut()
