"""What is missed in an epoch without fines, on model and contract: drawn again once.

Attack: half of a shift keeps its epoch from fining, leaves its duties undone for nothing, and is paid for drawing them
again, by the share that did not open and at rate three for each claim.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DrawnDuty, DutyKind, DutyResult
from assay.protocol.rounds.ticket_types import TicketId
from tests.harness.rounds.duties import CREW, TERMS, DutyStage, missed, work_duties
from tests.harness.rounds.duty_scenes import SEATS, answer_all, begin, crewed_stage, reaudits
from tests.harness.rounds.stage import refused
from tests.harness.rounds.staged_rounds import mark, true_finding, true_work
from tests.unit.auditors.test_drawing import check_drawn

OPENED, SILENT, LAST = CREW[0], CREW[1], CREW[3]


def rate(ppm: int, on_call: int = len(CREW)) -> int:
    return draws.threshold(ppm, on_call)


ONCE, AGAIN = rate(1_000_000), rate(3_000_000)


def close_unfined(stage: DutyStage, opened: tuple[TicketId, ...], results: tuple[DutyResult, ...] = ()) -> None:
    """Fewer than half of the tickets open, the first of them with these results; the others show their secrets later.

    The next epoch is seeded, and audits no commitment of its own.
    """
    number = stage.duties.number
    for ticket in opened:
        stage.open(ticket, results if ticket == opened[0] else [])
    hidden = {t: stage.secret(t) for t in stage.chains if (number, t) not in stage.duties.answers}
    while stage.duties.number == number:
        stage.close()
    assert not stage.duties.epochs[number].fines
    for ticket, secret in hidden.items():
        stage.show(ticket, number, secret)
    begin(stage, range(0))


def close_fined(stage: DutyStage) -> None:
    """Everybody opens, and answers nothing."""
    for ticket in CREW:
        stage.open(ticket, [])
    begin(stage, range(0))


def rates(stage: DutyStage, duty: DrawnDuty) -> tuple[int, int]:
    """Below what a duty is drawn in the newest epoch, and relative to what it ranks."""
    target = stage.duties._target_of(stage.duties.number, LAST, duty, stage.now)
    return target.threshold, target.scale


def draw_of(stage: DutyStage, ticket: TicketId, duty: DrawnDuty) -> int:
    seed = stage.duties.epochs[-1].seed
    assert seed is not None
    name = stage.duties._target_of(stage.duties.number, ticket, duty, stage.now).id
    return draws.draw(stage.secret(ticket), seed, name, ticket, duty.kind)


def claimed(duty: DrawnDuty) -> DutyResult:
    """A true result of a duty that there may not be."""
    found = true_finding(1, duty.seat)
    return DutyResult(duty, true_work(1, duty.seat), found.ends, found.update, (mark("accumulator"),))


@pytest.fixture
def stage() -> DutyStage:
    """Of four tickets one opened in epoch 0, without a result; that epoch fined nobody, and the next is seeded."""
    made = crewed_stage()
    close_unfined(made, (OPENED,))
    return made


def test_what_an_open_ticket_missed_is_drawn_again_at_rate_one_and_ranks_as_at_three(stage: DutyStage) -> None:
    redraws = [missed(duty, 0, OPENED) for duty in work_duties(1, SEATS)]
    assert [rates(stage, duty) for duty in redraws] == [(ONCE, AGAIN)] * len(SEATS)
    answered = refusals = 0
    for ticket in CREW:
        drawn = stage.drawn(ticket, redraws)
        assert {duty for duty in check_drawn(stage, ticket) if duty.kind is DutyKind.MISSED} == set(drawn)
        for duty in redraws:
            if ONCE <= draw_of(stage, ticket, duty) < AGAIN:
                assert refused(stage.open, ticket, [stage.result(ticket, duty)]) == "NotDrawn"
                refusals += 1
        top = draws.rank_of(draw_of(stage, ticket, drawn[-1]), AGAIN) if drawn else 0
        stage.open(ticket, [stage.result(ticket, duty) for duty in drawn])
        assert stage.duties.answers[1, ticket].top_rank == top
        answered += len(drawn)
    assert answered and refusals
    stage.compare()


def test_what_a_silent_ticket_missed_is_drawn_again_by_its_share_alone(stage: DutyStage) -> None:
    (work,), (share,) = work_duties(1, range(1)), work_duties(1, range(1), DutyKind.WORK_AGAIN)
    assert rates(stage, share) == (rate(TERMS.audit_ppm * 3 // 4),) * 2
    mine = next(ticket for ticket in CREW if stage.drawn(ticket, [share]))
    close_fined(stage)
    # Its secret was shown in epoch 1, so that this one would draw it again.
    assert refused(stage.open, LAST, [claimed(missed(work, 0, SILENT))]) == "NotADuty"
    # What was left undone of the share, in an epoch with fines, is drawn again like any miss.
    assert rates(stage, missed(share, 1, mine)) == (AGAIN, AGAIN)
    for ticket in CREW:
        check_drawn(stage, ticket)
    stage.compare()


def test_a_share_that_is_left_undone_without_fines_too_is_drawn_again_at_rate_one(stage: DutyStage) -> None:
    shares = work_duties(1, SEATS, DutyKind.WORK_AGAIN)
    silent, (share, *_) = next((t, drawn) for t in CREW[1:] if (drawn := stage.drawn(t, shares)))
    close_unfined(stage, (OPENED,))
    close_fined(stage)
    again = missed(share, 1, silent)
    assert rates(stage, again) == (ONCE, AGAIN)
    for ticket in CREW:
        check_drawn(stage, ticket)
        drawn = draw_of(stage, ticket, again)
        if drawn < ONCE:
            stage.open(ticket, [stage.result(ticket, again)])
        elif drawn < AGAIN:
            assert refused(stage.open, ticket, [stage.result(ticket, again)]) == "NotDrawn"
    assert stage.duties.epochs[-1].opened
    stage.compare()


def test_a_claim_that_was_missed_with_fines_and_without_is_drawn_at_the_higher_rate() -> None:
    """Its rank is one, whichever miss proves it: else whoever proves a miss would choose what is beyond c."""
    stage = crewed_stage()
    hidden = stage.secret(LAST)
    answer_all(stage, 1, but=(LAST,))
    begin(stage, range(0))
    shares = work_duties(1, SEATS, DutyKind.WORK_AGAIN)
    opened, (share, *_) = next((t, drawn) for t in CREW[:3] if (drawn := stage.drawn(t, shares)))
    stage.open(opened, [])
    stage.show(LAST, 0, hidden)
    close_unfined(stage, ())
    fined = missed(replace(share, kind=DutyKind.WORK), 0, LAST)
    unfined = missed(share, 1, opened)
    assert (rates(stage, fined), rates(stage, unfined)) == ((AGAIN, AGAIN), (ONCE, AGAIN))
    by = [ticket for ticket in CREW if ONCE <= draw_of(stage, ticket, fined) < AGAIN]
    assert by
    for ticket in CREW:
        check_drawn(stage, ticket)
    assert refused(stage.open, by[0], [stage.result(by[0], unfined)]) == "NotDrawn"
    stage.open(by[0], [stage.result(by[0], fined)])
    stage.compare()


def test_what_the_accused_answered_without_fines_is_drawn_again_at_rate_three() -> None:
    """Nobody can buy what it says, whatever its epoch fines."""
    stage = DutyStage()
    for who in (0, 1, 2, 3, 0):
        stage.register(who)
    stage.pass_time(stage.tickets.terms.seasoning)
    (first,) = work_duties(begin(stage, range(1)), range(1))
    liar = next(ticket for ticket in stage.chains if stage.drawn(ticket, [first]))
    stage.open(liar, [replace(stage.result(liar, first), accumulators=(mark("guessed"),))])
    for ticket in stage.chains:
        if ticket != liar:
            stage.open(ticket, [])
    (second,) = work_duties(begin(stage, range(1)), range(1))
    (audit,) = reaudits(stage)
    accuser = next(ticket for ticket in stage.chains if stage.drawn(ticket, [audit]))
    answer = tuple(stage.result(liar, duty) for duty in stage.drawn(liar, [second]))
    assert answer
    stage.open(accuser, [stage.result(accuser, audit)])
    close_unfined(stage, (liar,), answer)
    assert stage.attestations.accusations
    again = missed(second, 1, liar)
    assert rates(stage, again) == (rate(3_000_000, 5),) * 2
    by = [t for t in stage.chains if rate(1_000_000, 5) <= draw_of(stage, TicketId(t), again) < rate(3_000_000, 5)]
    stage.open(by[0], [stage.result(by[0], again)])
    stage.compare()
