"""Where proofs of a beacon's rounds come from, for whoever submits them to the chain."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from assay.protocol.errors import RejectedError
from assay.protocol.run.beacon import EVMNET, LOCAL
from assay.protocol.types import BeaconRound
from assay_ledger.beacon.relays import Relays
from assay_ledger.bindings.beacon import DrandSeedContract
from assay_ledger.chain.client import Chain
from assay_ledger.keys.local_signer import local_signature


class BeaconSource(Protocol):
    """Gives the proof of a round that is due."""

    def proof(self, beacon_round: BeaconRound) -> bytes:
        """What IBeacon.submit takes. Raises UnavailableError while nobody has it."""
        ...


class ChainRandomness:
    """The chain itself is the beacon: the block that carries the call decides, and nothing is to be proven."""

    def proof(self, beacon_round: BeaconRound) -> bytes:
        """See BeaconSource."""
        return b""


class LocalSigner:
    """The signer whose secret everybody knows, for tests and demos."""

    def proof(self, beacon_round: BeaconRound) -> bytes:
        """See BeaconSource."""
        return local_signature(beacon_round)


def source_of(
    chain: Chain,
    beacon: DrandSeedContract,
    relays: Sequence[str] = (),
    clock: Callable[[], float] = time.monotonic,
) -> BeaconSource | None:
    """The source of a beacon, by its key; rounds of drand come from `relays`, URLs as they are asked.

    `clock` gives seconds that never run back. None where nobody is named who publishes them. Raises UnavailableError.
    """
    try:
        words = chain.ask(beacon.public_key())
    except RejectedError:
        return ChainRandomness()
    key = b"".join(word.to_bytes(32, "big") for word in words)
    if key == LOCAL.public_key:
        return LocalSigner()
    return Relays(EVMNET, relays, clock=clock) if relays and key == EVMNET.public_key else None
