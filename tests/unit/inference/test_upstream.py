"""A gateway over a socket that never comes to its end, or comes to it in odd ways."""

from __future__ import annotations

import gzip
import json
import time
from contextlib import nullcontext

import pytest

from assay.inference.gateway.till import HEADER
from assay.inference.relay.upstream import GatewayAway, GatewayOdd, GatewayRefusal, Upstream
from assay_ledger.timed_session import TimedAnswer
from tests.harness.drips import dripping

LIMIT_S = 0.6
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
EMPTY = gzip.compress(b"")[:10]
"""The head of a packed body, behind which blocks of nothing may come without an end."""

DRIPS = {
    "sized": (OK + b"Content-Length: 60000\r\n\r\n", b"x"),
    "chunked": (CHUNKED, b"1\r\nx\r\n"),
    "until closed": (OK + b"Connection: close\r\n\r\n", b"x"),
    "size of a chunk": (CHUNKED, b"0"),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n"),
    "packed nothing": (OK + b"Content-Encoding: gzip\r\nContent-Length: 60000\r\n\r\n" + EMPTY, b"\0\0\0\xff\xff"),
}
HEADS = {"a field": (OK + b"x: ", b"x"), "to go on": (b"", b"HTTP/1.1 100 Continue\r\n\r\n")}


@pytest.mark.parametrize("how", DRIPS | HEADS)
def test_terms_that_come_a_byte_at_a_time_are_not_waited_for(how: str) -> None:
    with dripping(*(DRIPS | HEADS)[how]) as url:
        began = time.monotonic()
        with pytest.raises(GatewayAway):
            Upstream(url, LIMIT_S).model()
        assert time.monotonic() - began < 10 * LIMIT_S


@pytest.mark.parametrize("how", DRIPS)
def test_an_answer_that_comes_a_byte_at_a_time_is_not_waited_for(how: str) -> None:
    with dripping(*DRIPS[how]) as url:
        upstream = Upstream(url, LIMIT_S)
        stream = upstream.ask(b"{}", "a voucher")
        assert isinstance(stream, TimedAnswer)
        began = time.monotonic()
        with pytest.raises(GatewayAway):
            list(upstream.events(stream))
        assert time.monotonic() - began < 10 * LIMIT_S


def test_a_refusal_that_comes_a_byte_at_a_time_says_nothing() -> None:
    head, piece = DRIPS["sized"]
    with dripping(head.replace(b"200 OK", b"402 Payment Required"), piece) as url:
        refusal = Upstream(url, LIMIT_S).ask(b"{}", "a voucher")
    assert not isinstance(refusal, TimedAnswer) and (refusal.status, refusal.code) == (402, "")


@pytest.mark.parametrize("body", [b"[]", b'"no"', b"<html>", b""])
def test_a_refusal_in_another_form_says_nothing_but_its_status(body: bytes) -> None:
    head = OK.replace(b"200 OK", b"502 Bad Gateway") + b"Content-Length: %d\r\n\r\n" % len(body)
    with dripping(head + body, b"", pieces=0) as url:
        refusal = Upstream(url, 5.0).ask(b"{}", "a voucher")
    assert isinstance(refusal, GatewayRefusal) and (refusal.status, refusal.body) == (502, {})


@pytest.mark.parametrize("how", ["sized", "chunked"])
def test_what_breaks_off_is_away(how: str) -> None:
    with dripping(*DRIPS[how], every_s=0.0, pieces=2) as url, pytest.raises(GatewayAway):
        Upstream(url, 5.0).model()
    with dripping(*DRIPS[how], every_s=0.0, pieces=2) as url, pytest.raises(GatewayAway):
        upstream = Upstream(url, 5.0)
        stream = upstream.ask(b"{}", "a voucher")
        assert isinstance(stream, TimedAnswer)
        list(upstream.events(stream))


