"""Calls, queries and events of contracts/audit/Duties.sol. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from assay.protocol.rounds.duty_types import CallAnswer, DrawnDuty, DutyKind, DutyResult
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Round, Wei
from assay_ledger.contract import Call, Contract, Decoded, Event, Query


def as_answer(v: Decoded) -> CallAnswer:
    """A `Answer` as a contract gives it."""
    return CallAnswer(Digest(v[0]), v[1], v[2], v[3], v[4], v[5])


@dataclass(frozen=True, slots=True)
class EpochFields:
    """The struct `Epoch`, as contracts give it."""

    seed: Digest
    start: int
    deadline: int
    shift: int
    call: int
    on_call: int
    opened: int
    repeats: int
    closed: bool
    fines: bool
    idle: bool

    @staticmethod
    def of(v: Decoded) -> EpochFields:
        """Of its fields in order."""
        return EpochFields(Digest(v[0]), v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10])


@dataclass(frozen=True, slots=True)
class DutiesEnd(Event):
    """No round opens any more, and an epoch began after the last commitment: the last duties are known."""

    ABI: ClassVar = "DutiesEnd(uint24 last)"
    last: int

    @classmethod
    def _of(cls, v: Decoded) -> DutiesEnd:
        return cls(v[0])


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
class DutyLeftOut(Event):
    """A ticket named a duty that it leaves out of its answer, without a result: a miss that counts among its
    `capacity` duties.
    """

    ABI: ClassVar = "DutyLeftOut(uint24 indexed epoch, uint32 indexed ticket, uint8 kind, bytes32 target)"
    epoch: int
    ticket: TicketId
    kind: DutyKind
    target: Digest

    @classmethod
    def _of(cls, v: Decoded) -> DutyLeftOut:
        return cls(v[0], TicketId(v[1]), DutyKind(v[2]), Digest(v[3]))


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
        DutiesEnd,
        DutyFined,
        DutyLeftOut,
        EpochBegan,
        EpochClosed,
        EpochRepeated,
    )

    CALLS = (
        "absent(uint32,uint24)",
        "closeEpoch()",
        "forfeit(uint32,uint24,uint24)",
        "miss(uint32,uint24,uint24,(uint8,uint64,uint32,bytes32,(uint8,uint24,uint32,uint24)))",
        "open(uint32,bytes32,bytes32,((uint8,uint64,uint32,bytes32,(uint8,uint24,uint32,uint24)),(uint32,bytes32,bytes32[3],bytes32),bytes32[3],bytes32,bytes32[],(bytes32[3],bytes32,bytes32[],bytes32[]))[])",
        "seedEpoch()",
        "show(uint32,uint24,bytes32)",
    )

    def again_ppm(self) -> Query[int]:
        """At which a missed claim is drawn again, and relative to which it ranks."""
        return self._query("AGAIN_PPM()", "(uint256)", lambda v: v[0])

    def last_epochs(self) -> Query[int]:
        """Epochs after the last round's own in which duties are drawn: in all of them work of it may be."""
        return self._query("LAST_EPOCHS()", "(uint24)", lambda v: v[0])

    def max_capacity(self) -> Query[int]:
        """Duties that a charter may ask of a ticket at a call."""
        return self._query("MAX_CAPACITY()", "(uint8)", lambda v: v[0])

    def max_repeats(self) -> Query[int]:
        """`MAX_REPEATS`."""
        return self._query("MAX_REPEATS()", "(uint8)", lambda v: v[0])

    def unfined_ppm(self) -> Query[int]:
        """The same of a claim that was missed in an epoch without fines."""
        return self._query("UNFINED_PPM()", "(uint256)", lambda v: v[0])

    def absent(self, ticket: TicketId, epoch: int) -> Call:
        """Fines a ticket that did not open 3 w (1 + c / 2); half goes to the caller."""
        return self._call("absent(uint32,uint24)", ticket, epoch)

    def answer_of(self, epoch: int, ticket: TicketId) -> Query[CallAnswer]:
        """`answerOf`."""
        return self._query(
            "answerOf(uint24,uint32)",
            "((bytes32,uint128,uint8,uint32,uint24,bool))",
            lambda v: as_answer(v[0]),
            epoch,
            ticket,
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
            "((bytes32,uint48,uint48,uint32,uint32,uint32,uint32,uint8,bool,bool,bool))",
            lambda v: EpochFields.of(v[0]),
            epoch,
        )

    def forfeit(self, ticket: TicketId, epoch: int, later: int) -> Call:
        """Burns the stake of a ticket whose secret is not shown when a later epoch with fines has closed too."""
        return self._call("forfeit(uint32,uint24,uint24)", ticket, epoch, later)

    def is_audited(self, round: Round, epoch: int) -> Query[bool]:
        """Can nothing about the round's work be drawn any more?"""
        return self._query("isAudited(uint64,uint24)", "(bool)", lambda v: v[0], round, epoch)

    def last_epoch(self) -> Query[int]:
        """The last epoch in which duties are drawn; 0 until it is known."""
        return self._query("lastEpoch()", "(uint24)", lambda v: v[0])

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

    def open(self, ticket: TicketId, seed: Digest, secret: Digest, results: Sequence[DutyResult]) -> Call:
        """Answers a call of the newest epoch, by its seed: the secret, and results in the order of their draws."""
        return self._call(
            "open(uint32,bytes32,bytes32,((uint8,uint64,uint32,bytes32,(uint8,uint24,uint32,uint24)),(uint32,bytes32,bytes32[3],bytes32),bytes32[3],bytes32,bytes32[],(bytes32[3],bytes32,bytes32[],bytes32[]))[])",
            ticket,
            seed,
            secret,
            results,
        )

    def over_after(self, time: int) -> Query[int]:
        """The same of the first epoch that began after a time: the one that a round belongs to after its last
        commitment.
        """
        return self._query("overAfter(uint48)", "(uint48)", lambda v: v[0], time)

    def over_since(self, epoch: int) -> Query[int]:
        """Since when nothing that belongs to an epoch can be drawn any more, as a chain time in seconds; 0: it can."""
        return self._query("overSince(uint24)", "(uint48)", lambda v: v[0], epoch)

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
