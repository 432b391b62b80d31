"""How long a store is waited for: calls one by one, an action's calls together, and who is not asked for a while."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from assay.protocol.types import Digest
from assay_ledger.deadline import MAX_REST_S, REST_S, SILENCES, Breaker, Lane, waiting, waiting_at_most
from assay_ledger.store.blobs import BlobStore, StorePace, StoreSilent, StoreUnreachable, open_store
from assay_ledger.store.folder import Folder
from assay_ledger.store.search import get_named
from tests.harness.buckets import ServedBucket, eventually, running_bucket, soon

CALL_S = StorePace().call_s


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def bucket() -> Iterator[ServedBucket]:
    with running_bucket() as bucket:
        yield bucket


def timed(store: BlobStore, clock: Clock, pace: StorePace | None = None) -> BlobStore:
    """The same store; what is not asked for a while is told by the clock."""
    return BlobStore(store._backend, store.location, pace, clock)


# --- an action's calls together


class Punctual(Folder):
    """Every object takes so many seconds of the clock to be read, and what is not allowed them is cut off."""

    def __init__(self, root: Path, clock: Clock, takes_s: float) -> None:
        super().__init__(root)
        self._clock, self._takes_s = clock, takes_s

    def read(self, path: str, max_bytes: int, seconds: float, bytes_per_s: int) -> bytes:
        self._clock.now += min(self._takes_s, seconds)
        if self._takes_s > seconds:
            raise TimeoutError("no answer")
        return super().read(path, max_bytes, 30.0, bytes_per_s)


def read_all(store: BlobStore, digests: list[Digest]) -> int:
    """How many of the objects are got."""
    got = 0
    for digest in digests:
        try:
            store.get(digest, 1)
            got += 1
        except StoreSilent:
            continue
    return got


@pytest.mark.parametrize("takes_s", [0.98 * CALL_S, CALL_S])
def test_a_store_that_is_only_just_fast_enough_costs_no_more_than_the_time_allowed(
    tmp_path: Path, clock: Clock, takes_s: float
) -> None:
    store = BlobStore(Punctual(tmp_path, clock, takes_s), "punctual", StorePace(CALL_S), clock)
    digests = [store.put(bytes([k])) for k in range(40)]
    start = clock.now
    with waiting_at_most(12 * CALL_S, clock) as budget:
        assert read_all(store, digests) == 12
    assert clock.now - start == pytest.approx(12 * CALL_S) and budget.left == pytest.approx(0.0)
    # What was cut short for want of time says nothing about the store: without that limit it gives all of them.
    assert read_all(store, digests) == 40


def test_a_store_that_is_just_too_slow_is_given_up_after_two_calls(tmp_path: Path, clock: Clock) -> None:
    store = BlobStore(Punctual(tmp_path, clock, 1.02 * CALL_S), "late", StorePace(CALL_S), clock)
    digests = [store.put(bytes([k])) for k in range(40)]
    start = clock.now
    assert read_all(store, digests) == 0
    assert clock.now - start == SILENCES * CALL_S


def test_a_real_server_is_cut_off_when_the_time_allowed_is_over(bucket: ServedBucket) -> None:
    # Only the time allowed in all cuts any call short, on a busy machine too.
    store = open_store("s3://bucket/", StorePace(call_s=30.0))
    digests = [store.put(bytes([k])) for k in range(40)]
    bucket.answer = lambda handler, body: (time.sleep(1.5), handler.reply(200, body))[1]  # type: ignore[attr-defined]
    start = time.monotonic()
    with soon(), waiting_at_most(5.0):
        # Four answers of a second and a half take more than five seconds; 40 would take a minute.
        assert 1 <= read_all(store, digests) <= 3
        assert time.monotonic() - start >= 5.0
    assert store.get(digests[-1], 1) == bytes([39])


def test_an_inner_limit_is_spent_from_the_outer_one_and_own_work_is_free(clock: Clock) -> None:
    with waiting_at_most(16.0, clock) as outer:
        clock.now += 1.0
        assert outer.left == 16.0
        with waiting_at_most(8.0) as inner, waiting(10.0) as seconds:
            assert seconds == 8.0
            clock.now += 2.0
        assert inner.left == 6.0 and outer.left == 14.0
        with waiting_at_most(90.0) as wider:
            assert wider.left == 14.0
            with waiting(10.0) as seconds:
                assert seconds == 10.0
                clock.now += 20.0
            assert wider.left == 0.0
        assert outer.left == 0.0
    with waiting(7.0) as seconds:
        assert seconds == 7.0


# --- who is not asked for a while


def test_a_breaker_opens_at_its_limit_and_rests_longer_each_time(clock: Clock) -> None:
    breaker = Breaker(CALL_S, clock)

    def silent() -> None:
        asked = breaker.asked()
        clock.now += CALL_S
        breaker.silent(asked)

    for _ in range(SILENCES - 1):
        silent()
    assert breaker.rests_for == 0
    rest = REST_S
    for _ in range(5):
        silent()
        assert breaker.rests_for == rest
        clock.now += rest
        assert breaker.rests_for == 0
        rest = min(2 * rest, MAX_REST_S)
    breaker.answered()
    silent()
    assert breaker.rests_for == 0


def test_calls_side_by_side_that_one_hiccup_ends_are_one_silence(clock: Clock) -> None:
    breaker = Breaker(CALL_S, clock)
    rest = 0.0
    for expected in (0.0, REST_S, 2 * REST_S):
        clock.now += rest
        calls = []
        for _ in range(8):
            calls.append(breaker.asked())
            clock.now += 0.5
        clock.now += 2 * CALL_S
        for asked in calls:
            breaker.silent(asked)
        rest = breaker.rests_for
        assert rest == expected


def test_calls_that_fail_at_once_are_one_silence_for_as_long_as_a_call_may_take(clock: Clock) -> None:
    breaker = Breaker(CALL_S, clock)
    start = clock.now
    while not breaker.rests_for:
        breaker.silent(breaker.asked())
        clock.now += CALL_S / 8
    # What is broken off costs no more than what is silent before it rests.
    assert (SILENCES - 1) * CALL_S < clock.now - start <= SILENCES * CALL_S


def test_a_silent_store_is_asked_again_after_a_rest(bucket: ServedBucket, clock: Clock) -> None:
    pace = StorePace(call_s=1.0)
    store = timed(open_store("s3://bucket/"), clock, pace)
    digest = store.put(b"x")
    bucket.hostility, bucket.victims = "hangs", "/objects/"
    for _ in range(SILENCES):
        with pytest.raises(StoreSilent):
            store.get(digest, 1)
        clock.now += pace.call_s
    bucket.hostility, bucket.requests = None, 0
    with pytest.raises(StoreSilent):
        store.get(digest, 1)
    assert bucket.requests == 0
    store._pace = StorePace(call_s=30.0)  # a slow machine is no silent store
    # It was silent about reading only.
    assert store.has(digest)
    clock.now += REST_S
    assert store.get(digest, 1) == b"x"


def close(bucket: ServedBucket) -> None:
    bucket.hostility = "closes"


def close_in_a_body(bucket: ServedBucket) -> None:
    def half(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        handler.end_headers()
        handler.wfile.write(body[: len(body) // 2])
        handler.close_connection = True

    bucket.answer = half


def fail(bucket: ServedBucket) -> None:
    bucket.status = 503


def refuse(bucket: ServedBucket) -> None:
    bucket.close()


BREAKS: list[Callable[[ServedBucket], None]] = [close, close_in_a_body, fail, refuse]


@pytest.mark.parametrize("break_off", BREAKS)
def test_a_store_that_breaks_every_call_off_rests_like_a_silent_one(
    bucket: ServedBucket, clock: Clock, break_off: Callable[[ServedBucket], None]
) -> None:
    digest = open_store("s3://bucket/").put(b"body")
    break_off(bucket)
    store = timed(open_store("s3://bucket/"), clock)
    for _ in range(SILENCES):
        clock.now += CALL_S
        with pytest.raises(StoreUnreachable, match="breaks off"):
            store.get(digest, 4)
    bucket.requests = 0
    with pytest.raises(StoreSilent, match="not asked for another"):
        store.get(digest, 4)
    assert bucket.requests == 0
    clock.now += REST_S
    with pytest.raises(StoreUnreachable, match="breaks off"):
        store.get(digest, 4)


def test_a_hiccup_puts_no_store_to_rest(bucket: ServedBucket, clock: Clock) -> None:
    store = timed(open_store("s3://bucket/"), clock)
    digest = store.put(b"x")
    for _ in range(2):
        bucket.hostility = "closes"
        for _ in range(3):
            with pytest.raises(StoreUnreachable, match="breaks off"):
                store.get(digest, 1)
            clock.now += 0.3 * CALL_S
        bucket.hostility = None
        assert store.get(digest, 1) == b"x"
        clock.now += CALL_S


def unanswerable(handler: BaseHTTPRequestHandler) -> None:
    """As a bucket answers for an object whose key of encryption its owner took away."""
    handler.reply(400, b"KMS.DisabledException")  # type: ignore[attr-defined]


def unreadable(handler: BaseHTTPRequestHandler) -> None:
    """As a bucket answers for an object with many short entries of metadata: more headers than a client takes."""
    handler.send_response(200)
    for k in range(150):
        handler.send_header(f"x-amz-meta-{k}", "")
    handler.send_header("Content-Length", "0")
    handler.end_headers()


@pytest.mark.parametrize("serve", [unanswerable, unreadable])
def test_objects_that_a_bucket_cannot_serve_hide_nothing_behind_them(
    bucket: ServedBucket, clock: Clock, serve: Callable[[BaseHTTPRequestHandler], None]
) -> None:
    store = timed(open_store("s3://bucket/"), clock)
    *bad, right = sorted((bytes([k]) for k in range(13)), key=lambda body: hashlib.sha256(body).digest())
    for body in (*bad, right):
        store.put(body, "runs/x")

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        clock.now += CALL_S
        serve(handler) if body in bad else handler.reply(200, body)  # type: ignore[attr-defined]

    bucket.answer = answer
    assert get_named(store, "runs/x", 1, lambda body: body == right) == right


# --- calls that nothing can interrupt


def test_a_lane_leaves_behind_what_hangs_and_takes_no_more_than_its_limit() -> None:
    lane, gate = Lane(max_lost=3), threading.Event()
    for _ in range(3):
        with pytest.raises(TimeoutError):
            lane.call(gate.wait, 0.02)
    assert lane.lost == 3
    with soon(), pytest.raises(TimeoutError):
        lane.call(lambda: 1, 60.0)
    gate.set()
    assert eventually(lambda: lane.lost == 0)
    assert lane.call(lambda: 1, 60.0) == 1
    with pytest.raises(TimeoutError, match="mine"):
        lane.call(lambda: (_ for _ in ()).throw(TimeoutError("mine")), 60.0)
    assert lane.lost == 0
