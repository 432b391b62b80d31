"""Auditors that replay for real, on the executable model: who is accused of what, who is fined, and that it ends there.

Every ticket is drawn for everything here, so that nothing is left to chance.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DutyKind
from assay.protocol.types import Address, Digest
from assay_verifier.cheats import AuditCheat
from assay_whistleblower.reporting import MissesDrawn, Report, ReportAbsence, ReportForfeit, ReportMiss, reports
from tests.harness.auditors.stage_auditors import AuditedStage, computed_work
from tests.harness.auditors.stage_records import StageRecords
from tests.harness.rounds.duties import TERMS, DutyStage

HONEST = ("vera", "viktor")
ME = Address(b"me".ljust(20, b"\0"))
FALSE = Digest(b"false".ljust(32, b"\0"))


def stage_of(folder: Path, cheat: AuditCheat | None = None, capacity: int = 16) -> AuditedStage:
    """Two honest auditors, and a third that cheats."""
    terms = replace(TERMS, audit_ppm=8_000_000, reaudit_ppm=8_000_000, capacity=capacity)
    return AuditedStage(DutyStage(False, terms), folder, {**dict.fromkeys(HONEST), "mallory": cheat})


def owed_reports(made: AuditedStage) -> list[Report]:
    """What anybody could report now."""
    return [due.report for due in reports(StageRecords(made.stage), [ME], ME, MissesDrawn())]


def test_honest_auditors_answer_everything_and_accuse_nobody(tmp_path: Path) -> None:
    made = stage_of(tmp_path)
    for _ in range(3):
        made.epoch()
    assert made.accused() == set() and owed_reports(made) == []
    kinds = {made.stage.attestations.attestations[name].epoch for name in made.stage.attestations.attestations}
    assert kinds == {0, 1, 2}
    answered = [
        made.stage.duties.answers[epoch, a.ticket].answered for epoch in range(3) for a in made.auditors.values()
    ]
    # Two commitments of their own epoch, then also four attestations of the others, then more of those that re-audit.
    assert answered[:3] == [2, 2, 2] and answered[3:6] == [6, 6, 6] and min(answered[6:]) > 6


def test_an_auditor_with_less_than_nine_tenths_of_its_stake_answers_no_call(tmp_path: Path) -> None:
    made = stage_of(tmp_path)
    tickets, ticket = made.stage.tickets, made.auditors["vera"].ticket
    made.epoch()
    tickets.fine(ticket, tickets.terms.bond // 10 + 1, ME, made.stage.now)
    made.epoch()
    assert [number for number, by in made.stage.duties.answers if by == ticket] == [0]
    assert made.stage.duties.epochs[1].opened == 2


def test_a_commitment_is_replayed_once_for_all_duties_on_it(tmp_path: Path) -> None:
    made = stage_of(tmp_path)
    made.epoch()
    made.epoch()
    # Two commitments, then two of the next round and once more the first two, under the keys of those who audited them.
    assert made.auditors["vera"].replays == 2 + 4


@pytest.mark.parametrize("what", ["update", "ends"])
def test_every_honest_auditor_accuses_a_false_commitment_and_nobody_else(what: str, tmp_path: Path) -> None:
    made = stage_of(tmp_path)
    work = computed_work(1, 1)
    lie = replace(work, update=FALSE) if what == "update" else replace(work, ends=(FALSE, *work.ends[1:]))
    made.epoch({1: lie})
    assert made.accused() == {(name, "seat 1") for name in made.auditors}
    assert made.stage.rounds.accusations[2] == 3 and made.stage.rounds.accusations[1] == 0


@pytest.mark.parametrize("cheat", [AuditCheat.BLIND, AuditCheat.COPYING])
def test_who_signs_without_computing_is_accused_by_all_that_audit_it(cheat: AuditCheat, tmp_path: Path) -> None:
    made = stage_of(tmp_path, cheat)
    made.epoch()
    assert made.accused() == set(), "its roots are the true ones"
    made.epoch()
    assert made.accused() == {(name, "mallory") for name in HONEST}


def test_who_keeps_silent_about_a_blind_one_answers_for_its_accumulator(tmp_path: Path) -> None:
    terms = replace(TERMS, audit_ppm=8_000_000, reaudit_ppm=8_000_000, capacity=16)
    cheats = {"vera": None, "sid": AuditCheat.SILENT, "mallory": AuditCheat.BLIND}
    made = AuditedStage(DutyStage(False, terms), tmp_path, cheats)
    made.epoch()
    made.epoch()
    assert made.accused() == {("vera", "mallory")}
    made.epoch()
    # What the two liars say of others by then is theirs to answer for.
    assert {accused for who, accused in made.accused() if who == "vera"} == {"mallory", "sid"}


def test_who_never_opens_is_fined_and_loses_all_after_the_second_epoch(tmp_path: Path) -> None:
    made = stage_of(tmp_path, AuditCheat.ABSENT)
    ticket = made.auditors["mallory"].ticket
    made.epoch()
    (absence,) = owed_reports(made)
    assert isinstance(absence, ReportAbsence) and absence.ticket == ticket
    made.epoch()
    forfeits = [report for report in owed_reports(made) if isinstance(report, ReportForfeit)]
    assert [report.ticket for report in forfeits] == [ticket]


def test_who_drops_a_duty_is_reported_and_the_others_are_drawn_for_it(tmp_path: Path) -> None:
    made = stage_of(tmp_path, AuditCheat.DROPPING)
    made.epoch()
    (miss,) = owed_reports(made)
    assert isinstance(miss, ReportMiss) and miss.ticket == made.auditors["mallory"].ticket
    made.epoch()
    claim = made.stage.rounds.work_of(miss.duty.round, miss.duty.seat)[0]
    for name in HONEST:
        again = draws.attestation_id(1, made.auditors[name].ticket, DutyKind.MISSED, claim)
        assert again in made.stage.attestations.attestations


@pytest.mark.parametrize("capacity", [1, 2])
def test_who_has_no_time_is_reported_for_what_it_owes_and_no_more(capacity: int, tmp_path: Path) -> None:
    made = stage_of(tmp_path, capacity=capacity)
    made.auditors["mallory"].is_late = True
    made.epoch()
    misses = owed_reports(made)
    assert {miss.ticket for miss in misses if isinstance(miss, ReportMiss)} == {made.auditors["mallory"].ticket}
    # Both commitments are drawn by everybody.
    assert len(misses) == capacity
    answer = made.stage.duties.answers[0, made.auditors["mallory"].ticket]
    assert answer.answered == (1 if capacity == 1 else 0)


def test_who_accuses_falsely_accuses_alone_and_is_accused_for_it(tmp_path: Path) -> None:
    made = stage_of(tmp_path, AuditCheat.FALSE_ACCUSER)
    made.epoch()
    assert made.accused() == {("mallory", "seat 0"), ("mallory", "seat 1")}
    made.epoch()
    by_others = {pair for pair in made.accused() if pair[0] != "mallory"}
    assert by_others == {(name, "mallory") for name in HONEST}
