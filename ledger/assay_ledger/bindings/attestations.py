"""Calls, queries and events of contracts/audit/Attestations.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.duty_types import Accusation, AccusationStatus, Attestation, DutyResult, ReplayFinding
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address, Digest, Round, Seat
from assay_ledger.bindings.structs import ClaimViewFields, as_finding
from assay_ledger.contract import Call, Contract, Decoded, Event, Query, address


def as_accusation(v: Decoded) -> Accusation:
    """A `Accusation` as a contract gives it."""
    return Accusation(AccusationStatus(v[0]), v[1], v[2], TicketId(v[3]), v[4], v[5], Digest(v[6]), Digest(v[7]))


def as_attestation(v: Decoded) -> Attestation:
    """A `Attestation` as a contract gives it."""
    return Attestation(Digest(v[0]), v[1], TicketId(v[2]), Round(v[3]), Seat(v[4]), v[5], v[6], v[7], v[8])


@dataclass(frozen=True, slots=True)
class DrawnFields:
    """The struct `Drawn`, as contracts give it."""

    id: Digest
    key: Digest
    target: Digest
    round: Round
    seat: Seat
    epoch: int
    ticket: TicketId

    @staticmethod
    def of(v: Decoded) -> DrawnFields:
        """Of its fields in order."""
        return DrawnFields(Digest(v[0]), Digest(v[1]), Digest(v[2]), Round(v[3]), Seat(v[4]), v[5], TicketId(v[6]))


@dataclass(frozen=True, slots=True)
class AccusationMoved(Event):
    """An accusation came to its next point."""

    ABI: ClassVar = "AccusationMoved(bytes32 indexed id, uint8 status)"
    id: Digest
    status: AccusationStatus

    @classmethod
    def _of(cls, v: Decoded) -> AccusationMoved:
        return cls(Digest(v[0]), AccusationStatus(v[1]))


@dataclass(frozen=True, slots=True)
class Accused(Event):
    """A ticket accuses."""

    ABI: ClassVar = "Accused(bytes32 indexed id, bytes32 indexed attestation, bytes32 indexed against, bool isWork)"
    id: Digest
    attestation: Digest
    against: Digest
    is_work: bool

    @classmethod
    def _of(cls, v: Decoded) -> Accused:
        return cls(Digest(v[0]), Digest(v[1]), Digest(v[2]), v[3])


@dataclass(frozen=True, slots=True)
class Attested(Event):
    """A ticket found something."""

    ABI: ClassVar = (
        "Attested(uint24 indexed epoch, uint32 indexed ticket, bytes32 indexed attestation, bytes32 target, "
        "uint64 round, uint32 seat, (bytes32[3],bytes32,bytes32[],bytes32[]) finding)"
    )
    epoch: int
    ticket: TicketId
    attestation: Digest
    target: Digest
    round: Round
    seat: Seat
    finding: ReplayFinding

    @classmethod
    def _of(cls, v: Decoded) -> Attested:
        return cls(v[0], TicketId(v[1]), Digest(v[2]), Digest(v[3]), Round(v[4]), Seat(v[5]), as_finding(v[6]))


@dataclass(frozen=True, slots=True)
class FindingPrepared(Event):
    """A part of a finding can be challenged."""

    ABI: ClassVar = "FindingPrepared(bytes32 indexed attestation, uint32 indexed part, bytes32 x, bytes32 y)"
    attestation: Digest
    part: int
    x: Digest
    y: Digest

    @classmethod
    def _of(cls, v: Decoded) -> FindingPrepared:
        return cls(Digest(v[0]), v[1], Digest(v[2]), Digest(v[3]))


class AttestationsContract(Contract):
    """`contracts/audit/Attestations.sol` at an address."""

    EVENTS = (
        AccusationMoved,
        Accused,
        Attested,
        FindingPrepared,
    )

    CALLS = (
        "lapse(bytes32)",
        "onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)",
        "onJudged(bytes32,bool)",
        "onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)",
        "onTried(bytes32,bytes32,address)",
        "prepare(bytes32,(bytes32[3],bytes32,bytes32[],bytes32[]),uint32)",
        "record((bytes32,bytes32,bytes32,uint64,uint32,uint24,uint32),((uint8,uint64,uint32,bytes32,(uint8,uint24,uint32,uint24)),(uint32,bytes32,bytes32[3],bytes32),bytes32[3],bytes32,bytes32[],(bytes32[3],bytes32,bytes32[],bytes32[])))",
    )

    def max_audited(self) -> Query[int]:
        """Keys of attestations that a re-audit answers for beside its own; deeper ones start afresh."""
        return self._query("MAX_AUDITED()", "(uint256)", lambda v: v[0])

    def accusation_of(self, id: Digest) -> Query[Accusation]:
        """The accusation of an id; NONE where there is none."""
        return self._query(
            "accusationOf(bytes32)",
            "((uint8,bool,uint32,uint32,uint24,uint48,bytes32,bytes32))",
            lambda v: as_accusation(v[0]),
            id,
        )

    def accusations_of(self, ticket: TicketId) -> Query[int]:
        """Accusations against a ticket that are recorded or tried."""
        return self._query("accusationsOf(uint32)", "(uint256)", lambda v: v[0], ticket)

    def attestation_of(self, id: Digest) -> Query[Attestation]:
        """The attestation of an id; without a ticket where there is none."""
        return self._query(
            "attestationOf(bytes32)",
            "((bytes32,uint24,uint32,uint64,uint32,uint8,bool,uint32,uint48))",
            lambda v: as_attestation(v[0]),
            id,
        )

    def bounty_of(self, is_work: bool, accused: int) -> Query[tuple[int, Address]]:
        """What a conviction pays as things stand, in parts per million of the lock, and to whom; address zero: to the
        winner of the game.
        """
        return self._query(
            "bountyOf(bool,uint32)", "(uint256,address)", lambda v: (v[0], address(v[1])), is_work, accused
        )

    def claim_of(self, ref: ClaimRef) -> Query[ClaimViewFields]:
        """Resolves a reference; a claim that does not exist, or that nobody prepared, has challengeableUntil = 0."""
        return self._query(
            "claimOf((uint8,uint64,uint32,uint32,address,bytes32))",
            "((bytes32,address,bytes32,bytes32,bytes32,uint32,uint64,uint64,bytes32,uint256,bool,uint256,address))",
            lambda v: ClaimViewFields.of(v[0]),
            ref,
        )

    def findings(self) -> Query[int]:
        """How many findings were made."""
        return self._query("findings()", "(uint256)", lambda v: v[0])

    def is_doubted(self, epoch: int, ticket: TicketId) -> Query[bool]:
        """Was the ticket accused when it opened in the epoch, or before the epoch's end?"""
        return self._query("isDoubted(uint24,uint32)", "(bool)", lambda v: v[0], epoch, ticket)

    def lapse(self, id: Digest) -> Call:
        """Ends an accusation without a game, by anybody."""
        return self._call("lapse(bytes32)", id)

    def may_challenge_directly(self, ref: ClaimRef, who: Address) -> Query[bool]:
        """May `who` open a game without commit-reveal?"""
        return self._query(
            "mayChallengeDirectly((uint8,uint64,uint32,uint32,address,bytes32),address)",
            "(bool)",
            lambda v: v[0],
            ref,
            who,
        )

    def may_try(self, id: Digest, against: Digest, challenger: Address) -> Query[bool]:
        """Is this a recorded accusation by `challenger` of `against`, a commitment's digest or an attestation?"""
        return self._query("mayTry(bytes32,bytes32,address)", "(bool)", lambda v: v[0], id, against, challenger)

    def on_closed(self, ref: ClaimRef, convicted: bool) -> Call:
        """Game only: a game ended."""
        return self._call("onClosed((uint8,uint64,uint32,uint32,address,bytes32),bool)", ref, convicted)

    def on_judged(self, id: Digest, right: bool) -> Call:
        """The book of commitments only: the game is over."""
        return self._call("onJudged(bytes32,bool)", id, right)

    def on_opened(self, ref: ClaimRef, challenger: Address) -> Call:
        """Game only: `challenger` opened a game on the claim (delays finality)."""
        return self._call("onOpened((uint8,uint64,uint32,uint32,address,bytes32),address)", ref, challenger)

    def on_tried(self, id: Digest, against: Digest, challenger: Address) -> Call:
        """The book of commitments only: the accuser opened its game."""
        return self._call("onTried(bytes32,bytes32,address)", id, against, challenger)

    def prepare(self, id: Digest, finding: ReplayFinding, part: int) -> Call:
        """Builds X and Y of one part of a finding, by anybody: a challenge needs it."""
        return self._call("prepare(bytes32,(bytes32[3],bytes32,bytes32[],bytes32[]),uint32)", id, finding, part)

    def record(self, drawn: DrawnFields, result: DutyResult) -> Call:
        """Duties only: keeps a result whose draw was checked, and records what it accuses."""
        return self._call(
            "record((bytes32,bytes32,bytes32,uint64,uint32,uint24,uint32),((uint8,uint64,uint32,bytes32,(uint8,uint24,uint32,uint24)),(uint32,bytes32,bytes32[3],bytes32),bytes32[3],bytes32,bytes32[],(bytes32[3],bytes32,bytes32[],bytes32[])))",
            drawn,
            result,
        )

    def window_of(self, id: Digest) -> Query[int]:
        """Since when nothing can accuse or challenge an attestation any more, as a chain time in seconds; 0: something
        can.
        """
        return self._query("windowOf(bytes32)", "(uint48)", lambda v: v[0], id)
