"""The artifact store, over a folder, memory, and an object store that lies."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, cast

import pytest

from assay.protocol.errors import FraudError, UnavailableError
from assay.protocol.types import Digest
from assay_ledger.store.blobs import (
    ArtifactStore,
    BlobStore,
    ObjectMismatch,
    ObjectMissing,
    ObjectNameInvalid,
    ObjectTooLarge,
    ObjectTruncated,
    StoreAddressInvalid,
    StoreDenied,
    StoreUnreachable,
    object_path,
    open_store,
)
from assay_ledger.store.search import get_named
from tests.harness.buckets import ServedBucket, running_bucket

RUN = Digest(b"\x07" * 32)


def digest_of(data: bytes) -> Digest:
    return Digest(hashlib.sha256(data).digest())


@pytest.fixture
def bucket() -> Iterator[ServedBucket]:
    with running_bucket() as bucket:
        yield bucket


@pytest.fixture(params=["folder", "memory", "s3"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> BlobStore:
    if request.param == "s3":
        request.getfixturevalue("bucket")
    return open_store({"folder": str(tmp_path / "store"), "memory": "memory:///", "s3": "s3://bucket/"}[request.param])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "store"


def object_file(folder: Path, digest: Digest) -> Path:
    return folder / "objects" / digest.hex()[:2] / digest.hex()


# --- what every store does


def test_bytes_come_back_under_their_sha_256(store: ArtifactStore) -> None:
    for data in (b"", b"x", os.urandom(3_000_000)):
        digest = store.put(data)
        assert digest == digest_of(data)
        assert store.has(digest)
        assert store.get(digest, len(data)) == data
        assert store.put(data) == digest


def test_an_absent_object_is_missing(store: ArtifactStore) -> None:
    digest = digest_of(b"absent")
    assert not store.has(digest)
    with pytest.raises(ObjectMissing) as missing:
        store.get(digest, 10)
    assert digest.hex() in str(missing.value)


def test_an_object_above_its_bound_is_refused(store: ArtifactStore) -> None:
    digest = store.put(b"12345")
    assert store.get(digest, 5) == b"12345"
    with pytest.raises(ObjectTooLarge):
        store.get(digest, 4)
    with pytest.raises(ObjectTooLarge):
        store.get(digest, 0)


def lying_after(store: BlobStore, call: str, lie: bytes) -> Any:
    """As `call` of what the store lies in, and somebody writes other bytes there before its answer is looked at."""
    backend = cast(Any, store)._backend
    done = getattr(backend, call)

    def answer(path: str, *arguments: Any) -> Any:
        found = done(path, *arguments)
        type(backend).write(backend, path, lie, 5.0, 1 << 20)
        return found

    return answer


@pytest.mark.parametrize("call", ["write", "read"])
def test_an_object_is_served_until_others_write_there_and_is_read_once_then(
    store: BlobStore, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: other bytes come between those that an actor puts, or reads, and its look at which version that was."""
    data, path = b"right bytes", object_path(digest_of(b"right bytes"))
    digest = store.put(data)
    assert store.serves(digest, 11) and store.serves(digest, 11) and store.traffic.calls.get("read", 0) == 0
    assert store.get(digest, 11) == data and store.serves(digest, 11) and store.traffic.calls["read"] == 1
    for lie in (b"other bytes", b"longer than these"):
        with monkeypatch.context() as patched:
            patched.setattr(store._backend, call, lying_after(store, call, lie))
            assert call == "write" or store.get(digest, 11) == data
            assert call == "read" or store.put(data) == digest
        assert not store.serves(digest, 11) and not store.serves(digest, 20)
        store._backend.write(path, data, 5.0, 1 << 20)
        before = store.traffic.calls["read"]
        # Right again, by whomever: that is read once, or not at all where the tag says that it is what was put.
        assert store.serves(digest, 11) and store.serves(digest, 11) and store.traffic.calls["read"] <= before + 1


def test_a_tag_that_two_objects_share_is_no_version(bucket: ServedBucket, monkeypatch: pytest.MonkeyPatch) -> None:
    """Attack: a bucket's tag is an MD5, of which somebody who makes both finds two objects with one."""
    monkeypatch.setattr("tests.harness.buckets.md5", lambda _: hashlib.md5(b"the same"))
    store = open_store("s3://bucket/")
    digest = store.put(b"right bytes")
    assert store.serves(digest, 11)
    open_store("s3://bucket/").put_as(digest, b"other bytes")
    assert not store.serves(digest, 11)


def test_of_a_server_without_tags_everything_is_read_again(bucket: ServedBucket) -> None:
    """Attack: other bytes of the same size, within the second that such a server has for a time."""

    def answer(handler: BaseHTTPRequestHandler, body: bytes) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(body)

    store = open_store("s3://bucket/")
    digest = store.put(b"right bytes")
    bucket.answer = answer
    assert store.serves(digest, 11) and store.get(digest, 11) == b"right bytes" and store.serves(digest, 11)
    bucket.put(object_path(digest), b"other bytes")
    assert not store.serves(digest, 11)


