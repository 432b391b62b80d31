"""Structs of the contracts. Written by tools/bindings.py: do not edit."""

from __future__ import annotations

from dataclasses import dataclass

from assay.protocol.game.openings import Opening
from assay.protocol.game.table import Side, Stage
from assay.protocol.rounds.round_terms import RoundTerms
from assay.protocol.run.charter import Modules
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.run.run_charter import RoundModules
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from assay_ledger.contract import Decoded, address


@dataclass(frozen=True, slots=True)
class AdmittedFields:
    """The struct `Admitted`, as contracts give it."""

    program: ProgramFields
    steps: int

    @staticmethod
    def of(v: Decoded) -> AdmittedFields:
        """Of its fields in order."""
        return AdmittedFields(ProgramFields.of(v[0]), v[1])


@dataclass(frozen=True, slots=True)
class Checkpoint208Fields:
    """The struct `Checkpoint208`, as contracts give it."""

    key: int
    value: Wei

    @staticmethod
    def of(v: Decoded) -> Checkpoint208Fields:
        """Of its fields in order."""
        return Checkpoint208Fields(v[0], Wei(v[1]))


def as_claim_ref(v: Decoded) -> ClaimRef:
    """A `ClaimRef` as a contract gives it."""
    return ClaimRef(ClaimKind(v[0]), Round(v[1]), Seat(v[2]), v[3], address(v[4]), Digest(v[5]))


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


def as_modules(v: Decoded) -> Modules:
    """A `Modules` as a contract gives it."""
    return Modules(
        address(v[0]),
        address(v[1]),
        address(v[2]),
        address(v[3]),
        address(v[4]),
        address(v[5]),
        address(v[6]),
        address(v[7]),
        address(v[8]),
    )


@dataclass(frozen=True, slots=True)
class NodeOpenedFields:
    """The struct `NodeOpened`, as contracts give it."""

    family: int
    value: Digest
    level: int
    count: int
    last: int

    @staticmethod
    def of(v: Decoded) -> NodeOpenedFields:
        """Of its fields in order."""
        return NodeOpenedFields(v[0], Digest(v[1]), v[2], v[3], v[4])


@dataclass(frozen=True, slots=True)
class NodePlaceFields:
    """The struct `NodePlace`, as contracts give it."""

    tree: Digest
    nodes: int
    k: int
    agreed: Digest
    disputed: Digest
    levels: int

    @staticmethod
    def of(v: Decoded) -> NodePlaceFields:
        """Of its fields in order."""
        return NodePlaceFields(Digest(v[0]), v[1], v[2], Digest(v[3]), Digest(v[4]), v[5])


def as_opening(v: Decoded) -> Opening:
    """A `Opening` as a contract gives it."""
    return Opening(v[0], tuple(v[1]), v[2], tuple(Digest(x) for x in v[3]), tuple(Digest(x) for x in v[4]))


@dataclass(frozen=True, slots=True)
class ProgramFields:
    """The struct `Program`, as contracts give it."""

    root: Digest
    tree: Digest
    header: bytes

    @staticmethod
    def of(v: Decoded) -> ProgramFields:
        """Of its fields in order."""
        return ProgramFields(Digest(v[0]), Digest(v[1]), v[2])


def as_round_modules(v: Decoded) -> RoundModules:
    """A `RoundModules` as a contract gives it."""
    return RoundModules(
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
        Digest(v[21]),
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
        Wei(v[33]),
        Wei(v[34]),
        v[35],
        v[36],
    )


@dataclass(frozen=True, slots=True)
class StartedFields:
    """The struct `Started`, as contracts give it."""

    element: int
    claimed: int
    done: bool
    value: Wei
    terms: int
    heads: tuple[int, ...]

    @staticmethod
    def of(v: Decoded) -> StartedFields:
        """Of its fields in order."""
        return StartedFields(v[0], v[1], v[2], Wei(v[3]), v[4], tuple(v[5]))


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
