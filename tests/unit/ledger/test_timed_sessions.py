"""Sessions whose requests have their seconds keep connections all the same."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from assay_ledger.timed_session import AnswerRefused, TimedSession

SIZED = b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nyes\r\n0\r\n\r\n"
EMPTY = b"HTTP/1.1 204 No Content\r\n\r\n"


@contextmanager
def one_connection(answer: bytes) -> Iterator[str]:
    """The URL of a server that takes one connection and answers whatever is asked on it."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        asker, _ = listener.accept()
        with asker:
            while asker.recv(1 << 16):
                asker.sendall(answer)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    listener.close()
    thread.join(5)


@pytest.mark.parametrize("answer", [SIZED, CHUNKED, EMPTY], ids=["sized", "chunked", "empty"])
def test_a_connection_is_kept_for_the_next_request(answer: bytes) -> None:
    with one_connection(answer) as url, TimedSession(2.0) as session:
        body = b"" if answer is EMPTY else b"yes"
        assert [session.get(url).content for _ in range(3)] == [body] * 3
        with session.open("GET", url) as stream:
            assert b"".join(stream.pieces()) == body
        assert session.get(url).content == body


def test_a_connection_whose_answer_was_not_read_is_not_kept() -> None:
    with one_connection(SIZED) as url, TimedSession(0.5) as session:
        with session.open("GET", url) as stream:
            assert stream.status == 200
        # What is left of it would be taken for the next answer.
        with pytest.raises(requests.RequestException):
            session.get(url)


def test_an_answer_has_so_many_bytes_and_no_more() -> None:
    with one_connection(SIZED) as url, TimedSession(2.0, 3) as session:
        assert session.get(url).content == b"yes"
    with one_connection(SIZED) as url, TimedSession(2.0, 2) as session, pytest.raises(AnswerRefused):
        session.get(url)
