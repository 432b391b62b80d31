"""Data larger than memory: fetched once, part by part, checked, mapped, and never computed with once changed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from assay.engine.compiler.capture import capture
from assay.engine.runtime import footprint
from assay.engine.runtime.native import sha256 as sha256_module
from assay.engine.runtime.native.sha256 import tensor_root, tree_root
from assay.engine.runtime.trace import TorchTrace
from assay.engine.runtime.values.state_io import bytes_of, spec_of, tensor_from_bytes
from assay.mapped_files import MappedFile, mapping_of
from assay.protocol.errors import InvariantError, UnavailableError
from assay.protocol.trees import tensors
from assay.protocol.trees.tensors import LEAF_SIZE, TensorSpec, TensorTree
from assay.protocol.types import Digest, DType
from assay.training.long_runs import LongRun, MemoryProgress
from assay.training.rounds import TorchCompute
from assay_ledger.store import local_cache, parts
from assay_ledger.store import objects as objects_module
from assay_ledger.store.blobs import BlobStore, StoreSilent, open_store
from assay_ledger.store.errors import NoRoomForData
from assay_ledger.store.folder import Folder
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.objects import Objects
from assay_ledger.store.progress import ProgressFolder
from assay_verifier.replaying import CommitmentReplay, WorkToReplay

SIZE = 10 * LEAF_SIZE + 300
SPEC = TensorSpec(DType.U8, (SIZE,))
DATA = bytes(i * i * 7 >> 2 & 255 for i in range(SIZE))
ROOT = tensors.tensor_root(SPEC, DATA)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of 4 leaves, and everything mapped."""
    monkeypatch.setattr(parts, "PART_BYTES", 4 * LEAF_SIZE)
    monkeypatch.setattr(objects_module, "MAPPED_FROM", 1)


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return open_store(tmp_path / "store")


def actor(folder: Path, store: BlobStore) -> Objects:
    return Objects(store, LocalCache(folder / "cache"))


def copy_of(folder: Path) -> Path:
    return folder / "cache" / "run" / "tensors" / ROOT.hex()


def overwrite(path: Path, at: int, data: bytes) -> None:
    path.chmod(0o600)
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


@pytest.mark.parametrize("size", [1, LEAF_SIZE, 4 * LEAF_SIZE, 4 * LEAF_SIZE + 1, 8 * LEAF_SIZE, 9 * LEAF_SIZE + 5])
def test_data_of_any_size_comes_back_under_its_root(tmp_path: Path, store: BlobStore, size: int) -> None:
    spec, data = TensorSpec(DType.U8, (size,)), DATA[:size]
    root = Objects(store).put_data(spec, data)
    assert root == tensors.tensor_root(spec, data)
    assert Objects(store).mapped(root, spec) == data
    found = actor(tmp_path, store).mapped(root, spec)
    assert bytes(found) == data and mapping_of(found) is not None
    assert tensor_root(spec, found) == root


def test_shards_are_fetched_once_and_then_read_from_the_file(tmp_path: Path, store: BlobStore) -> None:
    Objects(store).put_data(SPEC, DATA)
    actor(tmp_path, store).mapped(ROOT, SPEC)
    for path in (tmp_path / "store" / "objects").rglob("*"):
        if path.is_file():
            path.unlink()
    assert actor(tmp_path, store).mapped(ROOT, SPEC) == DATA
    assert copy_of(tmp_path).stat().st_mode & 0o777 == 0o400


def test_what_the_store_lost_is_put_back(tmp_path: Path, store: BlobStore) -> None:
    Objects(store).put_data(SPEC, DATA)
    holder = actor(tmp_path, store)
    holder.mapped(ROOT, SPEC)
    empty = open_store(tmp_path / "empty")
    actor(tmp_path, empty).mapped(ROOT, SPEC)
    assert Objects(empty).mapped(ROOT, SPEC) == DATA


