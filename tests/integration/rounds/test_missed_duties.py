"""Duties that nobody answers, on model and contract: which are misses, what they cost, who is drawn for them again."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DutyKind, DutyResult, left_out
from assay.protocol.rounds.ticket_types import TicketId, next_link
from assay.protocol.types import Seat
from tests.harness.contracts.harness import Reverted
from tests.harness.rounds.duties import CREW, TERMS, TICKETS, DutyStage, missed, work_duties
from tests.harness.rounds.duty_scenes import FINE, SEATS, answer_all, begin, crewed_stage
from tests.harness.rounds.stage import refused
from tests.harness.rounds.staged_rounds import mark, true_finding, true_work
from tests.harness.rounds.told_duties import ToldDutyStage


@pytest.fixture
def stage() -> DutyStage:
    """Four tickets, all drawn for three commitments in the first epoch, which is seeded."""
    return crewed_stage()


# --- misses


def test_a_duty_that_is_not_answered_is_a_miss_and_costs_three_wages_once(stage: DutyStage) -> None:
    duties = stage.drawn(1, work_duties(1, SEATS))
    stage.open(1, [stage.result(1, duties[0])])
    answer_all(stage, 1, but=(1,))
    assert refused(stage.miss, 1, 0, duties[1]) == "EpochOpen"
    stage.close()
    free = stage.vault.free_of(stage.people[3])
    assert stage.miss(1, 0, duties[1]) == FINE
    assert stage.vault.free_of(stage.people[3]) == free + FINE // 2
    assert refused(stage.miss, 1, 0, duties[1]) == "AlreadyFined"
    assert refused(stage.miss, 1, 0, duties[0]) == "DutyAnswered"
    assert stage.miss(1, 0, duties[2]) == FINE
    assert refused(stage.miss, 2, 0, duties[2]) == "DutyAnswered"
    stage.compare()


@pytest.mark.parametrize("position", range(6))
def test_the_lowest_draws_are_the_duties_and_no_others(position: int) -> None:
    stage = DutyStage()
    stage.crew()
    round_ = begin(stage, range(6))
    duties = stage.drawn(1, work_duties(round_, range(6)))
    # Attack: drop the duty that one is paid to drop as one too many (E8). Ticket 1 leaves out one of six; c is four.
    answered = [duty for k, duty in enumerate(duties) if k != position][:4]
    stage.open(1, [stage.result(1, duty) for duty in answered])
    answer_all(stage, round_, but=(1,), seats=range(6))
    stage.close()
    if position < 4:
        assert stage.miss(1, 0, duties[position]) == FINE
    else:
        assert refused(stage.miss, 1, 0, duties[position]) == "DutyBeyondCapacity"
    assert refused(stage.miss, 1, 0, duties[5]) == "DutyBeyondCapacity"


def test_who_answered_fewer_than_c_missed_the_highest_draw_too() -> None:
    stage = DutyStage()
    stage.crew()
    round_ = begin(stage, range(6))
    duties = stage.drawn(1, work_duties(round_, range(6)))
    stage.open(1, [stage.result(1, duty) for duty in duties[:3]])
    answer_all(stage, round_, but=(1,), seats=range(6))
    stage.close()
    assert stage.miss(1, 0, duties[5]) == FINE


def test_who_names_what_it_leaves_out_owes_that_alone() -> None:
    """Bad luck: too slow for one of its c duties. Without a name it would owe all that it drew beyond c too."""
    stage = ToldDutyStage()
    stage.crew()
    round_ = begin(stage, range(6))
    duties = stage.drawn(1, work_duties(round_, range(6)))
    results = [stage.result(1, duty) for duty in duties[:4]]
    stage.open(1, [*results[:2], left_out(duties[2]), results[3]])
    answer_all(stage, round_, but=(1,), seats=range(6))
    begin(stage, range(0))
    assert stage.miss(1, 0, duties[2]) == FINE
    for duty in duties[4:]:
        assert refused(stage.miss, 1, 0, duty) == "DutyBeyondCapacity"
    for duty in (*duties[:2], duties[3]):
        assert refused(stage.miss, 1, 0, duty) == "DutyAnswered"
    # It is drawn again, and what is beyond is not.
    again = [missed(duty, 0, 1) for duty in duties]
    assert {duty for ticket in CREW for duty in stage.drawn(ticket, again)} == {again[2]}
    assert len(stage.attestations.attestations) == 3 + 3 * 4
    stage.compare()


def test_what_is_named_twice_not_drawn_or_too_high_spares_nothing() -> None:
    stage = ToldDutyStage(terms=replace(TERMS, audit_ppm=3_500_000))
    stage.crew()
    round_ = begin(stage, range(8))
    named = work_duties(round_, range(8))
    duties = stage.drawn(1, named)
    assert 6 <= len(duties) < 8
    first, names = stage.result(1, duties[0]), [left_out(duty) for duty in duties]
    # Attack: c is full by what is named beside its result, so that the second lowest is beyond it.
    assert refused(stage.open, 1, [first, names[0]]) == "NotAscending"
    assert refused(stage.open, 1, [names[1], names[1]]) == "NotAscending"
    (foreign, *_) = [left_out(duty) for duty in named if duty not in duties]
    assert refused(stage.open, 1, [foreign]) == "NotDrawn"
    assert refused(stage.open, 1, names[:5]) == "TooManyResults"
    nobody = left_out(replace(duties[0], seat=Seat(9)))
    assert refused(stage.open, 1, [nobody]) == "NotADuty"
    # Attack: name the highest, so that nothing is left to be missed. Those below are missed all the same.
    stage.open(1, names[-4:])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    stage.close()
    assert [stage.miss(1, 0, duty) for duty in duties] == [FINE] * len(duties)
    stage.compare()


def test_nobody_is_fined_on_a_base_that_is_not_final() -> None:
    stage = DutyStage()
    stage.crew()
    round_ = begin(stage, final=False)
    for ticket in CREW:
        stage.open(ticket, [])
    stage.close()
    duty = work_duties(round_, SEATS)[0]
    # Attack: commit on a base that one hides, so that nobody can replay and everybody is fined (A4).
    assert refused(stage.miss, 1, 0, duty) == "BaseNotFinal"
    stage.set_round(round_, stage.rounds.until[round_], True)
    assert stage.miss(1, 0, duty) == FINE


def test_a_missed_duty_is_drawn_again_at_rate_three_in_the_next_epoch(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    answer_all(stage, 1, but=(1,))
    stage.open(1, [])
    begin(stage, range(0))
    again = missed(duty, 0, 1)
    target = stage.duties._target_of(1, TicketId(2), again, stage.now)
    assert target.threshold == draws.threshold(3_000_000, 4)
    drawn = [ticket for ticket in CREW if stage.drawn(ticket, [again])]
    assert drawn
    for ticket in CREW:
        if ticket in drawn:
            stage.open(ticket, [stage.result(ticket, again)])
        else:
            stage.open(ticket, [])
    assert refused(stage.miss, 1, 0, again) == "NotADuty"  # it was drawn again in epoch 1, not in its own
    assert refused(stage.miss, drawn[0], 1, again) == "EpochOpen"
    begin(stage, range(0))
    # A redraw belongs to one epoch.
    assert all(stage.drawn(ticket, [again]) == [] for ticket in CREW)
    stage.compare()


def test_a_claim_that_many_missed_is_drawn_again_once_an_epoch(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    answer_all(stage, 1, but=(1, 2))
    stage.open(1, [])
    stage.open(2, [])
    begin(stage, range(0))
    first, second = missed(duty, 0, 1), missed(duty, 0, 2)
    # Any miss proves the redraw, and its draw is over the claim: else redraws breed where more than a third are missed.
    drawn = [ticket for ticket in CREW if stage.drawn(ticket, [first])]
    assert drawn == [ticket for ticket in CREW if stage.drawn(ticket, [second])]
    by, others = drawn[0], [ticket for ticket in CREW if ticket != drawn[0]]
    both = [stage.result(by, first), stage.result(by, second)]
    assert refused(stage.open, by, both) == "NotAscending"
    stage.open(by, both[:1])
    for ticket in others:
        stage.open(ticket, [])
    stage.close()
    assert refused(stage.miss, by, 1, second) == "DutyAnswered"
    if len(drawn) > 1:
        assert stage.miss(drawn[1], 1, second) == FINE
        assert refused(stage.miss, drawn[1], 1, first) == "AlreadyFined"
    stage.compare()


def test_a_miss_shown_when_its_claim_is_settled_is_not_drawn_again(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    secret = stage.secret(1)
    answer_all(stage, 1, but=(1,))
    for _ in range(2):
        begin(stage, range(0))
        for ticket in CREW[1:]:
            stage.open(ticket, [])
    # Shown in epoch 2, the last one in which work of epoch 0 is drawn.
    stage.show(1, 0, secret)
    begin(stage, range(0))
    again = missed(duty, 0, 1)
    # Attack: let who answers accuse what no game can be opened on, and take its fine.
    found, work = true_finding(1, 0), true_work(1, 0)
    result = DutyResult(again, work, found.ends, found.update, (mark("accumulator"),))
    assert refused(stage.open, 2, [result]) == "NotADuty"
    assert stage.miss(1, 0, duty) == FINE
    stage.compare()


def test_a_redraw_that_is_not_answered_is_a_miss(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    answer_all(stage, 1, but=(1,))
    stage.open(1, [])
    begin(stage, range(0))
    again = missed(duty, 0, 1)
    drawn = [ticket for ticket in CREW if stage.drawn(ticket, [again])]
    for ticket in CREW:
        stage.open(ticket, [])
    stage.close()
    assert stage.miss(drawn[0], 1, again) == FINE
    assert refused(stage.miss, drawn[0], 1, missed(duty, 0, 2)) == "DutyAnswered"


def test_work_is_audited_once_the_second_epoch_after_its_own_has_closed(stage: DutyStage) -> None:
    contract, seen = stage.contracts["duties"], []
    for _ in range(4):
        for ticket in CREW:
            stage.open(ticket, [])
        seen.append(contract.call("isAudited", 1, 0))
        assert stage.duties.is_audited(1, 0) == seen[-1]
        begin(stage, range(0))
    assert seen == [False, False, False, True]
    assert not contract.call("isAudited", 1, 1)
    assert not stage.duties.is_audited(1, 1)


def test_work_waits_one_epoch_more_where_the_next_one_fined_nobody(stage: DutyStage) -> None:
    answer_all(stage, 1)
    begin(stage, range(0))
    number = stage.duties.number
    # Attack: keep the epoch from fining, in which what was missed should be shown.
    while stage.duties.number == number:
        stage.close()
    assert not stage.duties.epochs[1].fines
    seen = []
    for _ in range(3):
        stage.seed()
        for ticket in CREW:
            stage.open(ticket, [])
        seen.append(stage.duties.is_audited(1, 0))
        assert stage.contracts["duties"].call("isAudited", 1, 0) == seen[-1]
        stage.close()
    assert seen == [False, False, True]
    assert stage.duties.over_since(0) == stage.duties.epochs[4].start
    stage.compare()


# --- not opening


def test_who_does_not_open_is_fined_and_shows_the_secret_by_the_next_opening(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    answer_all(stage, 1, but=(1,))
    assert refused(stage.absent, 1, 0) == "EpochOpen"
    round_ = begin(stage)
    assert stage.absent(1, 0) == FINE + FINE * 4 // 2
    assert refused(stage.absent, 1, 0) == "AlreadyFined"
    assert refused(stage.absent, 2, 0) == "CallAnswered"
    assert refused(stage.miss, 1, 0, duty) == "SecretNotShown"
    # Attack: be drawn on a lie, and do not open (E3). The next secret shows what was missed.
    stage.open(1, [])
    answer_all(stage, round_, but=(1,))
    begin(stage, range(0))
    assert stage.miss(1, 0, duty, via=1) == FINE
    assert refused(stage.miss, 1, 0, duty, via=0) == "SecretNotShown"
    again = missed(duty, 0, 1, via=1)
    assert any(stage.drawn(ticket, [again]) for ticket in CREW)
    stage.compare()


def test_who_does_not_open_is_fined_for_the_call_and_for_all_that_it_drew() -> None:
    """Also beyond c: who answered fewer than c had room for each of them (DU-6)."""
    stage = DutyStage()
    stage.crew()
    round_ = begin(stage, range(6))
    duties = stage.drawn(1, work_duties(round_, range(6)))
    assert len(duties) == 6 > stage.duties.terms.capacity == 4
    answer_all(stage, round_, but=(1,), seats=range(6))
    begin(stage, range(0))
    for ticket in CREW:
        stage.open(ticket, [])
    stage.close()
    assert stage.absent(1, 0) == FINE + FINE * 4 // 2
    assert [stage.miss(1, 0, duty, via=1) for duty in duties] == [FINE] * 6
    stage.compare()


def test_a_secret_is_shown_late_without_a_call(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    secret = stage.secret(1)
    answer_all(stage, 1, but=(1,))
    assert refused(stage.show, 1, 0, secret) == "EpochOpen"
    stage.close()
    stage.show(1, 0, secret)
    assert refused(stage.show, 1, 0, secret) == "CallShown"
    assert stage.miss(1, 0, duty) == FINE
    assert stage.absent(1, 0) == FINE + FINE * 4 // 2
    who = stage.owner(1)
    stage.both(lambda: stage.tickets.top_up(who, TicketId(1)), "tickets", "topUp", 1, caller=who)
    stage.seed()
    stage.open(1, [])
    assert refused(stage.forfeit, 1, 0, 0) == "EpochOpen"
    stage.compare()


def test_two_epochs_in_a_row_without_a_secret_cost_the_stake(stage: DutyStage) -> None:
    answer_all(stage, 1, but=(1,))
    begin(stage, range(0))
    assert refused(stage.forfeit, 1, 0, 1) == "EpochOpen"
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    stage.close()
    assert refused(stage.forfeit, 2, 0, 1) == "SecretKnown"
    burned = stage.vault.burned
    stage.forfeit(1, 0, 1)
    assert stage.vault.burned == burned + TICKETS.bond
    assert refused(stage.forfeit, 1, 0, 1) == "AlreadyFined"
    stage.compare()


def test_a_skipped_secret_is_never_read_from_another_chain(stage: DutyStage) -> None:
    stage.open(1, [])
    answer_all(stage, 1, but=(1,))
    begin(stage, range(0))
    for ticket in CREW:
        stage.open(ticket, [])
    stage.close()
    # Call 1 was shown itself; the second secret skipped none, so it shows no other call.
    assert refused(stage.duties.secret_of, TicketId(1), 0, 1) == "SecretNotShown"
    with pytest.raises(Reverted, match="SecretNotShown"):
        stage.contracts["duties"].call("secretOf", 1, 0, 1)
    assert stage.contracts["duties"].call("secretOf", 1, 1, 1) == stage.chains[1][2]


def test_what_was_not_opened_is_drawn_again_by_its_share(stage: DutyStage) -> None:
    answer_all(stage, 1, but=(1,))
    begin(stage, range(0))
    (duty,) = work_duties(1, range(1), DutyKind.WORK_AGAIN)
    target = stage.duties._target_of(1, TicketId(2), duty, stage.now)
    assert target.threshold == draws.threshold(TERMS.audit_ppm // 4, 4)
    drawn = [ticket for ticket in CREW if stage.drawn(ticket, work_duties(1, SEATS, DutyKind.WORK_AGAIN))]
    for ticket in CREW:
        duties = stage.drawn(ticket, work_duties(1, SEATS, DutyKind.WORK_AGAIN))
        stage.open(ticket, [stage.result(ticket, d) for d in duties])
    assert drawn
    stage.compare()


def test_a_secret_of_zero_shows_what_was_missed_like_any_other() -> None:
    """Attack: a chain that ends in zero. Drawn on a lie with that secret, a ticket sells its silence for nothing: no
    miss of that call could be shown, fined or drawn again.
    """
    stage = DutyStage()
    stage.register(0, [next_link(ZERO), ZERO])
    for who in range(1, 4):
        stage.register(who)
    stage.pass_time(stage.tickets.terms.seasoning)
    round_ = begin(stage)
    (duty, *_) = stage.drawn(1, work_duties(round_, SEATS))
    stage.open(1, [])
    answer_all(stage, round_, but=(1,))
    begin(stage, range(0))
    assert stage.miss(1, 0, duty) == FINE
    again = missed(duty, 0, 1)
    assert any(stage.drawn(ticket, [again]) for ticket in CREW[1:])
    stage.compare()
