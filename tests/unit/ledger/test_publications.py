"""What senders say their objects hash to: asked of the chain until it is known, and once then."""

from __future__ import annotations

from typing import Any, cast

from eth_abi.abi import encode
from web3.exceptions import TransactionNotFound

from assay.protocol.types import Digest
from assay_ledger.chain.client import Chain
from assay_ledger.contract import selector, types_of
from assay_ledger.index.publications import Publications
from assay_ledger.store.manifest import DigestMap
from assay_ledger.store.objects import Objects

TRANSACTION, NAMED = b"t" * 32, Digest(b"m" * 32)
DIGESTS = {Digest(b"r" * 32): Digest(b"d" * 32)}
OPEN = "open(uint64,uint32,bytes32,bytes32,bytes32)"
ARGUMENTS: tuple[Any, ...] = (1, 2, bytes(32), bytes(32), bytes(32))
CALLDATA = selector(OPEN) + encode(types_of(OPEN), ARGUMENTS)


class BehindAtFirst:
    """A chain whose node does not know the transaction yet when it is first asked, and a store with its manifest."""

    digests: DigestMap = DIGESTS

    def __init__(self, calldata: bytes, misses: int = 1) -> None:
        self.asked, self._calldata, self._misses = 0, calldata, misses

    def calldata(self, transaction: bytes) -> bytes:
        self.asked += 1
        if self.asked <= self._misses:
            raise TransactionNotFound("not here yet")
        return self._calldata

    def manifest(self, digest: Digest) -> BehindAtFirst:
        assert digest == NAMED
        return self


def told_by(both: BehindAtFirst) -> list[DigestMap]:
    (told,) = Publications(cast(Chain, both), cast(Objects, both)).told([TRANSACTION])
    return [told() for _ in range(3)]


def test_a_node_that_is_behind_once_hides_no_manifest_for_good() -> None:
    """Attack: from then on objects are searched by their names, among as many as a flood has put there."""
    both = BehindAtFirst(CALLDATA + NAMED)
    assert told_by(both) == [{}, DIGESTS, DIGESTS]
    assert both.asked == 2


def test_a_transaction_that_names_no_manifest_is_asked_for_once() -> None:
    both = BehindAtFirst(CALLDATA, misses=0)
    assert told_by(both) == [{}, {}, {}]
    assert both.asked == 1
