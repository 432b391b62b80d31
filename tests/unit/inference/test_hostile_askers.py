"""A gateway over a socket, whose askers hang up, hold places, send nothing, or ask when its batch fails."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import httpx
import pytest
from eth_account import Account

from assay.inference.gateway import server
from assay.inference.gateway.app import GatewayTerms
from assay.inference.gateway.batcher import TextBatch
from assay.inference.gateway.limits import AskerLimits
from assay.inference.model import LanguageModel
from assay.inference.rows import CachedRows, WindowRows
from assay.inference.statement import read_statement
from assay.protocol.errors import UnavailableError
from assay.web import connection
from assay.web.listening import listen
from tests.harness.buckets import eventually
from tests.harness.inference.models import LETTERS, small_gpt, two_back

LONG = 1000
ASKED = {"model": "assay", "prompt": "the cat", "max_tokens": LONG, "seed": 7}

PATIENT_S = 60.0
"""For what is to happen: a test must not end because a machine is slow."""


class PacedRows(WindowRows):
    """Rows that give a token every few hundredths of a second, so that no second goes by without one."""

    def __init__(self, *, fails: bool = False) -> None:
        super().__init__(small_gpt())
        self.fails, self.released = fails, threading.Event()
        self.admitted = self.given = 0
        self.every_s = 0.02

    def admit(self, tokens):
        if self.fails:
            raise MemoryError
        self.admitted += 1
        return super().admit(tokens)

    def advance(self, rows, tokens):
        time.sleep(self.every_s)
        self.given += 1
        return super().advance(rows, tokens)

    def release(self, row) -> None:
        self.released.set()


@contextmanager
def serving(
    rows: WindowRows, *, opened: int = 16, model: LanguageModel | None = None, batch: TextBatch | None = None
) -> Iterator[tuple[int, list[Exception]]]:
    """The port of a gateway, and what it raised at its end."""
    listener, raised, ready = listen("The gateway", "127.0.0.1", 0), list[Exception](), threading.Event()
    account = Account.from_key(b"\x05" * 32)
    limits = AskerLimits(rate=1000, burst=1000, open=opened)
    terms = GatewayTerms(small_gpt() if model is None else model, account, "assay", limits=limits)
    batch = batch or TextBatch(rows)

    def run() -> None:
        try:
            server.serve_batch(terms, batch, listener, ready=ready.set)
        except UnavailableError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    assert ready.wait(60)
    try:
        yield listener.getsockname()[1], raised
    finally:
        batch.close()
        thread.join(60)
        assert not thread.is_alive()


def asking(port: int, **more: object) -> socket.socket:
    """A connection that asked."""
    body = json.dumps(ASKED | more).encode()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
    asker = socket.create_connection(("127.0.0.1", port), 60)
    asker.sendall(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
    return asker


@pytest.mark.parametrize("behind", [b"", b"\r\n", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["", "line", "next"])
def test_who_hangs_up_leaves_its_row_though_tokens_come_fast(behind: bytes) -> None:
    """Attack: bytes behind the request, at which a server stops to read, and never hears of the end."""
    rows = PacedRows()
    with serving(rows) as (port, _):
        asker = asking(port)
        asker.sendall(behind)
        assert eventually(lambda: rows.admitted == 1, PATIENT_S)
        asker.close()
        assert rows.released.wait(PATIENT_S) and rows.given < LONG - 1, "before its answer was whole"


@pytest.mark.parametrize("behind", [b"", b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"], ids=["", "next"])
def test_a_stream_that_waits_for_its_row_is_given_up_with_its_connection(behind: bytes) -> None:
    rows = PacedRows()
    rows.most = 1
    rows.every_s = 0.5  # so that it waits, on a slow machine too
    batch = TextBatch(rows)
    with serving(rows, batch=batch) as (port, _), asking(port):
        assert eventually(lambda: rows.admitted == 1, PATIENT_S)
        waits = asking(port, stream=True)
        assert eventually(lambda: bool(batch._queue), PATIENT_S)
        (wish,) = batch._queue
        assert waits.recv(12) == b"HTTP/1.1 200"
        waits.sendall(behind)
        time.sleep(0.3)  # which reads it alone, before the end; where it takes longer, less is shown
        waits.close()
        assert eventually(lambda: wish.is_given_up, PATIENT_S) and rows.admitted == 1, "while another is answered"


def test_one_address_has_so_many_requests_open_and_no_more() -> None:
    rows = PacedRows()
    rows.every_s = 0.5  # both are answered still when the third asks, on a slow machine too
    batch = TextBatch(rows)
    with serving(rows, opened=2, batch=batch) as (port, _):
        askers = [asking(port), asking(port, stream=True)]
        assert eventually(lambda: rows.admitted == 1 and len(batch._queue) == 1, PATIENT_S)
        refused = httpx.post(f"http://127.0.0.1:{port}/v1/completions", json=ASKED, timeout=PATIENT_S)
        assert (refused.status_code, refused.json()["error"]["code"]) == (429, "RateLimited")
        for asker in askers:
            asker.close()
        deadline = time.monotonic() + PATIENT_S
        while (found := httpx.get(f"http://127.0.0.1:{port}/health", timeout=PATIENT_S).status_code) == 429:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert found == 200 and rows.given < LONG - 1, "before their answers were whole"


def test_a_batch_that_fails_tells_everybody_and_ends_the_server() -> None:
    with serving(PacedRows(fails=True)) as (port, raised):
        askers = [asking(port) for _ in range(2)]
        # Head and body may come apart; the server ends, and closes what it has answered.
        answers = [b"".join(iter(lambda a=asker: a.recv(4096), b"")) for asker in askers]
        assert all(b" 503 " in answer and b"GatewayEnds" in answer for answer in answers), answers
        for asker in askers:
            asker.close()
        assert eventually(lambda: bool(raised), PATIENT_S)
    assert [error.code for error in raised] == ["GatewayFailed"]


def test_a_prompt_that_cannot_be_read_leaves_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = CachedRows(small_gpt(), 1)
    with monkeypatch.context() as patch, pytest.raises(ZeroDivisionError):
        patch.setattr(rows, "_read", lambda _row: 1 // 0)
        rows.admit([1])
    rows.release(rows.admit([1])[0])


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nX: "], ids=["nothing", "half"])
def test_a_connection_that_asks_nothing_is_closed(monkeypatch: pytest.MonkeyPatch, sent: bytes) -> None:
    monkeypatch.setattr(connection, "HEAD_S", 0.5)
    with serving(PacedRows()) as (port, _), socket.create_connection(("127.0.0.1", port), 5) as asker:
        asker.sendall(sent)
        try:
            for _ in range(10):
                time.sleep(0.1)
                asker.sendall(sent[-1:])
            found = asker.recv(1)
        except ConnectionError:
            found = b""
        assert found == b""


def test_connections_that_ask_nothing_keep_nobody_else_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "CONNECTIONS", 4)
    with serving(PacedRows()) as (port, _), ExitStack() as stack:
        held = [stack.enter_context(socket.create_connection(("127.0.0.1", port), 5)) for _ in range(4)]
        time.sleep(0.2)
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
        held[0].settimeout(5)
        with suppress(ConnectionError):
            assert held[0].recv(1) == b"", "the one that has asked nothing for longest gave way"
        held[1].setblocking(False)
        with pytest.raises(BlockingIOError):
            held[1].recv(1)


def test_a_model_with_more_tokens_than_text_is_answered_and_streamed() -> None:
    """Whoever asked it got an error, as often as its weights drew a token that its tokenizer does not list."""
    model = two_back(without_text=30)
    with serving(WindowRows(model), model=model) as (port, _):
        url, asked = f"http://127.0.0.1:{port}/v1/completions", ASKED | {"max_tokens": 12}
        found = httpx.post(url, json=asked, timeout=30)
        assert found.status_code == 200, found.text
        tokens = read_statement(found.json()["statement"].encode()).statement.answer
        assert max(tokens) >= LETTERS.size and len(tokens) == 12
        text = "".join(LETTERS.vocabulary[token] for token in tokens if token < LETTERS.size)
        assert found.json()["choices"][0]["text"] == text
        lines = httpx.post(url, json=asked | {"stream": True}, timeout=30).text.split("\n\n")
        pieces = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
        assert "".join(piece["choices"][0]["text"] for piece in pieces) == text
        assert pieces[-1]["statement"] == found.json()["statement"]
