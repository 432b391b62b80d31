"""A server over a socket, asked by those who send heads without an end, or many at once."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import uvicorn

from assay.web import connection
from assay.web.connection import FIELDS, HEAD_BYTES, PIPELINED, WAITING_BODY, BoundedConnection, server_config
from assay.web.listening import listen

PATIENT_S = 60.0
"""For what is to happen: a test must not end because a machine is slow."""

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"


CHUNKED = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


class Gate:
    """An application that answers when it may, and notes who came. looks: it asks meanwhile who is still there."""

    def __init__(self, answer: bytes = b"yes") -> None:
        self.answer, self.asked, self.opened, self.looks = answer, 0, threading.Event(), threading.Event()
        self.bodies, self.headers = list[bytes](), list[tuple[bytes, bytes]]()
        self.connections: list[BoundedConnection] = []
        self.opened.set()

    async def __call__(self, scope, receive, send) -> None:
        self.asked += 1
        cycle = receive.__self__
        self.connections.append(cycle.on_response.__self__)
        body, is_more = b"", True
        while not self.opened.is_set():
            await asyncio.sleep(0.01)
            if self.looks.is_set():
                with suppress(TimeoutError):
                    is_more = (await asyncio.wait_for(receive(), 0.01)).get("more_body", False)
        while is_more:
            message = await receive()
            body += message.get("body", b"")
            is_more = message.get("more_body", False)
        self.bodies.append(body)
        self.headers = scope["headers"]
        size = b"%d" % len(self.answer)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", size)]})
        await send({"type": "http.response.body", "body": self.answer})


@contextmanager
def served(gate: Gate) -> Iterator[socket.socket]:
    """A connection to a server of it."""
    listener = listen("The test", "127.0.0.1", 0)
    server = uvicorn.Server(server_config(gate, ending_s=1))
    thread = threading.Thread(target=server.run, args=([listener],))
    thread.start()
    try:
        wait_for(lambda: server.started)
        with socket.create_connection(listener.getsockname(), PATIENT_S) as asker:
            yield asker
    finally:
        gate.opened.set()
        server.should_exit = True
        thread.join(PATIENT_S)
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


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENT_S
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


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


@pytest.mark.parametrize(
    ("start", "more"),
    [
        (HEAD + b"x: ", b"v"),
        (HEAD + b"x", b"v"),
        (b"GET /", b"v"),
        (CHUNKED + b"0\r\nx: ", b"v"),
        (CHUNKED + b"0\r\nx", b"v"),
        (CHUNKED + b"1;x=", b"v"),
        (CHUNKED, b"0"),
    ],
    ids=["value", "name", "path", "value behind", "name behind", "of a chunk", "size of a chunk"],
)
def test_a_part_without_an_end_is_cut_off(monkeypatch: pytest.MonkeyPatch, start: bytes, more: bytes) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 10 * PATIENT_S)  # not because it takes long
    gate = Gate()
    gate.opened.clear()
    with served(gate) as asker:
        asker.sendall(start)
        sent = len(start)
        asker.settimeout(0.001)
        with pytest.raises(ConnectionError):
            while sent < 16 * HEAD_BYTES:
                asker.sendall(more * 1024)
                sent += 1024
                with suppress(TimeoutError):
                    if not asker.recv(1):
                        raise ConnectionAbortedError
            # All was sent before the server came to it.
            asker.settimeout(PATIENT_S)
            while asker.recv(1 << 16):
                pass
            raise ConnectionAbortedError


def test_what_comes_behind_a_large_body_in_one_piece_is_read_on() -> None:
    """The half of a head behind it was counted with the body, and the connection cut before its answer."""
    gate, body = Gate(), b"b" * (2 * HEAD_BYTES)
    with served(gate) as asker:
        asker.sendall(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body + b"GET /2 HT")
        time.sleep(0.1)
        asker.sendall(b"TP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert all_of(asker).count(b"HTTP/1.1 200 ") == 2
    assert gate.bodies == [body, b""]


def test_trailers_are_counted_and_say_nothing() -> None:
    gate = Gate()
    trailers = b"".join(b"t%d: b\r\n" % k for k in range(FIELDS))
    with served(gate) as asker:
        asker.sendall(CHUNKED + b"1\r\na\r\n0\r\nx-assay-voucher: b\r\n\r\n")
        one_of(asker)
        assert dict(gate.headers) == {b"host": b"x", b"transfer-encoding": b"chunked"}
        gate.opened.clear()
        asker.sendall(CHUNKED + b"1\r\na\r\n0\r\n" + trailers + b"\r\n")
        assert all_of(asker).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("behind", [PIPELINED, PIPELINED + 1])
def test_so_many_requests_wait_behind_one(behind: int) -> None:
    gate = Gate()
    gate.opened.clear()
    with served(gate) as asker:
        asker.sendall((HEAD + b"\r\n") * (behind + 1))
        time.sleep(0.2)
        gate.opened.set()
        if behind == PIPELINED:
            asker.sendall(HEAD + b"Connection: close\r\n\r\n")
            assert all_of(asker).count(b"HTTP/1.1 200 ") == PIPELINED + 2
        else:
            # Those before it are answered; whoever sent it sees the end, and asks again.
            found = all_of(asker)
            assert found.count(b"HTTP/1.1 200 ") == PIPELINED + 1 and b" 400 " not in found


def test_a_request_that_waits_has_a_small_body() -> None:
    gate = Gate()
    gate.opened.clear()
    with served(gate) as asker:
        size = 4 * WAITING_BODY
        asker.sendall(HEAD + b"\r\nPOST / HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % size)
        # The first one looks again and again whether somebody is there, and reads on.
        gate.looks.set()
        with suppress(TimeoutError, ConnectionError):
            asker.settimeout(PATIENT_S)
            asker.sendall(b"b" * size)
        # What of it came in time has been read: it was more than may wait.
        wait_for(lambda: bool(gate.connections) and gate.connections[0]._is_deaf)
        held = max((len(cycle.body) for one in gate.connections for cycle, _ in one.pipeline), default=0)
        assert held <= WAITING_BODY
        # The one before it is answered all the same.
        gate.looks.clear()
        gate.opened.set()
        asker.settimeout(PATIENT_S)
        assert all_of(asker).count(b"HTTP/1.1 200 ") == 1


@pytest.mark.parametrize("body", [b"", b"a body of its own"], ids=["", "body"])
@pytest.mark.parametrize("is_apart", [False, True], ids=["at once", "apart"])
def test_who_asks_for_another_protocol_is_answered_in_this_one(body: bytes, is_apart: bool) -> None:
    """A client that would rather speak HTTP/2, as Java's does; its body is a body, and what is behind it is nothing."""
    offer = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
    for framing, sent in (
        (b"Content-Length: %d\r\n" % len(body), body),
        (b"Transfer-Encoding: chunked\r\n", (b"%x\r\n%s\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"),
    ):
        gate = Gate()
        with served(gate) as asker:
            asker.sendall(b"POST / HTTP/1.1\r\nHost: x\r\n" + offer + framing + b"\r\n" + sent * (not is_apart))
            if is_apart:
                time.sleep(0.1)
                asker.sendall(sent)
            asker.sendall(HEAD + b"\r\n")
            found = all_of(asker)
        assert found.count(b" 200 ") == 1 and b"connection: close" in found.lower()
        assert gate.bodies == [body]


def test_nobody_who_reads_nothing_holds_a_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little waits to be read, so that writing never stops; and the connection is closed, but for what waits."""
    monkeypatch.setattr(connection, "STALL_S", 0.3)
    for end in (b"", b"Connection: close\r\n"):
        gate = Gate(b"y" * (8 << 20))
        gate.opened.clear()
        with served(gate) as asker:
            asker.sendall(HEAD + end + b"\r\n")
            wait_for(lambda gate=gate: bool(gate.connections))
            (one,) = gate.connections
            one.transport.set_write_buffer_limits(1 << 26)
            gate.opened.set()
            wait_for(lambda one=one: one not in one.connections)
            assert len(all_of(asker)) < 8 << 20, "it was closed before all of it was taken"


def test_where_all_are_answered_one_more_is_closed_and_nobody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECTIONS", 1)
    gate = Gate()
    gate.opened.clear()
    with served(gate) as asker:
        asker.sendall(HEAD + b"\r\n")
        wait_for(lambda: bool(gate.connections))
        with socket.create_connection(asker.getpeername(), PATIENT_S) as more:
            assert all_of(more) == b""
        gate.opened.set()
        one_of(asker)


def test_a_slow_reader_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "STALL_S", 10 * PATIENT_S)  # looked at below
    gate, size = Gate(b"y" * (64 << 20)), 0
    with served(gate) as asker:
        # Else the kernel takes most of it, and says so long after it was read.
        asker.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        asker.sendall(HEAD + b"Connection: close\r\n\r\n")
        wait_for(lambda: bool(gate.connections) and gate.connections[0].transport.get_write_buffer_size() > 0)
        (one,) = gate.connections
        for _ in range(3):
            looked = threading.Event()
            one.loop.call_soon_threadsafe(lambda looked=looked: (one._look_at_reader(), looked.set()))
            assert looked.wait(PATIENT_S)
            waits = one.transport.get_write_buffer_size()
            while one.transport.get_write_buffer_size() >= waits:
                piece = asker.recv(1 << 16)
                assert piece
                size += len(piece)
        while piece := asker.recv(1 << 18):
            size += len(piece)
    assert size > 64 << 20


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
