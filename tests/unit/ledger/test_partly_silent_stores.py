"""Of two stores one does not answer: what the other one lacks is not lost, and the other is worked with."""

from __future__ import annotations

import atexit
import time
from pathlib import Path
from random import Random

import pytest
from eth_account import Account

from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Address, Digest, DType
from assay_ledger.agents.heartbeat import HeartbeatWriter, read_heartbeats
from assay_ledger.chain.client import address_of
from assay_ledger.index.computing import as_genesis
from assay_ledger.store import parts
from assay_ledger.store.blobs import BlobStore, ObjectMismatch, ObjectMissing, StorePace, StoreUnreachable, open_store
from assay_ledger.store.folder import Folder
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.mirrored import MirroredStore
from assay_ledger.store.objects import Objects
from assay_ledger.store.search import get_named
from tests.harness.soak.faults import FaultyBackend

SPECS = [TensorSpec(DType.F32, (2, 3))]
TENSORS = (bytes(range(24)),)
MODES = ("dark", "hangs")


class TwoStores:
    """Two stores as one, in which one of them can fail."""

    def __init__(self, folder: Path, silent: int) -> None:
        self.folders = [folder / "first", folder / "second"]
        self.backend = FaultyBackend(Folder(self.folders[silent]), Random(1))
        self.at = silent
        self.other = open_store(self.folders[1 - silent])
        self.store = self.anew()

    def anew(self) -> MirroredStore:
        """The same with breakers that know nothing."""
        failing = BlobStore(self.backend, "the failing one", StorePace(call_s=0.05))
        return MirroredStore([failing, self.other] if self.at == 0 else [self.other, failing])

    @property
    def of_silent(self) -> BlobStore:
        """What lies in the one that can fail."""
        return open_store(self.folders[self.at])


@pytest.fixture(params=[0, 1], ids=["first", "second"])
def pair(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TwoStores:
    monkeypatch.setattr(atexit, "register", lambda _: None)
    return TwoStores(tmp_path, request.param)


@pytest.mark.parametrize("mode", MODES)
def test_what_one_store_lacks_and_the_other_does_not_say_is_not_missing(pair: TwoStores, mode: str) -> None:
    """Bad luck: the store that has it is away for minutes, and everybody says that it is gone."""
    digest = pair.of_silent.put(b"right", "runs/x")
    pair.backend.mode = mode
    for _ in range(3):
        with pytest.raises(StoreUnreachable, match="the failing one"):
            pair.store.get(digest, 5)
        with pytest.raises(StoreUnreachable, match="the failing one"):
            get_named(pair.store, "runs/x", 5, lambda data: data == b"right")
        with pytest.raises(StoreUnreachable), as_genesis("the data"):
            get_named(pair.store, "runs/x", 5, lambda data: data == b"right")
    pair.backend.mode = None
    assert get_named(pair.anew(), "runs/x", 5, lambda data: data == b"right") == b"right"
    pair.of_silent.delete(f"names/runs/x/{digest.hex()}")
    with pytest.raises(ObjectMissing) as refused:
        get_named(pair.anew(), "runs/x", 5, lambda data: data == b"right")
    assert not isinstance(refused.value, StoreUnreachable), "both answer"


@pytest.mark.parametrize("mode", MODES)
def test_names_of_nothing_end_no_search_while_a_store_is_silent(pair: TwoStores, mode: str) -> None:
    """Attack: names that lead nowhere, each of which ends a search in the minutes in which a store is away."""
    for k in range(20):
        pair.other._write(f"names/runs/x/{k:064x}", b"", "write")
    pair.other.put(b"right", "runs/x")
    pair.backend.mode = mode
    assert get_named(pair.store, "runs/x", 5, lambda data: data == b"right") == b"right"


@pytest.mark.parametrize("mode", MODES)
def test_who_has_a_copy_gives_it_to_the_store_that_answers(pair: TwoStores, tmp_path: Path, mode: str) -> None:
    cache = LocalCache(tmp_path / "cache")
    root = Objects(open_store(tmp_path / "elsewhere"), cache).put_list(SPECS, TENSORS)
    pair.backend.mode = mode
    assert Objects(pair.store, cache).list(root, SPECS) == TENSORS
    assert Objects(pair.other).list(root, SPECS) == TENSORS


@pytest.mark.parametrize("mode", MODES)
def test_large_data_are_read_and_put_back_beside_a_silent_store(
    pair: TwoStores, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 4 * parts.LEAF_SIZE)
    spec = TensorSpec(DType.U8, (10 * parts.LEAF_SIZE,))
    monkeypatch.setattr("assay_ledger.store.objects.MAPPED_FROM", 1)
    data = bytes(i * 7 & 255 for i in range(spec.nbytes))
    # Published as one object, by somebody who knows no parts.
    root = Objects(pair.other).put_tensor(spec, data)
    pair.backend.mode = mode
    objects = Objects(pair.store, LocalCache(tmp_path / "cache"))
    assert objects.mapped(root, spec) == data
    for path in [path for path in pair.folders[1 - pair.at].rglob("*") if path.is_file()]:
        path.unlink()
    assert Objects(pair.store, LocalCache(tmp_path / "cache")).mapped(root, spec) == data
    assert Objects(pair.other, LocalCache(tmp_path / "anew")).mapped(root, spec) == data


@pytest.mark.parametrize("mode", MODES)
def test_an_actor_begins_to_speak_though_a_store_is_silent(pair: TwoStores, mode: str) -> None:
    """Bad luck: no heartbeat says that it has none before, so that none is written while the store is away."""
    account, run = Account.create(), Address(b"r" * 20)
    pair.backend.mode = mode
    HeartbeatWriter(pair.store, account, run, "solver", time.monotonic).beat()
    assert list(read_heartbeats(pair.other, run)) == [address_of(account)]


class BreakingOff(BlobStore):
    """It breaks off what is named here."""

    victims: frozenset[Digest] = frozenset()

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        if digest in self.victims:
            raise StoreUnreachable("it breaks off")
        return super().get(digest, max_bytes)


def test_what_breaks_off_beside_junk_is_not_said_to_be_none(tmp_path: Path) -> None:
    """Attack: one object of junk beside an update, whose store has a hiccup: it was given up after three tries."""
    store = BreakingOff(Folder(tmp_path), "breaking off")
    digest = store.put(b"right", "runs/x")
    for k in range(4):
        store.put(b"junk %d" % k, "runs/x")
    store.victims = frozenset([digest])
    with pytest.raises(StoreUnreachable, match="breaks off"):
        get_named(store, "runs/x", 10, lambda data: data == b"right")
    store.victims = frozenset()
    assert get_named(store, "runs/x", 10, lambda data: data == b"right") == b"right"
    with pytest.raises(ObjectMismatch):
        get_named(store, "runs/x", 10, lambda data: False)
