"""What lies in a store, by kind and round: names say what objects are, the chain says which round their roots are of.

Nothing is read but listings, indices of parts and manifests, so names are believed: anybody may have given them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.errors import UnavailableError
from assay.protocol.rounds.ids import generation_of
from assay.protocol.types import Digest, Round
from assay_ledger.index.publications import Publications
from assay_ledger.rounds.view import RunView
from assay_ledger.store.blobs import BlobStore, marker_of
from assay_ledger.store.parts import MAX_INDEX_BYTES, PartIndex

MAX_CARD_BYTES: Final = 1 << 20


class StoredKind(StrEnum):
    """What an object of a store is to a run, the more lasting first."""

    PROGRAMS = "programs"
    DATA = "data"
    CARDS = "cards"
    BASES = "bases"
    UPDATES = "updates"
    MARKS = "marks"
    MANIFESTS = "manifests"
    HEARTBEATS = "heartbeats"
    OTHERS = "others"


@dataclass(slots=True)
class StoredAmount:
    """So many objects, of so many bytes in all."""

    objects: int = 0
    bytes: int = 0

    def add(self, size: int) -> None:
        """One more, of so many bytes."""
        self.objects += 1
        self.bytes += size


@dataclass(frozen=True, slots=True)
class Label:
    """What something under a name is; `round` is None for what every round needs, else that of an update or marks, or
    the one that a base is merged from."""

    kind: StoredKind
    round: int | None = None


@dataclass(slots=True)
class Usage:
    """What a store holds; `markers` are names given to objects, which have no bytes."""

    location: str
    kinds: dict[StoredKind, StoredAmount] = field(default_factory=lambda: defaultdict(StoredAmount))
    rounds: dict[int, dict[StoredKind, StoredAmount]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(StoredAmount))
    )
    markers: int = 0

    @property
    def total(self) -> StoredAmount:
        """Of all kinds."""
        found = self.kinds.values()
        return StoredAmount(sum(amount.objects for amount in found), sum(amount.bytes for amount in found))


class NameBook:
    """The names that are given in a store, and the digests that each was given to. Reads the listing once.

    Raises what the store raises.
    """

    def __init__(self, store: BlobStore) -> None:
        self.store = store
        self.digests: dict[str, list[Digest]] = defaultdict(list)
        for path, _ in store.entries("names"):
            if (marker := marker_of(path)) is not None:
                self.digests[marker[0]].append(marker[1])

    @property
    def runs(self) -> list[str]:
        """Charters whose cards lie here, 40 digits each."""
        return sorted({name.split("/")[1] for name in self.digests if name.startswith("runs/") and name.count("/") > 1})

    def parts(self) -> Iterator[Digest]:
        """Objects that some index names as the parts of a tensor; an index that is none names nothing."""
        for name, digests in self.digests.items():
            if name.startswith("parts/"):
                for digest in digests:
                    yield from PartIndex.decode(self._read(digest, MAX_INDEX_BYTES)).digests

    def cards(self) -> Iterator[bytes]:
        """The bytes of every card."""
        for name, digests in self.digests.items():
            if name.startswith("runs/"):
                yield from (self._read(digest, MAX_CARD_BYTES) for digest in digests)

    def _read(self, digest: Digest, max_bytes: int) -> bytes:
        try:
            return self.store.get(digest, max_bytes)
        except UnavailableError:
            return b""


def labels_of(view: RunView) -> dict[str, Label]:
    """What the names of a run's lists and marks stand for, as its chain shows."""
    found: dict[str, Label] = {}
    for (node, _), made in view.books.generations.nodes.items():
        for root in {made.parameters, made.momentum} - {ZERO}:
            found[f"lists/{root.hex()}"] = Label(StoredKind.BASES, generation_of(node) - 1)
    for (round_, _), record in view.state.works.items():
        found[f"lists/{record.work.update.hex()}"] = Label(StoredKind.UPDATES, round_)
        found[f"marks/{record.work.marks.hex()}"] = Label(StoredKind.MARKS, round_)
    rules = view.rules
    for root in (rules.parameters, rules.momentum, rules.zero_optimizer, rules.zero_update):
        found[f"lists/{root.hex()}"] = Label(StoredKind.BASES)
    return found


def survey(store: BlobStore, view: RunView, publications: Publications) -> Usage:
    """Counts what lies in a store. Raises UnavailableError."""
    names, usage = NameBook(store), Usage(store.location)
    labels = _labelled(names, labels_of(view))
    _label_manifests(labels, names, view, publications)
    for path, size in store.entries("objects"):
        label = labels.get(path.rpartition("/")[2], Label(StoredKind.OTHERS))
        usage.kinds[label.kind].add(size)
        if label.round is not None:
            usage.rounds[label.round][label.kind].add(size)
    for path, size in store.entries("slots"):
        usage.kinds[StoredKind.HEARTBEATS if path.startswith("slots/actors/") else StoredKind.OTHERS].add(size)
    usage.markers = sum(map(len, names.digests.values()))
    return usage


def _labelled(names: NameBook, known: Mapping[str, Label]) -> dict[str, Label]:
    """By the digits of digests; of several names the most lasting counts."""
    by_top = {
        "programs": StoredKind.PROGRAMS,
        "tensors": StoredKind.DATA,
        "parts": StoredKind.DATA,
        "runs": StoredKind.CARDS,
        "marks": StoredKind.MARKS,
    }
    order, found = list(StoredKind), dict[str, Label]()
    for name, digests in names.digests.items():
        label = known.get(name, Label(by_top.get(name.partition("/")[0], StoredKind.OTHERS)))
        for digest in digests:
            before = found.setdefault(digest.hex(), label)
            if order.index(label.kind) < order.index(before.kind):
                found[digest.hex()] = label
    for digest in names.parts():
        found.setdefault(digest.hex(), Label(StoredKind.DATA))
    return found


def _label_manifests(labels: dict[str, Label], names: NameBook, view: RunView, publications: Publications) -> None:
    """Of commitments and openings whose objects are there."""
    found = [
        (f"lists/{record.work.update.hex()}", record.tx_hash, record.round) for record in view.state.works.values()
    ]
    for record in view.state.openings.values():
        lists = view.books.generations.nodes[record.node, record.root]
        found.append((f"lists/{lists.parameters.hex()}", record.tx_hash, Round(record.generation - 1)))
    for name, transaction, round_ in found:
        digest = publications.manifest_digest(transaction) if name in names.digests else None
        if digest is not None:
            labels.setdefault(digest.hex(), Label(StoredKind.MANIFESTS, round_))
