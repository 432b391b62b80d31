"""HTTP to a stranger who may hang, drip or talk without end: a request has its seconds from connection to last byte.

A timeout of the socket counts from one received byte to the next, so a byte a second holds a reader for ever. Here a
watch shuts a request's socket down when its time is over, which wakes its reader. Nothing is left behind.
Source: docs/adr/0027-time-of-stores-and-nodes.md.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from assay_ledger.json_input import is_deeper

CONNECT_S: Final = 5.0
MAX_ANSWER_BYTES: Final = 1 << 26
"""More than the logs of BLOCKS_PER_QUERY blocks at the gas limit of today's chains, less than any actor's memory."""

MAX_DEPTH: Final = 32
"""An answer has six levels at most."""

POOL: Final = 10
"""Connections that a session keeps."""

_PIECE_BYTES: Final = 1 << 16
_AGAIN_S: Final = 0.2
"""After which a request that had no socket yet when its time was over is looked at again."""


class AnswerRefused(requests.RequestException):
    """Whoever is asked sends more than anybody could want, or what would end the process that parses it."""


class _Call:
    """A request under way: until when, on which connection, and by which socket once its answer is read."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.until = seconds, time.monotonic() + seconds
        self.connection: HTTPConnection | None = None
        self.sock: socket.socket | None = None
        self.is_over = False

    def end(self) -> None:
        """Shuts the socket down; its reader gets what there is and finds `is_over`."""
        self.is_over = True
        found = self.sock or (None if self.connection is None else self.connection.sock)
        if found is None:
            self.until += _AGAIN_S
            return
        self.until = float("inf")
        with suppress(OSError):
            # Not the method of TLS sockets, which would take the session from under the thread that reads.
            socket.socket.shutdown(found, socket.SHUT_RDWR)

    def check(self) -> None:
        """Raises requests.Timeout once it is over."""
        if self.is_over:
            raise requests.Timeout(f"no whole answer in {self.seconds:g} s")


class _Watch:
    """One thread that ends the calls of all others when their time is over."""

    def __init__(self) -> None:
        self._calls: set[_Call] = set()
        self._changed = threading.Condition()
        self._wakes_at = float("inf")
        self._thread: threading.Thread | None = None

    def add(self, call: _Call) -> None:
        with self._changed:
            self._calls.add(call)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, daemon=True, name="assay-calls")
                self._thread.start()
            elif call.until < self._wakes_at:
                self._changed.notify()

    def drop(self, call: _Call) -> None:
        with self._changed:
            self._calls.discard(call)

    def _run(self) -> None:
        with self._changed:
            while True:
                now = time.monotonic()
                for call in [call for call in self._calls if call.until <= now]:
                    call.end()
                    # Whoever never closes its answer keeps no socket here.
                    if call.until == float("inf"):
                        self._calls.discard(call)
                self._wakes_at = min((call.until for call in self._calls), default=float("inf"))
                wait = self._wakes_at - now
                self._changed.wait(None if wait == float("inf") else max(wait, 0.001))


_WATCH = _Watch()
_current = threading.local()


def _note(connection: HTTPConnection) -> _Call | None:
    """From now on the call is by this connection. Raises requests.Timeout once it is over."""
    call: _Call | None = getattr(_current, "call", None)
    if call is not None:
        # Attack: an answer that sends its asker on: the socket to shut down is that of the next connection.
        call.connection, call.sock = connection, None
        call.check()
    return call


class _Plain(HTTPConnection):
    def connect(self) -> None:
        _note(self)
        super().connect()

    def request(self, *arguments: Any, **options: Any) -> None:
        _note(self)
        super().request(*arguments, **options)

    def getresponse(self) -> Any:
        # Attack: `Connection: close`, upon which the connection forgets its socket before the answer is read.
        if (call := _note(self)) is not None:
            call.sock = self.sock
        return super().getresponse()


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


