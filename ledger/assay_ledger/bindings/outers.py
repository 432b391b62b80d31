"""Calls, queries and events of contracts/Outers.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Round, Status
from assay_ledger.bindings.structs import ClaimViewFields, OuterClaimFields, OuterRootFields
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class InclusionFixed(Event):
    """The first post of an outer step fixed which seats it includes."""

    ABI: ClassVar = "InclusionFixed(uint64 indexed round, bytes32 indexed base, uint8 mask, bytes32 x)"
    round: Round
    base: Digest
    mask: int
    x: Digest

    @classmethod
    def _of(cls, v: Decoded) -> InclusionFixed:
        return cls(Round(v[0]), Digest(v[1]), v[2], Digest(v[3]))


@dataclass(frozen=True, slots=True)
class OuterClosedAs(Event):
    """A claim on an outer step ended without a conviction, and its lock is free."""

    ABI: ClassVar = "OuterClosedAs(uint64 indexed round, bytes32 indexed root, address indexed poster, uint8 status)"
    round: Round
    root: Digest
    poster: Address
    status: Status

    @classmethod
    def _of(cls, v: Decoded) -> OuterClosedAs:
        return cls(Round(v[0]), Digest(v[1]), address(v[2]), Status(v[3]))


@dataclass(frozen=True, slots=True)
class OuterPosted(Event):
    """An account put a lock behind the result of an outer step."""

    ABI: ClassVar = (
        "OuterPosted(uint64 indexed round, bytes32 indexed root, address indexed poster, bytes32 base, "
        "bytes32 parameters, bytes32 momentum)"
    )
    round: Round
    root: Digest
    poster: Address
    base: Digest
    parameters: Digest
    momentum: Digest

    @classmethod
    def _of(cls, v: Decoded) -> OuterPosted:
        return cls(Round(v[0]), Digest(v[1]), address(v[2]), Digest(v[3]), Digest(v[4]), Digest(v[5]))


@dataclass(frozen=True, slots=True)
class RescueBegan(Event):
    """An outer root lost a claim for the first time: others may back it, for one window."""

    ABI: ClassVar = "RescueBegan(uint64 indexed round, bytes32 indexed root, uint64 until)"
    round: Round
    root: Digest
    until: int

    @classmethod
    def _of(cls, v: Decoded) -> RescueBegan:
        return cls(Round(v[0]), Digest(v[1]), v[2])


@dataclass(frozen=True, slots=True)
class RootFell(Event):
    """No account backs this outer root any more."""

    ABI: ClassVar = "RootFell(uint64 indexed round, bytes32 indexed root)"
    round: Round
    root: Digest

    @classmethod
    def _of(cls, v: Decoded) -> RootFell:
        return cls(Round(v[0]), Digest(v[1]))


class OutersContract(Contract):
    """`contracts/Outers.sol` at an address."""

    EVENTS = (
        InclusionFixed,
        OuterClosedAs,
        OuterPosted,
        RescueBegan,
        RootFell,
    )

    CALLS = (
        "finalizeOuter(uint64,bytes32,address)",
        "onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)",
        "onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)",
        "postOuter(uint64,bytes32,bytes32,bytes32,bytes32)",
        "voidOuter(uint64,bytes32,address)",
    )

    def charter(self) -> Query[Address]:
        """`charter`."""
        return self._query("charter()", "(address)", lambda v: address(v[0]))

    def claim_of(self, ref: ClaimRef) -> Query[ClaimViewFields]:
        """Resolves a reference; a claim that does not exist (an incomplete commitment among them) has
        challengeableUntil = 0.
        """
        return self._query(
            "claimOf((uint8,uint64,uint32,uint32,address,bytes32))",
            "((bytes32,address,bytes32,bytes32,bytes32,uint32,uint64,uint64,bytes32,uint256,bool,uint256,address))",
            lambda v: ClaimViewFields.of(v[0]),
            ref,
        )

    def finalize_outer(self, round: Round, root: Digest, poster: Address) -> Call:
        """Ends a claim whose window and games are over and whose base is final: the root is final, the lock returns."""
        return self._call("finalizeOuter(uint64,bytes32,address)", round, root, poster)

    def genesis(self) -> Query[Digest]:
        """`genesis`."""
        return self._query("genesis()", "(bytes32)", lambda v: Digest(v[0]))

    def inclusion_of(self, round: Round, base: Digest) -> Query[tuple[int, Digest, bool]]:
        """Mask (bit k = seat k included) and X root for the outer step of a round from a base: the fixed ones, or what
        a post now would fix.
        """
        return self._query(
            "inclusionOf(uint64,bytes32)", "(uint8,bytes32,bool)", lambda v: (v[0], Digest(v[1]), v[2]), round, base
        )

    def is_alive(self, generation: Round, root: Digest) -> Query[bool]:
        """Stands, or can still be rescued: what may be built upon."""
        return self._query("isAlive(uint64,bytes32)", "(bool)", lambda v: v[0], generation, root)

    def is_standing(self, generation: Round, root: Digest) -> Query[bool]:
        """`isStanding`."""
        return self._query("isStanding(uint64,bytes32)", "(bool)", lambda v: v[0], generation, root)

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> Query[bool]:
        """May `who` open a game without commit-reveal?"""
        return self._query(
            "mayChallengeDirectly((uint8,uint64,uint32,uint32,address,bytes32),address)",
            "(bool)",
            lambda v: v[0],
            ref,
            who,
        )

    def on_closed(self, ref: ClaimRef, convicted: bool) -> Call:
        """Game only: a game ended."""
        return self._call("onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)", ref, convicted)

    def on_opened(self, ref: ClaimRef, argument_1: Address) -> Call:
        """Game only: `challenger` opened a game on the claim (delays finality)."""
        return self._call("onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)", ref, argument_1)

    def outer_claim_of(self, round: Round, root: Digest, poster: Address) -> Query[OuterClaimFields]:
        """`outerClaimOf`."""
        return self._query(
            "outerClaimOf(uint64,bytes32,address)",
            "((bytes32,uint64,uint32,bool,bool))",
            lambda v: OuterClaimFields.of(v[0]),
            round,
            root,
            poster,
        )

    def post_outer(self, round: Round, base: Digest, x: Digest, parameters: Digest, momentum: Digest) -> Call:
        """Claims that the outer step of `round` from `base` ends in these lists; from T7 on; locks W."""
        return self._call("postOuter(uint64,bytes32,bytes32,bytes32,bytes32)", round, base, x, parameters, momentum)

    def root_of(self, generation: Round, root: Digest) -> Query[OuterRootFields]:
        """`rootOf`."""
        return self._query(
            "rootOf(uint64,bytes32)",
            "((bytes32,bytes32,uint32,bool,uint64))",
            lambda v: OuterRootFields.of(v[0]),
            generation,
            root,
        )

    def standing_count(self, generation: Round) -> Query[int]:
        """Roots of a generation that stand now."""
        return self._query("standingCount(uint64)", "(uint256)", lambda v: v[0], generation)

    def status_of(self, generation: Round, root: Digest) -> Query[Status]:
        """OPEN, FINAL, or VOID: fallen and not rescued in time."""
        return self._query("statusOf(uint64,bytes32)", "(uint8)", lambda v: Status(v[0]), generation, root)

    def void_outer(self, round: Round, root: Digest, poster: Address) -> Call:
        """Ends a claim whose base nobody upheld: the lock returns, the root loses this poster."""
        return self._call("voidOuter(uint64,bytes32,address)", round, root, poster)
