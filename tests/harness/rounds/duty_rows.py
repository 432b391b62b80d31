"""What audits are made of, as their contracts take it."""

from __future__ import annotations

from typing import Any

from assay.protocol.rounds.duty_types import DrawnDuty, DutyResult, Missed, ReplayFinding
from assay.protocol.rounds.terms import SeatWork


def work_tuple(work: SeatWork) -> tuple[Any, ...]:
    return work.units, work.marks, work.ends, work.update


def missed_tuple(missed: Missed) -> tuple[Any, ...]:
    return int(missed.kind), missed.epoch, missed.ticket, missed.via


def duty_tuple(duty: DrawnDuty) -> tuple[Any, ...]:
    return int(duty.kind), duty.round, duty.seat, duty.attestation, missed_tuple(duty.missed)


def finding_tuple(finding: ReplayFinding) -> tuple[Any, ...]:
    return finding.ends, finding.update, finding.keys, finding.accumulators


def result_tuple(result: DutyResult) -> tuple[Any, ...]:
    return (
        *(duty_tuple(result.duty), work_tuple(result.work), result.ends, result.update, result.accumulators),
        finding_tuple(result.audited),
    )
