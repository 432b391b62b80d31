"""Reports on others: each is accepted by the model, all that is owed is reported, and one owner goes first."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from assay.bench import imagined_run
from assay.protocol.errors import RejectedError
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DrawnDuty, DutyKind
from assay.protocol.rounds.ticket_types import TicketId, TicketTerms
from assay.protocol.types import Address, Digest, Round, Wei
from assay_ledger.chain.client import Head
from assay_ledger.rounds.fold import fold
from assay_ledger.rounds.records import RunState
from assay_ledger.rounds.view import RunView
from assay_verifier.view_records import ViewRecords
from assay_whistleblower.reporting import (
    MEMORY,
    MOST_TURNS,
    STAGGER_S,
    MissesDrawn,
    Report,
    ReportAbsence,
    ReportDue,
    ReportForfeit,
    ReportMiss,
    reports,
    wait_of,
)
from tests.harness.auditors.stage_records import StageRecords
from tests.harness.rounds.duties import TERMS, TICKETS, DutyStage, work_duties
from tests.harness.rounds.stage import ETHER, person
from tests.harness.rounds.staged_rounds import true_work

SEATS = range(3)
ME = Address(b"me".ljust(20, b"\0"))


def due(stage: DutyStage, misses: MissesDrawn | None = None) -> list[Report]:
    """What an owner reports once every turn has come."""
    found = [due.report for due in reports(StageRecords(stage), [ME], ME, MissesDrawn())]
    if misses is not None:
        kept = [due.report for due in reports(StageRecords(stage), [ME], ME, misses)]
        assert kept == found, "what was drawn before is what would be drawn now"
    return found


def carry_out(stage: DutyStage, report: Report) -> None:
    duties, who = stage.duties, stage.people[0]
    match report:
        case ReportForfeit(ticket, epoch, later):
            duties.forfeit(ticket, epoch, later, stage.now)
        case ReportAbsence(ticket, epoch):
            duties.absent(who, ticket, epoch, stage.now)
        case ReportMiss(ticket, epoch, via, duty):
            duties.miss(who, ticket, epoch, via, duty, stage.now)


def unreported(stage: DutyStage) -> list[object]:
    """Whatever the model would still fine of the last epochs, asked one by one."""
    found: list[object] = []
    names = [name for name, a in stage.attestations.attestations.items() if a.epoch + 3 >= stage.duties.number]
    rounds = range(max(1, stage.round - 3), stage.round + 1)
    plain = [d for kind in DutyKind for round_ in rounds for d in work_duties(round_, SEATS, kind)]
    plain += [DrawnDuty(kind, attestation=name) for kind in DutyKind for name in names]
    newest = stage.duties.number
    for ticket in list(stage.tickets.tickets):
        for number in range(max(0, newest - 3), newest):
            for call, args in (
                (stage.duties.absent, (stage.people[0], ticket, number, stage.now)),
                *((stage.duties.forfeit, (ticket, number, later, stage.now)) for later in range(number + 1, newest)),
                *(
                    (stage.duties.miss, (stage.people[0], ticket, number, via, duty, stage.now))
                    for via in range(number, newest)
                    for duty in plain
                ),
            ):
                try:
                    call(*args)  # type: ignore[operator]
                except RejectedError:
                    continue
                found.append((call.__name__, args))
    return found


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shifts", [1, 2])
def test_everything_owed_is_reported_and_every_report_accepted(seed: int, shifts: int) -> None:
    chance, seen = random.Random(seed), Counter[str]()
    terms = replace(TERMS, audit_ppm=1_500_000, reaudit_ppm=1_000_000, capacity=2)
    stage = DutyStage(False, terms, TicketTerms(Wei(5 * TICKETS.bond), TICKETS.seasoning, shifts), stake=15_000 * ETHER)
    crew = [stage.register(who % 4) for who in range(6)]
    stage.pass_time(TICKETS.seasoning)
    misses = MissesDrawn()
    for _ in range(7):
        round_ = stage.open_round(stage.duties.epochs[-1].start - 1, final=chance.random() < 0.8)
        for seat in SEATS:
            stage.commit(round_, seat, true_work(round_, seat))
        stage.seed(chance.random())
        number = stage.duties.number
        everything = work_duties(round_, SEATS)
        for ticket in crew:
            if chance.random() < 0.7 and StageRecords(stage).is_called(ticket, number):
                wanted = stage.drawn(ticket, everything)[: chance.randrange(3)]
                try:
                    stage.open(ticket, [stage.result(ticket, duty) for duty in wanted])
                except RejectedError as refused:
                    seen[refused.code] += 1
        while stage.duties.number == number:
            stage.close()
        while found := due(stage, misses):
            for report in found:
                seen[type(report).__name__] += 1
                carry_out(stage, report)
        assert unreported(stage) == []
    print(dict(seen))
    assert all(seen[kind.__name__] for kind in (ReportMiss, ReportAbsence, ReportForfeit))


def test_one_owner_goes_first_and_each_other_one_after_it() -> None:
    owners, name = [person(k) for k in range(MOST_TURNS + 4)], Digest(b"report".ljust(32, b"\0"))
    waits = sorted(wait_of(name, owners, who) for who in owners)
    assert waits == [*(STAGGER_S * k for k in range(MOST_TURNS)), *[STAGGER_S * MOST_TURNS] * 4]
    assert wait_of(name, owners, ME) == STAGGER_S * (MOST_TURNS + 1)


def test_another_report_is_another_owners_to_make() -> None:
    owners = [person(k) for k in range(4)]
    first = {min(owners, key=lambda who: wait_of(Digest(bytes([k]) * 32), owners, who)) for k in range(40)}
    assert first == set(owners)


def test_a_reports_turn_is_counted_from_the_epoch_in_which_it_can_be_made() -> None:
    stage = DutyStage(False)
    stage.crew()
    stage.seed()
    for ticket in (1, 2, 3):
        stage.open(ticket, [])
    stage.close()
    owners = [ME, *(person(k) for k in range(3))]
    (report,) = due(stage)
    assert isinstance(report, ReportAbsence)
    turn = stage.duties.epochs[1].start + wait_of(report.id, owners, ME)
    assert list(reports(StageRecords(stage), owners, ME, MissesDrawn())) == [ReportDue(turn, report)]


def test_what_waits_long_for_its_base_is_reported_once_that_is_final() -> None:
    """Attack: a game about a true base, for half of a bond, that lasts longer than reports look back. What is missed
    meanwhile is drawn again at rate 3, for wages, and nobody was ever fined for it.
    """
    stage = DutyStage(False)
    stage.crew()
    missed, rounds = set(), []
    for number in range(MEMORY + 4):
        rounds.append((stage.open_round(until := stage.duties.epochs[-1].start - 1, final=False), until))
        stage.commit(rounds[-1][0], 0)
        stage.seed(number)
        (duty,) = work_duties(rounds[-1][0], range(1))
        missed |= {(ticket, number) for ticket in stage.chains if stage.drawn(ticket, [duty])}
        for ticket in stage.chains:
            stage.open(ticket, [])
        stage.close()
        assert due(stage) == []
    assert {number for _, number in missed} == set(range(MEMORY + 4))
    for round_, until in rounds:
        stage.set_round(round_, until, True)
    owners = [ME, *(person(k) for k in range(3))]
    looked = list(reports(StageRecords(stage), owners, ME, MissesDrawn()))
    # Turns begin with what lets them be reported: else all owners report each at once.
    assert all(found.at - stage.now == wait_of(found.report.id, owners, ME) for found in looked)  # type: ignore[union-attr]
    while found := due(stage):
        for report in found:
            assert isinstance(report, ReportMiss)
            missed.discard((report.ticket, report.epoch))
            carry_out(stage, report)
    assert not missed
    # Nobody looks back so far for ever.
    stage.pass_time(1)
    for number in range(MEMORY + 1):
        stage.seed(("later", number))
        for ticket in stage.chains:
            if stage.tickets.can_answer(ticket):
                stage.open(ticket, [])
        while not stage.duties.epochs[MEMORY + 4 + number].closed:
            stage.close()
    newest = stage.duties.number
    assert StageRecords(stage).first_final_since(stage.duties.epochs[newest - MEMORY].start) == newest


def test_a_redraw_is_reported_by_who_is_there_when_who_missed_it_first_has_left() -> None:
    """Bad luck: its base is final late. The contract refuses a report that names a miss of who has left."""
    stage, misses = DutyStage(False), MissesDrawn()
    stage.crew()
    round_ = stage.open_round(until := stage.duties.epochs[-1].start - 1, final=False)
    stage.commit(round_, 0)
    stage.seed()
    (work,) = work_duties(round_, range(1))
    for ticket in stage.chains:
        stage.open(ticket, [stage.result(ticket, work)] if ticket > 1 else [])
    first = TicketId(1)
    stage.tickets.retire(stage.owner(first), first, stage.now)
    for _ in range(5):
        stage.close()
        stage.seed()
        for ticket in stage.chains:
            if StageRecords(stage).is_called(TicketId(ticket), stage.duties.number):
                stage.open(ticket, [])
        assert not any(isinstance(report, ReportMiss) for report in due(stage, misses))
    stage.tickets.reclaim(stage.owner(first), first)
    stage.set_round(round_, until, True)
    found = due(stage, misses)
    assert any(isinstance(report, ReportMiss) and report.duty.missed.ticket for report in found)
    for report in found:
        carry_out(stage, report)


@pytest.mark.parametrize("held", [99, 12])
def test_a_view_knows_which_epochs_waited_for_bases_that_are_final_since(
    monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    """Also where a game held a generation, and all that build on it, to the end."""
    monkeypatch.setattr(imagined_run, "ROUNDS", 20)
    run = imagined_run.ImaginedRun(4)
    state, story = RunState.of(run.facts), imagined_run._Story(run)
    for number in range(21):
        for _, logged, at in story.round(Round(number - 1)) if number else story.begin():
            fold(state, logged.event, at, logged.transaction)
    state.head, state.books.now = Head(logged.block, at), at
    state.final_at |= {node: at for node in state.final_at if node >= held}
    view = RunView(run.charter, run.facts, story._owners[0], state)
    records, seen = ViewRecords(view), set()
    for epoch in view.epochs:
        found = [
            number
            for number in range(len(view.epochs))
            if any((records.base_final_at(work.round) or 0) >= epoch.start for work in records.works_of(number))
        ]
        first = records.first_final_since(epoch.start)
        assert first == min(found, default=len(view.epochs) - 1)
        seen.add(first)
    assert len(seen) > 9


def test_what_an_epoch_drew_is_drawn_once_and_again_where_a_secret_was_shown_since(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bad luck: drawn at each step, the duties of thousands of tickets take longer than a turn of a game."""
    stage, drawn, draw = DutyStage(False, replace(TERMS, audit_ppm=3_000_000)), Counter[str](), draws.draw
    monkeypatch.setattr(draws, "draw", lambda *of: (drawn.update(["draws"]), draw(*of))[1])
    stage.crew()
    round_ = stage.open_round(stage.duties.epochs[-1].start - 1)
    for seat in SEATS:
        stage.commit(round_, seat, true_work(round_, seat))
    stage.seed()
    for ticket in (1, 2, 3):
        stage.open(ticket, [])
    stage.close()
    misses = MissesDrawn()
    first = due(stage, misses)
    assert any(isinstance(report, ReportMiss) for report in first)
    drawn.clear()
    look = list(reports(StageRecords(stage), [ME], ME, misses))
    assert len(look) == len(first) and not drawn
    stage.show(4, stage.duties.number - 1)
    late = [report for report in due(stage, misses) if isinstance(report, ReportMiss) and report.ticket == 4]
    assert late, "the secret that came late shows what its ticket missed"
