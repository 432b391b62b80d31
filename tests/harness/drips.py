"""A server that never comes to its end: a head, and then a piece now and then."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def dripping(head: bytes, piece: bytes, every_s: float = 0.1, pieces: int = 100) -> Iterator[str]:
    """The URL of a server that answers whoever asks with a head, and a piece now and then."""
    listener, over = socket.create_server(("127.0.0.1", 0)), threading.Event()

    def serve() -> None:
        asker, _ = listener.accept()
        with asker:
            asker.recv(1 << 16)
            asker.sendall(head)
            for _ in range(pieces):
                if over.wait(every_s):
                    return
                try:
                    asker.sendall(piece)
                except OSError:
                    return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        over.set()
        thread.join(5)
        listener.close()
