"""A node as providers have it, in front of a real one: proxies in error, limits of requests, nodes that are behind."""

from __future__ import annotations

import itertools
import json
import threading
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from assay_ledger.chain.node import direct


@dataclass(frozen=True)
class Reply:
    """What is sent in place of the node's answer."""

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Twist = Callable[[list[Any], Callable[..., Any]], "Reply | None"]
"""Makes a reply of a call's parameters; its second argument asks the node, with these parameters or others. None
leaves it to the node."""


def said(result: object) -> Reply:
    """A result, well-formed."""
    return Reply(json.dumps({"jsonrpc": "2.0", "id": 1, "result": result}).encode())


def refused(code: int, message: str, status: int = 200, **headers: str) -> Reply:
    """An error, well-formed."""
    document = {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": message}}
    return Reply(json.dumps(document).encode(), status, {k.replace("_", "-"): v for k, v in headers.items()})


def changed(edit: Callable[[Any], Any]) -> Twist:
    """The node's result after an edit, which may work in place."""

    def answer(params: list[Any], ask: Callable[..., Any]) -> Reply:
        result = ask(*params)
        kept = edit(result)
        return said(result if kept is None else kept)

    return answer


def every(n: int, answer: Twist | Reply) -> Twist:
    """Each nth call is answered so."""
    calls = itertools.count(1)

    def maybe(params: list[Any], ask: Callable[..., Any]) -> Reply | None:
        if next(calls) % n:
            return None
        return answer if isinstance(answer, Reply) else answer(params, ask)

    return maybe


class ProviderNode:
    """Forwards to `url` until it is turned; `asked` are all calls since then, as method and parameters."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self.turn()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        # Who stops waiting for an answer breaks the connection off: that is the test's doing.
        self._server.handle_error = lambda *_: None  # type: ignore[method-assign]
        self.port = self._server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def turn(self, answer: Twist | Reply | None = None, times: int = 1 << 30, methods: Sequence[str] = ()) -> None:
        """From now on so many calls, of these methods or of any, are answered so."""
        with self._lock:
            self._answer, self._left, self._methods = answer, times, methods
            self.asked: list[tuple[str, list[Any]]] = []
            self.answered = 0

    def reply(self, body: bytes) -> Reply:
        """What is said to a request."""
        call = json.loads(body)
        with self._lock:
            self.asked.append((call["method"], call["params"]))
            is_ours = self._answer is not None and self._left > 0
            is_ours = is_ours and (not self._methods or call["method"] in self._methods)
            answer = self._answer if is_ours else None
            self._left -= is_ours
            self.answered += is_ours
        if answer is None:
            return Reply(self._forward(body))
        if isinstance(answer, Reply):
            return answer

        def ask(*params: Any) -> Any:
            return json.loads(self._forward(json.dumps(call | {"params": params}).encode()))["result"]

        return answer(call["params"], ask) or Reply(self._forward(body))

    def _forward(self, body: bytes) -> bytes:
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"})
        with direct().open(request, timeout=30) as response:
            return bytes(response.read())

    def close(self) -> None:
        """Ends the server, not the node."""
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _handler(node: ProviderNode) -> type[BaseHTTPRequestHandler]:
    class ProviderHandler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            reply = node.reply(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(reply.status)
            for name, value in {**reply.headers, "Content-Length": str(len(reply.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *args: Any) -> None:
            """Tests are quiet."""

    return ProviderHandler


BODIES: Mapping[str, Reply] = {
    "HTML for JSON": Reply(b"<html><body>One moment, please</body></html>"),
    "502 and HTML": Reply(b"<html>bad gateway</html>", 502),
    "503 and HTML": Reply(b"<html>unavailable</html>", 503),
    "503 with Retry-After": Reply(b"", 503, {"Retry-After": "1"}),
    "429 and HTML": Reply(b"<html>slow down</html>", 429),
    "429 with Retry-After": Reply(b"too many", 429, {"Retry-After": "2"}),
    "429 until a date": Reply(b"", 429, {"Retry-After": "Fri, 01 Jan 2027 00:00:00 GMT"}),
    "no body": Reply(b""),
    "JSON cut short": Reply(b'{"jsonrpc":"2.0","id":1,"resu'),
    "a string": Reply(b'"later"'),
    "an object": Reply(b"{}"),
    "a list": Reply(b"[]"),
    "null": Reply(b"null"),
    "a result that is a string": said("later"),
    "a result that is {}": said({}),
    "a result that is [{}]": said([{}]),
    "a result that is null": said(None),
    "a result and an error": Reply(b'{"jsonrpc":"2.0","id":1,"result":"0x1","error":{"code":1,"message":"x"}}'),
    "an error that is a word": Reply(b'{"jsonrpc":"2.0","id":1,"error":"busy"}'),
    "an error without a code": Reply(b'{"jsonrpc":"2.0","id":1,"error":{"message":"Too many requests"}}'),
}
"""What proxies send in a node's place."""

ERRORS: Mapping[str, Reply] = {
    "limit exceeded": refused(-32005, "limit exceeded"),
    "a limit in other words": refused(-32005, "daily cap"),
    "rate limit by 429": refused(429, "Your app has exceeded its compute units per second capacity", 429),
    "rate limit with Retry-After": refused(-32005, "rate limited", 429, Retry_After="3"),
    "rate limit with 200": refused(-32016, "over rate limit"),
    "header not found": refused(-32000, "header not found"),
    "missing trie node": refused(-32000, "missing trie node 1c2d (path ) state 0x1c2d is not available"),
    "unknown block": refused(-32000, "unknown block"),
    "execution aborted": refused(-32000, "execution aborted (timeout = 5s)"),
    "request timed out": refused(-32002, "request timed out"),
    "internal error": refused(-32603, "Internal error"),
    "an error by 503": refused(-32000, "no backend is healthy", 503),
}
"""What nodes and gateways say that passes."""
