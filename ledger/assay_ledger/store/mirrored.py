"""Several stores as one: the first that answers with the right bytes is read, all are written to.

    reading     one store after the other, each no longer than it answers; a silent one rests (`Breaker`), so that a
                dark first store costs a few seconds once and no window
    writing     to the first that takes it before the call returns, to the others in the background, through a queue
                of bounded size each (`mirror.Mirror`); what is larger than a queue is read again from the store that
                took it

Nothing is trusted more than with one store: bytes are hashed, whoever they come from.
Source: docs/adr/0057-stores.md.
"""

from __future__ import annotations

import atexit
import builtins
import heapq
import logging
import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import quote

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest
from assay_ledger.store.blobs import BlobStore, ObjectMissing, StoreAddressInvalid, open_store
from assay_ledger.store.errors import StoreDenied, StoreFails, StorePartlySilent, StoreUnreachable
from assay_ledger.store.interfaces import MAX_LISTED, StorePace
from assay_ledger.store.mirror import QUEUE_BYTES, Mirror
from assay_ledger.store.telling import CallListener

AT_EXIT_S: Final = 60.0
"""How long a process that ends waits for what its mirrors have not taken yet."""

CALL_S: Final = 2.0
"""For a call to a store behind which there is another one."""

_BARE: Final = re.compile(r"[^./~:][^/:]*")
"""A word that is neither an address nor plainly a path."""

_LOG = logging.getLogger("assay.store")

T = TypeVar("T")


def open_stores(locations: str) -> BlobStore:
    """The store at a location (`open_store`), or several with commas between as one. Raises StoreAddressInvalid."""
    *first, last = stores_in(locations)
    if not first:
        return open_store(last)
    _check_commas(locations, [*first, last])
    return MirroredStore([*(open_store(part, StorePace(call_s=CALL_S)) for part in first), open_store(last)])


def stores_in(locations: str) -> list[str]:
    """The location of each store, the first one first."""
    return [part for part in locations.split(",") if part] or [locations]


def each_store(store: BlobStore) -> tuple[BlobStore, ...]:
    """The stores behind one, each by itself."""
    return store.stores if isinstance(store, MirroredStore) else (store,)


def known_stores(store: object) -> tuple[BlobStore, ...]:
    """The same of what may be no BlobStore: then none."""
    return each_store(store) if isinstance(store, BlobStore) else ()


def _check_commas(locations: str, parts: Sequence[str]) -> None:
    """A comma in a path would make a store of what stands before it, and of what stands behind. Raises
    StoreAddressInvalid where it looks like that."""
    is_rest = parts[0].startswith(("/", "~")) and any(_BARE.fullmatch(part) for part in parts[1:])
    if not is_rest and not Path(locations).is_dir():
        return
    path = Path(locations).expanduser().absolute().as_posix()
    raise StoreAddressInvalid(
        f"{locations} has a comma, and commas stand between stores: it would be {len(parts)}, {' and '.join(parts)}.",
        remedy=f"For one folder write file://{quote(path)}; for several write a folder in this one as ./name.",
    )


