"""Calls, queries and events of contracts/Rounds.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.run.claims import ClaimRef
from assay.protocol.run.schedule import Times
from assay.protocol.types import Address, Digest, Round, Seat, Status, Wei
from assay_ledger.bindings.structs import ClaimViewFields, CommitmentFields, as_times
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


@dataclass(frozen=True, slots=True)
class Closed(Event):
    """A commitment ended, and what was left of its lock is free."""

    ABI: ClassVar = "Closed(uint64 indexed round, uint32 indexed seat, uint8 status)"
    round: Round
    seat: Seat
    status: Status

    @classmethod
    def _of(cls, v: Decoded) -> Closed:
        return cls(Round(v[0]), Seat(v[1]), Status(v[2]))


@dataclass(frozen=True, slots=True)
class Committed(Event):
    """A solver committed to its work of a round."""

    ABI: ClassVar = (
        "Committed(uint64 indexed round, uint32 indexed seat, address indexed solver, bytes32 digest, "
        "bytes32 base, bytes32[] roots, bytes32[3] endLists, bytes32 update)"
    )
    round: Round
    seat: Seat
    solver: Address
    digest: Digest
    base: Digest
    roots: tuple[Digest, ...]
    end_lists: tuple[Digest, Digest, Digest]
    update: Digest

    @classmethod
    def _of(cls, v: Decoded) -> Committed:
        return cls(
            Round(v[0]),
            Seat(v[1]),
            address(v[2]),
            Digest(v[3]),
            Digest(v[4]),
            tuple(Digest(x) for x in v[5]),
            (Digest(v[6][0]), Digest(v[6][1]), Digest(v[6][2])),
            Digest(v[7]),
        )


@dataclass(frozen=True, slots=True)
class Completed(Event):
    """More than half of the verifiers' stake signed for a commitment: it makes claims now."""

    ABI: ClassVar = "Completed(uint64 indexed round, uint32 indexed seat)"
    round: Round
    seat: Seat

    @classmethod
    def _of(cls, v: Decoded) -> Completed:
        return cls(Round(v[0]), Seat(v[1]))


@dataclass(frozen=True, slots=True)
class Excluded(Event):
    """A drawn party revealed another result: the commitment is left out of the outer step."""

    ABI: ClassVar = "Excluded(uint64 indexed round, uint32 indexed seat, uint32 duty, address accuser)"
    round: Round
    seat: Seat
    duty: int
    accuser: Address

    @classmethod
    def _of(cls, v: Decoded) -> Excluded:
        return cls(Round(v[0]), Seat(v[1]), v[2], address(v[3]))


@dataclass(frozen=True, slots=True)
class Joined(Event):
    """A solver took a seat, from the next T0 on."""

    ABI: ClassVar = "Joined(address indexed solver, uint32 indexed seat)"
    solver: Address
    seat: Seat

    @classmethod
    def _of(cls, v: Decoded) -> Joined:
        return cls(address(v[0]), Seat(v[1]))


@dataclass(frozen=True, slots=True)
class Left(Event):
    """A solver gave up its seat, or was put off it."""

    ABI: ClassVar = "Left(address indexed solver, uint32 indexed seat, bool feeLost)"
    solver: Address
    seat: Seat
    fee_lost: bool

    @classmethod
    def _of(cls, v: Decoded) -> Left:
        return cls(address(v[0]), Seat(v[1]), v[2])


@dataclass(frozen=True, slots=True)
class Receipted(Event):
    """A verifier signed that it fetched and hashed every object of a commitment."""

    ABI: ClassVar = "Receipted(uint64 indexed round, uint32 indexed seat, address indexed verifier, uint256 stake)"
    round: Round
    seat: Seat
    verifier: Address
    stake: Wei

    @classmethod
    def _of(cls, v: Decoded) -> Receipted:
        return cls(Round(v[0]), Seat(v[1]), address(v[2]), Wei(v[3]))


@dataclass(frozen=True, slots=True)
class RoundOpened(Event):
    """A round opened."""

    ABI: ClassVar = "RoundOpened(uint64 indexed round, uint64 t0, address[8] roster)"
    round: Round
    t0: int
    roster: tuple[Address, ...]

    @classmethod
    def _of(cls, v: Decoded) -> RoundOpened:
        return cls(Round(v[0]), v[1], tuple(address(x) for x in v[2]))


