"""Stores that are written to in the background: what waits for them, what they refuse, what is larger than a queue."""

from __future__ import annotations

import atexit
import logging
import math
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import mirror
from assay_ledger.store.blobs import (
    BlobStore,
    ObjectMismatch,
    StoreDenied,
    StorePace,
    open_store,
)
from assay_ledger.store.folder import Folder
from assay_ledger.store.listfile import pack
from assay_ledger.store.mirror import CopiedWrite
from assay_ledger.store.mirrored import MirroredStore
from assay_ledger.store.objects import Objects
from tests.harness.buckets import ServedBucket, eventually, running_bucket
from tests.harness.clocks import MovedClock

PACE = StorePace(call_s=0.5)
SPECS = [TensorSpec(DType.F32, (2, 3))]


@pytest.fixture
def bucket() -> Iterator[ServedBucket]:
    with running_bucket() as bucket:
        yield bucket


@pytest.fixture(autouse=True)
def _no_waiting_at_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """These stores lack something when the tests end."""
    monkeypatch.setattr(atexit, "register", lambda _: None)


def copy_of(source: BlobStore, data: bytes) -> CopiedWrite:
    digest = sha256(data).digest()
    return CopiedWrite(source, Digest(digest), len(data), digest, None)


class RefusingStore(BlobStore):
    """A folder that refuses some objects and slots, by their bytes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Folder(folder), str(folder))
        self.refuses: set[bytes] = set()
        self.refused = 0
        """How often."""

    def put_as(self, digest: Digest, stored: bytes, name: str | None = None) -> None:
        """See BlobStore."""
        self._check(stored)
        super().put_as(digest, stored, name)

    def write_slot(self, name: str, data: bytes) -> None:
        """See SlotStore."""
        self._check(data)
        super().write_slot(name, data)

    def _check(self, data: bytes) -> None:
        if data in self.refuses:
            self.refused += 1
            raise StoreDenied("It is refused.")


@pytest.fixture
def refusing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[MirroredStore, RefusingStore]:
    """A store with a mirror that refuses, which is tried again soon; and the mirror."""
    monkeypatch.setattr(mirror, "RETRY_S", 0.05)
    second = RefusingStore(tmp_path / "second")
    return MirroredStore([open_store(tmp_path / "first"), second]), second


def warned(caplog: pytest.LogCaptureFixture, store: BlobStore) -> list[str]:
    """What was said of a store; mirrors of other tests may still be at work."""
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [text for text in said if text.startswith(store.location)]


def test_what_a_mirror_cannot_keep_up_with_is_not_kept_for_ever_and_said(
    tmp_path: Path, bucket: ServedBucket, caplog: pytest.LogCaptureFixture
) -> None:
    bucket.hostility = "hangs"
    store = MirroredStore([open_store(tmp_path), open_store("s3://bucket/", PACE)], queue_bytes=1000)
    start = time.monotonic()
    with caplog.at_level(logging.WARNING):
        made = [store.put(bytes([n]) * 400) for n in range(6)]
    assert time.monotonic() - start < 5 * PACE.call_s, "a slow mirror holds nobody up"
    assert store.dropped == 4 and "does not keep up" in caplog.text
    assert all(store.get(digest, 400) for digest in made)


def test_an_object_that_no_queue_holds_is_mirrored_from_the_store_that_took_it(
    tmp_path: Path, bucket: ServedBucket, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Bad luck: a model of 64 million parameters; every list of it is larger than what may wait for a mirror."""
    monkeypatch.setattr(mirror, "RETRY_S", 0.05)
    first, second = open_store(tmp_path), open_store("s3://bucket/", PACE)
    store = MirroredStore([first, second], queue_bytes=1000)
    bucket.status = 503
    lists = [bytes([n]) * 2000 for n in range(3)]
    with caplog.at_level(logging.WARNING):
        made = [store.put(data, f"lists/{n:02d}") for n, data in enumerate(lists)]
        small = store.put(b"small")
        time.sleep(1.0)
    # A mirror that takes nothing has no large object read again and again for it.
    assert first.traffic.calls.get("read", 0) <= 9 and "keep up" not in caplog.text
    bucket.status = 200
    for breaker in second._breakers.values():
        breaker.answered()
    assert eventually(lambda: store.flush(0.1), 20) and store.dropped == 0
    assert [second.get(digest, 2000) for digest in made] == lists and second.get(small, 5) == b"small"
    assert [list(second.candidates(f"lists/{n:02d}")) for n in range(3)] == [[digest] for digest in made]


def test_what_the_store_that_took_it_has_no_more_is_no_mirrors_object(tmp_path: Path) -> None:
    """Attack: somebody writes over it before the mirror's turn comes."""
    first, second = open_store(tmp_path / "first"), open_store(tmp_path / "second")
    digest = first.put(bytes(2000))
    for others in (b"other bytes", bytes(1999) + b"1"):
        first.put_as(digest, others)
        with pytest.raises(ObjectMismatch):
            copy_of(first, bytes(2000))(second)
        assert not second.has(digest)
    first.put(bytes(2000))
    copy_of(first, bytes(2000))(second)
    assert second.get(digest, 2000) == bytes(2000)


