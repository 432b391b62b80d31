"""What tickets that cannot answer for it say, on model and contract: answers of the accused, words of the drained."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DrawnDuty
from assay.protocol.rounds.ticket_types import TicketId, TicketTerms, ticket_lock
from assay.protocol.types import Wei
from tests.harness.rounds.duties import CREW, TICKETS, DutyStage, missed, work_duties
from tests.harness.rounds.duty_scenes import FINE, begin, crewed_stage, reaudits
from tests.harness.rounds.stage import refused
from tests.harness.rounds.staged_rounds import mark
from tests.unit.auditors.test_drawing import check_drawn

LIAR, ACCUSER = TicketId(1), TicketId(2)
ABSENCE = FINE + FINE * 4 // 2


# --- tickets that are accused


@pytest.fixture
def stage() -> DutyStage:
    """Ticket 1 gave a false result on purpose, answered truly in epoch 1, and is accused there afterwards."""
    made = crewed_stage()
    (duty,) = work_duties(1, range(1))
    made.open(LIAR, [replace(made.result(LIAR, duty), accumulators=(mark("guessed"),))])
    for ticket in CREW[1:]:
        made.open(ticket, [])
    answer(made)
    (audit,) = reaudits(made)[:1]
    made.open(ACCUSER, [made.result(ACCUSER, audit)])
    for ticket in CREW[2:]:
        made.open(ticket, [])
    return made


def answer(stage: DutyStage) -> DrawnDuty:
    """A round with a commitment, of which ticket 1 says what is to its liking; its duty."""
    round_ = begin(stage, range(1))
    (duty,) = work_duties(round_, range(1))
    stage.open(LIAR, [stage.result(LIAR, duty)])
    return duty


def again(stage: DutyStage, duty: DrawnDuty) -> list[TicketId]:
    """Tickets that are drawn for what ticket 1 answered in the epoch before."""
    name = missed(duty, stage.duties.number - 1, LIAR)
    return [ticket for ticket in CREW if stage.drawn(ticket, [name])]


def test_what_an_accused_ticket_answers_is_drawn_again_like_a_miss(stage: DutyStage) -> None:
    """Its stake may come back by a puppet's accusation, whatever it says: so nobody can buy anything that it says."""
    ((name, made),) = stage.attestations.accusations.items()
    assert made.accused == LIAR
    first = work_duties(2, range(1))[0]
    second = answer(stage)
    # It answered the first before it was accused, in the same epoch.
    target = stage.duties._target_of(2, TicketId(3), missed(first, 1, LIAR), stage.now)
    assert target.threshold == draws.threshold(3_000_000, 4)
    by = again(stage, first)
    assert by and {duty for ticket in CREW for duty in check_drawn(stage, ticket)} >= {missed(first, 1, LIAR)}
    for ticket in CREW[1:]:
        stage.open(ticket, [stage.result(ticket, missed(first, 1, LIAR))] if ticket in by else [])
    stage.close()
    # It was no miss, and is fined for none.
    assert refused(stage.miss, LIAR, 1, first) == refused(stage.miss, LIAR, 2, second) == "DutyAnswered"
    stage.lapse(name)
    third = answer(stage)
    by = again(stage, second)
    assert by
    for ticket in CREW[1:]:
        stage.open(ticket, [stage.result(ticket, missed(second, 2, LIAR))] if ticket in by else [])
    begin(stage, range(0))
    # Nobody accused it any more.
    assert again(stage, third) == []
    assert refused(stage.result, 2, missed(third, 3, LIAR)) == "DutyAnswered"
    stage.compare()
    for number in range(stage.duties.number + 1):
        doubted = [(number, ticket) in stage.attestations.doubted for ticket in CREW]
        assert [stage.contracts["attestations"].call("isDoubted", number, ticket) for ticket in CREW] == doubted


# --- tickets that fines have drained


@pytest.mark.parametrize(("bond", "speaks"), [(10 * ABSENCE, True), (10 * ABSENCE - 1, False)])
def test_a_ticket_below_nine_tenths_of_its_stake_cannot_open_until_it_is_filled_up(bond: int, speaks: bool) -> None:
    stage = DutyStage(tickets=TicketTerms(Wei(bond), TICKETS.seasoning, 1))
    stage.crew()
    begin(stage)
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    round_ = begin(stage, range(1))
    assert stage.absent(LIAR, 0) == ABSENCE
    assert stage.vault.lock_amount(ticket_lock(LIAR)) == bond - ABSENCE
    # Attack: let fines drain a stake, half of them into one's own pocket, and accuse for what is left.
    lie = [stage.result(LIAR, work_duties(round_, range(1))[0], lie=True)]
    if not speaks:
        assert refused(stage.open, LIAR, lie) == "TicketDrained"
        who = stage.owner(LIAR)
        stage.both(lambda: stage.tickets.top_up(who, LIAR), "tickets", "topUp", LIAR, caller=who)
    stage.open(LIAR, lie)
    assert len(stage.attestations.accusations) == 1
    stage.compare()
