"""The rules by which a store is pruned, each at its edge, over a run without actors; whole runs: test_pruned_stores."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import copytree

import pytest

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.chain.client import Head
from assay_ledger.retention.needed import oldest_needed
from assay_ledger.retention.pruning import Pruned, StoreShared, prune
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, object_path, open_store
from assay_ledger.store.manifest import Manifest
from tests.harness.rounds.samples import mark
from tests.harness.rounds.stored_world import StoredWorld

ROUNDS = 4


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredWorld]:
    made = StoredWorld(tmp_path_factory.mktemp("world") / "store")
    made.play(ROUNDS)
    yield made
    made.end()


@pytest.fixture
def store(world: StoredWorld, tmp_path: Path) -> BlobStore:
    """A copy of the run's store."""
    copytree(world.store.location, tmp_path / "store")
    return open_store(tmp_path / "store")


def updates(view: RunView, round_: int) -> set[str]:
    return {f"lists/{work.work.update.hex()}" for work in view.works(Round(round_))}


def marks(view: RunView, round_: int) -> set[str]:
    return {f"marks/{work.work.marks.hex()}" for work in view.works(Round(round_))}


def base(view: RunView, generation: int) -> set[str]:
    lists = view.lists(generation)
    assert lists is not None
    return {f"lists/{lists.parameters.hex()}", f"lists/{lists.momentum.hex()}"}


def names(store: BlobStore) -> set[str]:
    return {path[6:-65] for path, _ in store.entries("names")}


def objects(store: BlobStore) -> set[str]:
    return {path for path, _ in store.entries("objects")}


def pruned(world: StoredWorld, store: BlobStore, view: RunView, **options: bool) -> Pruned:
    return prune(store, view, world.archive(store), **{"delete": True, **options})


def gone(world: StoredWorld, store: BlobStore, view: RunView, **options: bool) -> set[str]:
    """Names that a prune takes."""
    before = names(store)
    pruned(world, store, view, **options)
    return before - names(store)


def test_what_is_over_goes_whole_and_the_newest_final_base_stays(world: StoredWorld, store: BlobStore) -> None:
    view, last = world.over(), ROUNDS - 1
    kept = pruned(world, store, view).kept
    assert (kept.first_round, kept.first_base) == (last, last)
    stays = {*updates(view, last), *marks(view, last), *base(view, last), *base(view, last + 1)}
    assert names(store) == stays
    assert len(objects(store)) == len(stays) + len({m for m in world.named.values() if store.has(m)})
    world.archive(store).fetch_base(view, ROUNDS)
    assert gone(world, store, view) == set(), "and a second time nothing is left to do"


@pytest.mark.parametrize("pin", ["unsettled", "game", "not final", "window"])
def test_a_round_stays_with_the_one_before_while_anything_of_it_is_open(
    world: StoredWorld, store: BlobStore, pin: str
) -> None:
    view, round_ = world.over(), Round(2)
    state, opening = view.state, view.openings(round_ + 1)[0]
    until = view.now + view.rules.challenge
    match pin:
        case "unsettled":
            work = view.works(round_)[0]
            view = replace(view, state=replace(state, unsettled={(round_, work.seat): work}))
        case "game":
            view = world.with_game(round_, Seat(1))
        case "not final":
            view = replace(view, state=replace(state, merged={round_ + 1: view.now}))
        case "window":
            late = replace(opening, at=view.now)
            state = replace(state, head=Head(1, until), unclosed={(late.node, late.party): late})
            view = replace(view, state=state)
    assert oldest_needed(view)[0] == round_
    taken = gone(world, store, view)
    assert taken == updates(view, 0) | marks(view, 0)
    if pin == "window":
        after = replace(view, state=replace(view.state, head=Head(1, until + 1)))
        assert oldest_needed(after)[0] > round_


def test_a_base_that_the_store_does_not_give_is_none(world: StoredWorld, store: BlobStore) -> None:
    """The newest final generation lies there damaged: what the one before needs stays."""
    view = world.over()
    for generation in (ROUNDS, ROUNDS - 1):
        for name in base(view, generation):
            for _, digest in store.list(name):
                store._write(object_path(digest), b"damaged", "write")
    taken = gone(world, store, view)
    left = ROUNDS - 2
    assert not taken & (base(view, left) | updates(view, left) | updates(view, left + 1))
    world.archive(store).fetch_base(view, left)
    for generation in range(1, ROUNDS - 1):
        for name in base(view, generation):
            for _, digest in store.list(name):
                store.delete(object_path(digest))
    before = names(store)
    assert gone(world, store, view) == set() and names(store) == before


