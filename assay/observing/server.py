"""`/metrics`, `/health` and `/ready` of one process, from threads that wait for nobody but their readers.

Whoever can reach the port can read it; nothing is written, and nothing in it is secret but what it says of balances.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final, Protocol, Self

from prometheus_client.exposition import CONTENT_TYPE_LATEST

from assay.protocol.errors import ConfigError

READERS: Final = 16
"""Connections at once; more are closed unanswered, so that whoever opens many holds nothing up."""

READER_S: Final = 5.0
"""How long a connection may be silent."""

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
        room = threading.BoundedSemaphore(READERS)

        class BoundServer(_StatusListener):
            handler_room = room

        if ":" in host:
            import socket

            BoundServer.address_family = socket.AF_INET6
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
    handler_room: threading.BoundedSemaphore

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self.handler_room.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.handler_room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A reader that went away is no news."""


PageAnswer = tuple[int, str, bytes]


def _handler(shown: Shown) -> type[BaseHTTPRequestHandler]:
    def metrics() -> PageAnswer:
        return 200, CONTENT_TYPE_LATEST, shown.text()

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