def test_other_bytes_in_the_place_of_a_large_object_are_read_ever_more_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: one write over an object, and each mirror reads gigabytes every ten minutes for ever."""
    clock = MovedClock()
    monkeypatch.setattr("assay_ledger.store.mirror.time.monotonic", clock)
    first, second = open_store(tmp_path / "first"), RefusingStore(tmp_path / "second")
    reads = []
    for others, wanted in ((b"other bytes", ObjectMismatch), (bytes(2000), StoreDenied)):
        second.refuses, before = {bytes(2000)}, first.traffic.calls.get("read", 0)
        waiting = mirror._Waiting(copy_of(first, first.put(bytes(2000)) and bytes(2000)), 0)
        first.put_as(Digest(sha256(bytes(2000)).digest()), others)
        for _ in range(10 * 24 * 6):
            if waiting.due <= clock.now:
                with pytest.raises(wanted) as raised:
                    waiting.write(second)
                waiting.refused(raised.value)
            waiting.anew() if clock.now % 6000 == 0 else None
            clock.now += 600.0
        reads.append(first.traffic.calls["read"] - before)
    assert reads[0] == 1 and reads[1] > 1000, "what a mirror refuses it may take in ten minutes"
    second.refuses = set()
    waiting.write(second)
    assert second.get(Digest(sha256(bytes(2000)).digest()), 2000) == bytes(2000)


def test_a_mirror_that_has_not_taken_everything_yet_has_lost_nothing(
    refusing: tuple[MirroredStore, RefusingStore],
) -> None:
    """Else a slow one is sent the same object anew at each look."""
    store, second = refusing
    objects, tensors = Objects(store), [bytes(range(24))]
    second.refuses = {pack(SPECS, tensors)}
    root = objects.put_list(SPECS, tensors)
    assert objects.is_served(root, SPECS) and store.at_rest == store.stores[:1]
    second.refuses = set()
    assert store.flush(60) and objects.is_served(root, SPECS)


def test_an_object_that_a_mirror_refuses_holds_nothing_else_up_and_is_said_once(
    refusing: tuple[MirroredStore, RefusingStore], caplog: pytest.LogCaptureFixture
) -> None:
    store, second = refusing
    second.refuses = {b"refused", b"too"}
    with caplog.at_level(logging.INFO):
        refused = [store.put(data) for data in sorted(second.refuses)]
        taken = [store.put(bytes([n])) for n in range(3)]
        assert eventually(lambda: all(second.has(digest) for digest in taken))
        assert not store.flush(0.5) and not any(second.has(digest) for digest in refused)
        (said,) = warned(caplog, second)
        assert "second does not take what is written to it" in said and "It is refused." in said
        second.refuses = {b"too"}
        assert eventually(lambda: second.has(refused[0])) and warned(caplog, second) == [said]
        second.refuses = set()
        assert store.flush(5) and second.has(refused[1]) and store.dropped == 0
        assert eventually(lambda: len(warned(caplog, second)) == 2)
        assert warned(caplog, second)[1].endswith("takes what is written to it again.")
        second.refuses = {b"third"}
        store.put(b"third")
        assert eventually(lambda: len(warned(caplog, second)) == 3), "a new spell"


def test_what_a_mirror_refuses_is_sent_to_it_ever_more_seldom(
    refusing: tuple[MirroredStore, RefusingStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a quota that is full, and each update of 250 MB is sent anew every other second."""
    monkeypatch.setattr(mirror, "RETRY_S", 0.01)
    store, second = refusing
    second.refuses = {b"refused", b"too"}
    for data in second.refuses:
        store.put(data)
    began = time.monotonic()
    assert eventually(lambda: second.refused >= 4)
    time.sleep(1.0)
    # After 10 ms, 20, 40, ... each: some seven times in a second, where every 10 ms would be a hundred.
    assert second.refused <= 2 * (2 + math.log2((time.monotonic() - began) / 0.01))
    taken = store.put(b"taken")
    assert eventually(lambda: second.has(taken), 5)
    # A process that ends tries once more, however long the wait.
    second.refuses = set()
    assert store.flush(5)


def test_what_a_mirror_refused_counts_towards_what_may_wait_for_it(
    tmp_path: Path, refusing: tuple[MirroredStore, RefusingStore]
) -> None:
    _, second = refusing
    store = MirroredStore([open_store(tmp_path / "first"), second], queue_bytes=1000)
    second.refuses = {bytes([n]) * 400 for n in range(4)}
    for data in sorted(second.refuses):
        store.put(data)
        time.sleep(0.1)
    assert store.dropped == 2


def test_a_slot_that_a_mirror_refused_never_follows_a_newer_one(
    refusing: tuple[MirroredStore, RefusingStore], caplog: pytest.LogCaptureFixture
) -> None:
    store, second = refusing
    second.refuses = {b"old"}
    store.write_slot("actors/me", b"old")
    assert store.flush(5) and len(warned(caplog, second)) == 1
    second.refuses = set()
    store.write_slot("actors/me", b"new")
    assert store.flush(5) and eventually(lambda: len(warned(caplog, second)) == 2)
    time.sleep(0.2)
    assert second.read_slot("actors/me", 10) == b"new"