def test_rounds_stay_whose_merge_nobody_published_for_those_that_start_from_it(
    world: StoredWorld, store: BlobStore
) -> None:
    view, last = world.over(), Round(ROUNDS - 1)
    assert view.round_of(last).parent == last
    for name in base(view, last):
        for _, digest in store.list(name):
            store.delete(object_path(digest))
    taken = gone(world, store, view)
    assert taken >= updates(view, 0) and not taken & (updates(view, last - 1) | base(view, last - 1))


def test_a_strangers_word_deletes_nothing_that_is_needed(world: StoredWorld, store: BlobStore) -> None:
    view = world.over()
    over, needed = min(updates(view, 0)), min(base(view, ROUNDS))
    ((_, wanted),) = store.list(needed)
    # Its bytes under the name of an update that is over, and in the manifest of who made that.
    store._write(f"names/{over}/{wanted.hex()}", b"", "write")
    # An object of an update that is over, which is the part of somebody's data, or of a card, too.
    ((_, shared),) = store.list(max(updates(view, 0)))
    card = store.put(b'{"digest": "' + shared.hex().encode() + b'"}', f"runs/{view.facts.address.hex()}/card")
    taken = gone(world, store, view)
    assert store.has(wanted) and store.has(shared) and store.has(card)
    assert max(updates(view, 0)) not in taken and updates(view, 1) <= taken


def test_an_object_that_is_not_what_its_name_promises_stays(world: StoredWorld, store: BlobStore) -> None:
    view = world.over()
    junk = store.put(b"somebody's", min(updates(view, 0)))
    long = store.put(bytes(4096), min(marks(view, 0)))
    said = pruned(world, store, view)
    assert store.has(junk) and store.has(long)
    assert set(said.left) == {object_path(junk), object_path(long)}
    assert not any(store.list(name) for name in updates(view, 0) - {min(updates(view, 0))})


def test_a_manifest_that_names_more_than_what_is_over_stays(world: StoredWorld, store: BlobStore) -> None:
    view = world.over()
    work = view.works(Round(0))[0]
    own = Manifest.decode(store.get(world.named[work.tx_hash], Manifest.MAX_BYTES))
    other = store.put(Manifest({**own.digests, Digest(mark("another's")): Digest(mark("object"))}).encode())
    named = dict(world.named)
    world.named[work.tx_hash] = other
    try:
        pruned(world, store, view)
    finally:
        world.named.update(named)
    assert store.has(other)


def test_of_several_runs_only_what_this_ones_transactions_name_goes(world: StoredWorld, store: BlobStore) -> None:
    view = world.over()
    store.put(b"{}", f"runs/{'ab' * 20}/card")
    with pytest.raises(StoreShared):
        pruned(world, store, view)
    update, work = min(updates(view, 0)), min(view.works(Round(0)), key=lambda made: made.work.update)
    named = world.named.pop(work.tx_hash)
    try:
        taken = gone(world, store, view, only_run=True)
    finally:
        world.named[work.tx_hash] = named
    assert update not in taken and updates(view, 0) - {update} <= taken


def test_nothing_is_deleted_unless_that_is_asked_for(world: StoredWorld, store: BlobStore) -> None:
    view, before = world.over(), (names(store), objects(store))
    said = pruned(world, store, view, delete=False)
    assert (names(store), objects(store)) == before and said.total.objects
    done = pruned(world, store, view)
    assert done.total == said.total and len(before[1]) - len(objects(store)) == said.total.objects


class BreakingStore(BlobStore):
    """Is gone after so many deletions."""

    left = 0

    def delete(self, path: str) -> None:
        if not self.left:
            raise UnavailableError("The store is gone.")
        self.left -= 1
        super().delete(path)


def test_a_prune_that_breaks_off_anywhere_leaves_no_object_without_a_name(world: StoredWorld, store: BlobStore) -> None:
    view = world.over()
    breaking = BreakingStore(store._backend, store.location)
    for left in (1, 2, 3, 7):
        breaking.left = left
        with pytest.raises(UnavailableError):
            pruned(world, breaking, view)
    pruned(world, store, view)
    last = ROUNDS - 1
    assert names(store) == {*updates(view, last), *marks(view, last), *base(view, last), *base(view, last + 1)}
    kept = {digest for name in names(store) for _, digest in store.list(name)} | set(world.named.values())
    assert {path.rpartition("/")[2] for path in objects(store)} <= {digest.hex() for digest in kept}