@pytest.mark.parametrize("status", [400, 403])
def test_an_object_that_others_closed_is_not_served_and_a_put_opens_it(bucket: ServedBucket, status: int) -> None:
    """Attack: a member writes an object, or its name, with a key of its own: S3 refuses it to all others, who took that
    for a failure of the store and put nothing back."""
    store = open_store("s3://bucket/")
    digest = store.put(b"right bytes", "lists/root")
    closed: dict[str, int] = {}

    def answer(handler: Any, body: bytes) -> None:
        key = handler.path.removeprefix("/bucket/")
        handler.reply(status if closed.get(key) == bucket.written[key] else 200, body)

    bucket.answer = answer
    for key in (object_path(digest), f"names/lists/root/{digest.hex()}"):
        assert store.serves(digest, 11) and store.is_named(digest, "lists/root")
        bucket.put(key, b"closed")
        closed[key] = bucket.written[key]
        assert not (store.serves(digest, 11) and store.is_named(digest, "lists/root"))
        store.put(b"right bytes", "lists/root")
    assert store.serves(digest, 11) and store.is_named(digest, "lists/root")
    bucket.hostility = "closes"
    for look in (lambda: store.serves(digest, 11), lambda: store.is_named(digest, "lists/root")):
        with pytest.raises(StoreUnreachable):
            look()


def test_a_store_that_fails_of_everything_has_not_lost_what_it_held(bucket: ServedBucket) -> None:
    """Bad luck: a disk or a server that answers each look with an error, and at each all that somebody holds is put
    there again."""
    store = open_store("s3://bucket/")
    digest = store.put(b"right bytes", "lists/root")
    looks = (
        lambda: store.serves(digest, 11),
        lambda: store.has(digest),
        lambda: store.is_named(digest, "lists/root"),
    )
    bucket.status = 400
    for look in looks:
        with pytest.raises(StoreUnreachable, match="fails"):
            look()
    # To who may not list a server says of what is missing what it says of what is closed.
    bucket.status = 403
    assert not any(look() for look in looks)


def test_names_list_what_was_put_under_them_and_only_that(store: ArtifactStore) -> None:
    a, b = store.put(b"a", "runs/7/a"), store.put(b"b", "runs/7/b")
    second = store.put(b"another a", "runs/7/a")
    store.put(b"elsewhere", "runs/77/a")
    store.put(b"nameless")
    assert store.list("runs/7") == tuple(sorted([("runs/7/a", a), ("runs/7/a", second), ("runs/7/b", b)]))
    assert store.list("runs/7/b") == (("runs/7/b", b),)
    assert store.list("runs/8") == ()
    assert len(store.list("runs", limit=2)) == 2


@pytest.mark.parametrize(
    "name", ["", "/a", "a/", "a//b", "../a", "a/../b", ".a", "a b", "ä", "a/" * 8 + "a", "a" * 129]
)
def test_names_that_could_escape_the_index_are_refused(store: ArtifactStore, name: str) -> None:
    with pytest.raises(ObjectNameInvalid):
        store.put(b"x", name)
    with pytest.raises(ObjectNameInvalid):
        store.list(name)
    assert not store.has(digest_of(b"x"))


def test_a_digest_of_another_length_is_refused(store: ArtifactStore) -> None:
    with pytest.raises(ObjectNameInvalid):
        store.get(Digest(b"\1" * 31), 10)


def test_the_right_one_of_several_objects_with_a_name_is_found(store: ArtifactStore) -> None:
    for data in (b"wrong", b"right", b"far too long for its place"):
        store.put(data, "lists/root")
    store.put(b"right", "lists/root/deeper")
    assert get_named(store, "lists/root", 5, lambda data: data == b"right") == b"right"
    with pytest.raises(ObjectMismatch):
        get_named(store, "lists/root", 5, lambda data: data == b"other")
    with pytest.raises(ObjectMissing):
        get_named(store, "lists", 5, lambda data: True)
    with pytest.raises(ObjectMissing):
        get_named(store, "lists/other", 5, lambda data: True)


def test_a_slot_holds_its_latest_bytes(store: BlobStore) -> None:
    assert store.list_slots("actors") == ()
    with pytest.raises(ObjectMissing):
        store.read_slot("actors/0xab", 100)
    store.write_slot("actors/0xab", b"idle")
    store.write_slot("actors/0xab", b"busy")
    store.write_slot("actors/0xcd", b"")
    assert store.read_slot("actors/0xab", 4) == b"busy"
    assert store.read_slot("actors/0xcd", 0) == b""
    assert store.list_slots("actors") == ("actors/0xab", "actors/0xcd")
    with pytest.raises(ObjectTooLarge):
        store.read_slot("actors/0xab", 3)
    for use in (
        lambda: store.write_slot("../x", b""),
        lambda: store.read_slot("../x", 1),
        lambda: store.list_slots(""),
    ):
        with pytest.raises(ObjectNameInvalid):
            use()


