"""A store in servers of S3 that others wrote: everything that a run asks of it, over the network."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay_ledger.store.blobs import (
    BlobStore,
    ObjectMismatch,
    ObjectMissing,
    ObjectTooLarge,
    StoreDenied,
    open_store,
)
from assay_ledger.store.objects import Objects
from assay_ledger.store.search import get_named
from tests.harness.s3_servers import has_swift, running_moto, running_swift

SERVERS = {"moto": running_moto, "swift": running_swift}


MOTO = pytest.param("moto", marks=pytest.mark.skipif(find_spec("moto") is None, reason="moto is not installed"))
SWIFT = pytest.param("swift", marks=pytest.mark.skipif(not has_swift(), reason="Swift is not installed"))


@pytest.fixture(scope="module", params=[MOTO, SWIFT])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with SERVERS[request.param](tmp_path_factory.mktemp(request.param)):
        yield request.param


@pytest.fixture
def store(server: str) -> BlobStore:
    return open_store("s3://assay/")


def test_what_was_put_comes_back_by_digest_by_name_and_in_parts(store: BlobStore) -> None:
    data = os.urandom(300_000)
    digest = store.put(data, "lists/aa")
    assert store.get(digest, len(data)) == data and store.has(digest) and not store.has(Digest(bytes(32)))
    assert store.get_range(digest, 1000, 2000, len(data)) == data[1000:3000]
    assert get_named(store, "lists/aa", len(data), lambda found: found == data) == data
    with pytest.raises(ObjectTooLarge):
        store.get(digest, len(data) - 1)
    with pytest.raises(ObjectTooLarge):
        store.get_range(digest, 0, 10, len(data) - 1)
    with pytest.raises(ObjectMissing):
        store.get(Digest(bytes(32)), 10)


def test_names_are_listed_in_order_and_gone_on_with_after_any(store: BlobStore) -> None:
    for n in range(5):
        store.put(bytes([n]), "lists/many")
    found = list(store.candidates("lists/many"))
    assert len(found) == 5 and found == sorted(found)
    assert list(store.candidates("lists/many", found[1])) == found[2:]
    assert {digest for _, digest in store.list("lists/many")} == set(found)


def test_slots_are_replaced_and_damaged_objects_are_no_objects(store: BlobStore) -> None:
    store.write_slot("actors/ada", b"first")
    store.write_slot("actors/ada", b"second")
    assert store.read_slot("actors/ada", 10) == b"second" and "actors/ada" in store.list_slots("actors")
    digest = store.put(b"whole")
    store._backend.write(f"objects/{digest.hex()[:2]}/{digest.hex()}", b"other", 5, 1 << 20)
    with pytest.raises(ObjectMismatch):
        store.get(digest, 10)


def test_lists_of_a_run_are_found_by_their_roots(store: BlobStore) -> None:
    specs = [TensorSpec(DType.F32, (50, 40)), TensorSpec(DType.I32, (4,))]
    tensors = tuple(os.urandom(spec.nbytes) for spec in specs)
    root = Objects(store).put_list(specs, tensors)
    store.put(b"junk", f"lists/{root.hex()}")
    assert Objects(store).list(root, specs) == tensors


@pytest.mark.parametrize("server", [SWIFT], indirect=True)  # moto's lets anybody in
@pytest.mark.usefixtures("server")
def test_whoever_has_other_credentials_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "guessed")
    with pytest.raises(StoreDenied):
        open_store("s3://assay/").put(b"bytes")
