"""Downloads that a server breaks off: they go on where they were, and what arrives is hashed as a whole."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.deadline import waiting_at_most
from assay_ledger.store import folder, late_reads, objects, parts
from assay_ledger.store.blobs import (
    BlobStore,
    ObjectMismatch,
    ObjectMissing,
    ObjectTruncated,
    StorePace,
    StoreSilent,
    StoreUnreachable,
    object_path,
    open_store,
)
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects
from tests.harness.buckets import ServedBucket, running_bucket

MIB = 1 << 20
PART = parts.LEAF_SIZE << 4


class Breaking:
    """Answers to GETs of objects, with ranges, each of which ends after `share` of what was asked for."""

    def __init__(self, bucket: ServedBucket, share: float, breaks: int = 1000) -> None:
        self.share, self.breaks, self.moved, self.ranges = share, breaks, 0, 0
        self.damage = b""
        self.rate = 0
        """Bytes a second; 0: as fast as the connection."""
        bucket.answer = self

    def __call__(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", handler.headers.get("Range", ""))
        start, end = (int(asked[1]), int(asked[2]) + 1) if asked else (0, len(body))
        self.ranges += asked is not None
        wanted = body[start:end]
        if asked and self.damage:
            wanted = self.damage + wanted[len(self.damage) :]
        handler.send_response(206 if asked else 200)
        handler.send_header("Content-Length", str(len(wanted)))
        handler.send_header("ETag", '"tag"')
        handler.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        if asked:
            handler.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(body)}")
        handler.end_headers()
        self.breaks -= 1
        given = wanted if self.breaks < 0 else wanted[: int(len(wanted) * self.share)]
        with suppress(OSError):
            for at in range(0, len(given), self.rate // 20 or len(given) or 1):
                handler.wfile.write(chunk := given[at : at + (self.rate // 20 or len(given))])
                self.moved += len(chunk)
                time.sleep(0.05 if self.rate else 0)
        handler.close_connection = True


class Dying:
    """Whole answers to some requests, and none of a byte after them."""

    def __init__(self, server: Breaking, whole: int) -> None:
        self.server, self.whole = server, whole

    def __call__(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        self.whole -= 1
        self.server.breaks = 0 if self.whole >= 0 else 1000
        self.server(handler, body)


@pytest.fixture
def bucket() -> Iterator[ServedBucket]:
    with running_bucket() as bucket:
        yield bucket


@pytest.fixture
def store() -> BlobStore:
    return open_store("s3://bucket/", StorePace(call_s=2.0))


def lies_there(bucket: ServedBucket, data: bytes) -> Digest:
    """Puts an object of any size."""
    digest = Digest(sha256(data).digest())
    bucket.put(object_path(digest), data)
    return digest


@pytest.mark.parametrize("breaks", [1, 6, 16])
def test_a_download_that_breaks_off_goes_on_where_it_was(bucket: ServedBucket, store: BlobStore, breaks: int) -> None:
    data = os.urandom(8 * MIB)
    digest = lies_there(bucket, data)
    server = Breaking(bucket, 0.5, breaks)
    assert store.get(digest, len(data)) == data
    assert server.ranges >= breaks and server.moved < 1.2 * len(data)


def reads(store: BlobStore, digest: Digest, size: int, action_s: float) -> tuple[bytes, int]:
    """An object, read by actions of so many seconds each, and how many it took."""
    for actions in range(1, 40):
        with suppress(StoreSilent), waiting_at_most(action_s):
            return store.get(digest, size), actions
    raise AssertionError("no action brought it to its end")


def begun(bucket: ServedBucket, store: BlobStore, digests: list[Digest]) -> Breaking:
    """A server that has given a part of each of some objects within a second, and from now on is as fast as it can."""
    server = Breaking(bucket, 1.0, 0)
    server.rate = MIB
    for digest in digests:
        with pytest.raises(StoreSilent), waiting_at_most(1.0):
            store.get(digest, 4 * MIB)
    server.rate = 0
    return server


def test_an_object_that_fits_no_actions_time_comes_in_several(bucket: ServedBucket, store: BlobStore) -> None:
    data = os.urandom(4 * MIB)
    digest = lies_there(bucket, data)
    server = Breaking(bucket, 1.0, 0)
    server.rate = MIB
    # Four seconds of bytes, and no action has more than one and a half: an actor whose uplink is thin must not read the
    # same first bytes for ever.
    found, actions = reads(store, digest, len(data), 1.5)
    assert found == data and actions >= 3 and server.ranges == actions - 1
    assert server.moved < 1.2 * len(data)


def test_what_has_arrived_of_another_object_is_no_part_of_this_one(bucket: ServedBucket, store: BlobStore) -> None:
    one, other = os.urandom(2 * MIB), os.urandom(3 * MIB)
    digests = [lies_there(bucket, data) for data in (one, other)]
    server = begun(bucket, store, digests)
    # Somebody put another object in the place of the second: its size tells, and all of it is read.
    third = os.urandom(len(other) + 1)
    bucket.put(object_path(digests[1]), third)
    assert store.get(digests[0], 4 * MIB) == one and server.ranges == 1
    with pytest.raises(ObjectTruncated):
        store.get(digests[1], 4 * MIB)
    with pytest.raises(ObjectMismatch):
        store.get(digests[1], 4 * MIB)
    bucket.put(object_path(digests[1]), other)
    assert store.get(digests[1], 4 * MIB) == other


def test_no_more_is_kept_of_what_has_arrived_than_is_said(
    bucket: ServedBucket, store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_ledger.store.bucket.MAX_HALVES_BYTES", MIB)
    digests = [lies_there(bucket, os.urandom(2 * MIB)) for _ in range(3)]
    server = begun(bucket, store, digests)
    for digest in digests:
        store.get(digest, 2 * MIB)
    assert server.ranges == 1


def test_large_objects_that_are_asked_for_in_turn_arrive_one_after_another(
    bucket: ServedBucket, store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a round's updates, each above what is kept of others, over a link that moves none in an action's time.

    An actor that was cut short asks for the next one first: each took what had arrived of the one before.
    """
    monkeypatch.setattr("assay_ledger.store.bucket.MAX_HALVES_BYTES", MIB)
    wanted = {lies_there(bucket, data): data for data in (os.urandom(3 * MIB) for _ in range(3))}
    server = Breaking(bucket, 1.0, 0)
    server.rate = 2 * MIB
    for _ in range(10):
        for digest in list(wanted):
            with suppress(StoreSilent), waiting_at_most(1.2):
                assert store.get(digest, 3 * MIB) == wanted[digest]
                del wanted[digest]
            for breaker in store._breakers.values():
                breaker.answered()  # an actor's share of a window is longer than a call: it is no silence
    assert not wanted


