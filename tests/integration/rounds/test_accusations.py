"""Accusations on model and contract: whom an answer accuses, what an accusation holds, how it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.rounds.duty_types import MAX_AUDITED, AccusationStatus
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.types import Digest
from tests.harness.contracts.harness import Reverted
from tests.harness.rounds.duties import CREW, DutyStage, missed, work_duties
from tests.harness.rounds.duty_scenes import FINE, answer_all, begin, crewed_stage, reaudits
from tests.harness.rounds.stage import refused, text
from tests.harness.rounds.staged_rounds import mark, true_work


@pytest.fixture
def stage() -> DutyStage:
    """Four tickets, all drawn for three commitments in the first epoch, which is seeded."""
    return crewed_stage()


def accusing(stage: DutyStage) -> Digest:
    """Ticket 1 accuses the first commitment, falsely; the accusation."""
    (duty,) = work_duties(1, range(1))
    stage.open(1, [stage.result(1, duty, lie=True)])
    ((name, made),) = stage.attestations.accusations.items()
    assert made.is_work
    book = stage.contracts["attestations"]
    for k, who in enumerate(stage.people):
        assert book.call("mayTry", name, made.against, text(who)) == (k == 0)
        assert stage.attestations.may_try(name, made.against, who) == (k == 0)
    return name


def test_an_accusation_freezes_the_tenure_at_once_and_lapses_without_a_game(stage: DutyStage) -> None:
    name = accusing(stage)
    answer_all(stage, 1, but=(1,))
    assert stage.rounds.accusations[1] == 1
    # Attack: accuse and leave, so that nothing ends the accusation and the tenure is frozen for ever.
    assert stage.tickets.tickets[TicketId(1)].obligations == 1
    stage.compare()
    stage.close()
    assert refused(stage.lapse, name) == "EpochOpen"
    stage.seed()
    for ticket in CREW:
        stage.open(ticket, [])
    stage.close()
    free = stage.vault.free_of(stage.people[3])
    stage.lapse(name)
    assert stage.vault.free_of(stage.people[3]) == free + FINE // 2
    assert refused(stage.lapse, name) == "WrongAccusation"
    assert stage.rounds.accusations[1] == 0
    assert stage.tickets.tickets[TicketId(1)].obligations == 0
    stage.compare()


def test_an_accusation_of_who_was_convicted_elsewhere_ends_without_a_fine(stage: DutyStage) -> None:
    name = accusing(stage)
    assert refused(stage.lapse, name) == "EpochOpen"
    stage.convict(1)
    left = stage.vault.lock_amount(ticket_lock(TicketId(1)))
    # Attack: let the accused lose everything in a puppet's game, and take the fine of who accused it rightly.
    stage.lapse(name)
    assert stage.attestations.accusations[name].status is AccusationStatus.EXCUSED
    assert stage.vault.lock_amount(ticket_lock(TicketId(1))) == left
    assert (stage.rounds.accusations[1], stage.tickets.tickets[TicketId(1)].obligations) == (0, 0)
    assert refused(stage.lapse, name) == "WrongAccusation"
    stage.compare()


def test_an_accusation_of_a_ticket_convicted_elsewhere_ends_without_a_fine(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    stage.open(1, [replace(stage.result(1, duty), accumulators=(mark("guessed"),))])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    begin(stage, range(0))
    (audit,) = reaudits(stage)
    for ticket in (2, 3):
        stage.open(ticket, [stage.result(ticket, audit)])
    first, second = stage.attestations.accusations
    accused = stage.attestations.accusations[first].against
    assert stage.attestations.against[1] == 2
    stage.prepare(accused, 0)
    stage.open_game(first, 0, 1)
    assert refused(stage.lapse, second) == "EpochOpen"
    stage.end_game(first, 0, True)
    assert stage.attestations.accusations[first].status is AccusationStatus.UPHELD
    assert stage.tickets.tickets[TicketId(1)].convicted_at == stage.now
    stage.lapse(second)
    assert stage.attestations.accusations[second].status is AccusationStatus.EXCUSED
    assert [stage.tickets.tickets[TicketId(k)].obligations for k in (1, 2, 3)] == [0, 0, 0]
    assert (stage.attestations.against[1], stage.attestations.attestations[accused].disputes) == (0, 0)
    stage.compare()


def test_a_reaudit_of_settled_work_accuses_the_attestation_alone(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    lie = replace(true_work(1, 0), update=mark("false"))
    stage.commit(1, 0, lie)
    stage.open(1, [replace(stage.result(1, duty), update=lie.update)])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    begin(stage, range(0))
    stage.settle(1, 0)
    (audit,) = reaudits(stage)
    # Attack: accuse work that is settled, of which no game can open, and lapse.
    stage.open(2, [stage.result(2, audit)])
    assert [(a.is_work, a.accused) for a in stage.attestations.accusations.values()] == [(False, 1)]
    stage.compare()


def test_an_attestation_can_be_challenged_until_its_last_redraw_is_over(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    stage.open(1, [stage.result(1, duty)])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    (name,) = stage.attestations.attestations
    stage.prepare(name, 0)
    for _ in range(3):
        begin(stage, range(0))
        for ticket in CREW:
            stage.open(ticket, [])
    assert stage.attestations.window_of(name) == 0
    stage.open_game(name, 0, 3)
    stage.close()
    # Epoch 3 is closed, but a game is open: no other opens beside it, and the window is over when it ends.
    assert stage.attestations.window_of(name) == 0
    assert refused(stage.open_game, name, 0, 2) == "ClaimSettled"
    stage.compare()
    stage.pass_time(7)
    stage.end_game(name, 0, False)
    assert stage.attestations.window_of(name) == stage.now > stage.duties.epochs[4].start
    assert refused(stage.open_game, name, 0, 3) == "ClaimSettled"
    assert refused(stage.open_game, name, 1, 3) == "ClaimNotFound"
    stage.compare()


def test_an_attestation_that_is_accused_in_time_is_tried_after_its_window(stage: DutyStage) -> None:
    """By its accuser, and by nobody else."""
    (duty,) = work_duties(1, range(1))
    stage.open(1, [replace(stage.result(1, duty), accumulators=(mark("guessed"),))])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    begin(stage, range(0))
    (audit,) = reaudits(stage)
    stage.open(2, [stage.result(2, audit)])
    for ticket in (1, 3, 4):
        stage.open(ticket, [])
    ((accusation, made),) = stage.attestations.accusations.items()
    stage.prepare(made.against, 0)
    own = stage.attestations.attestations[made.against].epoch
    while not stage.duties.over_since(own + 1):
        begin(stage, range(0))
        for ticket in CREW:
            stage.open(ticket, [])
    assert refused(stage.open_game, made.against, 0, 3) == "ClaimSettled"
    assert refused(stage.open_game, accusation, 0, 3) == "NotYourAccusation"
    stage.open_game(accusation, 0, 1)
    stage.end_game(accusation, 0, True)
    assert made.status is AccusationStatus.UPHELD
    stage.compare()


@pytest.mark.parametrize("last", [3, 4])
def test_the_last_redraw_accuses_in_its_last_second_and_pots_wait_for_its_game(stage: DutyStage, last: int) -> None:
    """What was missed of an attestation of epoch 0 is drawn until epoch 3, one later where epoch 2 fined nobody."""
    (duty,) = work_duties(1, range(1))
    stage.open(1, [replace(stage.result(1, duty), accumulators=(mark("guessed"),))])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    begin(stage, range(0))
    (audit,) = reaudits(stage)
    hidden = {ticket: stage.secret(ticket) for ticket in (2, 3)}
    for epoch in range(1, last):
        # Half of the tickets open, and nobody in an epoch that fines nobody.
        if epoch != 2 or last == 3:
            stage.open(1, [])
            stage.open(4, [])
        if epoch == last - 1:
            stage.show(2, 1, hidden[2])
        while stage.duties.number == epoch:
            stage.close()
        stage.seed()
    stage.show(3, 1, hidden[3])
    again, late = missed(audit, 1, 2), missed(audit, 1, 3)
    by = next(ticket for ticket in CREW[1:] if stage.drawn(ticket, [again]))
    others = [ticket for ticket in CREW if ticket != by]
    for ticket in others:
        stage.open(ticket, [])
    found = stage.result(by, again)
    stage.pass_time(stage.duties.epochs[last].deadline - stage.now)
    stage.open(by, [found])
    ((accusation, made),) = stage.attestations.accusations.items()
    assert (made.accused, made.is_work, made.epoch) == (1, False, last)
    stage.prepare(made.against, 0)
    stage.close()
    # Its draws are over: a miss that was shown too late is drawn no more, and nobody else opens a game.
    assert stage.duties.over_since(1) == stage.now
    stage.seed()
    assert refused(stage.open, by, [replace(found, duty=late)]) == "NotADuty"
    assert refused(stage.open_game, made.against, 0, 3) == "ClaimSettled"
    for ticket in others:
        stage.open(ticket, [])
    # Its accuser has the last second of the next epoch. The pot of whoever fell in epoch 0 is open until then.
    stage.pass_time(stage.duties.epochs[last + 1].deadline - stage.now)
    assert refused(stage.lapse, accusation) == "EpochOpen"
    assert stage.duties.over_since(1 + 2) == 0
    stage.open_game(accusation, 0, by - 1)
    stage.close()
    assert stage.duties.over_since(1 + 2) == (stage.now if last == 4 else 0)
    stage.end_game(accusation, 0, True)
    assert made.status is AccusationStatus.UPHELD
    stage.compare()


@pytest.mark.parametrize("right", [True, False])
def test_the_game_of_an_accusation_suspends_the_seat_until_its_verdict(stage: DutyStage, right: bool) -> None:
    name = accusing(stage)
    against = stage.attestations.accusations[name].against
    with pytest.raises(Reverted, match="NotTheBook"):
        stage.contracts["attestations"].call(
            "onTried", name, against, text(stage.people[0]), caller=text(stage.people[0])
        )
    assert refused(stage.judge, name, right) == "WrongAccusation"
    # Attack: a puppet of the accused opens the accuser's game and loses it.
    assert refused(stage.try_, name, by=1) == "NotYourAccusation"
    stage.try_(name)
    assert (stage.rounds.accusations[1], stage.rounds.suspensions[1]) == (1, 1)
    assert refused(stage.lapse, name) == "WrongAccusation"
    stage.compare()
    stage.judge(name, right)
    assert (stage.rounds.accusations[1], stage.rounds.suspensions[1]) == (0, 0)
    wanted = AccusationStatus.UPHELD if right else AccusationStatus.REJECTED
    assert stage.attestations.accusations[name].status is wanted
    stage.compare()


def test_a_false_attestation_is_found_by_who_audits_it_and_the_commitment_with_it(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    lie = replace(true_work(1, 0), update=mark("false"))
    stage.commit(1, 0, lie)
    blind = replace(stage.result(1, duty), update=lie.update)
    stage.open(1, [blind])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    assert not stage.attestations.accusations
    begin(stage, range(0))
    (audit,) = reaudits(stage)
    # Attack: sign as committed. Nobody audits itself.
    assert stage.drawn(1, [audit]) == []
    assert refused(stage.open, 1, [stage.result(2, audit)]) == "NotADuty"
    stage.open(2, [stage.result(2, audit)])
    accused = sorted((a.is_work, a.accused) for a in stage.attestations.accusations.values())
    assert accused == [(False, 1), (True, 1)]
    assert [stage.tickets.tickets[TicketId(k)].obligations for k in (1, 2)] == [1, 2]
    stage.compare()


def test_who_audits_a_blind_attestation_answers_for_its_accumulator(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    honest = stage.result(1, duty)
    blind = replace(honest, accumulators=(mark("guessed"),))
    stage.open(1, [blind])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    begin(stage, range(0))
    (audit,) = reaudits(stage)
    # Attack: find the blind attestation, give one's own true run, and sell the silence (E2).
    result = stage.result(2, audit)
    assert len(result.accumulators) == 2
    assert refused(stage.open, 2, [replace(result, accumulators=result.accumulators[:1])]) == "AccumulatorsMissing"
    other = replace(result.audited, accumulators=(mark("other"),))
    assert refused(stage.open, 2, [replace(result, audited=other)]) == "FindingMismatch"
    silent = replace(result, accumulators=(result.accumulators[0], mark("guessed")))
    stage.open(2, [silent])
    assert not stage.attestations.accusations
    name = list(stage.attestations.attestations)[-1]
    # Its claim holds the guess too, so the next audit convicts both.
    assert mark("guessed") in stage.attestations.findings[name].accumulators
    stage.open(3, [stage.result(3, audit)])
    assert [(a.is_work, a.accused) for a in stage.attestations.accusations.values()] == [(False, 1)]
    stage.compare()


def test_an_audit_answers_for_six_attestations_and_the_seventh_starts_afresh(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    stage.open(1, [stage.result(1, duty)])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    lengths = [1]
    for depth in range(1, 9):
        begin(stage, range(0))
        (audit,) = reaudits(stage)
        by = depth % 4 + 1
        stage.open(by, [stage.result(by, audit)])
        for ticket in CREW:
            if ticket != by:
                stage.open(ticket, [])
        lengths.append(len(list(stage.attestations.findings.values())[-1].keys))
    assert lengths == [1, 2, 3, 4, 5, 6, 7, 1, 2]
    assert max(lengths) == MAX_AUDITED + 1
    assert not stage.attestations.accusations
    stage.compare()


def test_a_ticket_under_accusation_cannot_leave(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    stage.open(1, [replace(stage.result(1, duty), accumulators=(mark("guessed"),))])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    stage.both(
        lambda: stage.tickets.retire(stage.people[0], TicketId(1), stage.now),
        "tickets",
        "retire",
        1,
        caller=stage.people[0],
    )
    begin(stage, range(0))
    (audit,) = reaudits(stage)
    stage.open(2, [stage.result(2, audit)])
    ((name, made),) = stage.attestations.accusations.items()
    assert not made.is_work
    stage.prepare(made.against, 0)
    stage.open_game(name, 0, 1)
    for ticket in CREW:
        if ticket != 2:
            stage.open(ticket, [])
    while stage.duties.number < stage.tickets.tickets[TicketId(1)].last_epoch + 4:
        begin(stage, range(0))
        for ticket in CREW[1:]:
            stage.open(ticket, [])

    def reclaim() -> None:
        stage.both(
            lambda: stage.tickets.reclaim(stage.people[0], TicketId(1)), "tickets", "reclaim", 1, caller=stage.people[0]
        )

    # Its last attestation can be disputed no longer: the accusation alone holds it.
    assert refused(reclaim) == "TicketObliged"
    stage.end_game(name, 0, False)
    assert stage.attestations.accusations[name].status is AccusationStatus.REJECTED
    reclaim()
    stage.compare()
