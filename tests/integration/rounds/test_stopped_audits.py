"""Audits of a run that was cancelled or wound down, on model and contract: nothing is drawn, answered or fined."""

from __future__ import annotations

import pytest

from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from tests.harness.rounds.duties import CREW, DutyStage, work_duties
from tests.harness.rounds.duty_scenes import answer_all, begin, crewed_stage
from tests.harness.rounds.stage import refused


@pytest.fixture
def stage() -> DutyStage:
    """In epoch 0 ticket 1 accused a commitment, ticket 2 left its duties undone, ticket 3 did not open."""
    made = crewed_stage()
    (duty,) = work_duties(1, range(1))
    made.open(1, [made.result(1, duty, lie=True)])
    made.open(2, [])
    answer_all(made, 1, but=(1, 2, 3))
    made.close()
    return made


def test_whom_a_game_holds_through_a_stop_need_not_answer_any_more(stage: DutyStage) -> None:
    """Attack: a puppet's game holds its victim's stake, and each call that it does not answer is fined."""
    secret, later = stage.secret(3, 0), stage.secret(2, 0)
    begin(stage, range(0))
    stage.stop()
    (duty,) = stage.drawn(2, work_duties(1, range(1)), 0)
    stakes = [stage.vault.lock_amount(ticket_lock(ticket)) for ticket in CREW]
    assert refused(stage.miss, 2, 0, duty) == "RunStopped"
    assert refused(stage.absent, 3, 0) == "RunStopped"
    assert refused(stage.forfeit, 3, 0, 0) == "RunStopped"
    assert refused(stage.show, 3, 0, secret) == "RunStopped"
    assert refused(stage.open, 2, [], later) == "RunStopped"
    assert refused(stage.close) == "RunStopped"
    assert [stage.vault.lock_amount(ticket_lock(ticket)) for ticket in CREW] == stakes
    stage.compare()


def test_no_epoch_takes_its_seed_after_a_stop(stage: DutyStage) -> None:
    stage.stop()
    assert refused(stage.seed) == "RunStopped"
    stage.compare()


def test_what_a_stop_leaves_without_a_game_lapses_at_once_without_a_fine(stage: DutyStage) -> None:
    ((name, made),) = stage.attestations.accusations.items()
    stake = stage.vault.lock_amount(ticket_lock(TicketId(1)))
    assert refused(stage.lapse, name) == "EpochOpen"
    stage.stop()
    stage.lapse(name)
    assert made.status is AccusationStatus.LAPSED
    assert stage.vault.lock_amount(ticket_lock(TicketId(1))) == stake
    assert (stage.rounds.accusations[1], stage.tickets.tickets[TicketId(1)].obligations) == (0, 0)
    stage.compare()


def test_a_stop_ends_the_window_of_an_attestation_and_a_game_still_holds_it(stage: DutyStage) -> None:
    names = list(stage.attestations.attestations)
    played, quiet = names[0], names[1]
    stage.prepare(played, 0)
    stage.open_game(played, 0, 1)
    assert [stage.attestations.window_of(name) for name in (played, quiet)] == [0, 0]
    stage.stop()
    stopped = stage.now
    assert [stage.attestations.window_of(name) for name in (played, quiet)] == [0, stopped]
    stage.compare()
    stage.pass_time(100)
    stage.end_game(played, 0, False)
    assert [stage.attestations.window_of(name) for name in (played, quiet)] == [stopped + 100, stopped]
    stage.compare()


def test_a_window_that_epochs_have_ended_is_not_moved_by_a_stop(stage: DutyStage) -> None:
    for _ in range(4):
        begin(stage, range(0))
        for ticket in CREW:
            stage.open(ticket, [])
    stage.close()
    ends = {name: stage.attestations.window_of(name) for name in stage.attestations.attestations}
    assert all(stage.duties.over_since(1) == end for end in ends.values() if end)
    assert any(ends.values())
    stage.pass_time(1000)
    stage.stop()
    assert {name: stage.attestations.window_of(name) for name in ends if ends[name]} == {
        name: end for name, end in ends.items() if end
    }
    stage.compare()
