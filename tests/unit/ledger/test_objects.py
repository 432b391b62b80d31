"""Published objects are what their names promise, whatever strangers put under the name."""

import time
from pathlib import Path

import pytest

from assay.engine.runtime.native.sha256 import tensor_root
from assay.protocol.program import wellformed
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import decode_program
from assay.protocol.program.wellformed import violations
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store import listfile
from assay_ledger.store.blobs import ObjectMismatch, ObjectMissing, open_store
from assay_ledger.store.listfile import file_size, pack, unpack
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.manifest import Manifest
from assay_ledger.store.objects import Objects, root_of_list

SPECS = [TensorSpec(DType.F32, (2, 3)), TensorSpec(DType.U8, ()), TensorSpec(DType.BOOL, (0,))]
TENSORS = (bytes(range(24)), b"\x05", b"")


@pytest.fixture
def objects(tmp_path: Path) -> Objects:
    return Objects(open_store(tmp_path))


def test_a_list_comes_back_bit_for_bit(objects: Objects) -> None:
    assert objects.list(objects.put_list(SPECS, TENSORS), SPECS) == TENSORS


def test_an_all_zero_list_needs_no_store(objects: Objects) -> None:
    zeros = tuple(spec.zeros() for spec in SPECS)
    assert objects.list(root_of_list(SPECS, zeros), SPECS) == zeros


