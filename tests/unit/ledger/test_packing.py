"""Packed objects: what is stored comes back bit by bit, and no bytes of a stranger come out as it, or fill memory."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from collections.abc import Sequence
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import listfile
from assay_ledger.store.blobs import BlobStore, ObjectMismatch, ObjectTooLarge, object_path, open_store
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.mirrored import MirroredStore
from assay_ledger.store.objects import Objects, root_of_list
from assay_ledger.store.packing import EXPANSION, MAGIC, WORTH, ElementRun, packed, unpacked
from tools.recompute.store import Store

SPECS = (
    TensorSpec(DType.F32, (30, 40)),
    TensorSpec(DType.U16, (7,)),
    TensorSpec(DType.F32, ()),
    TensorSpec(DType.I8, (50,)),
    TensorSpec(DType.U8, (3, 0)),
    TensorSpec(DType.I32, (5,)),
    TensorSpec(DType.I64, (3,)),
    TensorSpec(DType.BOOL, (9,)),
)


def weights(size: int, seed: int = 1) -> bytes:
    return np.random.default_rng(seed).standard_normal(size).astype("<f4").tobytes()


def drawn(specs: Sequence[TensorSpec], seed: int) -> tuple[bytes, ...]:
    """Floats as models have them, all else at random."""
    draw = random.Random(seed)
    return tuple(
        weights(spec.numel, seed)
        if spec.dtype is DType.F32
        else bytes(k % 2 for k in range(spec.nbytes))
        if spec.dtype is DType.BOOL
        else draw.randbytes(spec.nbytes)
        for spec in specs
    )


def packed_list(seed: int = 1) -> tuple[bytes, bytes]:
    """The file of a list, and what it is packed to."""
    file = listfile.pack(SPECS, drawn(SPECS, seed))
    kept = packed(file, listfile.runs(SPECS))
    assert kept is not None
    return file, kept


def plane(data: bytes, mode: int = 0) -> bytes:
    return bytes([mode]) + len(data).to_bytes(8, "big") + data


def head(size: int, *parts: bytes) -> bytes:
    return b"".join([MAGIC, size.to_bytes(8, "big"), *parts])


def run(width: int, count: int, *planes: bytes, turned: int = 0) -> bytes:
    return b"".join([bytes([width, turned]), count.to_bytes(8, "big"), *planes])


layouts = st.lists(
    st.builds(TensorSpec, st.sampled_from(list(listfile.ORDER)), st.lists(st.integers(0, 9), max_size=3).map(tuple)),
    max_size=6,
)
contents = st.sampled_from(["zeros", "one value", "random", "floats"])


@given(specs=layouts, content=contents, seed=st.integers(0, 99))
def test_any_list_comes_out_as_it_went_in(specs: list[TensorSpec], content: str, seed: int) -> None:
    draw = random.Random(seed)
    made = {
        "zeros": lambda n: bytes(n),
        "one value": lambda n: bytes([seed]) * n,
        "random": draw.randbytes,
        "floats": lambda n: weights(-(-n // 4), seed)[:n],
    }[content]
    file = listfile.pack(specs, [made(spec.nbytes) for spec in specs])
    kept = packed(file, listfile.runs(specs))
    if kept is not None:
        assert unpacked(kept, len(file)) == file
        assert len(file) / EXPANSION <= len(kept) <= len(file) * (1 - 1 / WORTH)


def test_what_is_packed_is_a_quarter_smaller_where_floats_are_a_models() -> None:
    specs = (TensorSpec(DType.F32, (50_000,)),)
    file = listfile.pack(specs, [weights(50_000)])
    kept = packed(file, listfile.runs(specs))
    assert kept is not None and len(kept) < 0.85 * len(file)
    noise = listfile.pack(specs, [random.Random(1).randbytes(200_000)])
    assert packed(noise, listfile.runs(specs)) is None


@pytest.mark.parametrize("size", [1, 7, 8, 100, 100_000])
def test_a_packing_never_expands_more_than_a_reader_takes(size: int) -> None:
    """At the limit: all zeros, of which a Huffman code needs a bit each."""
    runs = [ElementRun(1, False, size)]
    kept = packed(bytes(size), runs)
    if kept is not None:
        assert EXPANSION * len(kept) >= size and unpacked(kept, size) == bytes(size)


def test_no_byte_of_a_packed_object_can_be_changed_unseen(tmp_path: Path) -> None:
    file, kept = packed_list()
    digest = sha256(file).digest()
    draw = random.Random(1)
    places = {*range(200), *draw.sample(range(len(kept)), 300)}
    for at in sorted(places):
        for other in (kept[at] ^ 1, kept[at] ^ 0x80):
            false = kept[:at] + bytes([other]) + kept[at + 1 :]
            try:
                found = unpacked(false, len(file))
            except ObjectMismatch:
                continue
            assert found is None or found == file or sha256(found).digest() != digest


FALSE = {
    "no head": MAGIC + bytes(3),
    "no run": head(4),
    "half a run": head(4, b"\1\0"),
    "an empty run": head(4, run(1, 0, plane(b"")), run(1, 4, plane(b"abcd"))),
    "a run of no width": head(4, run(0, 4)),
    "a run of three bytes": head(6, run(3, 2, plane(b"ab"), plane(b"cd"), plane(b"ef"))),
    "a run turned twice": head(4, run(1, 4, plane(b"abcd"), turned=2)),
    "a run beyond the object": head(4, run(1, 5, plane(b"abcde"))),
    "elements beyond the object": head(4, run(4, 2, *[plane(b"ab")] * 4)),
    "a plane of another size": head(4, run(1, 4, plane(b"abc"))),
    "a plane that ends beyond": head(4, run(1, 4, b"\0" + (1 << 62).to_bytes(8, "big") + b"abcd")),
    "a plane of an unknown method": head(4, run(1, 4, plane(b"abcd", 2))),
    "a plane that is no stream": head(4, run(1, 4, plane(b"abcd", 1))),
    "a stream that is cut off": head(9, run(1, 9, plane(zlib.compress(b"abcdefghi")[:-1], 1))),
    "a stream of fewer bytes": head(4, run(1, 4, plane(zlib.compress(b"abc"), 1))),
    "a stream of more bytes": head(4, run(1, 4, plane(zlib.compress(b"abcde"), 1))),
    "bytes behind a stream": head(4, run(1, 4, plane(zlib.compress(b"abcd") + b"x", 1))),
    "bytes behind it all": head(4, run(1, 4, plane(b"abcd")), b"x"),
    "a run behind it all": head(4, run(1, 4, plane(b"abcd")), run(1, 1, plane(b"x"))),
    "another version": b"packed-2" + head(4, run(1, 4, plane(b"abcd")))[8:],
}


@pytest.mark.gate_takes(10)
@pytest.mark.parametrize("false", FALSE.values(), ids=FALSE)
def test_what_is_packed_otherwise_is_refused_and_the_object_found_elsewhere(tmp_path: Path, false: bytes) -> None:
    data = b"abcd"
    digest = Digest(sha256(data).digest())
    stores = [open_store(tmp_path / name) for name in ("one", "two")]
    stores[0].put_as(digest, false)
    with pytest.raises(ObjectMismatch):
        stores[0].get(digest, 100)
    stores[1].put(data)
    assert MirroredStore(stores).get(digest, 100) == data


def test_another_packing_of_the_same_bytes_is_the_same_object(tmp_path: Path) -> None:
    """Two writers may have different zlibs, or cut runs otherwise: the digest is that of the bytes."""
    data = b"abcd" * 10
    digest, store = Digest(sha256(data).digest()), open_store(tmp_path)
    for other in (
        head(40, run(1, 40, plane(data))),
        head(40, run(1, 40, plane(zlib.compress(data, 9), 1))),
        head(40, run(1, 39, plane(data[:39])), run(1, 1, plane(data[39:]))),
        head(40, run(4, 10, *(plane(bytes([c]) * 10) for c in b"abcd"))),
    ):
        store.put_as(digest, other)
        assert store.get(digest, 200) == data
    assert unpacked(head(0), 0) == b""


@pytest.mark.parametrize("layers", [1, 2], ids=["once", "twice"])
def test_a_bomb_is_given_up_before_it_fills_memory(layers: int) -> None:
    """Attack: 100 MB of zeros, in the place of a plane of 200 kB."""
    bomb = bytes(100_000_000)
    for _ in range(layers):
        bomb = zlib.compress(bomb, 9)
    padding = plane(bytes(200_000 // EXPANSION))
    data = head(200_000, run(1, 200_000 - 25_000, plane(bomb, 1)), run(1, 25_000, padding))
    tracemalloc.start()
    try:
        with pytest.raises(ObjectMismatch, match="another size"):
            unpacked(data, 1 << 30)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("excess", [0, 1], ids=["at the limit", "a byte beyond"])
def test_an_object_is_at_most_so_many_times_its_packed_bytes(excess: int) -> None:
    """Attack: a kilobyte that stands for a megabyte of zeros costs readers a thousand times its writer's price."""
    *_, size = accumulate(range(40), lambda size, _: EXPANSION * (len(zlib.compress(bytes(size))) + 35) + excess)
    data = head(size, run(1, size, plane(zlib.compress(bytes(size)), 1)))
    assert size == EXPANSION * len(data) + excess
    if excess:
        with pytest.raises(ObjectMismatch, match="longer than it may be"):
            unpacked(data, size)
    else:
        assert unpacked(data, size) == bytes(size)
        with pytest.raises(ObjectMismatch, match="longer than it may be"):
            unpacked(data, size - 1)


