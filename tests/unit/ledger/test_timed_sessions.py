"""Sessions whose requests have their seconds keep connections all the same."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
import requests

from assay_ledger import timed_session
from assay_ledger.timed_session import AnswerRefused, TimedSession
from tests.harness.drips import dripping

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


@contextmanager
def one_connection(answer: bytes, asked: list[bytes] | None = None) -> Iterator[str]:
    """The URL of a server that takes one connection and answers whatever is asked on it; `asked` gets that."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        asker, _ = listener.accept()
        with asker, suppress(ConnectionResetError):  # whoever leaves amid an answer
            while request := asker.recv(1 << 16):
                if asked is not None:
                    asked.append(request)
                asker.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()
    thread.join(5)


@pytest.mark.parametrize("answer", [SIZED, CHUNKED, EMPTY], ids=["sized", "chunked", "empty"])
@pytest.mark.gate_takes(1)
def test_a_connection_is_kept_for_the_next_request(answer: bytes) -> None:
    with one_connection(answer) as url, TimedSession(60.0) as session:
        body = b"" if answer is EMPTY else b"yes"
        assert [session.get(url).content for _ in range(3)] == [body] * 3
        with session.open("GET", url) as stream:
            assert b"".join(stream.pieces()) == body
        assert session.get(url).content == body


def test_what_a_balancer_asks_to_be_sent_back_is_sent_with_the_next_request() -> None:
    """Without it each request may come to another node, a block behind the last."""
    asked: list[bytes] = []
    answer = b"HTTP/1.1 200 OK\r\nSet-Cookie: node=7; Path=/\r\nContent-Length: 3\r\n\r\nyes"
    with one_connection(answer, asked) as url, TimedSession(60.0) as session:
        prepared = session.prepare_request(requests.Request("GET", url))
        for _ in range(3):
            assert session.ask(prepared.copy()).content == b"yes"
    assert [b"Cookie: node=7" in request for request in asked] == [False, True, True]


def test_a_connection_whose_answer_was_not_read_is_not_kept() -> None:
    with one_connection(SIZED) as url, TimedSession(1.5) as session:
        with session.open("GET", url) as stream:
            assert stream.status == 200
        # What is left of it would be taken for the next answer.
        with pytest.raises(requests.RequestException):
            session.get(url)


TLS_RECORD = b"\x16\x03\x03\x40\x00"
"""The head of a record of TLS, of 16 KiB that may come a byte at a time."""


def test_hands_that_are_shaken_a_byte_at_a_time_are_let_go() -> None:
    with dripping(TLS_RECORD, b"x") as url, TimedSession(0.6) as session:
        began = time.monotonic()
        with pytest.raises(requests.Timeout):
            session.post(url.replace("http:", "https:"), data=b"{}")
        assert time.monotonic() - began < 6


@pytest.mark.parametrize("late", [0.0, 1.0], ids=["at once", "late"])
def test_whoever_is_sent_on_is_let_go_by_the_next_server_too(monkeypatch: pytest.MonkeyPatch, late: float) -> None:
    """Its time ends while it connects there: the socket that is shut down must not be that of the first one."""
    connect = timed_session._Plain.connect
    with dripping(b"HTTP/1.1 200 OK\r\nx: ", b"x") as url:

        def slow(self: timed_session._Plain) -> None:
            connect(self)
            if url.endswith(f":{self.port}"):
                time.sleep(late)

        monkeypatch.setattr(timed_session._Plain, "connect", slow)
        moved = b"HTTP/1.1 307 Temporary Redirect\r\nLocation: %s/\r\nContent-Length: 0\r\n\r\n" % url.encode()
        with one_connection(moved) as first, TimedSession(0.6) as session:
            began = time.monotonic()
            with pytest.raises(requests.Timeout):
                session.post(first, data=b"{}")
            assert time.monotonic() - began < 6


def test_an_answer_that_nobody_closes_is_forgotten_when_its_time_is_over() -> None:
    with one_connection(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n") as url, TimedSession(1.5) as session:
        stream = session.open("GET", url)
        assert stream._call in timed_session._WATCH._calls
        with pytest.raises(requests.Timeout):
            list(stream.pieces())
        with timed_session._WATCH._changed:  # in which it is ended and forgotten
            assert stream._call not in timed_session._WATCH._calls


def test_an_answer_has_so_many_bytes_and_no_more() -> None:
    with one_connection(SIZED) as url, TimedSession(60.0, 3) as session:
        assert session.get(url).content == b"yes"
    with one_connection(SIZED) as url, TimedSession(60.0, 2) as session, pytest.raises(AnswerRefused):
        session.get(url)