# --- a folder that others can write


def test_a_changed_byte_is_a_mismatch_and_a_new_put_heals_it(folder: Path) -> None:
    store = open_store(folder)
    data = os.urandom(10_000)
    digest = store.put(data)
    object_file(folder, digest).write_bytes(data[:5000] + bytes([data[5000] ^ 1]) + data[5001:])
    with pytest.raises(ObjectMismatch):
        store.get(digest, len(data))
    store.put(data)
    assert store.get(digest, len(data)) == data


def test_a_cut_or_swapped_file_is_a_mismatch(folder: Path) -> None:
    store = open_store(folder)
    a, b = store.put(b"first"), store.put(b"second")
    object_file(folder, a).write_bytes(b"firs")
    with pytest.raises(ObjectMismatch):
        store.get(a, 100)
    object_file(folder, a).write_bytes(object_file(folder, b).read_bytes())
    with pytest.raises(ObjectMismatch):
        store.get(a, 100)


def test_a_huge_file_is_refused_without_being_read(folder: Path) -> None:
    store = open_store(folder)
    digest = store.put(b"small")
    with object_file(folder, digest).open("wb") as file:
        file.truncate(1 << 40)  # sparse: reading it would take minutes and a terabyte of memory
    with pytest.raises(ObjectTooLarge):
        store.get(digest, 1 << 20)


def test_no_reader_sees_half_an_object(folder: Path) -> None:
    store, data = open_store(folder), os.urandom(1 << 20)
    digest = store.put(data)
    stop = threading.Event()

    def rewrite() -> None:
        while not stop.is_set():
            store.put(data)

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        for _ in range(50):
            assert store.get(digest, len(data)) == data
    finally:
        stop.set()
        writer.join()


def test_rubbish_in_the_index_is_passed_over(folder: Path) -> None:
    store = open_store(folder)
    digest = store.put(b"x", "runs/a")
    (folder / "names" / "runs" / "a" / "not-a-digest").write_text("")
    (folder / "names" / "runs" / "a" / digest.hex().upper()).write_text("")
    (folder / "names" / "runs" / "ä").mkdir()
    (folder / "names" / "runs" / "ä" / digest.hex()).write_text("")
    assert store.list("runs") == (("runs/a", digest),)


def test_a_folder_that_is_a_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreAddressInvalid):
        open_store(tmp_path / "file")


@pytest.mark.parametrize("address", ["ftp://host/x", "s3://", "nonsense://x"])
def test_an_unknown_address_is_named(address: str) -> None:
    with pytest.raises(StoreAddressInvalid) as refused:
        open_store(address)
    assert refused.value.exit_code == 3


# --- an object store that lies


def send(handler: BaseHTTPRequestHandler, announced: int, body: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(announced))
    handler.send_header("ETag", '"tag"')
    handler.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
    handler.end_headers()
    if handler.command != "HEAD":
        handler.wfile.write(body)
    handler.close_connection = True


def test_other_bytes_from_the_bucket_are_a_mismatch(bucket: ServedBucket) -> None:
    store = open_store("s3://bucket/")
    digest = store.put(b"truth")
    bucket.answer = lambda handler, _: send(handler, 5, b"false")
    with pytest.raises(ObjectMismatch):
        store.get(digest, 100)


def test_an_announced_terabyte_is_refused_before_it_is_read(bucket: ServedBucket) -> None:
    store = open_store("s3://bucket/")
    digest = store.put(b"truth")
    bucket.answer = lambda handler, body: send(handler, 1 << 40, body)
    with pytest.raises(ObjectTooLarge):
        store.get(digest, 100)


def test_a_body_that_ends_early_is_not_returned(bucket: ServedBucket) -> None:
    store = open_store("s3://bucket/")
    digest = store.put(b"truth")
    bucket.answer = lambda handler, body: send(handler, 5, body[:3])
    with pytest.raises((ObjectTruncated, StoreUnreachable)):
        store.get(digest, 100)


def test_refused_credentials_are_said_to_be_so(bucket: ServedBucket) -> None:
    store = open_store("s3://bucket/")
    bucket.status = 403
    with pytest.raises(StoreDenied):
        store.get(digest_of(b"x"), 10)
    with pytest.raises(StoreDenied):
        store.put(b"x")


def test_a_store_that_is_down_is_unreachable(bucket: ServedBucket) -> None:
    store = open_store("s3://bucket/")
    bucket.status = 503
    with pytest.raises(StoreUnreachable) as down:
        store.has(digest_of(b"x"))
    assert down.value.exit_code == 4


def test_every_error_of_the_store_has_its_own_code_and_a_remedy_and_none_is_fraud() -> None:
    kinds = [ObjectMissing, ObjectTooLarge, ObjectTruncated, ObjectMismatch, StoreDenied, StoreUnreachable]
    assert len({kind.code for kind in kinds}) == len(kinds)
    for kind in kinds:
        assert issubclass(kind, UnavailableError)
        assert not issubclass(kind, FraudError)
        assert kind.remedy
