"""`/metrics`, `/health` and `/ready` of one process, from threads that wait for nobody but their readers.

Whoever can reach the port can read it; nothing is written, and nothing in it is secret but what it says of balances.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol, Self

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from assay.protocol.errors import ConfigError

READERS: Final = 16
"""Connections at once. For one more the oldest is closed, so that whoever holds many open holds nobody up."""

READER_S: Final = 5.0
"""How long a connection may be silent."""

TEXT_S: Final = 1.0
"""How long metrics are shown as they were: whoever asks for them without end shall not take the loop's time."""

_PLACE: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):(\d{1,5})")


class Shown(Protocol):
    """What a server shows."""

    @property
    def is_alive(self) -> bool:
        """Whether the process goes on."""

    def conditions(self) -> dict[str, bool]:
        """What readiness asks for, and whether it holds."""

    def text(self) -> bytes:
        """The metrics."""


def parse_place(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT; an IPv6 host stands in brackets. Raises ConfigError (MetricsAddressInvalid)."""
    found = _PLACE.fullmatch(text)
    if found is None or int(found[2]) > 65535:
        raise ConfigError(
            f"{text!r} names no host and port.",
            code="MetricsAddressInvalid",
            remedy="Give HOST:PORT, such as 127.0.0.1:9640; port 0 takes a free one.",
        )
    return found[1].strip("[]"), int(found[2])


class StatusServer:
    """A running server; `place` is its HOST:PORT. Ends with `close`, or with the process.

    Raises ConfigError (MetricsAddressInvalid, PortInUse).
    """

    def __init__(self, place: str, shown: Shown) -> None:
        host, port = parse_place(place)

        class BoundServer(_StatusListener):
            address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

        try:
            self._server = BoundServer((host, port), _handler(shown))
        except OSError as error:
            raise ConfigError(
                f"Metrics cannot be served on {place} ({error.strerror}).",
                code="PortInUse",
                remedy="Name another port, or 0 for a free one.",
            ) from None
        self.port = int(self._server.server_address[1])
        self.place = f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="assay-status", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _StatusListener(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *arguments: Any) -> None:
        self._readers: dict[socket.socket, None] = {}
        self._readers_lock = threading.Lock()
        super().__init__(*arguments)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Attack: connections that send a byte now and then take all places, /health is not answered, and whoever asks
        it ends an actor that is well."""
        with self._readers_lock:
            if len(self._readers) >= READERS:
                oldest = next(iter(self._readers))
                del self._readers[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._readers[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self._readers_lock:
                self._readers.pop(request, None)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no news."""


PageAnswer = tuple[int, str, bytes]


def _handler(shown: Shown) -> type[BaseHTTPRequestHandler]:
    made: list[tuple[float, bytes]] = []
    making = threading.Lock()

    def metrics() -> PageAnswer:
        with making:
            if not made or time.monotonic() - made[0][0] >= TEXT_S:
                made[:] = [(time.monotonic(), shown.text())]
            return 200, CONTENT_TYPE_LATEST, made[0][1]

    def health() -> PageAnswer:
        return _judged(shown.is_alive, {"alive": shown.is_alive})

    def ready() -> PageAnswer:
        conditions = shown.conditions()
        return _judged(all(conditions.values()), conditions)

    pages: dict[str, Callable[[], PageAnswer]] = {"/metrics": metrics, "/health": health, "/ready": ready}

    class StatusHandler(BaseHTTPRequestHandler):
        timeout = READER_S
        server_version, sys_version = "assay", ""

        def do_GET(self) -> None:
            self._answer(with_body=True)

        def do_HEAD(self) -> None:
            self._answer(with_body=False)

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are not logged: a scraper comes every few seconds."""

        def _answer(self, *, with_body: bool) -> None:
            page = pages.get(self.path.partition("?")[0])
            status, kind, body = (404, "text/plain; charset=utf-8", b"/metrics, /health, /ready\n")
            if page is not None:
                status, kind, body = page()
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.end_headers()
            if with_body:
                self.wfile.write(body)

    return StatusHandler


def _judged(holds: bool, document: dict[str, bool]) -> PageAnswer:
    """200 or 503 with the reasons, as probes of service managers expect."""
    return (200 if holds else 503), "application/json", json.dumps(document).encode() + b"\n"
