"""What one of several stores lost, or has other bytes of, while another one has it: it is put back there alone."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256

from assay.protocol.digests import Buffer
from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest
from assay_ledger.store.blobs import BlobStore
from assay_ledger.store.interfaces import ArtifactStore
from assay_ledger.store.mirrored import MirroredStore, known_stores


def is_lacking(store: object, digest: Digest, name: str, max_bytes: int) -> bool:
    """Whether one of several stores says that it has not this object under this name, which another may have."""
    return bool(_sides(store, digest, name, max_bytes)[1])


def put_where_lost(store: ArtifactStore, data: bytes, name: str, packed: bytes | None = None) -> Digest:
    """See `put`: into those of several stores that lack it, in the background, where another one has it.

    Attack: a store that takes everything and says that it has nothing: each solver would upload its updates to all of
    them anew, once an epoch.
    """
    digest = Digest(sha256(data).digest())
    having, lacking = _sides(store, digest, name, len(data))
    if not having or not isinstance(store, MirroredStore):
        return store.put(data, name, packed)
    store.put_in(lacking, having[0], digest, data if packed is None else packed, name)
    return digest


def put_over(store: ArtifactStore, digest: Digest, data: Buffer, name: str | None = None) -> None:
    """Puts an object where one of several stores has other bytes in its place, though another one has the right ones.

    Read are those whose right version is known, and is not there any more; of objects with a `name` also those of which
    none is known. A store that has nothing in its place is no reason to upload: it may be new.
    """
    stores = known_stores(store)
    for one in stores if len(stores) > 1 else ():
        with suppress(UnavailableError):  # one that is silent keeps nothing from the others
            is_read = one.right.known(digest) is not None or name is not None
            if is_read and one.has(digest) and not one.serves(digest, len(data)):
                one.put(bytes(data), name)


def _sides(store: object, digest: Digest, name: str, max_bytes: int) -> tuple[list[BlobStore], list[BlobStore]]:
    """Which of several stores say that they have an object under this name, and which that they have not.

    One that does not answer, or still has to take what was written, is none of them.
    """
    having, lacking = list[BlobStore](), list[BlobStore]()
    for one in store.at_rest if isinstance(store, MirroredStore) else ():
        with suppress(UnavailableError):
            has = one.is_named(digest, name) and one.serves(digest, max_bytes)
            (having if has else lacking).append(one)
    return having, lacking