def test_what_nobody_asks_for_any_more_gives_way(
    bucket: ServedBucket, store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay_ledger.store.bucket.MAX_HALVES_BYTES", MIB)
    monkeypatch.setattr("assay_ledger.store.bucket.STALE_S", 0.5)
    first, second = (lies_there(bucket, os.urandom(4 * MIB)) for _ in range(2))
    server = Breaking(bucket, 1.0, 0)
    for digest, rate, seconds in ((first, 3 * MIB, 1.0), (second, 2 * MIB, 0.7)):
        server.rate = rate
        with pytest.raises(StoreSilent), waiting_at_most(seconds):
            store.get(digest, 4 * MIB)
    server.rate = 0
    store.get(second, 4 * MIB)
    assert server.ranges == 1


def test_a_server_that_brings_nothing_new_is_given_up_and_what_it_changed_is_found(
    bucket: ServedBucket, store: BlobStore
) -> None:
    data = os.urandom(4 * MIB)
    digest = lies_there(bucket, data)
    server = Breaking(bucket, 0.0)
    with pytest.raises(StoreUnreachable):
        store.get(digest, len(data))
    assert server.moved == 0
    server.share, server.breaks, server.damage = 0.5, 4, b"other bytes"
    with pytest.raises(ObjectMismatch):
        store.get(digest, len(data))
    assert server.moved < 1.2 * len(data)


def test_data_in_parts_go_on_with_the_part_that_broke_off_also_after_a_crash(
    bucket: ServedBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (parts, objects):
        monkeypatch.setattr(module, "part_count", lambda spec: -(-spec.nbytes // PART))
    monkeypatch.setattr(parts, "PART_BYTES", PART)
    monkeypatch.setattr(objects, "MAPPED_FROM", 1)
    spec = TensorSpec(DType.U8, (8 * PART + 1000,))
    data = os.urandom(spec.nbytes)
    root = Objects(open_store("s3://bucket/")).put_data(spec, data)
    server = Breaking(bucket, 1.0)
    for lives in range(1, 10):  # noqa: B007 (counted)
        # Three requests, then a server that breaks everything off; a process of its own each time.
        server.share = 0.0
        bucket.answer = Dying(server, 3)
        reader = Objects(open_store("s3://bucket/", StorePace(call_s=2.0)), LocalCache(tmp_path))
        try:
            found = reader.mapped(root, spec)
        except UnavailableError:
            continue
        break
    assert bytes(found) == data and lives >= 4
    assert server.moved < 1.2 * len(data)
    assert [path.name for path in tmp_path.rglob("*.new")] == []


def test_a_damaged_half_of_a_download_is_fetched_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (parts, objects):
        monkeypatch.setattr(module, "part_count", lambda spec: -(-spec.nbytes // PART))
    monkeypatch.setattr(parts, "PART_BYTES", PART)
    monkeypatch.setattr(objects, "MAPPED_FROM", 1)
    spec = TensorSpec(DType.U8, (3 * PART + 1000,))
    data, store = os.urandom(spec.nbytes), open_store(tmp_path / "store")
    root = Objects(store).put_data(spec, data)
    half = tmp_path / "copies" / "run" / "tensors" / f"{root.hex()}.new"
    half.parent.mkdir(parents=True)
    half.write_bytes(data[:PART] + bytes(PART) + data[2 * PART :] + b"more than all")
    before = store.traffic.bytes_read
    assert bytes(Objects(store, LocalCache(tmp_path / "copies")).mapped(root, spec)) == data
    assert store.traffic.bytes_read - before == PART + 64 * 4  # the damaged part, and the index


def test_parts_that_have_come_are_hashed_once_however_many_indices_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Attack: indices with the right roots and, for the last part, no object: each had all that has come hashed anew,
    as each try after a break did. Of 100 GB that is minutes each time, which no clock of a store bounds."""
    for module in (parts, objects):
        monkeypatch.setattr(module, "part_count", lambda spec: -(-spec.nbytes // PART))
    monkeypatch.setattr(parts, "PART_BYTES", PART)
    monkeypatch.setattr(objects, "MAPPED_FROM", 1)
    spec = TensorSpec(DType.U8, (8 * PART,))
    data, store = os.urandom(spec.nbytes), open_store(tmp_path / "store")
    root = Objects(store).put_data(spec, data)
    name = f"parts/{root.hex()}"
    honest = parts.PartIndex.decode(store.get(next(store.candidates(name)), 1 << 10))
    for k in range(16):
        store.put(parts.PartIndex((*honest.digests[:-1], Digest(bytes([k]) * 32)), honest.roots).encode(), name)
    store.delete(object_path(honest.digests[-1]))
    hashed: list[int] = []
    tree_root = parts.tree_root
    monkeypatch.setattr(parts, "tree_root", lambda part: hashed.append(len(part)) or tree_root(part))
    reader = Objects(store, LocalCache(tmp_path / "copies"))
    before = store.traffic.bytes_read
    for _ in range(3):
        with pytest.raises(ObjectMissing):
            reader.mapped(root, spec)
    # Nor were they fetched into memory where one is missing.
    assert sum(hashed) == 7 * PART and store.traffic.bytes_read - before < 9 * PART
    store.put(data[-PART:])
    before = store.traffic.bytes_read
    assert bytes(reader.mapped(root, spec)) == data and sum(hashed) == 8 * PART
    assert PART < store.traffic.bytes_read - before < 2 * PART  # the last part, and indices


class SlowFolder:
    """How a folder reads whose disk takes some seconds for an object, and how often it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.seconds, self.begun, read = seconds, 0, folder.read_version

        def slow(*asked: Any) -> Any:
            self.begun += 1
            found = read(*asked)
            time.sleep(self.seconds)
            return found

        monkeypatch.setattr(folder, "read_version", slow)


def test_an_object_of_a_folder_that_fits_no_actions_time_is_not_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bad luck: a large model on a slow disk: each action read it from its first byte, and none to its end."""
    store, data = open_store(tmp_path), os.urandom(MIB)
    digest, small = store.put(data), store.put(b"small")
    disk = SlowFolder(monkeypatch, 1.5)
    found, actions = reads(store, digest, len(data), 0.4)
    assert found == data and actions >= 3 and disk.begun == 1
    # What is small, and what may say something else by then, is asked for again.
    with pytest.raises(StoreSilent), waiting_at_most(0.2):
        store.get(small, 5)
    disk.seconds = 0.0
    assert store.get(small, 5) == b"small" and disk.begun == 3


def test_what_was_put_in_the_place_of_an_object_meanwhile_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, data = open_store(tmp_path), os.urandom(MIB)
    digest = store.put(data)
    place = tmp_path / object_path(digest)
    place.write_bytes(bytes(MIB))
    disk = SlowFolder(monkeypatch, 0.5)
    with pytest.raises(StoreSilent), waiting_at_most(0.1):
        store.get(digest, MIB)
    store.put(data)
    disk.seconds = 0.0
    assert store.get(digest, MIB) == data and disk.begun == 2


def test_reads_that_nobody_asks_for_again_hold_no_memory_without_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(tmp_path)
    digests = [store.put(os.urandom(MIB)) for _ in range(4)]
    monkeypatch.setattr(late_reads, "MAX_LATE_BYTES", 2 * MIB)
    disk = SlowFolder(monkeypatch, 0.5)
    for digest in digests:
        with pytest.raises(StoreSilent), waiting_at_most(0.1):
            store.get(digest, MIB)
    disk.seconds, held = 0.0, disk.begun
    for digest in reversed(digests):
        store.get(digest, MIB)
    assert disk.begun == held + 1, "the oldest was let go"
