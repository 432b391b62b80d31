"""Fines and forfeits of tickets that are accused, or in a game, on model and contract: they wait, and stay owed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.ticket_types import Debt, TicketId, ticket_lock
from assay.protocol.types import Digest, Wei
from tests.harness.rounds.duties import CREW, TICKETS, DutyStage, work_duties
from tests.harness.rounds.duty_scenes import FINE, begin, crewed_stage, reaudits
from tests.harness.rounds.stage import refused
from tests.harness.rounds.staged_rounds import mark
from tests.harness.rounds.told_duties import ToldDutyStage

LIAR, ACCUSER, REPORTER = TicketId(1), TicketId(2), 3
ABSENCE = FINE + FINE * 4 // 2


@pytest.fixture
def stage() -> DutyStage:
    """Ticket 1 attested falsely in epoch 0, and ticket 2 has accused it in epoch 1; ticket 1 has not opened there."""
    made = crewed_stage()
    lie(made)
    return made


def lie(stage: DutyStage) -> None:
    """See `stage`."""
    (duty,) = work_duties(1, range(1))
    stage.open(LIAR, [replace(stage.result(LIAR, duty), accumulators=(mark("guessed"),))])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    begin(stage, range(0))
    (audit,) = reaudits(stage)
    stage.open(ACCUSER, [stage.result(ACCUSER, audit)])
    for ticket in CREW[2:]:
        stage.open(ticket, [])
    stage.close()


def accusation(stage: DutyStage) -> Digest:
    """Ticket 2's."""
    ((name, made),) = stage.attestations.accusations.items()
    assert made.accused == LIAR
    return name


def play(stage: DutyStage) -> Digest:
    """The accuser opens its game; the accusation."""
    name = accusation(stage)
    stage.prepare(stage.attestations.accusations[name].against, 0)
    stage.open_game(name, 0, 1)
    return name


def collect(stage: DutyStage, number: int) -> int:
    """What a fine that was owed takes."""
    return int(
        stage.both(
            lambda: stage.tickets.collect(LIAR, number, stage.now),
            "tickets", "collect", LIAR, number, caller=stage.people[0],
        )
        or 0
    )  # fmt: skip


def stake(stage: DutyStage) -> int:
    """What is left of the liar's."""
    return stage.vault.lock_amount(ticket_lock(LIAR))


def test_an_accused_ticket_cannot_fine_itself_before_the_verdict(stage: DutyStage) -> None:
    name, free = play(stage), stage.vault.free_of(stage.people[REPORTER])
    # Attack: a puppet proves the absence, and half of the fine is out of the verdict's reach.
    assert stage.absent(LIAR, 1, REPORTER) == 0
    assert (stake(stage), stage.vault.free_of(stage.people[REPORTER])) == (TICKETS.bond, free)
    assert refused(stage.absent, LIAR, 1) == "AlreadyFined"
    assert refused(collect, stage, 0) == "TicketDisputed"
    stage.compare()
    stage.end_game(name, 0, True)
    assert stake(stage) == TICKETS.bond
    stage.compare()


def test_a_fine_that_waited_is_paid_to_who_proved_it_when_the_accusation_failed(stage: DutyStage) -> None:
    name = play(stage)
    stage.absent(LIAR, 1, REPORTER)
    stage.end_game(name, 0, False)
    assert stage.attestations.accusations[name].status is AccusationStatus.REJECTED
    free = stage.vault.free_of(stage.people[REPORTER])
    assert refused(collect, stage, 1) == "NothingOwed"
    collect(stage, 0)
    assert (stake(stage), stage.vault.free_of(stage.people[REPORTER])) == (TICKETS.bond - ABSENCE, free + ABSENCE // 2)
    assert refused(collect, stage, 0) == "NothingOwed"
    stage.compare()


def test_silence_burns_no_stake_before_the_verdict_and_what_is_forfeit_stays_so(stage: DutyStage) -> None:
    name = play(stage)
    secret = stage.secret(LIAR, 1)
    begin(stage, range(0))
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    stage.close()
    burned = stage.vault.burned
    # Attack: be silent for two epochs, so that nothing is left for who caught it.
    stage.forfeit(LIAR, 1, 2)
    assert (stake(stage), stage.vault.burned) == (TICKETS.bond, burned)
    assert not stage.tickets.tickets[LIAR].convicted_at
    assert stage.tickets.debts == {(LIAR, 0): Debt(TICKETS.bond, None)}
    # Attack: let a puppet accuse, and show the secret once the claim that it hid is settled.
    stage.show(LIAR, 1, secret)
    assert refused(collect, stage, 0) == "TicketDisputed"
    stage.end_game(name, 0, False)
    collect(stage, 0)
    assert (stake(stage), stage.vault.burned) == (0, burned + TICKETS.bond)
    assert stage.tickets.tickets[LIAR].convicted_at == stage.now
    stage.compare()


def test_a_third_partys_game_keeps_fines_waiting_too() -> None:
    stage = crewed_stage()
    (duty,) = work_duties(1, range(1))
    stage.open(LIAR, [stage.result(LIAR, duty)])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    (name,) = stage.attestations.attestations
    begin(stage, range(0))
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    stage.close()
    stage.prepare(name, 0)
    stage.open_game(name, 0, 3)
    assert stage.absent(LIAR, 1) == 0
    stage.end_game(name, 0, False)
    assert collect(stage, 0) == ABSENCE or stake(stage) == TICKETS.bond - ABSENCE
    stage.compare()


def test_an_accusation_lapses_though_its_accuser_is_accused_and_the_fine_waits(stage: DutyStage) -> None:
    # Attack: a puppet accuses the accuser, so that what it accused stays frozen for as long.
    (duty,) = work_duties(stage.open_round(stage.duties.epochs[-1].start - 1), range(1))
    stage.commit(duty.round, 0)
    stage.seed()
    stage.open(3, [stage.result(3, duty, lie=True)])
    for ticket in (1, 2, 4):
        stage.open(ticket, [])
    begin(stage, range(0))
    (audit,) = [a for a in reaudits(stage) if stage.attestations.attestations[a.attestation].ticket == 3]
    stage.open(4, [stage.result(4, audit)])
    for ticket in (1, 2, 3):
        stage.open(ticket, [])
    begin(stage, range(0))
    for ticket in CREW:
        stage.open(ticket, [])
    stage.close()
    of_work, of_three = [name for name, a in stage.attestations.accusations.items() if a.epoch >= 2]
    assert stage.tickets.tickets[TicketId(3)].disputes == 1
    stage.lapse(of_work)
    assert stage.rounds.accusations[stage.attestations.accusations[of_work].accused] == 0
    assert stage.tickets.debts == {(TicketId(3), 0): Debt(Wei(FINE), stage.people[REPORTER])}
    assert stage.attestations.accusations[of_three].status is AccusationStatus.RECORDED
    stage.compare()


def test_an_index_knows_what_a_disputed_ticket_owes_and_when_it_was_collected() -> None:
    stage = ToldDutyStage()
    stage.crew()
    begin(stage)
    lie(stage)
    name = play(stage)
    stage.absent(LIAR, 1, REPORTER)
    assert stage.told.books.registry.debts == {(LIAR, 0): Debt(Wei(ABSENCE), stage.people[REPORTER])}
    # Games are told by the game's own events, which this stage has none of.
    stage.told.books.registry.dispute(LIAR)
    stage.told.books.registry.undispute(LIAR, False, stage.now)
    stage.end_game(name, 0, False)
    collect(stage, 0)
    assert stage.told.books.registry.debts == {}
    assert stage.told.books.registry.missing[LIAR] == ABSENCE
