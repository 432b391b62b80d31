"""What the senders of transactions say their objects hash to, read when it is first needed.

A commitment or an opened root comes with 32 bytes behind the arguments of its call: the digest of a manifest. Contracts
ignore them, only the sender can put them there, and every reader of the event finds them by its transaction. Whoever
sends through another contract leaves them out, and names are searched. Source: docs/protocol/store.md;
docs/adr/0027-time-of-stores-and-nodes.md.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from eth_abi.abi import decode, encode
from eth_abi.exceptions import DecodingError, EncodingError
from web3.exceptions import TransactionNotFound

from assay.protocol.errors import UnavailableError
from assay.protocol.types import Digest
from assay_ledger.chain.client import Chain
from assay_ledger.contract import selector, types_of
from assay_ledger.store.manifest import DigestMap
from assay_ledger.store.objects import Objects

MAX_KEPT: Final = 128
MAX_POSTERS: Final = 24
"""Senders whose word about one root is asked for; each of them has a lock behind it."""

_CALLS: Final = (
    "commit(uint64,uint32,uint32,bytes32,(uint32,bytes32,bytes32[3],bytes32))",
    "open(uint64,uint32,bytes32,bytes32,bytes32)",
)

Told = Callable[[], DigestMap]
"""Gives what somebody says, fetched at the first call."""


class Publications:
    """Manifests by the transactions that name them."""

    def __init__(self, chain: Chain, objects: Objects) -> None:
        self._chain = chain
        self._objects = objects
        self._known: OrderedDict[bytes, DigestMap] = OrderedDict()

    def told(self, transactions: Sequence[bytes]) -> list[Told]:
        """What the senders of these transactions say, each asked only when it is called."""
        return [lambda t=transaction: self._of(t) for transaction in transactions[:MAX_POSTERS]]  # type: ignore[misc]

    def manifest_digest(self, transaction: bytes) -> Digest | None:
        """The digest of the manifest that a transaction names; None for none, or a transaction that is gone.

        Raises UnavailableError.
        """
        try:
            return self.named_by(transaction)
        except TransactionNotFound:
            return None

    def named_by(self, transaction: bytes) -> Digest | None:
        """The same. Raises TransactionNotFound, UnavailableError."""
        return named_digest(self._chain.calldata(transaction))

    def _of(self, transaction: bytes) -> DigestMap:
        if transaction not in self._known:
            try:
                digest = self.named_by(transaction)
                found = {} if digest is None else self._objects.manifest(digest).digests
            except (UnavailableError, TransactionNotFound):
                return {}  # asked again the next time: the node may be behind, and the store away for a while
            self._known[transaction] = found
            while len(self._known) > MAX_KEPT:
                self._known.popitem(last=False)
        return self._known[transaction]


def named_digest(calldata: bytes) -> Digest | None:
    """The 32 bytes behind the arguments of a commitment or an opening; None for any other calldata."""
    for call in _CALLS:
        types = types_of(call)
        if calldata[:4] != selector(call):
            continue
        try:
            length = 4 + len(encode(types, decode(types, calldata[4:])))
        except (DecodingError, EncodingError, OverflowError):
            return None
        return Digest(calldata[length:]) if len(calldata) == length + 32 else None
    return None
