"""What commands say of a run's beacon, and how they see that its rounds can be had."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from assay.protocol.errors import UserError
from assay.protocol.run.beacon import EVMNET, LOCAL, DrandNetwork
from assay.protocol.types import BeaconRound

if TYPE_CHECKING:
    from assay_ledger.chain.client import Chain

NAMED: Final[dict[str, DrandNetwork | None]] = {"chain": None, "drand": EVMNET, "local": LOCAL}
"""By the name that --beacon takes."""

WORDS: Final = {
    "evmnet": "drand's evmnet",
    "prevrandao": "the chain's own randomness, which its proposers bias",
    "assay-local-signer": "a signer whose secret everybody knows",
    "foreign": "a contract that is not this release's",
}
"""What each beacon of this release is."""


def network_named(name: str, profile: str) -> DrandNetwork | None:
    """The network that --beacon names for a chain of this profile; None for the chain's own randomness.

    Raises UserError (UnknownBeacon, UnfitBeacon).
    """
    if name not in NAMED:
        raise UserError(f"There is no beacon {name!r}.", code="UnknownBeacon", remedy="Choose chain, drand or local.")
    # A rollup's mix is a constant, or its sequencer picks it; the local signer's draws are everybody's beforehand.
    if profile != "local" and (name == "local" or (name == "chain" and profile != "l1")):
        why = "everybody knows its secret" if name == "local" else "it has no randomness of its own"
        raise UserError(
            f"The beacon {name!r} is unfit for a chain of profile {profile}: {why}.",
            code="UnfitBeacon",
            remedy="Give --beacon drand.",
        )
    return NAMED[name]


def newest_of(chain: Chain, network: DrandNetwork) -> BeaconRound:
    """The newest round that is due at the chain's time."""
    return BeaconRound(network.round_after(chain.head().timestamp) - 1)


def check_relays(chain: Chain, relays: Sequence[str]) -> str:
    """Which round of evmnet the relays gave, in words. Raises UnavailableError (BeaconUnavailable).

    The newest at the chain's time: relays have none of a chain whose time is ahead of the world's.
    """
    from assay_ledger.beacon.relays import Relays

    asked, wanted = Relays(EVMNET, relays), newest_of(chain, EVMNET)
    asked.proof(wanted)
    return f"round {wanted} from {asked.urls[0]}, its signature checked"
