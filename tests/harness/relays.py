"""A relay of drand at a real socket: honest on the rounds that it has, until it is told to answer otherwise."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from assay.protocol.run.beacon import EVMNET, DrandNetwork
from tests.harness.beacons import VECTORS, data

RECORDED = {r["round"]: data(r["signature"]) for r in VECTORS["rounds"] if r["network"] == "evmnet"}
"""Rounds of evmnet that its relays gave."""

SILENCES = ("hangs", "drips", "closes")
"""What ends without an answer."""


class Relay:
    """`answer`: None for the rounds it has; one of SILENCES; or a status with a body. It counts what it is asked."""

    def __init__(self, rounds: Mapping[int, bytes], network: DrandNetwork) -> None:
        self.answer: str | tuple[int, bytes] | None = None
        self.headers: dict[str, str] = {}
        self.asked: list[str] = []
        self._over = threading.Event()
        relay = self

        class RelayHandler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                relay.asked.append(self.path)
                with suppress(OSError):
                    if isinstance(relay.answer, str):
                        self.be_silent(relay.answer)
                    else:
                        self.reply(*(relay.answer or self.honestly()))

            def honestly(self) -> tuple[int, bytes]:
                chain, public, number = self.path.removeprefix("/").split("/")
                signature = rounds.get(int(number))
                if (chain, public) != (network.chain_hash.hex(), "public"):
                    return 404, b"not found"
                return (425, b"Requested future beacon") if signature is None else (200, body(int(number), signature))

            def reply(self, status: int, answer: bytes) -> None:
                self.send_response(status)
                for name, value in relay.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(answer)

            def be_silent(self, how: str) -> None:
                if how == "hangs":
                    relay._over.wait(30)
                if how == "drips":
                    self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                    while not relay._over.wait(0.01):
                        self.wfile.write(b" ")

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), RelayHandler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def close(self) -> None:
        """Lets go of every connection."""
        self._over.set()
        self.server.shutdown()
        self.server.server_close()


def body(number: int, signature: bytes, /, **changes: object) -> bytes:
    """A round as relays send it, version 1 of their API; None leaves a field out."""
    sent = {"round": number, "randomness": "00" * 32, "signature": signature.hex()} | changes
    return json.dumps({name: value for name, value in sent.items() if value is not None}).encode()


@contextmanager
def running_relay(rounds: Mapping[int, bytes] = RECORDED, network: DrandNetwork = EVMNET) -> Iterator[Relay]:
    """A relay of a network that has these rounds."""
    relay = Relay(rounds, network)
    try:
        yield relay
    finally:
        relay.close()
