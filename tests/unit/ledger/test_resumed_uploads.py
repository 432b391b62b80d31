"""Uploads for which an action has no time left: they go on, and who puts the object again waits for the rest."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest

from assay.protocol.types import Digest
from assay_ledger.deadline import waiting_at_most
from assay_ledger.store import uploads
from assay_ledger.store.blobs import BlobStore, StorePace, StoreSilent, object_path, open_store
from tests.harness.buckets import ServedBucket, eventually, running_bucket

PART = 1 << 14


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedBucket]:
    monkeypatch.setattr(uploads, "UPLOAD_BYTES", PART)
    with running_bucket() as bucket:
        yield bucket


@pytest.fixture
def store() -> BlobStore:
    return open_store("s3://bucket/", StorePace(call_s=10.0, bytes_per_s=PART))


def is_over(store: BlobStore) -> bool:
    """Whether no upload is under way any more."""
    return all(upload.task.done() for upload in cast(Any, store)._backend._uploads._uploads.values())


def cut_short(bucket: ServedBucket, store: BlobStore, data: bytes, part_s: float = 0.2) -> Digest:
    """An action that has half a second for the upload of an object, of which each part takes its time."""
    bucket.part_s = part_s
    with pytest.raises(StoreSilent), waiting_at_most(0.5):
        store.put(data)
    bucket.part_s = 0.0
    return Digest(sha256(data).digest())


def test_an_object_that_fits_no_actions_time_is_uploaded_in_several(bucket: ServedBucket, store: BlobStore) -> None:
    """Bad luck: over a thin uplink a large update was uploaded from its first byte at each try, for ever."""
    data, tries = os.urandom(20 * PART), 1
    bucket.part_s = 0.3
    while True:
        assert tries < 40
        try:
            with waiting_at_most(0.5):
                digest = store.put(data)
            break
        except StoreSilent:
            tries += 1
    assert tries > 1 and store.get(digest, len(data)) == data
    assert bucket.part_bytes == len(data) and store.serves(digest, len(data))
    assert store.put(data) == digest and bucket.part_bytes == 2 * len(data)  # what is put is always written


@pytest.mark.parametrize("others", ["wipe", "write"])
def test_what_was_taken_meanwhile_is_put_again_where_others_were_there_since(
    bucket: ServedBucket, store: BlobStore, others: str
) -> None:
    """Attack: an upload that ended by itself is taken for what is there."""
    data = os.urandom(20 * PART)
    digest = cut_short(bucket, store, data)
    path = object_path(digest)
    assert eventually(lambda: is_over(store)) and path in bucket.objects
    if others == "write":
        bucket.put(path, b"other bytes")
    else:
        bucket.keys.remove(path)
        del bucket.objects[path]
    assert store.put(data) == digest and bucket.objects[path] == data


def test_what_was_taken_meanwhile_is_not_put_again(bucket: ServedBucket, store: BlobStore) -> None:
    data = os.urandom(20 * PART)
    digest = cut_short(bucket, store, data)
    assert eventually(lambda: is_over(store))
    assert store.put(data) == digest and bucket.part_bytes == len(data)


def test_an_upload_of_which_nothing_is_taken_any_more_begins_anew(bucket: ServedBucket) -> None:
    """Bad luck: a server that is started anew, and a connection that nobody ends."""
    store = open_store("s3://bucket/", StorePace(call_s=2.0, bytes_per_s=2 * PART))
    data = os.urandom(200 * PART)  # 100 s, at the least that a store may do
    digest = cut_short(bucket, store, data, 300.0)
    assert eventually(lambda: is_over(store)) and not bucket.objects
    assert store.put(data) == digest and bucket.objects[object_path(digest)] == data


def test_no_more_goes_on_than_is_said(bucket: ServedBucket, store: BlobStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MAX_WAITING_BYTES", 30 * PART)
    found = [os.urandom(20 * PART) for _ in range(2)]
    digests = [cut_short(bucket, store, data) for data in found]
    assert eventually(lambda: object_path(digests[0]) in bucket.objects)
    assert object_path(digests[1]) not in bucket.objects
    assert store.put(found[1]) == digests[1]


# --- in a folder


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a disk takes for each object; one more stands here for each that it was given."""
    seconds = [0.0]
    fsync = os.fsync

    def sync(descriptor: int) -> None:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            seconds.append(seconds[0])
            time.sleep(seconds[0])
        fsync(descriptor)

    monkeypatch.setattr("assay_ledger.store.folder.os.fsync", sync)
    return seconds


def test_an_object_for_which_a_disk_needs_longer_than_an_action_has_is_written_once(
    tmp_path: Path, slow: list[float]
) -> None:
    """Bad luck: over a slow network each try wrote all of a large object beside those before it, none in time."""
    store, data, tries = open_store(tmp_path), os.urandom(1 << 20), 0
    slow[0] = 1.2
    while not tried(store, data, 0.3):
        tries += 1
        assert tries < 20
    digest = Digest(sha256(data).digest())
    assert tries > 1 and len(slow) == 2 and store.serves(digest, len(data))
    assert store.traffic.bytes_read == 0
    slow[0] = 0.0
    assert tried(store, data, 5.0) and len(slow) == 3  # what is put is always written


@pytest.mark.parametrize("others", ["wipe", "write"])
def test_what_a_disk_took_meanwhile_is_written_again_where_others_were_there_since(
    tmp_path: Path, slow: list[float], others: str
) -> None:
    store, data = open_store(tmp_path), os.urandom(1 << 20)
    slow[0] = 0.8
    assert not tried(store, data, 0.3)
    path = tmp_path / object_path(Digest(sha256(data).digest()))
    assert eventually(lambda: cast(Any, store)._backend._lane.lost == 0) and path.read_bytes() == data
    path.unlink()
    if others == "write":
        path.write_bytes(b"other bytes")
    slow[0] = 0.0
    assert tried(store, data, 5.0) and path.read_bytes() == data


def tried(store: BlobStore, data: bytes, seconds: float) -> bool:
    """Whether an action of so many seconds puts an object."""
    with suppress(StoreSilent), waiting_at_most(seconds):
        store.put(data)
        return True
    return False
