"""A tensor that is too large for one object, as parts of 2^16 leaves and an index that its root vouches for.

    parts/<tensor root>    the index: per part its SHA-256, by which the store has it, and the root of its leaves

A part has 2^26 bytes, the last one what is left. The tree over a tensor's leaves is binary, and a part is a whole
subtree of it: so the roots of the parts, taken together, are the tensor's root. A part is checked by itself, when it
comes, and no more than one is in memory.
Source: docs/protocol/store.md (STO-18, STO-19); docs/adr/0048-data.md.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from io import SEEK_END
from typing import BinaryIO, Final

from assay.engine.runtime.native.sha256 import tree_root
from assay.protocol.digests import Buffer
from assay.protocol.errors import UnavailableError
from assay.protocol.trees import merkle
from assay.protocol.trees.tensors import LEAF_SIZE, TensorSpec
from assay.protocol.types import Digest
from assay_ledger.deadline import waiting_at_most
from assay_ledger.store.errors import ObjectMismatch, ObjectMissing, StorePartlySilent, StoreSilent
from assay_ledger.store.interfaces import ArtifactStore
from assay_ledger.store.one_of_several import put_over
from assay_ledger.store.search import SEARCH_BYTES_PER_S, SEARCH_S, get_named, in_turn

PART_BYTES: Final = LEAF_SIZE << 16
"""A tensor above this is stored in parts. Another number is another name for the same tensor."""

_ENTRY: Final = 64

MAX_INDEX_BYTES: Final = 1 << 20
"""Of the index of a tensor of a tebibyte: what whoever knows no sizes reads of one."""


@dataclass(frozen=True, slots=True)
class PartIndex:
    """digests: SHA-256 of each part; roots: of its leaves."""

    digests: tuple[Digest, ...]
    roots: tuple[Digest, ...]

    def encode(self) -> bytes:
        """64 bytes a part."""
        return b"".join(a + b for a, b in zip(self.digests, self.roots, strict=True))

    @classmethod
    def decode(cls, data: bytes) -> PartIndex:
        """The same from bytes of the right length."""
        entries = [data[at : at + _ENTRY] for at in range(0, len(data), _ENTRY)]
        return cls(tuple(Digest(e[:32]) for e in entries), tuple(Digest(e[32:]) for e in entries))


def part_count(spec: TensorSpec) -> int:
    """How many parts a tensor has; one that is not stored in parts has one at most."""
    return -(-spec.nbytes // PART_BYTES)


def put_parts(store: ArtifactStore, spec: TensorSpec, data: Buffer) -> Digest:
    """Puts the parts of a tensor and then its index; its root. Raises UnavailableError."""
    view, digests, roots = memoryview(data), [], []
    for at in range(0, spec.nbytes, PART_BYTES):
        part = bytes(view[at : at + PART_BYTES])
        roots.append(tree_root(part))
        digests.append(store.put(part))
    root = spec.digest(merkle.root(roots))
    store.put(PartIndex(tuple(digests), tuple(roots)).encode(), f"parts/{root.hex()}")
    return root


def put_back_parts(
    store: ArtifactStore, root: Digest, spec: TensorSpec, data: Buffer, noted: Collection[Digest] = ()
) -> tuple[Digest, ...]:
    """Puts what a store does not list of the tensor with this root, parts or index; the digests of all parts.

    noted: parts whose right versions the store, or one of several, knows: they are read where others lie there.
    Raises UnavailableError.
    """
    view = memoryview(data)
    parts = [view[at : at + PART_BYTES] for at in range(0, spec.nbytes, PART_BYTES)]
    digests = tuple(Digest(sha256(part).digest()) for part in parts)
    for digest, part in zip(digests, parts, strict=True):
        if not (store.serves(digest, len(part)) if digest in noted else store.has(digest)):
            store.put(bytes(part))
        elif digest in noted:
            put_over(store, digest, part)

    def is_honest(found: bytes) -> bool:
        with suppress(ObjectMismatch):
            return _index(root, spec, found).digests == digests
        return False

    name = f"parts/{root.hex()}"
    try:
        get_named(store, name, _ENTRY * len(parts), is_honest)
    except (ObjectMissing, ObjectMismatch):
        store.put(PartIndex(digests, tuple(map(tree_root, parts))).encode(), name)
    return digests


def fetch_parts(
    store: ArtifactStore,
    root: Digest,
    spec: TensorSpec,
    out: BinaryIO,
    right: set[int] | None = None,
    cursors: dict[str, Digest] | None = None,
) -> tuple[Digest, ...]:
    """Writes the tensor with this root to a file that can be read too; parts that stand there already are not fetched.

    Each part is written once it is found right, so that what broke off goes on with the same file. right: parts that a
    former call found right in it, which are not hashed again; whoever uses the file hashes all of it once. cursors: see
    `get_named`. Raises UnavailableError (ObjectMissing where nothing has the name, and what the store raises), OSError
    of the file. Gives the parts' digests.
    """
    name, limit = f"parts/{root.hex()}", _ENTRY * part_count(spec)
    last: UnavailableError = ObjectMissing(f"{name} is missing.")
    right, cursors = set() if right is None else right, {} if cursors is None else cursors
    with waiting_at_most(SEARCH_S + spec.nbytes / SEARCH_BYTES_PER_S):
        for digest in in_turn(store, name, cursors.pop(name, None)):
            try:
                index = _index(root, spec, store.get(digest, limit))
                _fill(store, index, root, spec, out, right)
                return index.digests
            except StoreSilent as error:
                # Attack: any number of indices, each of which costs a call's seconds while the store is silent.
                if not isinstance(error, StorePartlySilent):
                    cursors[name] = digest
                    raise
                last = error
            except UnavailableError as error:
                # Attack: an index whose roots are right and whose digests lead nowhere; another one may be honest.
                last = error
    raise last


def _index(root: Digest, spec: TensorSpec, data: bytes) -> PartIndex:
    """The index in hostile bytes. Raises ObjectMismatch."""
    if len(data) != _ENTRY * part_count(spec):
        raise ObjectMismatch(f"The index of tensor {root.hex()} has {len(data)} bytes.")
    index = PartIndex.decode(data)
    if spec.digest(merkle.root(index.roots)) != root:
        raise ObjectMismatch(f"The index of tensor {root.hex()} is another's.")
    return index


def _fill(
    store: ArtifactStore, index: PartIndex, root: Digest, spec: TensorSpec, out: BinaryIO, right: set[int]
) -> None:
    for number, (digest, wanted) in enumerate(zip(index.digests, index.roots, strict=True)):
        at = number * PART_BYTES
        size = min(spec.nbytes - at, PART_BYTES)
        # Attack: any number of indices with the right roots, each of which costs hashing all that has come.
        if number in right and out.seek(0, SEEK_END) >= at + size:
            continue
        out.seek(at)
        there = out.read(size)
        if len(there) == size and tree_root(there) == wanted:
            right.add(number)
            continue
        part = store.get(digest, size)
        if len(part) != size or sha256(part).digest() != digest or tree_root(part) != wanted:
            raise ObjectMismatch(f"A part of tensor {root.hex()} is not what its index names.")
        out.seek(at)
        out.write(part)
        right.add(number)
    out.truncate(spec.nbytes)
