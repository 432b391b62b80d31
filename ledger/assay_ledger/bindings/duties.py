"""Calls, queries and events of contracts/audit/Duties.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.duty_types import (
    Accusation,
    AccusationStatus,
    Attestation,
    CallAnswer,
    DrawnDuty,
    DutyResult,
    ReplayFinding,
)
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.bindings.round_structs import EpochFields, as_accusation, as_answer, as_attestation, as_finding
from assay_ledger.contract import Call, Contract, Decoded, Event, Query


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
class DutyFined(Event):
    """A miss or absence was proven."""

    ABI: ClassVar = "DutyFined(uint24 indexed epoch, uint32 indexed ticket, bytes32 id, uint256 fine)"
    epoch: int
    ticket: TicketId
    id: Digest
    fine: Wei

    @classmethod
    def _of(cls, v: Decoded) -> DutyFined:
        return cls(v[0], TicketId(v[1]), Digest(v[2]), Wei(v[3]))


@dataclass(frozen=True, slots=True)
class EpochBegan(Event):
    """An epoch began to call."""

    ABI: ClassVar = "EpochBegan(uint24 indexed epoch, bytes32 seed, uint32 shift, uint32 onCall, uint48 deadline)"
    epoch: int
    seed: Digest
    shift: int
    on_call: int
    deadline: int

    @classmethod
    def _of(cls, v: Decoded) -> EpochBegan:
        return cls(v[0], Digest(v[1]), v[2], v[3], v[4])


@dataclass(frozen=True, slots=True)
class EpochClosed(Event):
    """An epoch closed and the next began."""

    ABI: ClassVar = "EpochClosed(uint24 indexed epoch, bool fines)"
    epoch: int
    fines: bool

    @classmethod
    def _of(cls, v: Decoded) -> EpochClosed:
        return cls(v[0], v[1])


@dataclass(frozen=True, slots=True)
class EpochRepeated(Event):
    """Too few opened: the same call waits once more."""

    ABI: ClassVar = "EpochRepeated(uint24 indexed epoch, uint48 deadline)"
    epoch: int
    deadline: int

    @classmethod
    def _of(cls, v: Decoded) -> EpochRepeated:
        return cls(v[0], v[1])


class DutiesContract(Contract):
    """`contracts/audit/Duties.sol` at an address."""

    EVENTS = (
        AccusationMoved,
        Accused,
        Attested,
        DutyFined,
        EpochBegan,
        EpochClosed,
        EpochRepeated,
    )

    CALLS = (
        "absent(uint32,uint24)",
        "closeEpoch()",
        "forfeit(uint32,uint24,uint24)",
        "lapse(bytes32)",
        "miss(uint32,uint24,uint24,(uint8,uint64,uint32,bytes32,(uint8,uint24,uint32,uint24)))",
        "onJudged(bytes32,bool)",
        "onTried(bytes32)",
        "open(uint32,bytes32,((uint8,uint64,uint32,bytes32,(uint8,uint24,uint32,uint24)),(uint32,bytes32,bytes32[3],bytes32),bytes32[3],bytes32,bytes32[],(bytes32[3],bytes32,bytes32[],bytes32[]))[])",
        "seedEpoch()",
        "show(uint32,uint24,bytes32)",
    )

    def again_ppm(self) -> Query[int]:
        """At which a missed duty is drawn again."""
        return self._query("AGAIN_PPM()", "(uint256)", lambda v: v[0])

    def max_audited(self) -> Query[int]:
        """Keys of attestations that a re-audit answers for beside its own; deeper ones start afresh."""
        return self._query("MAX_AUDITED()", "(uint256)", lambda v: v[0])

    def max_capacity(self) -> Query[int]:
        """Duties that a charter may ask of a ticket at a call."""
        return self._query("MAX_CAPACITY()", "(uint8)", lambda v: v[0])

    def max_repeats(self) -> Query[int]:
        """`MAX_REPEATS`."""
        return self._query("MAX_REPEATS()", "(uint8)", lambda v: v[0])

    def absent(self, ticket: TicketId, epoch: int) -> Call:
        """Fines a ticket that did not open 3 w (1 + c / 2); half goes to the caller."""
        return self._call("absent(uint32,uint24)", ticket, epoch)

    def accusation_of(self, id: Digest) -> Query[Accusation]:
        """`accusationOf`."""
        return self._query(
            "accusationOf(bytes32)", "((uint8,bool,uint32,uint32,uint24))", lambda v: as_accusation(v[0]), id
        )

    def answer_of(self, epoch: int, ticket: TicketId) -> Query[CallAnswer]:
        """`answerOf`."""
        return self._query(
            "answerOf(uint24,uint32)",
            "((bytes32,uint128,uint8,uint32,uint24,bool))",
            lambda v: as_answer(v[0]),
            epoch,
            ticket,
        )

    def attestation_of(self, id: Digest) -> Query[Attestation]:
        """`attestationOf`."""
        return self._query(
            "attestationOf(bytes32)",
            "((bytes32,uint24,uint32,uint64,uint32,uint8,bool))",
            lambda v: as_attestation(v[0]),
            id,
        )

    def calls_at(self, shift: int, time: int) -> Query[int]:
        """Calls of a shift by epochs that began at a time or before."""
        return self._query("callsAt(uint32,uint48)", "(uint32)", lambda v: v[0], shift, time)

    def close_epoch(self) -> Call:
        """After the deadline: closes the newest epoch, or repeats it where too few opened, at most twice."""
        return self._call("closeEpoch()")

    def epoch_of(self, epoch: int) -> Query[EpochFields]:
        """`epochOf`."""
        return self._query(
            "epochOf(uint24)",
            "((bytes32,uint48,uint48,uint32,uint32,uint32,uint32,uint8,bool,bool))",
            lambda v: EpochFields.of(v[0]),
            epoch,
        )

    def first_accused(self, tenure: int) -> Query[int]:
        """The epoch of the first accusation of a tenure, plus one; 0: there is none."""
        return self._query("firstAccused(uint32)", "(uint24)", lambda v: v[0], tenure)

    def forfeit(self, ticket: TicketId, epoch: int, later: int) -> Call:
        """Burns the stake of a ticket whose secret is not shown when a later epoch with fines has closed too."""
        return self._call("forfeit(uint32,uint24,uint24)", ticket, epoch, later)

    def has_accused(self, round: Round, seat: Seat, who: Address) -> Query[bool]:
        """Did `who` open an attestation of this commitment with another result?"""
        return self._query("hasAccused(uint64,uint32,address)", "(bool)", lambda v: v[0], round, seat, who)

    def is_audited(self, round: Round, epoch: int) -> Query[bool]:
        """Can nothing about the round's work be drawn any more?"""
        return self._query("isAudited(uint64,uint24)", "(bool)", lambda v: v[0], round, epoch)

    def lapse(self, id: Digest) -> Call:
        """Fines an accuser 3 w whose game was not opened until the epoch after its own closed."""
        return self._call("lapse(bytes32)", id)

    def miss(self, ticket: TicketId, epoch: int, via: int, duty: DrawnDuty) -> Call:
        """Fines a ticket 3 w for a duty that it was drawn for and did not answer; half goes to the caller."""
        return self._call(
            "miss(uint32,uint24,uint24,(uint8,uint64,uint32,bytes32,(uint8,uint24,uint32,uint24)))",
            ticket,
            epoch,
            via,
            duty,
        )

    def newest(self) -> Query[tuple[int, int]]:
        """The newest epoch and when it began; all epochs before it are closed."""
        return self._query("newest()", "(uint24,uint48)", lambda v: (v[0], v[1]))

    def on_judged(self, id: Digest, right: bool) -> Call:
        """Game only: an accusation's game is over."""
        return self._call("onJudged(bytes32,bool)", id, right)

    def on_tried(self, id: Digest) -> Call:
        """Game only: an accusation's game is open."""
        return self._call("onTried(bytes32)", id)

    def open(self, ticket: TicketId, secret: Digest, results: Sequence[DutyResult]) -> Call:
        """Answers a call of the newest epoch: its secret, and results in the order of their draws."""
        return self._call(
            "open(uint32,bytes32,((uint8,uint64,uint32,bytes32,(uint8,uint24,uint32,uint24)),(uint32,bytes32,bytes32[3],bytes32),bytes32[3],bytes32,bytes32[],(bytes32[3],bytes32,bytes32[],bytes32[]))[])",
            ticket,
            secret,
            results,
        )

    def secret_of(self, ticket: TicketId, epoch: int, via: int) -> Query[Digest]:
        """The secret of a call, as the secret of `via` shows it."""
        return self._query("secretOf(uint32,uint24,uint24)", "(bytes32)", lambda v: Digest(v[0]), ticket, epoch, via)

    def seed_epoch(self) -> Call:
        """Takes the newest epoch's seed from the beacon and calls a shift: that of the ticket at one position that the
        seed draws.
        """
        return self._call("seedEpoch()")

    def show(self, ticket: TicketId, epoch: int, secret: Digest) -> Call:
        """Shows the secret of a call that a ticket did not answer, after the epoch closed."""
        return self._call("show(uint32,uint24,bytes32)", ticket, epoch, secret)

    def states_of(self, id: Digest, finding: ReplayFinding) -> Query[tuple[Digest, Digest]]:
        """X and Y of an attestation's claim on the witnessed program: lists of the start, then a key and a zero
        accumulator per key; lists of the end, then the keys and accumulators.
        """
        return self._query(
            "statesOf(bytes32,(bytes32[3],bytes32,bytes32[],bytes32[]))",
            "(bytes32,bytes32)",
            lambda v: (Digest(v[0]), Digest(v[1])),
            id,
            finding,
        )