class RoundsContract(Contract):
    """`contracts/Rounds.sol` at an address."""

    EVENTS = (
        Closed,
        Committed,
        Completed,
        Excluded,
        Joined,
        Left,
        Receipted,
        RoundOpened,
    )

    CALLS = (
        "close(uint64,uint32)",
        "commit(uint64,uint32,bytes32[],bytes32[3],bytes32,bytes32)",
        "join()",
        "leaveSeat()",
        "onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)",
        "onMismatch(uint64,uint32,uint32,address)",
        "onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)",
        "openRound()",
        "receipt(uint64,uint32,bytes32)",
    )

    def seats(self) -> Query[int]:
        """`SEATS`."""
        return self._query("SEATS()", "(uint32)", lambda v: v[0])

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

    def close(self, round: Round, seat: Seat) -> Call:
        """Settlement only: ends a commitment once its status is known, releasing what is left of its lock."""
        return self._call("close(uint64,uint32)", round, seat)

    def commit(
        self,
        round: Round,
        seat: Seat,
        roots: Sequence[Digest],
        end_lists: Sequence[Digest],
        update: Digest,
        base: Digest,
    ) -> Call:
        """A seated solver's only commitment of the round, until T1; locks S."""
        return self._call(
            "commit(uint64,uint32,bytes32[],bytes32[3],bytes32,bytes32)", round, seat, roots, end_lists, update, base
        )

    def commitment_of(self, round: Round, seat: Seat) -> Query[CommitmentFields]:
        """`commitmentOf`."""
        return self._query(
            "commitmentOf(uint64,uint32)",
            "((address,uint32,bool,bool,bool,bytes32,bytes32,bytes32,bytes32,bytes32,bytes32))",
            lambda v: CommitmentFields.of(v[0]),
            round,
            seat,
        )

    def commitments(self, round: Round) -> Query[int]:
        """How many commitments a round has."""
        return self._query("commitments(uint64)", "(uint256)", lambda v: v[0], round)

    def duty_of(self, round: Round, seat: Seat, duty: int) -> Query[tuple[Digest, Digest, Digest]]:
        """The claim behind a duty of a complete commitment: claim id, X root, Y root; reverts otherwise."""
        return self._query(
            "dutyOf(uint64,uint32,uint32)",
            "(bytes32,bytes32,bytes32)",
            lambda v: (Digest(v[0]), Digest(v[1]), Digest(v[2])),
            round,
            seat,
            duty,
        )

    def holder_of(self, seat: Seat) -> Query[Address]:
        """Current holder of a seat (on the roster from the next T0), zero if free."""
        return self._query("holderOf(uint32)", "(address)", lambda v: address(v[0]), seat)

    def holds_seat(self, who: Address) -> Query[bool]:
        """Does this address hold a seat now, on the roster or from the next T0?"""
        return self._query("holdsSeat(address)", "(bool)", lambda v: v[0], who)

    def is_complete(self, round: Round, seat: Seat) -> Query[bool]:
        """`isComplete`."""
        return self._query("isComplete(uint64,uint32)", "(bool)", lambda v: v[0], round, seat)

    def is_leaving(self, solver: Address) -> Query[bool]:
        """`isLeaving`."""
        return self._query("isLeaving(address)", "(bool)", lambda v: v[0], solver)

    def is_over(self) -> Query[bool]:
        """No round will open any more."""
        return self._query("isOver()", "(bool)", lambda v: v[0])

    def is_seated(self, round: Round, who: Address) -> Query[bool]:
        """Was this address seated in that round?"""
        return self._query("isSeated(uint64,address)", "(bool)", lambda v: v[0], round, who)

    def join(self) -> Call:
        """Takes a free seat from the next T0 on; locks the seat fee."""
        return self._call("join()")

    def leave_seat(self) -> Call:
        """Gives up the seat."""
        return self._call("leaveSeat()")

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

    def on_mismatch(self, round: Round, seat: Seat, duty: int, accuser: Address) -> Call:
        """Audit only: a drawn party's revealed leaf differs from the commitment; the seat is left out of the outer
        step.
        """
        return self._call("onMismatch(uint64,uint32,uint32,address)", round, seat, duty, accuser)

    def on_opened(self, ref: ClaimRef, argument_1: Address) -> Call:
        """Game only: `challenger` opened a game on the claim (delays finality)."""
        return self._call("onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)", ref, argument_1)

    def open_round(self) -> Call:
        """Opens the next round: not before the last one's T7, with an outer root of it standing."""
        return self._call("openRound()")

    def opened(self) -> Query[int]:
        """How many rounds were opened; the latest is one less."""
        return self._query("opened()", "(uint64)", lambda v: v[0])

    def receipt(self, round: Round, seat: Seat, digest: Digest) -> Call:
        """A verifier has fetched and hashed every object of the commitment with this digest; until T1+a."""
        return self._call("receipt(uint64,uint32,bytes32)", round, seat, digest)

    def receipt_stake(self, round: Round, seat: Seat) -> Query[Wei]:
        """`receiptStake`."""
        return self._query("receiptStake(uint64,uint32)", "(uint256)", lambda v: Wei(v[0]), round, seat)

    def roots_of(self, round: Round, seat: Seat) -> Query[tuple[Digest, ...]]:
        """`rootsOf`."""
        return self._query(
            "rootsOf(uint64,uint32)", "(bytes32[])", lambda v: tuple(Digest(x) for x in v[0]), round, seat
        )

    def roster_of(self, round: Round) -> Query[tuple[Address, ...]]:
        """`rosterOf`."""
        return self._query("rosterOf(uint64)", "(address[8])", lambda v: tuple(address(x) for x in v[0]), round)

    def start_of(self, round: Round, seat: Seat, base: Digest) -> Query[tuple[Digest, Digest, Digest, Digest]]:
        """The start of a seat's work in a round: list roots and state root of s_0."""
        return self._query(
            "startOf(uint64,uint32,bytes32)",
            "(bytes32,bytes32,bytes32,bytes32)",
            lambda v: (Digest(v[0]), Digest(v[1]), Digest(v[2]), Digest(v[3])),
            round,
            seat,
            base,
        )

    def times_of(self, round: Round) -> Query[Times]:
        """`timesOf`."""
        return self._query(
            "timesOf(uint64)",
            "((uint64,uint64,uint64,uint64,uint64,uint64,uint64,uint64,uint64,uint64))",
            lambda v: as_times(v[0]),
            round,
        )