# --- in a store


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return open_store(tmp_path / "store")


def stored(store: BlobStore, digest: Digest) -> Path:
    return Path(store.location) / object_path(digest)


def test_a_list_lies_packed_under_the_digest_of_its_file(store: BlobStore) -> None:
    tensors = drawn(SPECS, 1)
    file = listfile.pack(SPECS, tensors)
    root = Objects(store).put_list(SPECS, tensors)
    assert root == root_of_list(SPECS, tensors)
    ((_, digest),) = store.list(f"lists/{root.hex()}")
    assert digest == sha256(file).digest() == Objects(store).list_digest(root, SPECS)
    lies = stored(store, digest).read_bytes()
    assert lies == packed(file, listfile.runs(SPECS)) and len(lies) < len(file)
    before = store.traffic.bytes_read
    assert Objects(store).list(root, SPECS) == tensors
    assert store.traffic.bytes_read - before == len(lies)
    assert store.get_sized(digest, len(file)) == (file, len(lies))
    with pytest.raises(ObjectTooLarge):
        store.get(digest, len(lies) - 1)
    with pytest.raises(ObjectMismatch, match="longer than it may be"):
        store.get(digest, len(file) - 1)


def test_a_list_that_lies_as_it_is_is_read_as_before(store: BlobStore) -> None:
    tensors = drawn(SPECS, 1)
    root, file = root_of_list(SPECS, tensors), listfile.pack(SPECS, tensors)
    digest = store.put(file, f"lists/{root.hex()}")
    assert stored(store, digest).read_bytes() == file
    assert Objects(store).list(root, SPECS) == tensors