class MirroredStore(BlobStore):
    """See BlobStore. `stores`: the one that is preferred first; `queue_bytes`: what may wait for each of the others."""

    def __init__(self, stores: Sequence[BlobStore], queue_bytes: int = QUEUE_BYTES) -> None:
        self.stores = tuple(stores)
        self.location = ",".join(store.location for store in stores)
        self.traffic = stores[0].traffic
        self._mirrors = {id(store): Mirror(store, queue_bytes) for store in stores}
        atexit.register(self._at_exit)

    def tell_calls(self, listener: CallListener) -> None:
        """See BlobStore."""
        for store in self.stores:
            store.tell_calls(listener)

    def put_as(self, digest: Digest, stored: bytes, name: str | None = None) -> None:
        """See BlobStore. Raises what the first store raises where none takes it."""
        errors: builtins.list[UnavailableError] = []
        for k, store in enumerate(self.stores):
            try:
                store.put_as(digest, stored, name)
            except UnavailableError as error:
                errors.append(error)
                continue
            # One that failed just now is tried again in the background, with those that were not asked.
            for other in (*self.stores[:k], *self.stores[k + 1 :]):
                self._mirrors[id(other)].put(store, digest, stored, name)
            return
        raise errors[0]

    def put_in(
        self, lost: Sequence[BlobStore], source: BlobStore, digest: Digest, stored: bytes, name: str | None
    ) -> None:
        """Queues an object that one store has for those of the others that lost it."""
        for store in lost:
            self._mirrors[id(store)].put(source, digest, stored, name)

    def get(self, digest: Digest, max_bytes: int) -> bytes:
        """See ArtifactStore."""
        return self._first(lambda store: store.get(digest, max_bytes))

    def get_sized(self, digest: Digest, max_bytes: int) -> tuple[bytes, int]:
        """See BlobStore."""
        return self._first(lambda store: store.get_sized(digest, max_bytes))

    def get_range(self, digest: Digest, start: int, length: int, max_bytes: int) -> bytes:
        """See BlobStore."""
        return self._first(lambda store: store.get_range(digest, start, length, max_bytes))

    def has(self, digest: Digest) -> bool:
        """See ArtifactStore: whether any lists it."""
        return any(self._answers(lambda store: store.has(digest)))

    def is_named(self, digest: Digest, name: str) -> bool:
        """See ArtifactStore: whether any does."""
        return any(self._answers(lambda store: store.is_named(digest, name)))

    def serves(self, digest: Digest, max_bytes: int) -> bool:
        """See ArtifactStore: whether any does; those behind the first that does are not asked."""
        return any(self._answers(lambda store: store.serves(digest, max_bytes)))

    def list(self, prefix: str, limit: int = MAX_LISTED) -> tuple[tuple[str, Digest], ...]:
        """See ArtifactStore: what any of them lists."""
        found = self._answers(lambda store: store.list(prefix, limit))
        return tuple(sorted({marker for markers in found for marker in markers})[:limit])

    def candidates(self, name: str, after: Digest | None = None) -> Iterator[Digest]:
        """See ArtifactStore: those of all stores, in one order; after them StorePartlySilent where one is silent."""
        errors: builtins.list[UnavailableError] = []
        found = heapq.merge(*(_until_it_fails(store, name, after, errors) for store in self.stores))
        yield from (digest for digest, _ in groupby(found))
        if len(errors) == len(self.stores):
            raise errors[0]
        if silent := _silent(errors):
            raise StorePartlySilent(f"{silent[0].message} No other store has more objects named {name}.")

    def write_slot(self, name: str, data: bytes) -> None:
        """See SlotStore."""
        errors: builtins.list[UnavailableError] = []
        for k, store in enumerate(self.stores):
            try:
                store.write_slot(name, data)
            except UnavailableError as error:
                errors.append(error)
            else:
                for other in self.stores[k + 1 :]:
                    self._mirrors[id(other)].slot(name, data)
                return
        raise errors[0]

    def read_slot(self, name: str, max_bytes: int) -> bytes:
        """See SlotStore: that of the first that has it, if any answers."""
        try:
            return self._first(lambda store: store.read_slot(name, max_bytes))
        except StorePartlySilent as error:
            # Bad luck: who begins to speak while a store is away goes on from its last message, and has none.
            raise ObjectMissing(error.message) from None

    def list_slots(self, prefix: str, limit: int = MAX_LISTED) -> tuple[str, ...]:
        """See SlotStore: what any of them lists."""
        found = self._answers(lambda store: store.list_slots(prefix, limit))
        return tuple(sorted({name for names in found for name in names})[:limit])

    def flush(self, seconds: float) -> bool:
        """Waits until every store has taken what was put; False where that takes longer."""
        until = time.monotonic() + seconds
        return all(mirror.flush(max(until - time.monotonic(), 0.0)) for mirror in self._mirrors.values())

    @property
    def at_rest(self) -> tuple[BlobStore, ...]:
        """The stores that have taken all that was put."""
        return tuple(store for store in self.stores if not self._mirrors[id(store)].waiting)

    @property
    def dropped(self) -> int:
        """Objects that some store did not take in time, and lacks."""
        return sum(mirror.dropped for mirror in self._mirrors.values())

    def _first(self, ask: Callable[[BlobStore], T]) -> T:
        errors: builtins.list[UnavailableError] = []
        for store in self.stores:
            try:
                return ask(store)
            except UnavailableError as error:
                errors.append(error)
        silent = _silent(errors)
        if silent and any(not isinstance(error, StoreUnreachable | StoreDenied) for error in errors):
            raise StorePartlySilent(f"{silent[0].message} No other store gives it.")
        raise errors[0]

    def _answers(self, ask: Callable[[BlobStore], T]) -> Iterator[T]:
        """What those say that answer, asked one after the other. Raises what the first raises where none answers."""
        errors: builtins.list[UnavailableError] = []
        for store in self.stores:
            try:
                answer = ask(store)
            except UnavailableError as error:
                errors.append(error)
            else:
                yield answer
        if len(errors) == len(self.stores):
            raise errors[0]

    def _at_exit(self) -> None:
        if not self.flush(AT_EXIT_S):
            for mirror in self._mirrors.values():
                if mirror.waiting:
                    _LOG.warning("%s lacks %d objects that were put.", mirror.store.location, mirror.waiting)


def _silent(errors: Sequence[UnavailableError]) -> list[StoreUnreachable]:
    """What those said that did not answer; what a store says of one object is an answer."""
    return [error for error in errors if isinstance(error, StoreUnreachable) and not isinstance(error, StoreFails)]


def _until_it_fails(
    store: BlobStore, name: str, after: Digest | None, errors: builtins.list[UnavailableError]
) -> Iterator[Digest]:
    try:
        yield from store.candidates(name, after)
    except UnavailableError as error:
        errors.append(error)
