"""Two stores as one: either may hang, lie, lose everything or be slow, and readers and writers go on."""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import mirrored
from assay_ledger.store.blobs import (
    BlobStore,
    ObjectMismatch,
    ObjectMissing,
    StoreAddressInvalid,
    StoreDenied,
    StorePace,
    StoreUnreachable,
    object_path,
    open_store,
)
from assay_ledger.store.folder import Folder
from assay_ledger.store.listfile import pack
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.mirrored import MirroredStore, open_stores
from assay_ledger.store.objects import Objects
from assay_ledger.store.search import get_named
from tests.harness.buckets import HOSTILITIES, ServedBucket, eventually, running_bucket, soon
from tests.harness.clocks import MovedClock

PACE = StorePace(call_s=0.5)


@pytest.fixture
def bucket() -> Iterator[ServedBucket]:
    with running_bucket() as bucket:
        yield bucket


@pytest.fixture(autouse=True)
def _no_waiting_at_exit(monkeypatch: pytest.MonkeyPatch) -> None:
    """These stores lack something when the tests end."""
    monkeypatch.setattr(atexit, "register", lambda _: None)


def pair(bucket: ServedBucket, folder: Path) -> tuple[MirroredStore, BlobStore, BlobStore]:
    """Both as one, the bucket first; and each."""
    first, second = open_store("s3://bucket/", PACE), open_store(folder / "second")
    return MirroredStore([first, second]), first, second


def test_stores_with_a_comma_between_are_one(tmp_path: Path) -> None:
    store = open_stores(f"{tmp_path / 'a'},{tmp_path / 'b'}")
    assert isinstance(store, MirroredStore)
    digest = store.put(b"bytes", "lists/aa")
    assert store.flush(5)
    for name in "ab":
        assert open_store(tmp_path / name).get(digest, 10) == b"bytes"
        assert open_store(tmp_path / name).list("lists/aa") == (("lists/aa", digest),)


def test_a_comma_in_a_path_is_named_and_its_folder_can_be_written_as_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine,yours").mkdir()
    for location in ("mine,yours", f"{tmp_path}/mine,yours"):
        with pytest.raises(StoreAddressInvalid, match="commas stand between stores") as raised:
            open_stores(location)
        assert f"file://{tmp_path}/mine%2Cyours" in str(raised.value.remedy)
    assert [path.name for path in tmp_path.iterdir()] == ["mine,yours"]
    assert open_stores(f"file://{tmp_path}/mine%2Cyours").location == f"{tmp_path}/mine,yours"


