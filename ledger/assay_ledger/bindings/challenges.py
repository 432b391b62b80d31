"""Calls, queries and events of contracts/game/Challenges.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class ChallengeCommitted(Event):
    """Somebody committed to a challenge without saying against what, and paid the deposit."""

    ABI: ClassVar = "ChallengeCommitted(bytes32 indexed commitment, address indexed challenger)"
    commitment: Digest
    challenger: Address

    @classmethod
    def _of(cls, v: Decoded) -> ChallengeCommitted:
        return cls(Digest(v[0]), address(v[1]))


@dataclass(frozen=True, slots=True)
class ChallengeUncommitted(Event):
    """A committed challenge is gone: revealed, or expired and its deposit burned."""

    ABI: ClassVar = "ChallengeUncommitted(bytes32 indexed commitment, uint256 gameId, bool burned)"
    commitment: Digest
    game_id: int
    burned: bool

    @classmethod
    def _of(cls, v: Decoded) -> ChallengeUncommitted:
        return cls(Digest(v[0]), v[1], v[2])


class ChallengesContract(Contract):
    """`contracts/game/Challenges.sol` at an address."""

    EVENTS = (
        ChallengeCommitted,
        ChallengeUncommitted,
    )

    CALLS = (
        "commitChallenge(bytes32)",
        "expireChallenge(bytes32)",
        "revealChallenge((uint8,uint64,uint32,uint32,address,bytes32),bytes32,bytes32)",
    )

    def commit_challenge(self, commitment: Digest) -> Call:
        """Commits to a third party's challenge: commitment = K(claim ref, own end root, salt, sender)."""
        return self._call("commitChallenge(bytes32)", commitment)

    def committed_challenge(self, commitment: Digest) -> Query[tuple[Address, int, int]]:
        """Committed challenges: by whom, in which block and at what chain time; zero when there is none."""
        return self._query(
            "committedChallenge(bytes32)", "(address,uint64,uint64)", lambda v: (address(v[0]), v[1], v[2]), commitment
        )

    def expire_challenge(self, commitment: Digest) -> Call:
        """Burns the deposit of a challenge that was not revealed in time."""
        return self._call("expireChallenge(bytes32)", commitment)

    def reveal_challenge(self, ref: ClaimRef, own_root: Digest, salt: Digest) -> Call:
        """Opens a game from a committed challenge, at least two blocks and at most an hour after the commitment;
        returns the deposit.
        """
        return self._call(
            "revealChallenge((uint8,uint64,uint32,uint32,address,bytes32),bytes32,bytes32)", ref, own_root, salt
        )