def test_a_stream_in_pieces_of_any_size_is_read_to_its_end() -> None:
    events = b'data: {"choices": []}\n\ndata: {"a": 1}\n\ndata: [DONE]\n\n'
    for size in (1, 7, len(events)):
        chunks = [events[at : at + size] for at in range(0, len(events), size)]
        whole = b"".join(b"%x\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
        with dripping(CHUNKED, whole, every_s=0.0, pieces=1) as url:
            upstream = Upstream(url, 5.0)
            stream = upstream.ask(b"{}", "a voucher")
            assert isinstance(stream, TimedAnswer)
            assert list(upstream.events(stream)) == [{"choices": []}, {"a": 1}]


@pytest.mark.parametrize("text", ["\\ud800", "x\\udc00", "\\ud83d\\ude00"])
def test_half_of_a_character_is_no_event_no_refusal_and_no_list_of_models(text: str) -> None:
    """Attack: what nobody can write out ends a paid answer as a failure of the relay's own."""
    is_whole = len(text) > 7
    event = b'data: {"text": "%s"}\n\n' % text.encode()
    body = b'{"error": {"message": "%s"}}' % text.encode()
    with dripping(OK + b"Connection: close\r\n\r\n" + event + b"data: [DONE]\n\n", b"", pieces=0) as url:
        upstream = Upstream(url, 5.0)
        stream = upstream.ask(b"{}", "a voucher")
        assert isinstance(stream, TimedAnswer)
        with nullcontext() if is_whole else pytest.raises(GatewayOdd):
            assert list(upstream.events(stream)) == [{"text": "\U0001f600"}]
    head = OK.replace(b"200 OK", b"400 Bad Request") + b"Content-Length: %d\r\n\r\n" % len(body)
    with dripping(head + body, b"", pieces=0) as url:
        refusal = Upstream(url, 5.0).ask(b"{}", "a voucher")
    assert not isinstance(refusal, TimedAnswer) and bool(refusal.body) is is_whole


@pytest.mark.parametrize("how", HEADS)
def test_an_answer_that_never_begins_is_not_waited_for(how: str) -> None:
    with dripping(*HEADS[how]) as url:
        began = time.monotonic()
        with pytest.raises(GatewayAway):
            Upstream(url, LIMIT_S).ask(b"{}", "a voucher")
        assert time.monotonic() - began < 10 * LIMIT_S


def test_an_answer_that_says_to_go_on_at_no_address_is_none() -> None:
    moved = b"HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n"
    with dripping(moved, b"", pieces=0) as url, pytest.raises(GatewayAway):
        Upstream(url, 5.0).ask(b"{}", "a voucher")


@pytest.mark.parametrize("name", ["\ud800", "a\u202eb", "a\n", "\0", "x" * 201, 5, None])
def test_a_name_that_cannot_be_shown_is_none(name: object) -> None:
    address, root = "0x" + "11" * 20, "0x" + "22" * 32
    payment = {"header": HEADER, "chain_id": 1, "contract": address, "gateway": address, "token": address, "price": "1"}
    own = {"id": "x" * 200, "signer": address, "parameters": root, "tokens": 8, "prompt": 8, "payment": payment}
    for named, is_odd in ((own, False), (own | {"id": name}, True)):
        body = json.dumps({"data": [named]}).encode()
        with dripping(OK + b"Content-Length: %d\r\n\r\n" % len(body) + body, b"", pieces=0) as url:
            if not is_odd:
                assert Upstream(url, 5.0).model().name == "x" * 200
                continue
            with pytest.raises(GatewayOdd):
                Upstream(url, 5.0).model()


def test_terms_longer_than_any_are_odd() -> None:
    with (
        dripping(OK + b"Content-Length: 9000000\r\n\r\n", b" " * 9_000_000, every_s=0.0, pieces=1) as url,
        pytest.raises(GatewayOdd),
    ):
        Upstream(url, 5.0).model()
