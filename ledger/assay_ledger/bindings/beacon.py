"""Calls, queries and events of contracts/beacon/DrandSeed.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.types import BeaconRound, Digest
from assay_ledger.contract import Call, Contract, Decoded, Event, Query


@dataclass(frozen=True, slots=True)
class BeaconSubmitted(Event):
    """A round's randomness is known."""

    ABI: ClassVar = "BeaconSubmitted(uint64 indexed beaconRound, bytes32 randomness)"
    beacon_round: BeaconRound
    randomness: Digest

    @classmethod
    def _of(cls, v: Decoded) -> BeaconSubmitted:
        return cls(BeaconRound(v[0]), Digest(v[1]))


class DrandSeedContract(Contract):
    """`contracts/beacon/DrandSeed.sol` at an address."""

    EVENTS = (BeaconSubmitted,)

    CALLS = ("submit(uint64,bytes)",)

    def genesis(self) -> Query[int]:
        """Time of round 1, in seconds."""
        return self._query("genesis()", "(uint64)", lambda v: v[0])

    def is_known(self, beacon_round: BeaconRound) -> Query[bool]:
        """Was the round submitted?"""
        return self._query("isKnown(uint64)", "(bool)", lambda v: v[0], beacon_round)

    def period(self) -> Query[int]:
        """Seconds from one round to the next."""
        return self._query("period()", "(uint64)", lambda v: v[0])

    def public_key(self) -> Query[tuple[int, int, int, int]]:
        """The network's public key, in the order of EIP-197: x.c1, x.c0, y.c1, y.c0."""
        return self._query("publicKey()", "(uint256[4])", lambda v: (v[0][0], v[0][1], v[0][2], v[0][3]))

    def randomness_of(self, beacon_round: BeaconRound) -> Query[Digest]:
        """The randomness of a round that was submitted."""
        return self._query("randomnessOf(uint64)", "(bytes32)", lambda v: Digest(v[0]), beacon_round)

    def round_after(self, time: int) -> Query[BeaconRound]:
        """The first round whose time is later than `time`."""
        return self._query("roundAfter(uint64)", "(uint64)", lambda v: BeaconRound(v[0]), time)

    def submit(self, beacon_round: BeaconRound, proof: bytes) -> Call:
        """Proves a round that is due and keeps its randomness."""
        return self._call("submit(uint64,bytes)", beacon_round, proof)

    def time_of(self, beacon_round: BeaconRound) -> Query[int]:
        """The time from which a round can be known and submitted, in seconds."""
        return self._query("timeOf(uint64)", "(uint256)", lambda v: v[0], beacon_round)
