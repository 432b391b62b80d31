"""What a publisher says its objects hash to: a table that its own transaction on chain names.

An object's name promises a root, which says nothing of the digest that the store keeps it under; anybody may give a
name to any number of other objects. So a committing solver appends 32 bytes to the calldata of its transaction, the
digest of a manifest, which contracts ignore and only the sender can write:

    manifest    entries of 64 bytes, the root of an object and its digest, sorted by root, no root twice

It is advice: what is fetched is checked against its root as always. Source: docs/protocol/store.md;
docs/adr/0027-time-of-stores-and-nodes.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, Final

from assay.protocol.types import Digest

DigestMap = Mapping[Digest, Digest]
"""From roots to the digests of the objects that have them."""

_ENTRY: Final = 64


@dataclass(frozen=True, slots=True)
class Manifest:
    """Digests by root."""

    MAX_BYTES: ClassVar[int] = 4096 * _ENTRY

    digests: DigestMap

    def encode(self) -> bytes:
        """The file of the manifest."""
        return b"".join(root + digest for root, digest in sorted(self.digests.items()))

    @classmethod
    def decode(cls, data: bytes) -> Manifest:
        """The manifest in hostile bytes; an empty one where they hold none: then its publisher said nothing."""
        if len(data) % _ENTRY or len(data) > cls.MAX_BYTES:
            return cls({})
        entries = [data[at : at + _ENTRY] for at in range(0, len(data), _ENTRY)]
        roots = [entry[:32] for entry in entries]
        if any(a >= b for a, b in pairwise(roots)):
            return cls({})
        return cls({Digest(entry[:32]): Digest(entry[32:]) for entry in entries})
