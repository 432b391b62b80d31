"""A node in front of a real one, honest until it is told otherwise: hanging, dripping, talking nonsense."""

from __future__ import annotations

import json
import threading
import urllib.request
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from assay_ledger.chain.node import direct

NONSENSE = {
    "HTML": b"<html>busy</html>",
    "nothing": b"",
    "a list": b"[]",
    "an object": b"{}",
    "a string": b'{"jsonrpc":"2.0","id":1,"result":"later"}',
    "an empty result": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "a list of objects": b'{"jsonrpc":"2.0","id":1,"result":[{}]}',
    "null": b'{"jsonrpc":"2.0","id":1,"result":null}',
    "deep brackets": b"[" * 100_000,
    "zero bytes": b"\x00" * 1000,
}
SILENCES = ("hangs", "headers only", "drips", "drips until closed", "drips headers", "closes")


class HostileNode:
    """Forwards to `url`; the next `left` calls of `method` (any, unless given) get `answer` instead of the node's."""

    def __init__(self, url: str) -> None:
        self.answer: str | None = None
        self.method = ""
        self.left = 0
        self.mistreated = 0
        self._over = threading.Event()
        self._lock = threading.Lock()
        node = self

        class NodeHandler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = node.next_answer(json.loads(body)["method"])
                if answer is None:
                    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
                    with direct().open(request, timeout=60) as response:
                        self.reply(response.read())
                elif answer in NONSENSE:
                    self.reply(NONSENSE[answer])
                else:
                    self.close_connection = True
                    with suppress(OSError):
                        node.be_silent(self, answer)

            def reply(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), NodeHandler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    def turn(self, answer: str | None, left: int = 1 << 30, method: str = "") -> None:
        """From now on."""
        with self._lock:
            self.answer, self.left, self.method, self.mistreated = answer, left, method, 0

    def next_answer(self, method: str) -> str | None:
        with self._lock:
            if self.answer is None or not self.left or (self.method and method != self.method):
                return None
            self.left -= 1
            self.mistreated += 1
            return self.answer

    def be_silent(self, handler: BaseHTTPRequestHandler, how: str) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"
        match how:
            case "hangs":
                self._over.wait(30)
            case "headers only":
                handler.wfile.write(head)
                self._over.wait(30)
            case "drips":
                handler.wfile.write(head)
                for _ in range(3000):
                    handler.wfile.write(b" ")
                    if self._over.wait(0.01):
                        return
            case "drips until closed":
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n")
                for _ in range(3000):
                    handler.wfile.write(b" ")
                    if self._over.wait(0.01):
                        return
            case "drips headers":
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
                for _ in range(3000):
                    handler.wfile.write(b"X")
                    if self._over.wait(0.01):
                        return

    def close(self) -> None:
        """Lets go of every connection."""
        self._over.set()
        self.server.shutdown()
        self.server.server_close()
