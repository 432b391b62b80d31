"""Structs of several contracts. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.game.openings import Opening
from assay.protocol.game.table import Side, Stage
from assay.protocol.rounds.duty_types import DrawnDuty, DutyKind, DutyResult, Missed, ReplayFinding
from assay.protocol.rounds.terms import GenerationStatus, RoundTerms, SeatWork, UpdateEntry
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.answers import AnswerTerms
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunModules
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.contract import Decoded, address


@dataclass(frozen=True, slots=True)
class AdmittedFields:
    """The struct `Admitted`, as contracts give it."""

    program: ProgramRef
    steps: int

    @staticmethod
    def of(v: Decoded) -> AdmittedFields:
        """Of its fields in order."""
        return AdmittedFields(as_program(v[0]), v[1])


def as_answer_terms(v: Decoded) -> AnswerTerms:
    """A `AnswerTerms` as a contract gives it."""
    return AnswerTerms(as_program(v[0]), Digest(v[1]), v[2], v[3], Wei(v[4]))


def as_claim_ref(v: Decoded) -> ClaimRef:
    """A `ClaimRef` as a contract gives it."""
    return ClaimRef(ClaimKind(v[0]), Round(v[1]), Seat(v[2]), v[3], address(v[4]), Digest(v[5]))


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


def as_duty(v: Decoded) -> DrawnDuty:
    """A `Duty` as a contract gives it."""
    return DrawnDuty(DutyKind(v[0]), Round(v[1]), Seat(v[2]), Digest(v[3]), as_missed(v[4]))


@dataclass(frozen=True, slots=True)
class DutyTermsFields:
    """The struct `DutyTerms`, as contracts give it."""

    start: int
    length: int
    delay: int
    capacity: int
    audit_ppm: int
    reaudit_ppm: int
    wage: Wei

    @staticmethod
    def of(v: Decoded) -> DutyTermsFields:
        """Of its fields in order."""
        return DutyTermsFields(v[0], v[1], v[2], v[3], v[4], v[5], Wei(v[6]))


def as_entry(v: Decoded) -> UpdateEntry:
    """A `Entry` as a contract gives it."""
    return UpdateEntry(Seat(v[0]), v[1], Digest(v[2]))


def as_finding(v: Decoded) -> ReplayFinding:
    """A `Finding` as a contract gives it."""
    return ReplayFinding(
        (Digest(v[0][0]), Digest(v[0][1]), Digest(v[0][2])),
        Digest(v[1]),
        tuple(Digest(x) for x in v[2]),
        tuple(Digest(x) for x in v[3]),
    )


@dataclass(frozen=True, slots=True)
class GameStateFields:
    """The struct `GameState`, as contracts give it."""

    challenger: Address
    stage: Stage
    turn: Side
    family: int
    whole: bool
    step: int
    last: int
    defender_deferrals: int
    challenger_deferrals: int
    defender: Address
    deadline: int
    node: int
    turn_started: int
    defender_budget: int
    challenger_budget: int
    element: int
    lo: int
    hi: int
    index: int
    count: int
    level: int
    list_index: int
    advanced: Wei
    held: Wei
    backing: Wei
    agreed: Digest
    disputed: Digest
    posted: Digest
    before: Digest
    after: Digest
    node_hash: Digest
    value: Digest
    claimed: int
    heads: tuple[int, ...]
    claim_id: Digest
    program: Digest
    lock_id: Digest
    account: Digest
    ref: ClaimRef

    @staticmethod
    def of(v: Decoded) -> GameStateFields:
        """Of its fields in order."""
        return GameStateFields(
            address(v[0]),
            Stage(v[1]),
            Side(v[2]),
            v[3],
            v[4],
            v[5],
            v[6],
            v[7],
            v[8],
            address(v[9]),
            v[10],
            v[11],
            v[12],
            v[13],
            v[14],
            v[15],
            v[16],
            v[17],
            v[18],
            v[19],
            v[20],
            v[21],
            Wei(v[22]),
            Wei(v[23]),
            Wei(v[24]),
            Digest(v[25]),
            Digest(v[26]),
            Digest(v[27]),
            Digest(v[28]),
            Digest(v[29]),
            Digest(v[30]),
            Digest(v[31]),
            v[32],
            tuple(v[33]),
            Digest(v[34]),
            Digest(v[35]),
            Digest(v[36]),
            Digest(v[37]),
            as_claim_ref(v[38]),
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


def as_opening(v: Decoded) -> Opening:
    """A `Opening` as a contract gives it."""
    return Opening(v[0], tuple(v[1]), v[2], tuple(Digest(x) for x in v[3]), tuple(Digest(x) for x in v[4]))


def as_program(v: Decoded) -> ProgramRef:
    """A `Program` as a contract gives it."""
    return ProgramRef(Digest(v[0]), Digest(v[1]), v[2])


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


def as_round_terms(v: Decoded) -> RoundTerms:
    """A `RoundTerms` as a contract gives it."""
    return RoundTerms(
        v[0],
        v[1],
        v[2],
        v[3],
        v[4],
        v[5],
        v[6],
        v[7],
        v[8],
        v[9],
        v[10],
        v[11],
        v[12],
        v[13],
        v[14],
        v[15],
        v[16],
        v[17],
        v[18],
        v[19],
        v[20],
        v[21],
        Digest(v[22]),
        Digest(v[23]),
        Digest(v[24]),
        Digest(v[25]),
        Digest(v[26]),
        Digest(v[27]),
        Digest(v[28]),
        Digest(v[29]),
        Digest(v[30]),
        Digest(v[31]),
        Digest(v[32]),
        Digest(v[33]),
        Wei(v[34]),
        Wei(v[35]),
        v[36],
        v[37],
    )


def as_run_modules(v: Decoded) -> RunModules:
    """A `RunModules` as a contract gives it."""
    return RunModules(
        address(v[0]),
        address(v[1]),
        address(v[2]),
        address(v[3]),
        address(v[4]),
        address(v[5]),
        address(v[6]),
        address(v[7]),
        address(v[8]),
        address(v[9]),
        address(v[10]),
        address(v[11]),
        address(v[12]),
        address(v[13]),
        address(v[14]),
        address(v[15]),
        address(v[16]),
        address(v[17]),
    )


@dataclass(frozen=True, slots=True)
class TicketTermsFields:
    """The struct `TicketTerms`, as contracts give it."""

    bond: Wei
    seasoning: int
    shifts: int

    @staticmethod
    def of(v: Decoded) -> TicketTermsFields:
        """Of its fields in order."""
        return TicketTermsFields(Wei(v[0]), v[1], v[2])


def as_work(v: Decoded) -> SeatWork:
    """A `Work` as a contract gives it."""
    return SeatWork(v[0], Digest(v[1]), (Digest(v[2][0]), Digest(v[2][1]), Digest(v[2][2])), Digest(v[3]))
