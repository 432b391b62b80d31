"""HTTP to a node that may hang, drip or talk without end: a request has its seconds from connection to last byte.

A timeout of the socket counts from one received byte to the next, so a byte a second holds a reader for ever. Here a
watch shuts a request's socket down when its time is over, which wakes its reader. Nothing is left behind.
Source: docs/adr/0027-time-of-stores-and-nodes.md.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

import requests
from eth_abi.exceptions import DecodingError
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from web3 import HTTPProvider
from web3.exceptions import Web3Exception
from web3.types import RPCEndpoint

from assay_ledger.json_input import is_deeper

CONNECT_S: Final = 5.0
MAX_ANSWER_BYTES: Final = 1 << 26
"""More than the logs of BLOCKS_PER_QUERY blocks at the gas limit of today's chains, less than any actor's memory."""

MAX_DEPTH: Final = 32
"""An answer has six levels at most."""

NONSENSE: Final = (
    Web3Exception,
    DecodingError,
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    OverflowError,
    RecursionError,
)
"""What comes of HTML, empty objects, strings for blocks, logs without topics: web3 or we ourselves stumble over it."""

_CHUNK_BYTES: Final = 1 << 16
_AGAIN_S: Final = 0.2
"""After which a request that had no socket yet when its time was over is looked at again."""


class AnswerRefused(requests.RequestException):
    """The node sends more than anybody could want, or what would end the process that parses it."""


class _Call:
    """A request under way: until when, and on which connection."""

    def __init__(self, until: float) -> None:
        self.until = until
        self.connection: HTTPConnection | None = None
        self.is_over = False

    def end(self) -> None:
        """Shuts the socket down; its reader gets what there is and finds `is_over`."""
        self.is_over = True
        found = None if self.connection is None else self.connection.sock
        if found is None:
            self.until += _AGAIN_S
            return
        self.until = float("inf")
        with suppress(OSError):
            # Not the method of TLS sockets, which would take the session from under the thread that reads.
            socket.socket.shutdown(found, socket.SHUT_RDWR)


class _Watch:
    """One thread that ends the calls of all others when their time is over."""

    def __init__(self) -> None:
        self._calls: set[_Call] = set()
        self._changed = threading.Condition()
        self._wakes_at = float("inf")
        self._thread: threading.Thread | None = None

    @contextmanager
    def over(self, call: _Call) -> Iterator[None]:
        with self._changed:
            self._calls.add(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="assay-rpc")
                self._thread.start()
            elif call.until < self._wakes_at:
                self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._calls.discard(call)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for call in self._calls:
                    if call.until <= now:
                        call.end()
                self._wakes_at = min((call.until for call in self._calls), default=float("inf"))
                wait = self._wakes_at - now
                self._changed.wait(None if wait == float("inf") else max(wait, 0.001))


_WATCH = _Watch()
_current = threading.local()


def _note(connection: HTTPConnection) -> None:
    call = getattr(_current, "call", None)
    if call is not None:
        call.connection = connection


class _Plain(HTTPConnection):
    def connect(self) -> None:
        _note(self)
        super().connect()

    def request(self, *arguments: Any, **options: Any) -> None:
        _note(self)
        super().request(*arguments, **options)


class _Secure(_Plain, HTTPSConnection):
    """The same by TLS: `super()` is the connection that it stands before."""


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _Plain


class _SecurePool(HTTPSConnectionPool):
    ConnectionCls = _Secure


class _Adapter(HTTPAdapter):
    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _SecurePool}


class TimedSession(requests.Session):
    """A session whose every request ends within `seconds`, its answer read. Raises requests.Timeout, AnswerRefused.

    `most`: bytes that an answer may have, MAX_ANSWER_BYTES unless given.
    """

    def __init__(self, seconds: float, most: int | None = None) -> None:
        super().__init__()
        self._seconds, self._most = seconds, MAX_ANSWER_BYTES if most is None else most
        # Proxies named in the environment are for the world outside; an RPC URL is taken as it is written.
        self.trust_env = False
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter())

    def request(self, *arguments: Any, **options: Any) -> requests.Response:
        """See requests.Session."""
        call = _Call(time.monotonic() + self._seconds)
        _current.call = call
        options |= {"stream": True, "timeout": (min(CONNECT_S, self._seconds), self._seconds)}
        try:
            with _WATCH.over(call):
                response = super().request(*arguments, **options)
                response._content = _body(response, self._most)
        except AnswerRefused:
            raise
        except Exception as error:
            # A socket that is shut down under its reader fails in many ways.
            if call.is_over:
                raise requests.Timeout(f"no answer in {self._seconds:g} s") from error
            raise
        finally:
            _current.call = None
        if call.is_over:
            raise requests.Timeout(f"no whole answer in {self._seconds:g} s")
        return response


def _body(response: requests.Response, most: int) -> bytes:
    body = bytearray()
    for chunk in response.iter_content(min(_CHUNK_BYTES, most + 1)):
        body += chunk
        if len(body) > most:
            response.close()
            raise AnswerRefused(f"The answer has more than {most} bytes.")
    # web3 parses it with a parser that recurses, up to a limit that libraries raise far beyond the stack.
    if is_deeper(body, MAX_DEPTH):
        raise AnswerRefused(f"The answer is nested more than {MAX_DEPTH} levels deep.")
    return bytes(body)


def provider(url: str, seconds: float) -> NodeProvider:
    """Web3's provider over such a session. `Chain.read` tries again; web3 does not besides."""
    return NodeProvider(url, TimedSession(seconds))


RequestListener = Callable[[str, str, float], None]
"""Is told of each request: the method, what became of it ("ok", "refused", "unanswered") and its seconds."""


class NodeProvider(HTTPProvider):
    """A provider whose requests have their seconds, and whose listener is told of each."""

    def __init__(self, url: str, session: TimedSession) -> None:
        super().__init__(url, session=session, exception_retry_configuration=None)
        self._session = session
        self._on_request: RequestListener = lambda _method, _outcome, _seconds: None

    def tell_requests(self, listener: RequestListener) -> None:
        """From now on a listener is told of every request."""
        self._on_request = listener

    def _make_request(self, method: RPCEndpoint, request_data: bytes) -> bytes:
        began, outcome = time.monotonic(), "unanswered"
        try:
            body = self._post(request_data)
            outcome = "refused" if _is_error(body) else "ok"
            return body
        except (AnswerRefused, requests.HTTPError):
            outcome = "refused"
            raise
        finally:
            self._on_request(str(method), outcome, time.monotonic() - began)

    def _post(self, request_data: bytes) -> bytes:
        response = self._session.post(str(self.endpoint_uri), data=request_data, **self.get_request_kwargs())
        if not (response.status_code in _WITH_ERROR and _is_error(response.content)):
            response.raise_for_status()
        return response.content


_WITH_ERROR: Final = (400, 500)
"""Statuses with which some gateways send what a node answers: a revert, or a range that is too large."""


_MOST_ERROR_BYTES: Final = 1 << 16
"""A revert's data and a provider's explanation, and some."""


def _is_error(body: bytes) -> bool:
    # What is larger is a result; to parse every answer twice would cost more than the figure is worth.
    if len(body) > _MOST_ERROR_BYTES or b'"error"' not in body:
        return False
    try:
        document = json.loads(body)
    except ValueError:
        return False
    return isinstance(document, dict) and isinstance(document.get("error"), dict)
