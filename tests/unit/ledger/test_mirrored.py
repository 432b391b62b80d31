"""Two stores as one: either may hang, lie, lose everything or be slow, and readers and writers go on."""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store.blobs import (
    BlobStore,
    ObjectMismatch,
    ObjectMissing,
    StoreAddressInvalid,
    StorePace,
    StoreUnreachable,
    object_path,
    open_store,
)
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.mirrored import MirroredStore, open_stores
from assay_ledger.store.objects import Objects
from assay_ledger.store.search import get_named
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
