"""A server over a socket, asked by those who send heads without an end, or many at once."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import uvicorn

from assay.web.connection import FIELDS, HEAD_BYTES, PIPELINED, BoundedConnection, server_config
from assay.web.listening import listen

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


class Gate:
    """An application that answers when it may, and counts who came."""

    def __init__(self) -> None:
        self.asked, self.opened = 0, threading.Event()
        self.opened.set()

    async def __call__(self, scope, receive, send) -> None:
        import asyncio

        self.asked += 1
        while not self.opened.is_set():
            await asyncio.sleep(0.01)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
        await send({"type": "http.response.body", "body": b"yes"})


@contextmanager
def served(gate: Gate) -> Iterator[socket.socket]:
    """A connection to a server of it."""
    listener = listen("The test", "127.0.0.1", 0)
    server = uvicorn.Server(server_config(gate, ending_s=1))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        deadline = time.monotonic() + 20
        while not server.started:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        with socket.create_connection(listener.getsockname(), 10) as asker:
            yield asker
    finally:
        gate.opened.set()
        server.should_exit = True
        thread.join(10)
        assert not thread.is_alive()


def all_of(asker: socket.socket) -> bytes:
    """What comes until the server closes."""
    found = b""
    try:
        while piece := asker.recv(1 << 16):
            found += piece
    except ConnectionError:
        pass
    return found


def one_of(asker: socket.socket) -> bytes:
    """One answer of `Gate`."""
    found = b""
    while not found.endswith(b"\r\n\r\nyes"):
        piece = asker.recv(1 << 16)
        assert piece, found
        found += piece
    return found


def of_fields(count: int) -> bytes:
    """A request with so many fields."""
    return HEAD + b"".join(b"a%d: b\r\n" % k for k in range(count - 1)) + b"\r\n"


def of_size(size: int) -> bytes:
    """A request whose path, fields' names and values have so many bytes."""
    return HEAD + b"long: " + b"v" * (size - len("/" + "Host" + "x" + "long")) + b"\r\n\r\n"


@pytest.mark.parametrize(
    ("largest", "above"),
    [(of_fields(FIELDS), of_fields(FIELDS + 1)), (of_size(HEAD_BYTES), of_size(HEAD_BYTES + 1))],
    ids=["fields", "bytes"],
)
def test_a_head_is_taken_up_to_its_bound(largest: bytes, above: bytes) -> None:
    gate = Gate()
    with served(gate) as asker:
        # In two pieces, so that no bound of the pieces is met before that of the whole.
        for piece in (largest[: len(largest) // 2], largest[len(largest) // 2 :]):
            asker.sendall(piece)
            time.sleep(0.05)
        assert b" 200 " in one_of(asker)
        asker.sendall(above)
        assert all_of(asker).startswith(b"HTTP/1.1 400 ")
    assert gate.asked == 1


@pytest.mark.parametrize("start", [HEAD + b"x: ", HEAD + b"x", b"GET /"], ids=["value", "name", "path"])
def test_a_part_without_an_end_is_cut_off(start: bytes) -> None:
    gate = Gate()
    with served(gate) as asker:
        asker.sendall(start)
        sent = len(start)
        with pytest.raises(ConnectionError):
            while sent < 16 * HEAD_BYTES:
                asker.sendall(b"v" * 1024)
                sent += 1024
                time.sleep(0.005)
    assert not gate.asked


def test_trailers_are_fields_too() -> None:
    gate = Gate()
    gate.opened.clear()
    with served(gate) as asker:
        chunked = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
        asker.sendall(chunked + b"".join(b"t%d: b\r\n" % k for k in range(FIELDS)) + b"\r\n")
        assert b" 400 " in all_of(asker)


@pytest.mark.parametrize(("behind", "answers"), [(PIPELINED, PIPELINED + 1), (PIPELINED + 1, 0)])
def test_so_many_requests_wait_behind_one(behind: int, answers: int) -> None:
    gate = Gate()
    gate.opened.clear()
    with served(gate) as asker:
        asker.sendall((HEAD + b"\r\n") * (behind + 1))
        time.sleep(0.2)
        gate.opened.set()
        if answers:
            asker.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert all_of(asker).count(b"HTTP/1.1 200 ") == answers + 1
        else:
            assert all_of(asker).startswith(b"HTTP/1.1 400 ")
    assert gate.asked <= PIPELINED + 2


def test_who_asks_for_another_protocol_is_answered_in_this_one_and_may_come_again() -> None:
    """A client that would rather speak HTTP/2; the parser reads nothing behind such a request."""
    gate = Gate()
    with served(gate) as asker:
        asker.sendall(HEAD + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n")
        found = all_of(asker)
        assert b" 200 " in found and b"connection: close" in found.lower()


def test_a_body_does_not_wait_until_its_head_is_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers of two writes took 40 ms longer than they should have, on every connection that was kept."""
    found = list[int]()
    made = BoundedConnection.connection_made

    def noted(self, transport) -> None:
        found.append(transport.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        made(self, transport)

    monkeypatch.setattr(BoundedConnection, "connection_made", noted)
    with served(Gate()) as asker:
        asker.sendall(HEAD + b"\r\n")
        one_of(asker)
    assert found and all(found)