def test_a_list_is_hashed_once_when_it_is_read(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every read hashed as many zeros beside it, and held them: of a large model seconds, for each of 64 updates."""
    specs = [TensorSpec(DType.F32, (1 << 14,))]
    root, hashed = objects.put_list(specs, [bytes(range(256)) * 256]), list[int]()
    objects.list(root, specs)
    monkeypatch.setattr(
        "assay_ledger.store.objects.tensor_root",
        lambda spec, data: hashed.append(len(data)) or tensor_root(spec, data),
    )
    objects.list(root, specs)
    assert hashed == [1 << 16]


def test_readers_of_one_program_share_it_and_check_it_once(objects: Objects, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reading decoded a program twice, and four places found once more that it is well-formed."""
    b = ProgramBuilder([[TensorSpec(DType.F32, (2,))]])
    root = objects.put_program(b.build([[b.input(0, 0)]]))
    decoded, checked = list[int](), list[Program]()
    monkeypatch.setattr(
        "assay_ledger.store.programs_in_use.decode_program",
        lambda data, most: decoded.append(len(data)) or decode_program(data, most),
    )
    first, second = objects.program(root), Objects(objects.store).program(root)
    assert first is second and first.root == root and len(decoded) == 1
    check = wellformed._violations
    monkeypatch.setattr(wellformed, "_violations", lambda program: checked.append(program) or check(program))
    assert violations(first) == violations(second) == () and checked == [first]
    with pytest.raises(ObjectMismatch):
        objects.program(root, most=decoded[0] - 1)


def test_marks_and_the_bytes_of_a_tensor_come_back(objects: Objects) -> None:
    roots = (Digest(b"\x01" * 32), Digest(b"\x02" * 32))
    assert objects.marks(objects.put_marks(roots), 2) == roots
    with pytest.raises(ObjectMismatch):
        objects.marks(objects.put_marks(roots), 3)
    spec = TensorSpec(DType.U8, (1500,))
    data = bytes(i % 251 for i in range(1500))
    assert objects.tensor(objects.put_tensor(spec, data), spec) == data


@pytest.mark.parametrize("damage", [b"", b"\xff" * 40, b"[" * 3000, bytes(2000)])
def test_other_bytes_under_the_name_are_passed_over_and_never_returned(objects: Objects, damage: bytes) -> None:
    root = root_of_list(SPECS, TENSORS)
    objects.store.put(damage, f"lists/{root.hex()}")
    with pytest.raises(ObjectMismatch):
        objects.list(root, SPECS)
    objects.put_list(SPECS, TENSORS)
    assert objects.list(root, SPECS) == TENSORS


def test_a_list_of_other_values_under_the_name_is_passed_over(objects: Objects) -> None:
    root = root_of_list(SPECS, TENSORS)
    forged = objects.store.get(
        objects.store.list(f"lists/{objects.put_list(SPECS, (bytes(24), b'1', b'')).hex()}")[0][1], 1 << 20
    )
    objects.store.put(forged, f"lists/{root.hex()}")
    with pytest.raises(ObjectMismatch):
        objects.list(root, SPECS)


def test_who_put_a_list_sees_that_others_wrote_over_it_and_reads_nothing_else(tmp_path: Path) -> None:
    """Attack: in a bucket whose members may add and delete nothing a member puts other bytes in an object's place."""
    store = open_store(tmp_path / "store")
    objects = Objects(store, LocalCache(tmp_path / "copies"))
    root = objects.put_list(SPECS, TENSORS)
    digest = objects.list_digest(root, SPECS)
    before = store.traffic.bytes_read
    assert objects.is_served(root, SPECS)
    assert store.traffic.bytes_read == before
    open_store(tmp_path / "store").put_as(digest, b"other bytes")
    assert not objects.is_served(root, SPECS)
    objects.put_list(SPECS, TENSORS)
    assert objects.is_served(root, SPECS)
    # The same bytes by somebody else are looked at once.
    Objects(open_store(tmp_path / "store")).put_list(SPECS, TENSORS)
    before = store.traffic.bytes_read
    assert objects.is_served(root, SPECS) and objects.is_served(root, SPECS)
    assert store.traffic.bytes_read - before == file_size(SPECS)


def test_who_fetched_a_list_sees_that_others_wrote_over_it_and_reads_nothing_else(tmp_path: Path) -> None:
    """Attack: the same with a base that an auditor did not put: only those who had put it healed it."""
    store = open_store(tmp_path / "store")
    root = Objects(open_store(tmp_path / "store")).put_list(SPECS, TENSORS)
    objects = Objects(store, LocalCache(tmp_path / "copies"))
    assert objects.list(root, SPECS) == TENSORS
    before = store.traffic.bytes_read
    assert objects.is_served(root, SPECS)
    assert store.traffic.bytes_read == before
    open_store(tmp_path / "store").put_as(objects.list_digest(root, SPECS), b"other bytes")
    assert not objects.is_served(root, SPECS)


def test_who_was_restarted_looks_once_at_what_lies_where_its_list_was(tmp_path: Path) -> None:
    """Attack: what was written over is taken for right by whoever knows not which version it put."""
    store = open_store(tmp_path / "store")
    root = Objects(open_store(tmp_path / "store"), LocalCache(tmp_path / "copies")).put_list(SPECS, TENSORS)
    objects = Objects(store, LocalCache(tmp_path / "copies"))
    before = store.traffic.bytes_read
    assert objects.is_served(root, SPECS) and objects.is_served(root, SPECS)
    assert store.traffic.bytes_read - before == file_size(SPECS)
    store = open_store(tmp_path / "store")
    open_store(tmp_path / "store").put_as(objects.list_digest(root, SPECS), b"other bytes")
    assert not Objects(store, LocalCache(tmp_path / "copies")).is_served(root, SPECS)


def test_who_looks_again_whether_a_list_is_there_reads_and_hashes_no_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Solvers look once an epoch for what a round starts from: of a large model eight bytes a parameter each time."""
    store = open_store(tmp_path / "store")
    root = Objects(store, LocalCache(tmp_path / "copies")).put_list(SPECS, TENSORS)
    objects = Objects(store, LocalCache(tmp_path / "copies"))
    assert not objects.has_known_list(root, SPECS), "nobody has looked yet"
    assert objects.is_served(root, SPECS)
    with monkeypatch.context() as patch:
        for name in ("get", "mapped"):
            patch.setattr(LocalCache, name, lambda *_: 1 // 0)
        assert objects.is_served(root, SPECS) and objects.has_known_list(root, SPECS)
        open_store(tmp_path / "store").put_as(objects.list_digest(root, SPECS), b"other bytes")
        assert not objects.has_known_list(root, SPECS) and not objects.is_served(root, SPECS)


def test_digests_of_lists_are_known_for_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listfile, "MOST_DIGESTS", 2)
    digests, roots = listfile.ListDigests(), [Digest(bytes([k]) * 32) for k in range(3)]
    found = [digests.of(root, lambda root=root: root) for root in roots]
    assert digests.known(roots[0]) is None and [digests.known(root) for root in roots[1:]] == found[1:]


def test_a_list_whose_name_was_deleted_is_not_served(tmp_path: Path) -> None:
    """Attack: the object is left where it is, and nobody who has no copy finds it."""
    store = open_store(tmp_path / "store")
    objects = Objects(store, LocalCache(tmp_path / "copies"))
    root = objects.put_list(SPECS, TENSORS)
    for junk in (b"junk", b"more junk"):
        store.put(junk, f"lists/{root.hex()}")
    assert objects.is_served(root, SPECS)
    digest = objects.list_digest(root, SPECS)
    store.delete(f"names/lists/{root.hex()}/{digest.hex()}")
    assert store.has(digest) and not objects.is_served(root, SPECS)


def test_what_nobody_published_is_missing(objects: Objects) -> None:
    with pytest.raises(ObjectMissing):
        objects.list(root_of_list(SPECS, TENSORS), SPECS)


def test_a_list_has_one_file_and_it_is_that_of_the_safetensors_library() -> None:
    import numpy as np
    from safetensors.numpy import load, save

    kinds = {"<i8": DType.I64, "<f4": DType.F32, "<i4": DType.I32, "<u2": DType.U16, "i1": DType.I8, "u1": DType.U8}
    kinds["?"] = DType.BOOL
    specs, arrays = [], {}
    for k, (kind, dtype) in enumerate([*kinds.items(), *reversed(kinds.items())]):
        dims = ((3, k), (), (k,))[k % 3]
        specs.append(TensorSpec(dtype, dims))
        arrays[f"{k:05d}"] = (np.arange(specs[-1].numel) % 2).astype(kind).reshape(dims)
    tensors = tuple(array.tobytes() for array in arrays.values())
    file = pack(specs, tensors)
    assert file == save(arrays) and len(file) == file_size(specs)
    assert unpack(specs, file) == tensors
    assert [load(file)[name].tobytes() for name in sorted(arrays)] == list(tensors)
    assert pack([], []) == save({})


def test_any_other_file_of_the_same_list_is_none() -> None:
    file = pack(SPECS, TENSORS)
    head = int.from_bytes(file[:8], "little")
    assert unpack(SPECS, file) == TENSORS
    for k in range(8 + head):
        assert unpack(SPECS, file[:k] + bytes([file[k] ^ 1]) + file[k + 1 :]) is None
    spaced = (head + 8).to_bytes(8, "little") + file[8 : 8 + head] + b" " * 8 + file[8 + head :]
    for other in (file[:-1], file + b"\0", spaced, b""):
        assert unpack(SPECS, other) is None


def test_a_header_of_a_hundred_megabytes_is_compared_and_not_parsed(objects: Objects) -> None:
    root = root_of_list(SPECS, TENSORS)
    empty = b",".join(b'"%07d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % k for k in range(200_000))
    for size in (len(empty), file_size(SPECS)):
        objects.store.put((len(empty).to_bytes(8, "little") + empty)[:size], f"lists/{root.hex()}")
    # Of its process alone: a machine that is shared adds to any other time.
    start = time.process_time()
    with pytest.raises(ObjectMismatch):
        objects.list(root, SPECS)
    assert time.process_time() - start < 2


def test_a_manifest_says_which_digests_roots_have_and_junk_says_nothing() -> None:
    digests = {Digest(bytes([k]) * 32): Digest(bytes([k + 100]) * 32) for k in (3, 1, 2)}
    data = Manifest(digests).encode()
    assert Manifest.decode(data).digests == digests and len(data) == 3 * 64
    swapped = data[64:128] + data[:64] + data[128:]
    for junk in (data[:-1], data + b"\0", swapped, data[:64] + data, bytes(Manifest.MAX_BYTES + 64)):
        assert Manifest.decode(junk).digests == {}
    full = {Digest(k.to_bytes(32, "big")): Digest(bytes(32)) for k in range(Manifest.MAX_BYTES // 64)}
    assert Manifest.decode(Manifest(full).encode()).digests == full
