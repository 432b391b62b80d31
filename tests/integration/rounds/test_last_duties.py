"""How audits end, on model and contract: the last epoch of duties, the call after it, and epochs that call nobody."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.rounds.duty_types import LAST_EPOCHS
from assay.protocol.rounds.ticket_types import TicketId
from tests.harness.rounds.duties import CREW, DutyStage
from tests.harness.rounds.duty_scenes import FINE, answer_all, begin, crewed_stage, reaudits
from tests.harness.rounds.stage import refused
from tests.harness.rounds.told_duties import ToldDutyStage


@pytest.fixture
def stage() -> DutyStage:
    """Round 1, the last, belongs to epoch 0."""
    return crewed_stage()


def end(stage: DutyStage, rounds: int) -> None:
    """No round opens any more."""
    stage.rounds.over = rounds
    stage.write("setOver", rounds)


def pass_epochs(stage: DutyStage, until: int) -> None:
    """Everybody on call opens, and answers nothing, until an epoch is seeded."""
    while stage.duties.number < until:
        for ticket in CREW:
            if stage.duties.epochs[-1].on_call and (stage.duties.number, ticket) not in stage.duties.answers:
                stage.open(ticket, [])
        begin(stage, range(0))


def test_the_last_epoch_is_known_once_one_began_after_the_last_commitment(stage: DutyStage) -> None:
    answer_all(stage, 1)
    round_ = stage.open_round(stage.now + 6_000)
    stage.commit(round_, 0)
    end(stage, round_ + 1)
    stage.close()
    # It began before the round's last commitment: work of it belongs to the next.
    assert (stage.now <= stage.rounds.until[round_], stage.duties.last_epoch) == (True, 0)
    stage.seed()
    pass_epochs(stage, 2)
    assert stage.duties.epochs[2].start > stage.rounds.until[round_]
    assert stage.duties.last_epoch == 2 + LAST_EPOCHS
    stage.compare()


def test_an_epoch_that_begins_in_the_last_second_to_commit_is_not_its_rounds_own(stage: DutyStage) -> None:
    answer_all(stage, 1)
    stage.pass_time(max(0, stage.duties.epochs[-1].deadline + 1 - stage.now))
    round_ = stage.open_round(stage.now)
    end(stage, round_ + 1)
    stage.close()
    assert (stage.duties.epochs[1].start, stage.duties.last_epoch) == (stage.rounds.until[round_], 0)
    stage.compare()


def test_nothing_is_drawn_after_the_last_epoch_though_findings_were_made_in_it(stage: DutyStage) -> None:
    end(stage, 2)
    answer_all(stage, 1)
    begin(stage, range(0))
    last = stage.duties.last_epoch
    assert last == 1 + LAST_EPOCHS
    while stage.duties.number < last:
        # Re-audits of re-audits go on until then.
        (audit, *_) = reaudits(stage)
        by = next(ticket for ticket in CREW if stage.drawn(ticket, [audit]))
        stage.open(by, [stage.result(by, audit)])
        for ticket in CREW:
            if ticket != by:
                stage.open(ticket, [])
        begin(stage, range(0))
    (audit, *_) = reaudits(stage)
    by, other = [ticket for ticket in CREW if stage.drawn(ticket, [audit])][:2]
    result = stage.result(by, audit)
    stage.open(by, [result])
    for ticket in CREW:
        if ticket != by:
            stage.open(ticket, [])
    begin(stage, range(0))
    assert stage.duties.epochs[last].idle is False and stage.duties.epochs[last + 1].idle is True
    # Attack: fines for duties that nobody pays any more.
    assert reaudits(stage) and not any(stage.drawn(ticket, reaudits(stage)) for ticket in CREW)
    for duty in (audit, reaudits(stage)[0]):
        assert refused(stage.open, other, [replace(result, duty=duty)]) == "NotADuty"
    assert stage.miss(other, last, audit) == FINE
    stage.compare()


def test_the_call_after_the_last_duties_is_owed_and_later_epochs_call_nobody(stage: DutyStage) -> None:
    end(stage, 2)
    answer_all(stage, 1)
    begin(stage, range(0))
    last = stage.duties.last_epoch
    pass_epochs(stage, last)
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    begin(stage, range(0))
    # Attack: hide the secret of the last duties, since no later call would show it.
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    stage.close()
    assert stage.duties.epochs[last + 1].fines
    assert stage.absent(1, last + 1) == FINE + FINE * 4 // 2
    stage.forfeit(1, last, last + 1)
    assert stage.tickets.tickets[TicketId(1)].convicted_at
    shown = stage.tickets.tickets[TicketId(2)].shown
    for number in range(last + 2, last + 5):
        stage.seed()
        assert stage.duties.epochs[number].on_call == 0
        assert refused(stage.open, 2, [], secret=stage.chains[2][shown + 1]) == "NotCalled"
        stage.close()
        # Nobody is called, so nobody is waited for, fined, or owes a secret.
        assert stage.duties.number == number + 1
        assert refused(stage.absent, 2, number) == "EpochWithoutFines"
    assert stage.duties.over_since(last + 1)
    stage.compare()


def test_an_index_knows_when_duties_end() -> None:
    stage = ToldDutyStage()
    stage.crew()
    begin(stage)
    end(stage, 2)
    pass_epochs(stage, 7)
    assert stage.told.books.duties.last_epoch == stage.duties.last_epoch == 4
    assert [epoch.idle for epoch in stage.told.books.duties.epochs] == [False] * 5 + [True] * 3
    stage.compare()
