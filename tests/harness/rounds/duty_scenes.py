"""Scenes that tests of audits begin with: a crew, a seeded epoch, a round of commitments, everything answered."""

from __future__ import annotations

from assay.protocol.rounds.duty_types import DrawnDuty, DutyKind
from tests.harness.rounds.duties import CREW, DutyStage, work_duties
from tests.harness.rounds.stage import ETHER

SEATS = range(3)
FINE = 3 * ETHER


def crewed_stage() -> DutyStage:
    """Four tickets, one round of three commitments, the first epoch seeded; everybody is drawn for everything."""
    made = DutyStage()
    made.crew()
    begin(made)
    return made


def begin(stage: DutyStage, seats: range = SEATS, final: bool = True) -> int:
    """An epoch with a round of its own, seeded; the number of the round."""
    if not stage.duties.epochs[-1].closed and stage.duties.epochs[-1].seed is not None:
        stage.close()
    round_ = stage.open_round(stage.duties.epochs[-1].start - 1, final)
    for seat in seats:
        stage.commit(round_, seat)
    stage.seed()
    return round_


def answer_all(stage: DutyStage, round_: int, but: tuple[int, ...] = (), seats: range = SEATS) -> None:
    """Every ticket answers all that it is drawn for, up to c."""
    for ticket in CREW:
        if ticket not in but:
            duties = stage.drawn(ticket, work_duties(round_, seats))[: stage.duties.terms.capacity]
            stage.open(ticket, [stage.result(ticket, duty) for duty in duties])


def reaudits(stage: DutyStage) -> list[DrawnDuty]:
    """A duty per attestation of the epoch before."""
    made = [name for name, a in stage.attestations.attestations.items() if a.epoch + 1 == stage.duties.number]
    return [DrawnDuty(DutyKind.REAUDIT, attestation=name) for name in made]