@pytest.mark.parametrize("location", ["/nowhere/mine,yours", "~/mine,yours"])
def test_the_rest_of_a_path_behind_a_comma_is_no_store(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    with pytest.raises(StoreAddressInvalid, match=r"it would be 2, .*mine and yours"):
        open_stores(location)


@pytest.mark.parametrize("hostility", HOSTILITIES)
@pytest.mark.gate_takes(2)
def test_a_first_store_that_is_hostile_costs_seconds_once_and_nothing_is_lost(
    bucket: ServedBucket, tmp_path: Path, hostility: str
) -> None:
    store, _, second = pair(bucket, tmp_path)
    digest = store.put(b"before", "lists/aa")
    assert store.flush(5)
    bucket.hostility = hostility
    with soon(12):
        assert store.get(digest, 10) == b"before"
        assert get_named(store, "lists/aa", 10, lambda data: data == b"before") == b"before"
        later = store.put(b"later", "lists/bb")
        store.write_slot("actors/me", b"alive")
        # A server may take a write and forget it: the mirror has it a moment later.
        assert eventually(lambda: store.has(later) and "actors/me" in second.list_slots("actors"))
        assert store.read_slot("actors/me", 10) == b"alive"
    # Once it rests (or is known to have nothing) it costs nothing.
    for _ in range(2):
        store.get(later, 10)
    with soon(5.0):  # were it asked each time, more than half a second each
        for _ in range(12):
            assert store.get(later, 10) == b"later" == second.get(later, 10)


def test_a_first_store_that_lies_is_passed_over(bucket: ServedBucket, tmp_path: Path) -> None:
    store, first, _ = pair(bucket, tmp_path)
    digest = store.put(b"true", "lists/aa")
    assert store.flush(5)
    bucket.answer = lambda handler, body: handler.reply(200, b"lies" if body else b"")  # type: ignore[attr-defined]
    with pytest.raises(ObjectMismatch):
        first.get(digest, 10)
    assert store.get(digest, 10) == b"true"
    # Names that only one of them has are found, and what only the liar names does not hide them.
    bucket.put(f"names/lists/aa/{'00' * 32}", b"")
    assert get_named(store, "lists/aa", 10, lambda data: data == b"true") == b"true"


@pytest.mark.parametrize("lost", ["first", "second"])
def test_either_store_may_lose_everything(tmp_path: Path, lost: str) -> None:
    folders = {name: tmp_path / name for name in ("first", "second")}
    store = MirroredStore([open_store(folder) for folder in folders.values()])
    digest = store.put(b"bytes", "lists/aa")
    assert store.flush(5)
    folders[lost].rename(tmp_path / "gone")
    folders[lost].mkdir()
    assert store.get(digest, 10) == b"bytes" and store.has(digest)
    assert list(store.candidates("lists/aa")) == [digest] and store.list("lists") == (("lists/aa", digest),)
    with pytest.raises(ObjectMissing):
        store.get(Digest(bytes(32)), 10)


def test_what_a_dark_store_missed_is_written_once_it_answers(bucket: ServedBucket, tmp_path: Path) -> None:
    bucket.status = 503
    store, first, _ = pair(bucket, tmp_path)
    made = [store.put(bytes([n]) * 9, f"lists/{n:02d}") for n in range(3)]
    assert not store.flush(0.1)
    bucket.status = 200
    for breaker in first._breakers.values():
        breaker.answered()  # its rest is over
    assert eventually(lambda: store.flush(0.1), 20)
    assert [first.get(digest, 10) for digest in made] == [bytes([n]) * 9 for n in range(3)]
    assert store.dropped == 0


def test_both_dark_raise_what_the_first_says(tmp_path: Path, bucket: ServedBucket) -> None:
    bucket.status = 403
    broken = open_store("http://127.0.0.1:1/", PACE)
    store = MirroredStore([broken, open_store("s3://bucket/", PACE)])
    calls: list[Callable[[], Any]] = [
        lambda: store.get(Digest(bytes(32)), 10),
        lambda: list(store.candidates("lists/aa")),
        lambda: store.list("lists/aa"),
        lambda: store.put(b"bytes"),
        lambda: store.read_slot("actors/me", 10),
    ]
    for call in calls:
        with pytest.raises(StoreUnreachable):
            call()


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
    monkeypatch.setattr(mirrored, "RETRY_S", 0.05)
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
            mirrored._Copying(first, digest, bytes(2000), None)(second)
        assert not second.has(digest)
    first.put(bytes(2000))
    mirrored._Copying(first, digest, bytes(2000), None)(second)
    assert second.get(digest, 2000) == bytes(2000)


def test_other_bytes_in_the_place_of_a_large_object_are_read_ever_more_seldom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: one write over an object, and each mirror reads gigabytes every ten minutes for ever."""
    clock = MovedClock()
    monkeypatch.setattr("assay_ledger.store.mirrored.time.monotonic", clock)
    first, second = open_store(tmp_path / "first"), RefusingStore(tmp_path / "second")
    reads = []
    for others, wanted in ((b"other bytes", ObjectMismatch), (bytes(2000), StoreDenied)):
        second.refuses, before = {bytes(2000)}, first.traffic.calls.get("read", 0)
        copying = mirrored._Copying(first, first.put(bytes(2000)), bytes(2000), None)
        first.put_as(Digest(sha256(bytes(2000)).digest()), others)
        for _ in range(10 * 24 * 6):
            with pytest.raises(wanted):
                copying(second)
            clock.now += 600.0
        reads.append(first.traffic.calls["read"] - before)
    assert reads[0] < 20 and reads[1] > 1000, "what a mirror refuses it may take in ten minutes"
    second.refuses = set()
    copying(second)
    assert second.get(Digest(sha256(bytes(2000)).digest()), 2000) == bytes(2000)


def test_whether_an_object_is_served_is_said_of_the_store_that_has_the_right_bytes(tmp_path: Path) -> None:
    """Attack: other bytes in the store that is asked first; whoever took the right ones from another was content."""
    first, second = (open_store(tmp_path / name) for name in ("first", "second"))
    store = MirroredStore([first, second])
    digest = open_store(tmp_path / "second").put(b"right bytes")
    open_store(tmp_path / "first").put_as(digest, b"other bytes")
    assert store.get(digest, 11) == b"right bytes" and store.serves(digest, 11)
    open_store(tmp_path / "second").delete(object_path(digest))
    assert store.has(digest) and not store.serves(digest, 11)


SPECS = [TensorSpec(DType.F32, (2, 3))]


@pytest.mark.parametrize("lost", [0, 1])
def test_who_put_a_list_sees_that_one_of_two_stores_lost_it_and_puts_it_there(tmp_path: Path, lost: int) -> None:
    """The other one was enough to be content: once it went too, or was silent, nobody had the list."""
    stores = [open_store(tmp_path / name) for name in ("first", "second")]
    store = MirroredStore(stores)
    objects = Objects(store, LocalCache(tmp_path / "copies"))
    root = objects.put_list(SPECS, [bytes(range(24))])
    assert store.flush(60) and objects.is_served(root, SPECS)
    digest = objects.list_digest(root, SPECS)
    open_store(tmp_path / ("first", "second")[lost]).delete(object_path(digest))
    assert not objects.is_served(root, SPECS) and objects.has_known_list(root, SPECS)
    objects.put_list(SPECS, [bytes(range(24))])
    assert store.flush(60) and objects.is_served(root, SPECS)
    assert all(each.serves(digest, 1000) for each in stores)


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


def test_a_copy_that_comes_later_is_no_reason_to_read_again(tmp_path: Path) -> None:
    first, second = (open_store(tmp_path / name) for name in ("first", "second"))
    store = MirroredStore([first, second])
    digest = first.put(b"right bytes")
    assert store.serves(digest, 11)
    open_store(tmp_path / "second").put(b"right bytes")
    assert store.serves(digest, 11)
    assert not any(each.traffic.calls.get("read") for each in (first, second))


def test_an_object_is_served_where_one_store_says_so_and_others_do_not_answer(
    bucket: ServedBucket, tmp_path: Path
) -> None:
    store, first, second = pair(bucket, tmp_path)
    digest = second.put(b"right bytes")
    bucket.status = 403
    assert store.serves(digest, 11) and not store.serves(Digest(bytes(32)), 11)
    second.delete(object_path(digest))
    assert not store.serves(digest, 11)
    bucket.hostility = "closes"
    with pytest.raises(StoreUnreachable):
        MirroredStore([first, first]).serves(digest, 11)


class RefusingStore(BlobStore):
    """A folder that refuses some objects and slots, by their bytes."""

    def __init__(self, folder: Path) -> None:
        super().__init__(Folder(folder), str(folder))
        self.refuses: set[bytes] = set()

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
            raise StoreDenied("It is refused.")


@pytest.fixture
def refusing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[MirroredStore, RefusingStore]:
    """A store with a mirror that refuses, which is tried again soon; and the mirror."""
    monkeypatch.setattr(mirrored, "RETRY_S", 0.05)
    second = RefusingStore(tmp_path / "second")
    return MirroredStore([open_store(tmp_path / "first"), second]), second


def warned(caplog: pytest.LogCaptureFixture, store: BlobStore) -> list[str]:
    """What was said of a store; mirrors of other tests may still be at work."""
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    return [text for text in said if text.startswith(store.location)]


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
