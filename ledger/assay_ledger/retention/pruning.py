"""Deletes what a run's chain shows as over, and nothing else: updates, marks, bases and manifests of old rounds.

An object goes only once its bytes were read and are what a name of something over promises, and no other name, index of
parts or card points at it: names, manifests and marks are the word of strangers, who may point at what others need.
Source: docs/adr/0057-stores.md.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from assay.protocol.digests import ZERO
from assay.protocol.errors import ConfigError, UnavailableError
from assay.protocol.trees.state import TrainingList
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest
from assay_ledger.retention.needed import Retained, is_kept, kept_roots, retained
from assay_ledger.retention.survey import Label, NameBook, StoredAmount, StoredKind, labels_of
from assay_ledger.rounds.archive import Archive
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, ObjectMissing, object_path
from assay_ledger.store.listfile import file_size
from assay_ledger.store.manifest import Manifest
from assay_ledger.store.objects import is_list_file, is_marks_file


class StoreShared(ConfigError):
    """Cards of other runs lie in the same store: by names alone nobody knows whose an object is."""

    remedy = "Add --only-run, which deletes only what this run's own transactions say is theirs."


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was deleted, or would be; `left`: objects under names that are over which are not what these promise, or
    that something else points at, or that could not be read."""

    location: str
    kept: Retained
    is_deleted: bool
    kinds: dict[StoredKind, StoredAmount] = field(default_factory=lambda: defaultdict(StoredAmount))
    markers: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)

    @property
    def total(self) -> StoredAmount:
        """Of all kinds."""
        found = self.kinds.values()
        return StoredAmount(sum(amount.objects for amount in found), sum(amount.bytes for amount in found))


def prune(store: BlobStore, view: RunView, archive: Archive, *, delete: bool, only_run: bool = False) -> Pruned:
    """Deletes what is over in one store of a run, or says what that would be. `archive` reads this store and no cache.

    Raises StoreShared, UnavailableError.
    """
    return _Pruning(store, view, archive, delete, only_run).run()


class _Pruning:
    def __init__(self, store: BlobStore, view: RunView, archive: Archive, delete: bool, only_run: bool) -> None:
        self._store, self._view, self._archive, self._only_run = store, view, archive, only_run
        self._names = NameBook(store)
        others = [charter for charter in self._names.runs if charter != view.facts.address.hex()]
        if others and not only_run:
            raise StoreShared(f"{store.location} holds cards of {len(others)} other runs: {', '.join(others[:3])}.")
        kept = retained(view, self._is_served)
        roots = kept_roots(view, kept)
        over = {name: label for name, label in labels_of(view).items() if _root_of(name) not in roots}
        self._over = {name: label for name, label in over.items() if name in self._names.digests}
        self._roots = frozenset(map(_root_of, over))
        self._manifests: dict[Digest, Manifest] = {}
        self._pruned = Pruned(store.location, kept, delete)
        self._gone: set[Digest] = set()

    def run(self) -> Pruned:
        """See prune."""
        if not self._over:
            return self._pruned
        told = self._told()
        guarded = self._guarded()
        for name, label in self._over.items():
            for digest in self._names.digests[name]:
                if self._only_run and digest not in told.get(name, ()):
                    continue
                self._drop(name, label, digest, guarded)
        for digest, manifest in self._manifests.items():
            self._drop_manifest(digest, manifest, guarded)
        return self._pruned

    def _is_served(self, generation: int) -> bool:
        try:
            self._archive.fetch_base(self._view, generation)
        except UnavailableError:
            return False
        return True

    def _told(self) -> Mapping[str, set[Digest]]:
        """What those who committed and opened said their objects hash to, by name; keeps their manifests."""
        found: dict[str, set[Digest]] = defaultdict(set)
        for transaction, names in self._publications():
            if not any(name in self._over for name in names):
                continue
            digest = self._archive.publications.manifest_digest(transaction)
            if digest is None:
                continue
            try:
                manifest = Manifest.decode(self._store.get(digest, Manifest.MAX_BYTES))
            except UnavailableError:
                continue
            self._manifests[digest] = manifest
            for name in names:
                if (named := manifest.digests.get(_root_of(name))) is not None:
                    found[name].add(named)
        return found

    def _publications(self) -> Iterator[tuple[bytes, tuple[str, ...]]]:
        """Transactions that published something, with its names."""
        state = self._view.state
        for record in state.works.values():
            yield record.tx_hash, (f"lists/{record.work.update.hex()}", f"marks/{record.work.marks.hex()}")
        for opening in state.openings.values():
            if not is_kept(opening.node, self._pruned.kept):
                made = self._view.books.generations.nodes[opening.node, opening.root]
                lists = {made.parameters, made.momentum} - {ZERO}
                yield opening.tx_hash, tuple(f"lists/{root.hex()}" for root in lists)

    def _guarded(self) -> frozenset[str]:
        """Digits of the digests of which something that is not over says that they are its own.

        Attack: marks of a commitment, or a manifest, that are the very bytes of what others need.
        """
        found = {d.hex() for name, those in self._names.digests.items() if name not in self._over for d in those}
        found |= {digest.hex() for digest in self._names.parts()}
        cards = b" ".join(self._names.cards()).decode(errors="replace")
        found |= {d.hex() for name in self._over for d in self._names.digests[name] if d.hex() in cards}
        return frozenset(found)

    def _drop(self, name: str, label: Label, digest: Digest, guarded: frozenset[str]) -> None:
        """An object and the name that it was given; of what is not to go, neither."""
        path = object_path(digest)
        try:
            found = None if digest in self._gone else self._store.get_sized(digest, self._size(label))
        except ObjectMissing:
            found = None
        except UnavailableError:
            self._pruned.left.append(path)
            return
        if found is not None:
            data, size = found
            if digest.hex() in guarded or not self._fits(name, label, data):
                self._pruned.left.append(path)
                return
            self._delete(path)
            self._gone.add(digest)
            self._pruned.kinds[label.kind].add(size)
        # The name goes last: what a crash leaves is found by it the next time.
        self._delete(f"names/{name}/{digest.hex()}")
        self._pruned.markers.append(name)

    def _drop_manifest(self, digest: Digest, manifest: Manifest, guarded: frozenset[str]) -> None:
        if manifest.digests and digest.hex() not in guarded and manifest.digests.keys() <= self._roots:
            self._delete(object_path(digest))
            self._pruned.kinds[StoredKind.MANIFESTS].add(len(manifest.encode()))

    def _delete(self, path: str) -> None:
        if self._pruned.is_deleted:
            self._store.delete(path)

    def _size(self, label: Label) -> int:
        if label.kind is StoredKind.MARKS:
            return 32 * self._view.rules.max_units
        return max(file_size(specs) for specs in self._specs(label))

    def _fits(self, name: str, label: Label, data: bytes) -> bool:
        root = _root_of(name)
        if label.kind is StoredKind.MARKS:
            return is_marks_file(root, data)
        return any(is_list_file(specs, root, data) for specs in self._specs(label))

    def _specs(self, label: Label) -> list[tuple[TensorSpec, ...]]:
        archive = self._archive
        if label.kind is StoredKind.UPDATES:
            return [archive.update_specs]
        found = [archive.specs(TrainingList.PARAMETERS)]
        return found if self._view.rules.by_seats else [*found, archive.sum_specs]


def _root_of(name: str) -> Digest:
    """What the name of a list or of marks promises."""
    return Digest(bytes.fromhex(name.partition("/")[2]))