class TimedAnswer:
    """An answer whose head is there, and whose body is read within what is left of its seconds. To be closed."""

    def __init__(self, call: _Call, response: requests.Response) -> None:
        self.response, self._call = response, call

    @property
    def status(self) -> int:
        """Of HTTP."""
        return self.response.status_code

    def header(self, name: str) -> str | None:
        """A field of the head."""
        return self.response.headers.get(name)

    def pieces(self) -> Iterator[bytes]:
        """The body as it comes, unpacked. Raises requests.Timeout, requests.ConnectionError where it breaks off."""
        try:
            while piece := self.response.raw.read1(_PIECE_BYTES, decode_content=True):
                yield piece
        except Exception as error:
            # A socket that is shut down under its reader fails in many ways.
            self._call.check()
            if isinstance(error, OSError | HTTPError):
                raise requests.ConnectionError(str(error)) from None
            raise
        self._call.check()
        self.response._content_consumed = True  # so that its connection is kept

    def whole(self, most: int) -> bytes:
        """The body. Raises what `pieces` does, and AnswerRefused where it has more than `most` bytes."""
        body = bytearray()
        for piece in self.pieces():
            body += piece
            if len(body) > most:
                raise AnswerRefused(f"The answer has more than {most} bytes.")
        return bytes(body)

    def close(self) -> None:
        """What is left of it is not read; harmless when repeated."""
        _WATCH.drop(self._call)
        self.response.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class TimedSession(requests.Session):
    """A session whose every request ends within `seconds`, its answer read. Raises requests.Timeout, AnswerRefused.

    `most`: bytes that an answer may have, MAX_ANSWER_BYTES unless given. `pool`: connections that are kept.
    """

    def __init__(self, seconds: float, most: int | None = None, pool: int = POOL) -> None:
        super().__init__()
        self._seconds, self._most = seconds, MAX_ANSWER_BYTES if most is None else most
        # Proxies named in the environment are for the world outside; a URL is taken as it is written.
        self.trust_env = False
        for scheme in ("http://", "https://"):
            self.mount(scheme, _Adapter(pool_maxsize=pool))

    def request(self, *arguments: Any, **options: Any) -> requests.Response:
        """See requests.Session."""
        return self._read(partial(super().request, *arguments, **options))

    def ask(self, prepared: requests.PreparedRequest) -> requests.Response:
        """As `request`; whoever asks one place again and again prepares it once, which saves a third of the work."""
        if self.cookies:  # by which a balancer knows the node that it has answered by before
            prepared.prepare_cookies(self.cookies.copy())
        return self._read(partial(super().send, prepared))

    def open(self, *arguments: Any, **options: Any) -> TimedAnswer:
        """A request as by `request`, whose answer is still to be read."""
        return self._opened(_Call(self._seconds), partial(super().request, *arguments, **options))

    def _read(self, send: Callable[..., requests.Response]) -> requests.Response:
        with self._opened(_Call(self._seconds), send) as answer:
            body = answer.whole(self._most)
        # web3 parses it with a parser that recurses, up to a limit that libraries raise far beyond the stack.
        if is_deeper(body, MAX_DEPTH):
            raise AnswerRefused(f"The answer is nested more than {MAX_DEPTH} levels deep.")
        answer.response._content = body
        return answer.response

    def _opened(self, call: _Call, send: Callable[..., requests.Response]) -> TimedAnswer:
        timeout = min(CONNECT_S, self._seconds), self._seconds
        _current.call = call
        _WATCH.add(call)
        try:
            answer = TimedAnswer(call, send(stream=True, timeout=timeout))
            # Where the socket was shut down amid a head, what came of it passes for a whole one.
            call.check()
            return answer
        except Exception as error:
            _WATCH.drop(call)
            # A socket that is shut down under its reader fails in many ways.
            call.check()
            if isinstance(error, ValueError) and not isinstance(error, requests.RequestException):
                # Attack: a place to go on at that no parser of addresses takes.
                raise AnswerRefused("The answer is none of HTTP.") from error
            raise
        except BaseException:
            _WATCH.drop(call)
            raise
        finally:
            _current.call = None