@pytest.mark.parametrize("size", [SIZE, 4 * LEAF_SIZE])
@pytest.mark.parametrize("is_whole", [False, True])
def test_what_the_store_lost_of_data_is_put_back_and_nothing_else(
    tmp_path: Path, store: BlobStore, size: int, is_whole: bool
) -> None:
    """Attack: somebody deletes data and leaves their names, and gives these to other bytes."""
    spec, data = TensorSpec(DType.U8, (size,)), DATA[:size]
    root = Objects(store).put_tensor(spec, data) if is_whole else Objects(store).put_data(spec, data)
    actor(tmp_path, store).mapped(root, spec)
    for kind in ("parts", "tensors"):
        store.put(bytes(64 * 3), f"{kind}/{root.hex()}")
    files = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    lost = sorted(path for path in files if path.name != sha256(bytes(192)).hexdigest())
    for path in lost:
        bytes_there = path.read_bytes()
        path.unlink()
        before = store.traffic.bytes_written
        actor(tmp_path, store).mapped(root, spec)
        # Of data as one object the others do not lie in parts; these are put once where it is gone.
        assert is_whole or (path.exists() and path.read_bytes() == bytes_there)
        assert is_whole or store.traffic.bytes_written - before <= max(len(bytes_there), 4 * LEAF_SIZE)
        assert Objects(store).mapped(root, spec) == data
    before = store.traffic.bytes_written
    actor(tmp_path, store).mapped(root, spec)
    assert store.traffic.bytes_written == before


@pytest.mark.parametrize("is_noted", [True, False])
def test_a_part_that_others_wrote_over_is_put_back_by_who_starts_with_a_copy(tmp_path: Path, is_noted: bool) -> None:
    """Attack: in a bucket whose members delete nothing one writes other bytes in a part's place: who has a copy found
    that something is there, and whoever had none never began."""
    place = tmp_path / "store"
    Objects(open_store(place)).put_data(SPEC, DATA)
    actor(tmp_path, open_store(place)).mapped(ROOT, SPEC)
    digest = Digest(sha256(DATA[: 4 * LEAF_SIZE]).digest())
    open_store(place).put_as(digest, bytes(4 * LEAF_SIZE))
    with pytest.raises(UnavailableError):
        Objects(open_store(place)).mapped(ROOT, SPEC)
    if not is_noted:  # a note that nobody can read costs nothing but this
        (note := copy_of(tmp_path).with_name(f"{ROOT.hex()}.noted")).chmod(0o600)
        note.write_bytes(b"[")
    for read in (4 * LEAF_SIZE, 0) if is_noted else (0, 0):
        store = open_store(place)
        assert actor(tmp_path, store).mapped(ROOT, SPEC) == DATA
        assert store.traffic.bytes_read == read + 3 * 64, "what was written over, and the index"
    with nullcontext() if is_noted else pytest.raises(UnavailableError):
        assert Objects(open_store(place)).mapped(ROOT, SPEC) == DATA


def test_a_forged_index_and_forged_parts_are_passed_over(tmp_path: Path, store: BlobStore) -> None:
    Objects(store).put_data(SPEC, DATA)
    name = f"parts/{ROOT.hex()}"
    honest = parts.PartIndex.decode(store.get(next(store.candidates(name)), 1 << 10))
    forged = store.put(bytes(4 * LEAF_SIZE))
    assert [sha256(DATA[at : at + 4 * LEAF_SIZE]).digest() for at in (0, 4096, 8192)] == list(honest.digests)
    for index in (
        b"",
        bytes(64 * 3),
        parts.PartIndex((Digest(bytes(32)),) * 3, honest.roots).encode(),
        parts.PartIndex((forged,) * 3, honest.roots).encode(),
        parts.PartIndex(honest.digests[::-1], honest.roots[::-1]).encode(),
    ):
        store.put(index, name)
    assert actor(tmp_path, store).mapped(ROOT, SPEC) == DATA


