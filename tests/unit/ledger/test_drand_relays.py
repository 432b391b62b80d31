"""Relays of drand at real sockets: lying, silent or talking nonsense; one that has the round is enough.

Rounds are evmnet's own, recorded by others (tests/vectors/beacon.json has each with its origin).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.run.beacon import EVMNET
from assay.protocol.types import BeaconRound
from assay_ledger.beacon.relays import MAX_ANSWER_BYTES, MAX_REST_S, REST_S, Relays
from assay_ledger.deadline import waiting_at_most
from assay_ledger.keys import bn254
from tests.harness.clocks import MovedClock
from tests.harness.relays import RECORDED, SILENCES, Relay, body, running_relay

NUMBER, OTHER = map(BeaconRound, sorted(RECORDED))
SIGNATURE = RECORDED[NUMBER]
NEGATED = SIGNATURE[:32] + (bn254.FIELD_MODULUS - int.from_bytes(SIGNATURE[32:], "big")).to_bytes(32, "big")

LIES = {
    "another round": (body(OTHER, RECORDED[OTHER]), "sends another round"),
    "another round's signature": (body(NUMBER, RECORDED[OTHER]), "not the network's"),
    "the negated signature": (body(NUMBER, NEGATED), "not the network's"),
    "a round that is a text": (body(NUMBER, SIGNATURE, round=str(NUMBER)), "sends what is no round"),
    "no round": (body(NUMBER, SIGNATURE, round=None), "sends what is no round"),
    "no signature": (body(NUMBER, SIGNATURE, signature=None), "no signature of 64 bytes"),
    "a short signature": (body(NUMBER, SIGNATURE[:-1]), "no signature of 64 bytes"),
    "a long signature": (body(NUMBER, SIGNATURE + b"\0"), "no signature of 64 bytes"),
    "a signature with spaces": (body(NUMBER, b"", signature=SIGNATURE[:-1].hex(" ")), "no signature of 64 bytes"),
    "a list": (b"[" + body(NUMBER, SIGNATURE) + b"]", "sends what is no round"),
    "two rounds in one": (body(OTHER, SIGNATURE)[:-1] + b", " + body(NUMBER, SIGNATURE)[1:], "a key occurs twice"),
    "HTML": (b"<html>busy</html>", "it is not JSON"),
    "nothing": (b"", "it is not JSON"),
    "brackets": (b"[" * MAX_ANSWER_BYTES, "gives no answer"),
    "a body without end": (b" " * (MAX_ANSWER_BYTES + 1), "gives no answer"),
}


@pytest.fixture
def relay() -> Iterator[Relay]:
    with running_relay() as relay:
        yield relay


@pytest.fixture
def honest() -> Iterator[Relay]:
    with running_relay() as relay:
        yield relay


def fault(relay: Relay) -> str:
    """What is said of a relay that gives no round, which takes no longer than its seconds."""
    start = time.monotonic()
    with pytest.raises(UnavailableError) as refused:
        Relays(EVMNET, [relay.url], call_s=0.5).proof(NUMBER)
    assert refused.value.code == "BeaconUnavailable" and time.monotonic() - start < 5
    return refused.value.message


def test_a_round_is_fetched_by_the_network_s_name_and_checked(relay: Relay) -> None:
    for number, signature in RECORDED.items():
        assert Relays(EVMNET, [relay.url + "/"]).proof(BeaconRound(number)) == signature
    chain = "04f1e9062b8a81f848fded9c12306733282b2727ecced50032187751166ec8c3"
    assert relay.asked == [f"/{chain}/public/{number}" for number in RECORDED]


def test_an_answer_that_fills_what_it_may_have_is_read(relay: Relay) -> None:
    answer = body(NUMBER, SIGNATURE)
    relay.answer = 200, answer + b" " * (MAX_ANSWER_BYTES - len(answer))
    assert Relays(EVMNET, [relay.url]).proof(NUMBER) == SIGNATURE


@pytest.mark.parametrize("lie", LIES)
def test_a_lying_relay_is_told_with_words(relay: Relay, lie: str) -> None:
    relay.answer, words = (200, LIES[lie][0]), LIES[lie][1]
    said = fault(relay)
    assert words in said and relay.url in said and str(NUMBER) in said


def test_one_relay_that_has_the_round_is_enough(honest: Relay) -> None:
    with ExitStack() as stack:
        urls = []
        for answer in (*((200, sent) for sent, _ in LIES.values()), *SILENCES, (425, b""), (500, b"")):
            other = stack.enter_context(running_relay())
            other.answer = answer
            urls.append(other.url)
        assert Relays(EVMNET, [*urls, honest.url], call_s=0.5).proof(NUMBER) == SIGNATURE


@pytest.mark.parametrize("how", SILENCES)
def test_a_silent_relay_costs_its_seconds_and_no_more(relay: Relay, how: str) -> None:
    relay.answer = how
    assert f"{relay.url} gives no answer in 0.5 s" in fault(relay)


def test_a_redirect_is_not_followed(relay: Relay, honest: Relay) -> None:
    relay.answer = 302, b""
    relay.headers["Location"] = f"{honest.url}/{EVMNET.chain_hash.hex()}/public/{NUMBER}"
    assert "answers with status 302" in fault(relay)
    assert honest.asked == []


def test_a_compressed_body_is_not_unpacked_beyond_what_a_round_may_have(relay: Relay) -> None:
    import gzip

    packed = gzip.compress(b" " * (1 << 20))
    assert len(packed) < MAX_ANSWER_BYTES
    relay.answer, relay.headers["Content-Encoding"] = (200, packed), "gzip"
    assert "gives no answer" in fault(relay)


def test_a_relay_that_nobody_runs_and_a_name_that_nobody_has_are_told(relay: Relay, honest: Relay) -> None:
    relay.close()
    urls = [relay.url, "http://relay.invalid", "https://" + relay.url.removeprefix("http://"), honest.url]
    assert Relays(EVMNET, urls).proof(NUMBER) == SIGNATURE
    assert "gives no answer" in fault(relay)


def test_the_relay_that_answered_last_is_asked_first(relay: Relay, honest: Relay) -> None:
    relay.answer = 500, b"Failed to get beacon"
    relays = Relays(EVMNET, [relay.url, honest.url])
    for _ in range(3):
        assert relays.proof(NUMBER) == SIGNATURE
    assert (len(relay.asked), len(honest.asked)) == (1, 3)


def test_after_a_failure_of_all_nobody_is_asked_for_twice_as_long_each_time(relay: Relay) -> None:
    relay.answer, clock = (425, b"Requested future beacon"), MovedClock()
    relays = Relays(EVMNET, [relay.url], clock=clock)
    rest = REST_S
    for asked in range(1, 10):
        for late in (0.0, rest - 0.5):
            start, clock.now = clock.now, clock.now + late
            with pytest.raises(UnavailableError) as refused:
                relays.proof(NUMBER)
            assert len(relay.asked) == asked and "status 425" in refused.value.message
            assert refused.value.details["retry_after_s"] == rest - late
            clock.now = start
        clock.now += rest
        rest = min(2 * rest, MAX_REST_S)
    relay.answer = None
    assert relays.proof(NUMBER) == SIGNATURE
    relay.answer = 500, b""
    with pytest.raises(UnavailableError) as again:
        relays.proof(NUMBER)
    assert again.value.details["retry_after_s"] == REST_S, "what was over is forgotten"


def test_what_an_action_may_wait_holds_for_all_relays_together(relay: Relay, honest: Relay) -> None:
    relay.answer = "hangs"
    start = time.monotonic()
    with waiting_at_most(0.3), pytest.raises(UnavailableError) as refused:
        Relays(EVMNET, [relay.url, honest.url]).proof(NUMBER)
    assert time.monotonic() - start < 4 and honest.asked == []
    assert f"{honest.url} gives no answer in 0 s" in refused.value.message
