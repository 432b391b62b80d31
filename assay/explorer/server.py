"""Serves the explorer from a thread of this process, so that `assay demo --keep` and tests can start and stop it."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Final, Self

import uvicorn

from assay.explorer.app import make_app
from assay.explorer.reader import RunReader
from assay.protocol.errors import UnavailableError
from assay.protocol.types import Address
from assay.web.connection import server_config
from assay.web.listening import listen
from assay_ledger.deployment.answers import AnswerGates
from assay_ledger.rounds.index import KeepsEvents
from assay_ledger.rounds.run import Run
from assay_ledger.store.blobs import ArtifactStore

START_LIMIT_S: Final = 20.0

SWITCH_S: Final = 0.001
"""So long a thread that renders keeps the interpreter from the one that answers: a fifth of what is usual."""

FIRST_S: Final = 3.0
"""So long the first reading is waited for, so that whoever looks at once finds a run that is read already."""


class Server:
    """A running explorer; `url` is its first page. Ends with `close`, or with the process."""

    def __init__(self, server: uvicorn.Server, listener: socket.socket, host: str, reader: RunReader) -> None:
        self.port: int = listener.getsockname()[1]
        self.url = f"http://{host}:{self.port}/"
        self.reader = reader
        self._server = server
        self._thread = threading.Thread(target=server.run, args=([listener],), name="explorer", daemon=True)
        self._thread.start()

    def wait(self) -> None:
        """Blocks until the server ends."""
        self._thread.join()

    def close(self) -> None:
        """Ends the server within a few seconds; open streams are cut, and what is kept is let go."""
        self.reader.stop()
        self._server.should_exit = True
        self._thread.join(timeout=2.0)
        self._server.force_exit = True
        self._thread.join(timeout=3.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def serve(
    run: Run,
    store: ArtifactStore | None = None,
    port: int = 0,
    *,
    host: str = "127.0.0.1",
    names: Mapping[Address, str] | None = None,
    keeps: KeepsEvents | None = None,
    bonds: AnswerGates | None = None,
    gateways: Sequence[str] = (),
) -> Server:
    """Starts the explorer of a run; port 0 lets the operating system choose.

    `keeps`, `bonds`, `gateways`: see RunReader.

    Raises ConfigError (PortInUse), UnavailableError (ServiceFailed).
    """
    listener = listen("The explorer", host, port)
    reader = RunReader(run, store, names, keeps=keeps, bonds=bonds, gateways=gateways)
    reader.follow()
    reader.wait_first(FIRST_S)
    return _start(reader, listener, host)


def serve_reader(reader: RunReader, port: int = 0, *, host: str = "127.0.0.1") -> Server:
    """The same for a reader that follows its run already."""
    return _start(reader, listen("The explorer", host, port), host)


def _start(reader: RunReader, listener: socket.socket, host: str) -> Server:
    sys.setswitchinterval(SWITCH_S)
    app = make_app(reader)
    config = server_config(app, ending_s=1)
    started = Server(uvicorn.Server(config), listener, host, reader)
    ready = threading.Event()
    for _ in range(int(START_LIMIT_S / 0.05)):
        if started._server.started or not started._thread.is_alive():
            break
        ready.wait(0.05)
    if not started._server.started:
        started.close()
        raise UnavailableError("The explorer did not start.", code="ServiceFailed", remedy="Start it again.")
    return started
