"""What a run publishes, by root: programs, tensors, lists of tensors, and which lists a state is made of.

A name in the store promises a root; every read recomputes that root from the bytes, so a store or a stranger can at
worst be useless. Even that passes those by who hold copies of their own: they work from these, and put back what is
gone. Sizes follow from the specs that the program declares, and bound every read before memory is taken.

Where a publisher said on chain which digest its object has (`assay_ledger.store.manifest`), that digest is asked for
and no name is searched: however many objects strangers gave that name, they are never looked at.
Source: docs/protocol/store.md; docs/adr/0007-actors.md; 0017-copies.md; 0027-time-of-stores-and-nodes.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from hashlib import sha256
from io import BytesIO
from typing import Final, cast

from assay.engine.runtime.native.sha256 import tensor_root
from assay.protocol.digests import Buffer
from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import encode_program
from assay.protocol.rounds.ids import marks_digest
from assay.protocol.trees.state import list_root
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest
from assay_ledger.store.errors import (
    NoRoomForData,
    ObjectMismatch,
    ObjectMissing,
    StoreDenied,
    StorePartlySilent,
    StoreUnreachable,
)
from assay_ledger.store.interfaces import ArtifactStore
from assay_ledger.store.listfile import ListDigests, file_size, pack, runs, unpack, unpack_views
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.manifest import DigestMap, Manifest
from assay_ledger.store.noted_parts import fetch_noted, put_back_data
from assay_ledger.store.one_of_several import is_lacking, put_where_lost
from assay_ledger.store.packing import ElementRun, packed
from assay_ledger.store.parts import fetch_parts, part_count, put_parts
from assay_ledger.store.programs_in_use import MAX_PROGRAM_BYTES, decoded
from assay_ledger.store.search import get_named

MAPPED_FROM: Final = 1 << 22
"""Bytes of a tensor from which on it is mapped; a smaller one costs more as a file than as memory."""

_NOT_THERE: Final = (ObjectMissing, ObjectMismatch)

Tensors = tuple[bytes, ...]
"""The bytes of a list's tensors, row-major little-endian."""


