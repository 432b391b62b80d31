"""Stores that hang, drip, lie about sizes or hold anything but files: every call ends in seconds, whatever it is."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store.blobs import (
    BlobStore,
    ObjectMismatch,
    ObjectMissing,
    ObjectTooLarge,
    StorePace,
    StoreSilent,
    StoreUnreachable,
    open_store,
)
from assay_ledger.store.folder import Folder
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects
from assay_ledger.store.search import get_named
from tests.harness.buckets import HOSTILITIES, ServedBucket, running_bucket, soon

SPECS = [TensorSpec(DType.F32, (2, 3)), TensorSpec(DType.I32, (4,))]
TENSORS = tuple(bytes(range(k, k + spec.nbytes)) for k, spec in enumerate(SPECS))


def place_socket(path: Path) -> None:
    before = Path.cwd()
    os.chdir(path.parent)  # the name of a socket has 107 bytes at most
    try:
        socket.socket(socket.AF_UNIX).bind(path.name)
    finally:
        os.chdir(before)


def place_loop(path: Path) -> None:
    path.symlink_to(path.name)


def place_link_outside(path: Path) -> None:
    outside = path.parents[3] / "outside"
    outside.write_bytes(b"what a stranger wants read")
    path.symlink_to(outside)


def place_terabyte(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


OBSTACLES: dict[str, Callable[[Path], None]] = {
    "FIFO": os.mkfifo,
    "socket": place_socket,
    "directory": Path.mkdir,
    "full directory": lambda path: (path / "x").mkdir(parents=True),
    "link to /dev/zero": lambda path: path.symlink_to("/dev/zero"),
    "link to a device that blocks": lambda path: path.symlink_to("/dev/tty"),
    "link to itself": place_loop,
    "link outside the store": place_link_outside,
    "sparse terabyte": place_terabyte,
    "cut short": lambda path: path.write_bytes(b"x"),
}


@pytest.mark.parametrize("obstacle", OBSTACLES)
def test_whatever_stands_where_an_object_was_is_missing_at_once_and_healed_by_a_copy(
    tmp_path: Path, obstacle: str
) -> None:
    store = open_store(tmp_path / "store")
    local_cache = LocalCache(tmp_path / "cache")
    root = Objects(store, local_cache).put_list(SPECS, TENSORS)
    for path in [p for p in (tmp_path / "store" / "objects").rglob("*") if p.is_file()]:
        path.unlink()
        OBSTACLES[obstacle](path)
    with soon():
        with pytest.raises(UnavailableError) as refused:
            Objects(store).list(root, SPECS)
        assert not isinstance(refused.value, StoreUnreachable)
        assert Objects(store, local_cache).list(root, SPECS) == TENSORS
        # The holder of a copy put it back for those who have none.
        assert Objects(store).list(root, SPECS) == TENSORS


@pytest.mark.parametrize("obstacle", ["FIFO", "socket", "link to /dev/zero", "link to itself", "cut short"])
@pytest.mark.parametrize("folder", ["objects", "names", "names/lists", "slots"])
def test_whatever_stands_where_a_folder_was_is_moved_aside_by_the_next_writer(
    tmp_path: Path, obstacle: str, folder: str
) -> None:
    store = open_store(tmp_path / "a" / "b" / "store")
    place = tmp_path / "a" / "b" / "store" / folder
    place.parent.mkdir(parents=True, exist_ok=True)
    OBSTACLES[obstacle](place)
    with soon():
        assert store.list("lists") == () and store.list_slots("actors") == ()
        with pytest.raises(ObjectMissing):
            store.read_slot("actors/x", 10)
        root = Objects(store).put_list(SPECS, TENSORS)
        store.write_slot("actors/x", b"here")
        assert Objects(store).list(root, SPECS) == TENSORS
        assert store.read_slot("actors/x", 10) == b"here"


def test_nothing_is_read_or_written_outside_the_store_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    store = open_store(tmp_path / "store")
    digest = store.put(b"x")
    (tmp_path / "outside" / digest.hex()).write_bytes(b"x")
    inner = tmp_path / "store" / "objects" / digest.hex()[:2]
    (inner / digest.hex()).unlink()
    inner.rmdir()
    inner.symlink_to(tmp_path / "outside")
    with pytest.raises(ObjectMissing):
        store.get(digest, 10)
    (tmp_path / "outside" / digest.hex()).write_bytes(b"untouched")
    store.put(b"x")
    assert store.get(digest, 10) == b"x"
    assert (tmp_path / "outside" / digest.hex()).read_bytes() == b"untouched"


def test_a_link_to_the_right_bytes_outside_is_nothing_too(tmp_path: Path) -> None:
    store = open_store(tmp_path / "store")
    digest = store.put(b"x")
    (tmp_path / "outside").write_bytes(b"x")
    for path in [p for p in (tmp_path / "store" / "objects").rglob("*") if p.is_file()]:
        path.unlink()
        path.symlink_to(tmp_path / "outside")
    store.write_slot("actors/x", b"x")
    (tmp_path / "store" / "slots" / "actors" / "x").unlink()
    (tmp_path / "store" / "slots" / "actors" / "x").symlink_to(tmp_path / "outside")
    with pytest.raises(ObjectMissing):
        store.get(digest, 10)
    with pytest.raises(ObjectMissing):
        store.read_slot("actors/x", 10)
    assert not store.has(digest)


def test_a_file_that_grows_while_it_is_read_gives_what_it_had_when_it_was_opened(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.write_slot("actors/x", b"y" * 1000)
    stop = threading.Event()

    def grow() -> None:
        with (tmp_path / "slots" / "actors" / "x").open("ab") as file:
            while not stop.is_set():
                file.write(b"z" * 1000)
                file.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(50):
            try:
                assert len(store.read_slot("actors/x", 1 << 16)) <= 1 << 16
            except ObjectTooLarge:
                break
    finally:
        stop.set()
        writer.join()


@pytest.fixture
def bucket() -> Iterator[ServedBucket]:
    with running_bucket() as bucket:
        yield bucket


PACE = StorePace(call_s=0.3, bytes_per_s=1 << 20)


@pytest.mark.parametrize("hostility", HOSTILITIES)
@pytest.mark.gate_takes(2)
def test_a_server_that_is_hostile_about_objects_holds_a_reader_up_for_seconds_in_all(
    bucket: ServedBucket, tmp_path: Path, hostility: str
) -> None:
    store, local_cache = open_store("s3://bucket/", PACE), LocalCache(tmp_path)
    patient = Objects(open_store("s3://bucket/"), local_cache)
    roots = [patient.put_list(SPECS, [bytes([k]) * 24, bytes(16)]) for k in range(1, 21)]
    bucket.hostility, bucket.victims, bucket.drip_s = hostility, "/objects/", 0.02
    with soon(10.0):
        for k, root in enumerate(roots, 1):
            assert Objects(store, local_cache).list(root, SPECS)[0] == bytes([k]) * 24
            with pytest.raises(UnavailableError):
                Objects(store).list(root, SPECS)


def test_whoever_reads_own_copies_first_does_not_even_ask(bucket: ServedBucket, tmp_path: Path) -> None:
    store, local_cache = open_store("s3://bucket/"), LocalCache(tmp_path)
    root = Objects(store, local_cache).put_list(SPECS, TENSORS)
    bucket.hostility, bucket.requests = "hangs", 0
    objects = Objects(store, local_cache)
    with soon(), objects.own_copies_first():
        assert objects.list(root, SPECS) == TENSORS
    assert bucket.requests == 0
    bucket.hostility = None
    assert objects.list(root, SPECS) == TENSORS
    assert bucket.requests > 0


def test_a_damaged_copy_gives_way_to_the_store_and_is_replaced(tmp_path: Path) -> None:
    store, local_cache = open_store(tmp_path / "store"), LocalCache(tmp_path / "cache")
    root = Objects(store, local_cache).put_list(SPECS, TENSORS)
    (copy,) = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    whole = copy.read_bytes()
    copy.write_bytes(bytes(len(whole)))
    objects = Objects(store, local_cache)
    with objects.own_copies_first():
        assert objects.list(root, SPECS) == TENSORS
    assert copy.read_bytes() == whole


# --- floods of names


def flood(store: BlobStore, name: str, count: int, bodies: int = 3) -> None:
    """Markers of junk with the lowest digests that there can be: on stores that list in order all come first."""
    digests = [store.put(b"junk %d" % k) for k in range(bodies)]
    for digest in digests:
        store._write(f"names/{name}/{digest.hex()}", b"", "write")
    for k in range(count):
        store._write(f"names/{name}/{k:064x}", b"", "write")


@pytest.mark.parametrize(("where", "count"), [("folder", 2_000), ("memory", 10_000), ("s3", 1_500)])
def test_any_number_of_junk_objects_with_a_name_hides_nothing(
    request: pytest.FixtureRequest, tmp_path: Path, where: str, count: int
) -> None:
    if where == "s3":
        request.getfixturevalue("bucket")
    store = open_store({"folder": str(tmp_path), "memory": "memory:///", "s3": "s3://bucket/"}[where])
    objects = Objects(store)
    root = objects.put_list(SPECS, TENSORS)
    flood(store, f"lists/{root.hex()}", count)
    assert objects.list(root, SPECS) == TENSORS


class Slow(BlobStore):
    """In the time of one search it gives ten objects."""

    given = 0

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        self.given += 1
        if self.given % 10 == 0:
            raise StoreSilent("no time is left")
        return super().get(digest, max_bytes)


def test_a_search_that_ran_out_of_time_goes_on_where_it_was(tmp_path: Path) -> None:
    store = Slow(Folder(tmp_path), "slow")
    store.put(b"right", "runs/x")
    flood(store, "runs/x", 100)
    cursors: dict[str, Digest] = {}
    tries = 0
    while True:
        tries += 1
        try:
            assert get_named(store, "runs/x", 10, lambda data: data == b"right", cursors) == b"right"
            break
        except StoreSilent:
            assert tries < 20
    assert tries > 9 and not cursors


class Silent(BlobStore):
    """It lists, and gives no object that is named here."""

    silent: frozenset[Digest] = frozenset()

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        if digest in self.silent:
            raise StoreSilent("no time is left")
        return super().get(digest, max_bytes)


@pytest.mark.parametrize("junk", [0, 20])
def test_an_object_that_is_not_given_in_time_is_never_said_to_be_none(tmp_path: Path, junk: int) -> None:
    """Bad luck: every second search began behind the object that did not come, and ended with "none is the right one":
    an update was given up after six tries at a store that hangs."""
    store = Silent(Folder(tmp_path), "silent")
    digest = store.put(b"right", "runs/x")
    for k in range(junk):
        store.put(b"junk %d" % k, "runs/x")
    cursors: dict[str, Digest] = {}

    def search() -> bytes:
        return get_named(store, "runs/x", 10, lambda data: data == b"right", cursors)

    store.silent = frozenset([digest])
    for _ in range(6):
        with pytest.raises(StoreSilent):
            search()
    store.silent = frozenset()
    assert search() == b"right" and not cursors
    # One that is never given hides nothing, wherever it stands, and what is there and wrong is said to be that.
    for other in [d for d in store.candidates("runs/x") if d != digest]:
        store.silent = frozenset([other])
        assert b"right" in [_outcome(search) for _ in range(2)]
    store.silent = frozenset()
    with pytest.raises(ObjectMismatch, match=f"Of {junk + 1} objects"):
        get_named(store, "runs/x", 10, lambda data: False, {"runs/x": digest})


def _outcome(call: Callable[[], bytes]) -> bytes | None:
    try:
        return call()
    except StoreSilent:
        return None


def test_a_listing_that_never_ends_is_not_read_for_ever(bucket: ServedBucket) -> None:
    store = open_store("s3://bucket/")
    store.put(b"x", "runs/x")
    page = bucket.page
    bucket.page = lambda query: page({})  # type: ignore[method-assign]
    with soon(), pytest.raises(UnavailableError):
        get_named(store, "runs/x", 10, lambda data: False)


def test_a_flood_of_slots_and_names_is_listed_up_to_the_limit(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    folder = tmp_path / "slots" / "actors"
    folder.mkdir(parents=True)
    for k in range(4_000):
        (folder / f"{k:040x}").touch()
    with soon():
        assert len(store.list_slots("actors", 256)) == 256