def test_only_forged_parts_are_no_data_and_leave_no_file(
    tmp_path: Path, store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.put(bytes(64 * 3), f"parts/{ROOT.hex()}")
    with monkeypatch.context() as patched:
        # Of an honest index the roots, and for a part another's digest.
        patched.setattr(store, "put", lambda data, name=None: BlobStore.put(store, data, name and "elsewhere"))
        Objects(store).put_data(SPEC, DATA)
    honest = parts.PartIndex.decode(store.get(next(store.candidates("elsewhere")), 1 << 10))
    other = store.put(b"\x01" + DATA[1 : 4 * LEAF_SIZE])
    store.put(parts.PartIndex((other, *honest.digests[1:]), honest.roots).encode(), f"parts/{ROOT.hex()}")
    with pytest.raises(UnavailableError):
        actor(tmp_path, store).mapped(ROOT, SPEC)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_data_published_whole_is_found_as_well(tmp_path: Path, store: BlobStore) -> None:
    Objects(store).put_tensor(SPEC, DATA)
    assert actor(tmp_path, store).mapped(ROOT, SPEC) == DATA == Objects(store).mapped(ROOT, SPEC)


def test_data_published_whole_are_hidden_by_no_index_of_others(tmp_path: Path, store: BlobStore) -> None:
    """Attack: anybody can compute an index with the right roots; its digests lead to other bytes, or nowhere."""
    Objects(store).put_tensor(SPEC, DATA)
    roots = tuple(tree_root(DATA[at : at + parts.PART_BYTES]) for at in range(0, SIZE, parts.PART_BYTES))
    for digest in (store.put(bytes(4 * LEAF_SIZE)), Digest(bytes(32))):
        store.put(parts.PartIndex((digest,) * 3, roots).encode(), f"parts/{ROOT.hex()}")
        for reader in (Objects(store), actor(tmp_path, store)):
            assert reader.mapped(ROOT, SPEC) == DATA


class StoreThatIsSilent(BlobStore):
    """It lists, and gives of some objects nothing in time."""

    silent: frozenset[Digest] = frozenset()
    asked = 0

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        self.asked += 1
        if digest in self.silent:
            raise StoreSilent("no answer")
        return super().get(digest, max_bytes)


def test_a_silent_store_is_not_asked_by_one_index_after_the_other(tmp_path: Path) -> None:
    """Attack: a hundred indices with the right roots, each of which costs a call's seconds of a store that hangs."""
    store = StoreThatIsSilent(Folder(tmp_path / "store"), "silent")
    Objects(store).put_data(SPEC, DATA)
    name = f"parts/{ROOT.hex()}"
    ((_, first),) = store.list(name)
    honest = parts.PartIndex.decode(store.get(first, 1 << 20))
    for k in range(5):
        others = replace(honest, digests=(Digest(bytes([k]) * 32), *honest.digests[1:]))
        store.put(others.encode(), name)
    reader, indices = actor(tmp_path, store), set(store.candidates(name))
    store.silent, store.asked = frozenset(indices | set(honest.digests)), 0
    for tries in range(1, 4):
        with pytest.raises(StoreSilent):
            reader.mapped(ROOT, SPEC)
        assert store.asked == tries, "once each time"
    # One that is never given hides nothing, wherever it stands.
    for silent in sorted(indices - {first}):
        store.silent = frozenset([silent])
        anew, found = actor(tmp_path / silent.hex(), store), list[bytes]()
        for _ in range(2):
            with suppress(StoreSilent):
                found.append(bytes(anew.mapped(ROOT, SPEC)))
        assert found and found[0] == DATA


@pytest.mark.parametrize("damage", [b"\x00\x01", b""])
def test_a_copy_that_was_changed_between_two_lives_is_fetched_anew(
    tmp_path: Path, store: BlobStore, damage: bytes
) -> None:
    Objects(store).put_data(SPEC, DATA)
    actor(tmp_path, store).mapped(ROOT, SPEC)
    overwrite(copy_of(tmp_path), 5000, damage) if damage else os.truncate(copy_of(tmp_path), 7000)
    assert actor(tmp_path, store).mapped(ROOT, SPEC) == DATA


def test_links_and_pipes_in_a_copys_place_are_replaced(tmp_path: Path, store: BlobStore) -> None:
    Objects(store).put_data(SPEC, DATA)
    copy = copy_of(tmp_path)
    copy.parent.mkdir(parents=True)
    (tmp_path / "else").write_bytes(DATA)
    copy.symlink_to(tmp_path / "else")
    assert actor(tmp_path, store).mapped(ROOT, SPEC) == DATA
    assert not copy.is_symlink()
    copy.unlink()
    os.mkfifo(copy)
    assert actor(tmp_path, store).mapped(ROOT, SPEC) == DATA


def test_a_disk_that_keeps_nothing_costs_memory_and_no_data(tmp_path: Path, store: BlobStore) -> None:
    Objects(store).put_data(SPEC, DATA)
    (tmp_path / "cache").write_text("no folder")
    found = actor(tmp_path, store).mapped(ROOT, SPEC)
    assert (found, mapping_of(found)) == (DATA, None)


def test_data_that_neither_disk_nor_memory_holds_are_not_fetched(
    tmp_path: Path, store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All was fetched until the disk was full, thrown away, and fetched again into memory, which ended the actor."""
    Objects(store).put_data(SPEC, DATA)
    free = [SIZE - 4000]
    monkeypatch.setattr(local_cache.shutil, "disk_usage", lambda _: SimpleNamespace(free=free[0]))
    monkeypatch.setenv("ASSAY_MEMORY", str(SIZE))
    before = store.traffic.bytes_read
    with pytest.raises(NoRoomForData, match="lacks 4000"):
        actor(tmp_path, store).mapped(ROOT, SPEC)
    assert store.traffic.bytes_read == before
    # What is there of a download that broke off needs no more room; and memory may hold what the disk does not.
    half = copy_of(tmp_path).with_name(f"{ROOT.hex()}.new")
    half.parent.mkdir(parents=True)
    half.write_bytes(DATA[:4096])
    assert actor(tmp_path, store).mapped(ROOT, SPEC) == DATA
    monkeypatch.setenv("ASSAY_MEMORY", str(3 * SIZE))
    assert actor(tmp_path / "other", store).mapped(ROOT, SPEC) == DATA


# --- computing with it


def rows(parameters: list[Tensor], optimizer: list[Tensor], scalars: list[Tensor]) -> tuple[list[Tensor], ...]:
    """A step that counts, and adds one row of the data; data is passed through."""
    count, data = scalars
    row = torch.index_select(data, 0, count.reshape(1)).to(torch.int32).reshape(())
    return [parameters[0] + row], list(optimizer), [count + 1, data]


@pytest.fixture(scope="module")
def program():  # type: ignore[no-untyped-def]
    zero = torch.zeros((), dtype=torch.int32)
    return capture(rows, [[zero], [zero], [zero, torch.zeros(SIZE, dtype=torch.uint8)]]).program


@pytest.fixture
def state(tmp_path: Path, store: BlobStore) -> Iterator[tuple[tuple[bytes, ...], ...]]:
    Objects(store).put_data(SPEC, DATA)
    zero = bytes(4)
    yield (zero,), (zero,), (zero, actor(tmp_path, store).mapped(ROOT, SPEC))


def in_memory(state: tuple[tuple[bytes, ...], ...]) -> tuple[tuple[bytes, ...], ...]:
    return tuple(tuple(bytes(data) for data in part) for part in state)


def test_every_run_and_pass_begins_without_hashing_the_data_again(  # type: ignore[no-untyped-def]
    tmp_path: Path, program, state, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round's run, each pass of an audit and the second run behind it did, and data of 100 GB takes minutes."""
    hashed: list[int] = []
    monkeypatch.setattr(sha256_module, "tree_root", lambda data: hashed.append(len(data)) or tree_root(data))
    compute, data = TorchCompute(), ProgressFolder(tmp_path / "work")
    first = LongRun(compute, program, state, 2, data, room=1 << 20)
    first.advance()
    work = WorkToReplay(program, state, 1, 2)
    replay = CommitmentReplay(compute, work, (), tmp_path / "passes")
    replay.advance()
    assert replay.ends == first.ends and sum(hashed) == 0
    # Whoever writes to the file has it looked at again.
    overwrite(copy_of(tmp_path), 5000, bytes([DATA[5000] ^ 1]))
    assert tensor_root(SPEC, state[2][1]) == tensors.tensor_root(SPEC, bytes(state[2][1])) != ROOT
    assert sum(hashed) == SIZE


def test_states_of_a_run_over_large_data_are_kept_by_what_they_take_themselves(program, state) -> None:  # type: ignore[no-untyped-def]
    """Data above the room of all states left the last state alone, and a game about the run computed it from its start:
    a claim of an hour takes longer than a side has to move."""
    progress = MemoryProgress()
    run = LongRun(TorchCompute(), program, state, 1, progress, room=SIZE // 2)
    for _ in range(8):
        run.advance()
    assert list(progress.kept()) == list(range(1, 9))
    assert sum(map(len, progress.states.values())) < SIZE // 2


def test_a_mapped_slot_gives_the_same_bits_and_is_passed_on_without_a_copy(program, state) -> None:  # type: ignore[no-untyped-def]
    found = TorchCompute().run(program, state, 9)
    assert found[2][1] is state[2][1]
    assert in_memory(found) == TorchCompute().run(program, in_memory(state), 9)
    assert int.from_bytes(found[0][0], "little") == sum(DATA[:9])
    mapped, usual = (TorchTrace(program, s, 3) for s in (state, in_memory(state)))
    assert mapped.state_root(3) == usual.state_root(3)
    data = next(k for k, spec in enumerate(program.specs) if spec == SPEC)
    trees = [TensorTree(SPEC, trace.node_bytes(2, data)) for trace in (mapped, usual)]
    assert trees[0].root == trees[1].root and trees[0].leaf(3) == trees[1].leaf(3) == DATA[3072:4096]
    assert isinstance(trees[0].leaf(3), bytes)


def test_data_that_is_written_to_while_it_is_trained_on_ends_in_no_claim(tmp_path: Path, program, state) -> None:  # type: ignore[no-untyped-def]
    compute, trace = TorchCompute(), TorchTrace(program, state, 5)
    compute.run(program, state, 2)
    overwrite(copy_of(tmp_path), 9000, b"\x00\x01\x02")
    for compute_it in (lambda: compute.run(program, state, 2), lambda: trace.state_root(4)):
        with pytest.raises(InvariantError, match="was written to while it was in use") as found:
            compute_it()
        assert found.value.code == "DataChanged"


def test_a_file_that_was_touched_and_is_as_it_was_stays_in_use(tmp_path: Path, program, state) -> None:  # type: ignore[no-untyped-def]
    overwrite(copy_of(tmp_path), 9000, DATA[9000:9003])
    os.utime(copy_of(tmp_path), ns=(0, 0))
    assert TorchCompute().run(program, state, 1)[2][1] is state[2][1]


def test_what_lies_in_a_file_does_not_count_as_memory(program, state, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    needed = footprint.needed(program)[0]
    monkeypatch.setenv("ASSAY_MEMORY", str(needed - SIZE // 2))
    TorchCompute().run(program, state)
    with pytest.raises(Exception, match="may be used here"):
        TorchCompute().run(program, in_memory(state))


def test_a_mapped_tensor_cannot_be_written_to(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(DATA)
    script = (
        "import sys; from pathlib import Path; from assay.mapped_files import MappedFile\n"
        "from assay.engine.runtime.values.dtypes import from_bytes; from assay.protocol.types import DType\n"
        f"view = MappedFile.open(Path(sys.argv[1]), {SIZE}, lambda data: True).view\n"
        f"from_bytes(DType.U8, ({SIZE},), view)[0] = 1\n"
    )
    done = subprocess.run([sys.executable, "-c", script, path], capture_output=True, check=False)
    assert done.returncode < 0 and path.read_bytes() == DATA
    held = MappedFile.open(path, SIZE, lambda data: True).view
    t = tensor_from_bytes(SPEC, held)  # type: ignore[arg-type]
    del held
    assert spec_of(t) == SPEC and bytes(bytes_of(t)) == DATA