def test_packed_bytes_that_are_an_object_themselves_come_back_as_they_are(store: BlobStore) -> None:
    """Somebody publishes the packed bytes of another object under their own hash."""
    _, kept = packed_list()
    digest = store.put(kept)
    assert store.get(digest, len(kept)) == kept


def test_what_is_packed_of_another_object_is_refused(store: BlobStore) -> None:
    """Attack: the place of an object is taken by a true packing of another one."""
    (file, _), (_, other) = packed_list(1), packed_list(2)
    digest = Digest(sha256(file).digest())
    store.put_as(digest, other)
    with pytest.raises(ObjectMismatch, match="hashes to"):
        store.get(digest, len(file))


def test_a_packed_list_that_is_damaged_is_put_back(store: BlobStore, tmp_path: Path) -> None:
    tensors = drawn(SPECS, 1)
    mine = Objects(store, LocalCache(tmp_path / "cache"))
    root = mine.put_list(SPECS, tensors)
    ((_, digest),) = store.list(f"lists/{root.hex()}")
    path = stored(store, digest)
    good = path.read_bytes()
    path.write_bytes(good[:-3] + b"xyz")
    with pytest.raises(ObjectMismatch):
        Objects(store).list(root, SPECS)
    assert mine.list(root, SPECS) == tensors
    assert path.read_bytes() == good and Objects(store).list(root, SPECS) == tensors


def test_every_mirror_has_the_packed_bytes(tmp_path: Path) -> None:
    stores = [open_store(tmp_path / name) for name in ("one", "two")]
    both, tensors = MirroredStore(stores), drawn(SPECS, 1)
    root = Objects(both).put_list(SPECS, tensors)
    assert both.flush(10)
    ((_, digest),) = both.list(f"lists/{root.hex()}")
    lie = [stored(one, digest).read_bytes() for one in stores]
    assert lie[0] == lie[1] and lie[0].startswith(MAGIC)
    assert both.get_sized(digest, 1 << 20) == stores[1].get_sized(digest, 1 << 20)


def test_the_script_of_recomputing_unpacks_by_its_own_code(store: BlobStore) -> None:
    for seed in range(3):
        tensors = drawn(SPECS, seed)
        root = Objects(store).put_list(SPECS, tensors)
        ((_, digest),) = store.list(f"lists/{root.hex()}")
        assert Store(Path(store.location)).object(digest.hex()) == listfile.pack(SPECS, tensors)