class Objects:
    """Typed access to a run's store. Reads raise what `get_named` raises: all of it UnavailableError, never fraud.

    With a local cache, a copy of everything read or published is kept there, and read when the store fails.
    """

    def __init__(self, store: ArtifactStore, local_cache: LocalCache | None = None) -> None:
        self.store = store
        self.local_cache = local_cache
        self._own_first = self._own_only = self._where_lost = False
        self._told: Sequence[Callable[[], DigestMap]] = ()
        self._noted: dict[Digest, Digest] = {}
        self._cursors: dict[str, Digest] = {}
        self._list_digests = ListDigests()
        self._right_parts: dict[Digest, set[int]] = {}
        """Of data whose download is under way."""

    @contextmanager
    def own_copies_first(self) -> Iterator[None]:
        """In this block the store is asked only for what the local cache lacks: it cannot hold up the rest."""
        before, self._own_first = self._own_first, True
        try:
            yield
        finally:
            self._own_first = before

    @contextmanager
    def own_copies_only(self) -> Iterator[None]:
        """In this block the store is asked for nothing: what lies here as no copy is missing."""
        before, self._own_only = self._own_only, True
        try:
            with self.own_copies_first():
                yield
        finally:
            self._own_only = before

    @contextmanager
    def putting_back(self) -> Iterator[None]:
        """In this block what is published goes to those of several stores alone that lack it."""
        before, self._where_lost = self._where_lost, True
        try:
            yield
        finally:
            self._where_lost = before

    @contextmanager
    def told(self, sources: Sequence[Callable[[], DigestMap]]) -> Iterator[None]:
        """In this block objects are looked for first under the digests that these sources give for their roots."""
        before, self._told = self._told, sources
        try:
            yield
        finally:
            self._told = before

    @contextmanager
    def noting(self) -> Iterator[dict[Digest, Digest]]:
        """Gives the digests of what is published or kept in this block, by root."""
        before, noted = self._noted, dict[Digest, Digest]()
        self._noted = noted
        try:
            yield noted
        finally:
            self._noted = before

    def put_program(self, program: Program) -> Digest:
        """Publishes a program; returns its root."""
        self._publish(f"programs/{program.root.hex()}", program.root, encode_program(program))
        return program.root

    def program(self, root: Digest, most: int = MAX_PROGRAM_BYTES) -> Program:
        """The program with this root. most: bytes of its file that are read."""
        found: list[Program] = []

        def fits(data: bytes) -> bool:
            with suppress(AssayError):
                found[:] = [decoded(data, most)]
                return found[0].root == root
            return False

        self._fetch(f"programs/{root.hex()}", root, most, fits)
        return found[0]

    def put_tensor(self, spec: TensorSpec, data: bytes) -> Digest:
        """Publishes one tensor's bytes; returns its root."""
        root = tensor_root(spec, data)
        self._publish(f"tensors/{root.hex()}", root, data)
        return root

    def tensor(self, root: Digest, spec: TensorSpec) -> bytes:
        """The bytes of the tensor with this root."""

        def fits(data: bytes) -> bool:
            return len(data) == spec.nbytes and tensor_root(spec, data) == root

        return self._fetch(f"tensors/{root.hex()}", root, spec.nbytes, fits)

    def put_data(self, spec: TensorSpec, data: Buffer) -> Digest:
        """Publishes a tensor of any size, a large one in parts; returns its root."""
        return put_parts(self.store, spec, data) if part_count(spec) > 1 else self.put_tensor(spec, bytes(data))

    def mapped(self, root: Digest, spec: TensorSpec) -> bytes:
        """The bytes of the tensor with this root, fetched once; large ones as a view of the local cache's file.

        So they take no memory but what is read of them. Raises what `tensor` raises, NoRoomForData.
        """
        if self.local_cache is None or spec.nbytes < MAPPED_FROM:
            return self._whole(root, spec)
        name, cache = f"tensors/{root.hex()}", self.local_cache

        def fits(data: Buffer) -> bool:
            return tensor_root(spec, data) == root

        found = cache.mapped(name, spec.nbytes, fits)
        if found is not None:
            if not self._own_first:
                put_back_data(self.store, cache, root, spec, found)
            return cast(bytes, found)  # whoever reads a slot takes a view as well
        data = None
        if part_count(spec) > 1:
            from assay.engine.runtime import footprint  # torch is for those who compute

            # Bad luck: a disk that is nearly full. All was fetched up to its end, thrown away, and fetched into memory.
            if (lacks := cache.lacks(name, spec.nbytes)) and 2 * spec.nbytes > footprint.limit():
                raise NoRoomForData(f"The run's data have {spec.nbytes} bytes; their disk lacks {lacks} of them.")
            known = self._right_parts.setdefault(root, set()), self._cursors
            try:
                cache.fill(name, lambda out: fetch_noted(self.store, cache, root, spec, out, *known), goes_on=True)
                del self._right_parts[root]
                found = cache.mapped(name, spec.nbytes, fits)
            except _NOT_THERE as error:
                # What has come stays on disk; bad luck: one part was lost, and all was fetched anew, into memory.
                data = self._published_whole(root, spec, error)
        if found is None:
            data = self._whole(root, spec) if data is None else data
            found = cache.mapped(name, spec.nbytes, fits)
        # A disk that is full, or gone, costs memory instead.
        return cast(bytes, found) if data is None or found is not None else data

    def _whole(self, root: Digest, spec: TensorSpec) -> bytes:
        """A tensor in memory, from its parts where it was published so."""
        if part_count(spec) > 1:
            out = BytesIO()
            try:
                fetch_parts(self.store, root, spec, out, cursors=self._cursors)
            except _NOT_THERE as error:
                return self._published_whole(root, spec, error)
            return out.getvalue()
        return self.tensor(root, spec)

    def _published_whole(self, root: Digest, spec: TensorSpec, error: UnavailableError) -> bytes:
        """A large tensor that was published as one object; `error` says what its parts lack, and is raised if not."""
        try:
            return self.tensor(root, spec)
        except ObjectMissing:
            raise error from None

    def put_list(self, specs: Sequence[TensorSpec], tensors: Sequence[bytes], *, is_vital: bool = True) -> Digest:
        """Publishes a list of tensors as one safetensors file; returns the list root.

        What is not vital is kept in the local cache alone where the store fails.
        """
        root = root_of_list(specs, tensors)
        try:
            self._publish(f"lists/{root.hex()}", root, pack(specs, tensors), runs(specs))
        except UnavailableError:
            if is_vital or self.local_cache is None:
                raise
        return root

    def is_served(self, root: Digest, specs: Sequence[TensorSpec]) -> bool:
        """Whether the store, each of several, has the list that lies here as a copy. Raises UnavailableError."""
        with self.own_copies_first():
            digest, name = self.list_digest(root, specs), f"lists/{root.hex()}"
        return self._has_object(digest, root, specs) and not is_lacking(self.store, digest, name, file_size(specs))

    def has_list(self, root: Digest, specs: Sequence[TensorSpec], tensors: Sequence[bytes]) -> bool:
        """Whether the store has a list of these tensors, under its name. Raises UnavailableError."""
        return self._has_object(self._list_digests.of(root, lambda: pack(specs, tensors)), root, specs)

    def has_known_list(self, root: Digest, specs: Sequence[TensorSpec]) -> bool:
        """The same of a list that was looked for before: no copy is read, however large. Raises UnavailableError."""
        is_zero, digest = root == _root_of_zeros(tuple(specs)), self._list_digests.known(root)
        return is_zero or (digest is not None and self._has_object(digest, root, specs))

    def _has_object(self, digest: Digest, root: Digest, specs: Sequence[TensorSpec]) -> bool:
        # Attack: the name alone is deleted, so that nobody finds what is there.
        return self.store.is_named(digest, f"lists/{root.hex()}") and self.store.serves(digest, file_size(specs))

    def keep_list(self, specs: Sequence[TensorSpec], tensors: Sequence[bytes]) -> Digest:
        """Keeps a list in the local cache without publishing it; returns the list root."""
        root, data = root_of_list(specs, tensors), pack(specs, tensors)
        if self.local_cache is not None:
            self.local_cache.put(f"lists/{root.hex()}", data)
        self._noted[root] = Digest(sha256(data).digest())
        return root

    def list(self, root: Digest, specs: Sequence[TensorSpec]) -> Tensors:
        """The tensors of the list with this root; all-zero lists are never stored."""
        if root == _root_of_zeros(tuple(specs)):
            return tuple(spec.zeros() for spec in specs)

        def fits(data: bytes) -> bool:
            return is_list_file(specs, root, data)

        found = unpack(specs, self._fetch(f"lists/{root.hex()}", root, file_size(specs), fits, runs(specs)))
        assert found is not None
        return found

    def list_digest(self, root: Digest, specs: Sequence[TensorSpec]) -> Digest:
        """The digest of the object of a list: a list has one file."""
        return self._list_digests.of(root, lambda: pack(specs, self.list(root, specs)))

    def put_marks(self, marks: Sequence[Digest]) -> Digest:
        """Publishes the marks of progress of a commitment; returns their digest."""
        digest = marks_digest(marks)
        self._publish(f"marks/{digest.hex()}", digest, b"".join(marks))
        return digest

    def marks(self, digest: Digest, units: int) -> tuple[Digest, ...]:
        """The marks with this digest, one a unit."""

        def fits(data: bytes) -> bool:
            return len(data) == 32 * units and marks_digest(_digests(data)) == digest

        return _digests(self._fetch(f"marks/{digest.hex()}", digest, 32 * units, fits))

    def put_manifest(self, manifest: Manifest) -> Digest:
        """Publishes which digests the objects of some roots have; returns the manifest's own digest.

        A store that fails costs no more than that the names of those objects have to be searched.
        """
        data = manifest.encode()
        digest = Digest(sha256(data).digest())
        if self.local_cache is not None:
            self.local_cache.put(f"manifests/{digest.hex()}", data)
        with suppress(UnavailableError):
            self.store.put(data)
        return digest

    def manifest(self, digest: Digest) -> Manifest:
        """The manifest with this digest; an empty one for bytes that are none. Raises UnavailableError."""
        name, limit = f"manifests/{digest.hex()}", Manifest.MAX_BYTES
        copy = None if self.local_cache is None else self.local_cache.get(name, limit)
        if copy is not None and sha256(copy).digest() == digest:
            return Manifest.decode(copy)
        data = self.store.get(digest, limit)
        if self.local_cache is not None:
            self.local_cache.put(name, data)
        return Manifest.decode(data)

    def _publish(self, name: str, root: Digest, data: bytes, layout: Sequence[ElementRun] = ()) -> None:
        if self.local_cache is not None:
            self.local_cache.put(name, data)
        self._noted[root] = self._put(name, data, layout)

    def _put(self, name: str, data: bytes, layout: Sequence[ElementRun]) -> Digest:
        """Into the store, packed where a layout is known and that is smaller; own copies are never packed."""
        stored = packed(data, layout) if layout else None
        if self._where_lost:
            return put_where_lost(self.store, data, name, stored)
        return self.store.put(data, name, stored)

    def _fetch(
        self,
        name: str,
        root: Digest,
        max_bytes: int,
        fits: Callable[[bytes], bool],
        layout: Sequence[ElementRun] = (),
    ) -> bytes:
        """From the store; where that fails from the local cache, and then what is gone is put back for others."""
        if self._own_first and (copy := self._copy(name, max_bytes, fits)) is not None:
            return copy
        if self._own_only:
            raise ObjectMissing(f"{name} lies here as no copy.")
        try:
            data = self._ask(name, root, max_bytes, fits)
        except UnavailableError as error:
            copy = None if self._own_first else self._copy(name, max_bytes, fits)
            if copy is None:
                raise
            if isinstance(error, StorePartlySilent) or not isinstance(error, StoreUnreachable | StoreDenied):
                with suppress(UnavailableError):
                    self._put(name, copy, layout)
            return copy
        if self.local_cache is not None:
            self.local_cache.put(name, data)
        return data

    def _ask(self, name: str, root: Digest, max_bytes: int, fits: Callable[[bytes], bool]) -> bytes:
        """From the store: under the digest that its publisher named, else whatever has the name and fits."""
        for digest in filter(None, (source().get(root) for source in self._told)):
            with suppress(UnavailableError):
                data = self.store.get(digest, max_bytes)
                if fits(data):
                    return data
        return get_named(self.store, name, max_bytes, fits, self._cursors)

    def _copy(self, name: str, max_bytes: int, fits: Callable[[bytes], bool]) -> bytes | None:
        """The local cache's copy, if it is what its name promises; a damaged one is removed for a new one."""
        copy = None if self.local_cache is None else self.local_cache.get(name, max_bytes)
        if copy is None or fits(copy):
            return copy
        self.local_cache.drop(name)  # type: ignore[union-attr]
        return None


def root_of_list(specs: Sequence[TensorSpec], tensors: Sequence[Buffer]) -> Digest:
    """The list root of these tensors."""
    return list_root([tensor_root(spec, data) for spec, data in zip(specs, tensors, strict=True)])


@lru_cache(maxsize=16)
def _root_of_zeros(specs: tuple[TensorSpec, ...]) -> Digest:
    """The root of a list whose elements are all 0; every read of a list of these types and dims asks for it."""
    return list_root([tensor_root(spec, spec.zeros()) for spec in specs])


def is_list_file(specs: Sequence[TensorSpec], root: Digest, data: bytes) -> bool:
    """Whether these bytes are the file of the list with this root."""
    tensors = unpack_views(specs, data)
    return tensors is not None and root_of_list(specs, tensors) == root


def is_marks_file(digest: Digest, data: bytes) -> bool:
    """Whether these bytes are the marks with this digest."""
    return len(data) % 32 == 0 and marks_digest(_digests(data)) == digest


def _digests(data: bytes) -> tuple[Digest, ...]:
    return tuple(Digest(data[i : i + 32]) for i in range(0, len(data), 32))
