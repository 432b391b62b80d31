"""Two stores as one: either may hang, lie, lose everything or be slow, and readers and writers go on."""

from __future__ import annotations

import atexit
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.types import Digest
from assay_ledger.store.blobs import (
    BlobStore,
    ObjectMismatch,
    ObjectMissing,
    StoreAddressInvalid,
    StorePace,
    StoreUnreachable,
    get_named,
    open_store,
)
from assay_ledger.store.mirrored import MirroredStore, open_stores
from tests.harness.buckets import HOSTILITIES, ServedBucket, eventually, running_bucket, soon

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
    with soon(1.5):
        for _ in range(3):
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
    assert time.monotonic() - start < 2, "a slow mirror holds nobody up"
    assert store.dropped == 4 and "does not keep up" in caplog.text
    assert all(store.get(digest, 400) for digest in made)
