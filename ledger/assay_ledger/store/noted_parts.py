"""Which versions of a tensor's parts an actor's copy was made from, kept beside that copy.

Over a restart its holder sees by tag and time which parts were written since, and reads these alone.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, BinaryIO, Final

from assay.protocol.digests import Buffer
from assay.protocol.errors import UnavailableError
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest
from assay_ledger.json_input import JsonRefused, parse_json
from assay_ledger.store.errors import StorePartlySilent
from assay_ledger.store.interfaces import ArtifactStore, ObjectVersion
from assay_ledger.store.local_cache import LocalCache
from assay_ledger.store.mirrored import known_stores
from assay_ledger.store.one_of_several import put_over
from assay_ledger.store.parts import fetch_parts, part_count, put_back_parts

MAX_NOTE_BYTES: Final = 1 << 22
"""The versions of a tebibyte's parts in one store. Parts without a note are looked for, and not read."""


def fetch_noted(
    store: ArtifactStore,
    cache: LocalCache,
    root: Digest,
    spec: TensorSpec,
    out: BinaryIO,
    right: set[int],
    cursors: dict[str, Digest],
) -> None:
    """See `fetch_parts`; notes what was fetched."""
    _keep(store, cache, root, fetch_parts(store, root, spec, out, right, cursors))


def put_back_data(store: ArtifactStore, cache: LocalCache, root: Digest, spec: TensorSpec, data: memoryview) -> None:
    """Publishes own data again where the store has lost them.

    Attack: data are deleted and their name is left, or given to other bytes: nobody put them back.
    """
    name, is_parted = f"tensors/{root.hex()}", part_count(spec) > 1
    with suppress(UnavailableError):
        # Large data are hashed as a whole only where something has the name of data that are one object.
        if not is_parted or _is_listed(store, name):
            digest = Digest(sha256(data).digest())
            is_there = store.has(digest) if is_parted else store.serves(digest, spec.nbytes)
            if is_there and store.is_named(digest, name):
                if not is_parted:
                    put_over(store, digest, data, name)
                return
        if is_parted:
            _put_back_noted(store, cache, root, spec, data)
        else:
            store.put(bytes(data), name)


def _put_back_noted(store: ArtifactStore, cache: LocalCache, root: Digest, spec: TensorSpec, data: Buffer) -> None:
    """See `put_back_parts`.

    Attack: a part is written over with other bytes: whoever has a copy found that something is there, and nobody who
    has none gets the data.
    """
    noted = _recall(store, cache, root)
    _keep(store, cache, root, put_back_parts(store, root, spec, data, noted))


def _is_listed(store: ArtifactStore, name: str) -> bool:
    """Whether something has a name, in a store that answers."""
    with suppress(StorePartlySilent):
        return next(iter(store.candidates(name)), None) is not None
    return False


def _recall(store: ArtifactStore, cache: LocalCache, root: Digest) -> set[Digest]:
    """The parts whose versions are known; the stores know them from now on, too."""
    found: set[Digest] = set()
    try:
        document: Any = parse_json(cache.get(_name(root), MAX_NOTE_BYTES) or b"{}", max_bytes=MAX_NOTE_BYTES)
        for one in known_stores(store):
            for text, (tag, time) in document.get(one.location, {}).items():
                digest = Digest(bytes.fromhex(text))
                # What this process saw itself is newer.
                if one.right.known(digest) is None:
                    one.right.note(digest, ObjectVersion(str(tag), None if time is None else str(time)))
                found.add(digest)
    except (JsonRefused, AttributeError, TypeError, ValueError):
        cache.drop(_name(root))
    return found


def _keep(store: ArtifactStore, cache: LocalCache, root: Digest, digests: Sequence[Digest]) -> None:
    document = {
        one.location: {
            digest.hex(): [version.tag, version.time]
            for digest in digests
            if (version := one.right.known(digest)) is not None
        }
        for one in known_stores(store)
    }
    cache.put(_name(root), json.dumps(document).encode())


def _name(root: Digest) -> str:
    return f"tensors/{root.hex()}.noted"
