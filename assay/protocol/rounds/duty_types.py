"""What audits are made of: equal to the structs and enums of contracts/interfaces/AuditTypes.sol."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.errors import refuse
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Digest, Seat, Wei

MAX_CAPACITY: Final = 16
"""Duties that a charter may ask of a ticket at a call."""

MAX_AUDITED: Final = 6
"""Keys of attestations that a re-audit answers for beside its own; deeper ones start afresh."""

MAX_REPEATS: Final = 2

LAST_EPOCHS: Final = 3
"""Epochs after the last round's own in which duties are drawn: in all of them work of it may be."""

AGAIN_PPM: Final = 3_000_000
"""At which a missed claim is drawn again, and relative to which it ranks."""

UNFINED_PPM: Final = 1_000_000
"""The same of a claim that was missed in an epoch without fines."""


class DutyKind(IntEnum):
    """Kinds of duties."""

    NONE = 0
    WORK = 1
    REAUDIT = 2
    WORK_AGAIN = 3
    REAUDIT_AGAIN = 4
    MISSED = 5

    @property
    def is_again(self) -> bool:
        """Whether it is a duty of the epoch before that was not opened there."""
        return self in (DutyKind.WORK_AGAIN, DutyKind.REAUDIT_AGAIN)


class AccusationStatus(IntEnum):
    """How far an accusation is."""

    NONE = 0
    RECORDED = 1
    TRIED = 2
    UPHELD = 3
    REJECTED = 4
    LAPSED = 5
    EXCUSED = 6
    """Its accused was convicted elsewhere, so that no game could open."""


@dataclass(frozen=True, slots=True)
class DutyTerms:
    """Times in seconds, rates in parts per million, the wage in wei."""

    start: int
    length: int
    delay: int
    capacity: int
    audit_ppm: int
    reaudit_ppm: int
    wage: Wei

    def check(self, seasoning: int) -> None:
        """Raises BadDutyTerms."""
        rates = self.audit_ppm and self.reaudit_ppm and self.wage
        # Attack: chains chosen for a seed that is known.
        if not self.length or 2 * self.length > seasoning or not rates or not 1 <= self.capacity <= MAX_CAPACITY:
            raise refuse("BadDutyTerms")


@dataclass(slots=True)
class Epoch:
    """One turn of the audits. Times are chain times in seconds."""

    start: int
    seed: Digest | None = None
    deadline: int = 0
    shift: int = 0
    call: int = 0
    """Its number among the shift's calls, from 1."""
    on_call: int = 0
    opened: int = 0
    repeats: int = 0
    closed: bool = False
    fines: bool = False
    """Closed, and half of the tickets on call had opened."""
    idle: bool = False
    """Nothing is drawn in it: the run's duties are over."""


@dataclass(frozen=True, slots=True)
class CallAnswer:
    """What a ticket did at a call."""

    secret: Digest
    top_rank: int
    answered: int
    """Duties, with those that it named and left out."""
    skipped: int
    """Calls just before this one that this secret shows too."""
    shown_in: int
    in_time: bool


@dataclass(frozen=True, slots=True)
class Missed:
    """A duty that somebody missed, and the epoch whose secret shows it."""

    kind: DutyKind = DutyKind.NONE
    epoch: int = 0
    ticket: TicketId = TicketId(0)  # noqa: RUF009
    via: int = 0


NOTHING_MISSED: Final = Missed()


@dataclass(frozen=True, slots=True)
class DrawnDuty:
    """Names a duty; fields that a kind does not use are zero."""

    kind: DutyKind
    round: int = 0
    seat: Seat = Seat(0)  # noqa: RUF009
    attestation: Digest = ZERO
    missed: Missed = NOTHING_MISSED


@dataclass(frozen=True, slots=True)
class ReplayFinding:
    """What a replay ends in: list roots of the end, its update, and the accumulators under each key."""

    ends: tuple[Digest, Digest, Digest]
    update: Digest
    keys: tuple[Digest, ...] = ()
    accumulators: tuple[Digest, ...] = ()


NO_FINDING: Final = ReplayFinding((ZERO, ZERO, ZERO), ZERO)


@dataclass(frozen=True, slots=True)
class DutyResult:
    """A duty's result; `work` is the commitment, as it was made. Without accumulators the duty is left out."""

    duty: DrawnDuty
    work: SeatWork
    ends: tuple[Digest, Digest, Digest]
    update: Digest
    accumulators: tuple[Digest, ...]
    audited: ReplayFinding = NO_FINDING


def left_out(duty: DrawnDuty) -> DutyResult:
    """Names a duty that a ticket does not answer: it owes this one, and nothing that it drew beyond its c."""
    return DutyResult(duty, SeatWork(0, ZERO, NO_FINDING.ends, ZERO), NO_FINDING.ends, ZERO, ())


@dataclass(frozen=True, slots=True)
class DrawnResult:
    """A result whose draw was checked (`Drawn`): the attestation that it becomes, and what it audits."""

    id: Digest
    key: Digest
    """The ticket's own witness key."""
    round: int
    seat: Seat
    epoch: int
    ticket: TicketId
    result: DutyResult


@dataclass(slots=True)
class Attestation:
    """What is kept of a result. Times are chain times in seconds."""

    finding: Digest
    epoch: int
    ticket: TicketId
    round: int
    seat: Seat
    keys: int
    differs: bool
    disputes: int = 0
    """Accusations of it and games on it that are not over."""
    quiet_at: int = 0
    """When the last of them ended; 0: there was none."""


@dataclass(slots=True)
class Accusation:
    """A result that differs from a commitment (`is_work`) or from another attestation."""

    status: AccusationStatus
    is_work: bool
    accused: int
    ticket: TicketId
    epoch: int
    at: int
    """When it was recorded, in seconds of chain time."""
    by: Digest
    """The accuser's own attestation."""
    against: Digest
    """The commitment's digest, or the attestation accused."""
