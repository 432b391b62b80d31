"""Structs of the contracts. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.rounds.duty_types import (
    Accusation,
    AccusationStatus,
    Attestation,
    CallAnswer,
    DrawnDuty,
    DutyKind,
    DutyResult,
    Missed,
    ReplayFinding,
)
from assay.protocol.rounds.round_terms import GenerationStatus, SeatWork, Tenure, UpdateEntry
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.contract import Decoded, address


def as_accusation(v: Decoded) -> Accusation:
    """A `Accusation` as a contract gives it."""
    return Accusation(AccusationStatus(v[0]), v[1], v[2], TicketId(v[3]), v[4], v[5], Digest(v[6]), Digest(v[7]))


def as_answer(v: Decoded) -> CallAnswer:
    """A `Answer` as a contract gives it."""
    return CallAnswer(Digest(v[0]), v[1], v[2], v[3], v[4], v[5])


def as_attestation(v: Decoded) -> Attestation:
    """A `Attestation` as a contract gives it."""
    return Attestation(Digest(v[0]), v[1], TicketId(v[2]), Round(v[3]), Seat(v[4]), v[5], v[6], v[7], v[8])


@dataclass(frozen=True, slots=True)
class ClaimViewFields:
    """The struct `ClaimView`, as contracts give it."""

    id: Digest
    claimant: Address
    x: Digest
    y: Digest
    program: Digest
    steps: int
    challengeable_from: int
    challengeable_until: int
    lock_id: Digest
    lock_amount: Wei
    fallen: bool
    bounty_ppm: int
    beneficiary: Address

    @staticmethod
    def of(v: Decoded) -> ClaimViewFields:
        """Of its fields in order."""
        return ClaimViewFields(
            Digest(v[0]),
            address(v[1]),
            Digest(v[2]),
            Digest(v[3]),
            Digest(v[4]),
            v[5],
            v[6],
            v[7],
            Digest(v[8]),
            Wei(v[9]),
            v[10],
            v[11],
            address(v[12]),
        )


@dataclass(frozen=True, slots=True)
class DebtFields:
    """The struct `Debt`, as contracts give it."""

    to: Address
    amount: Wei

    @staticmethod
    def of(v: Decoded) -> DebtFields:
        """Of its fields in order."""
        return DebtFields(address(v[0]), Wei(v[1]))


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


def as_duty(v: Decoded) -> DrawnDuty:
    """A `Duty` as a contract gives it."""
    return DrawnDuty(DutyKind(v[0]), Round(v[1]), Seat(v[2]), Digest(v[3]), as_missed(v[4]))


def as_entry(v: Decoded) -> UpdateEntry:
    """A `Entry` as a contract gives it."""
    return UpdateEntry(Seat(v[0]), v[1], Digest(v[2]))


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


def as_finding(v: Decoded) -> ReplayFinding:
    """A `Finding` as a contract gives it."""
    return ReplayFinding(
        (Digest(v[0][0]), Digest(v[0][1]), Digest(v[0][2])),
        Digest(v[1]),
        tuple(Digest(x) for x in v[2]),
        tuple(Digest(x) for x in v[3]),
    )


@dataclass(frozen=True, slots=True)
class GenerationStateFields:
    """The struct `GenerationState`, as contracts give it."""

    status: GenerationStatus
    root: Digest
    parameters: Digest
    momentum: Digest
    segment: int
    sealed: int
    seal_until: int

    @staticmethod
    def of(v: Decoded) -> GenerationStateFields:
        """Of its fields in order."""
        return GenerationStateFields(GenerationStatus(v[0]), Digest(v[1]), Digest(v[2]), Digest(v[3]), v[4], v[5], v[6])


@dataclass(frozen=True, slots=True)
class GrantFields:
    """The struct `Grant`, as contracts give it."""

    owner: Address
    vests_at: int
    tenure: int
    ticket: TicketId
    amount: Wei
    done: bool

    @staticmethod
    def of(v: Decoded) -> GrantFields:
        """Of its fields in order."""
        return GrantFields(address(v[0]), v[1], v[2], TicketId(v[3]), Wei(v[4]), v[5])


@dataclass(frozen=True, slots=True)
class GroupStateFields:
    """The struct `GroupState`, as contracts give it."""

    acc: Digest
    committed: int
    maskable: int
    spoke: int
    close_at: int

    @staticmethod
    def of(v: Decoded) -> GroupStateFields:
        """Of its fields in order."""
        return GroupStateFields(Digest(v[0]), v[1], v[2], v[3], v[4])


def as_missed(v: Decoded) -> Missed:
    """A `Missed` as a contract gives it."""
    return Missed(DutyKind(v[0]), v[1], TicketId(v[2]), v[3])


@dataclass(frozen=True, slots=True)
class NodeStateFields:
    """The struct `NodeState`, as contracts give it."""

    votes: int
    openings: int
    standing: int
    games: int
    rescue_until: int

    @staticmethod
    def of(v: Decoded) -> NodeStateFields:
        """Of its fields in order."""
        return NodeStateFields(v[0], v[1], v[2], v[3], v[4])


@dataclass(frozen=True, slots=True)
class OpenedRootFields:
    """The struct `OpenedRoot`, as contracts give it."""

    root: Digest
    opener: int
    backer: Address
    at: int
    fallen: bool
    closed: bool
    games: int

    @staticmethod
    def of(v: Decoded) -> OpenedRootFields:
        """Of its fields in order."""
        return OpenedRootFields(Digest(v[0]), v[1], address(v[2]), v[3], v[4], v[5], v[6])


@dataclass(frozen=True, slots=True)
class PotFields:
    """The struct `Pot`, as contracts give it."""

    epoch: int
    entered: int
    taken: int
    closed: bool

    @staticmethod
    def of(v: Decoded) -> PotFields:
        """Of its fields in order."""
        return PotFields(v[0], v[1], v[2], v[3])


def as_result(v: Decoded) -> DutyResult:
    """A `Result` as a contract gives it."""
    return DutyResult(
        as_duty(v[0]),
        as_work(v[1]),
        (Digest(v[2][0]), Digest(v[2][1]), Digest(v[2][2])),
        Digest(v[3]),
        tuple(Digest(x) for x in v[4]),
        as_finding(v[5]),
    )


@dataclass(frozen=True, slots=True)
class RoundStateFields:
    """The struct `RoundState`, as contracts give it."""

    t0: int
    mask_at: int
    seated: int
    committed: int
    groups: int
    parent: int
    base: Digest

    @staticmethod
    def of(v: Decoded) -> RoundStateFields:
        """Of its fields in order."""
        return RoundStateFields(v[0], v[1], v[2], v[3], v[4], v[5], Digest(v[6]))


def as_tenure(v: Decoded) -> Tenure:
    """A `Tenure` as a contract gives it."""
    return Tenure(address(v[0]), Seat(v[1]), v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10], v[11])


@dataclass(frozen=True, slots=True)
class TicketFields:
    """The struct `Ticket`, as contracts give it."""

    owner: Address
    from_: int
    until: int
    slot: int
    shown: int
    last_epoch: int
    obligations: int
    disputes: int
    short_since: int
    convicted_at: int
    anchor: Digest
    next_anchor: Digest
    next_from: int

    @staticmethod
    def of(v: Decoded) -> TicketFields:
        """Of its fields in order."""
        return TicketFields(
            address(v[0]), v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], Digest(v[10]), Digest(v[11]), v[12]
        )


def as_work(v: Decoded) -> SeatWork:
    """A `Work` as a contract gives it."""
    return SeatWork(v[0], Digest(v[1]), (Digest(v[2][0]), Digest(v[2][1]), Digest(v[2][2])), Digest(v[3]))


@dataclass(frozen=True, slots=True)
class WorkStateFields:
    """The struct `WorkState`, as contracts give it."""

    digest: Digest
    tenure: int
    units: int
    games: int
    late: bool
    settled: bool

    @staticmethod
    def of(v: Decoded) -> WorkStateFields:
        """Of its fields in order."""
        return WorkStateFields(Digest(v[0]), v[1], v[2], v[3], v[4], v[5])
