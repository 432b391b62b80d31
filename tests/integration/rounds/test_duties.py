"""Audits on model and contract: what a call must answer, what is missed, what is accused, what an attack gains."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.errors import RejectedError
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import MAX_AUDITED, AccusationStatus, DrawnDuty, DutyKind, DutyResult, DutyTerms
from assay.protocol.rounds.ticket_types import TicketId, TicketTerms
from assay.protocol.types import Digest, Seat, Wei
from tests.harness.contracts import snapshots
from tests.harness.contracts.harness import Reverted
from tests.harness.rounds.duties import (
    CREW,
    TERMS,
    TICKETS,
    DutyStage,
    mark,
    missed,
    true_work,
    work_duties,
)
from tests.harness.rounds.stage import ETHER, START, text

SEATS = range(3)
FINE = 3 * ETHER


def refused(call: object, *args: object, **more: object) -> str:
    """The name under which model and contract refuse a call."""
    with pytest.raises(RejectedError) as rejected:
        call(*args, **more)  # type: ignore[operator]
    return rejected.value.code


@pytest.fixture
def stage() -> DutyStage:
    """Four tickets, one round of three commitments, the first epoch seeded; everybody is drawn for everything."""
    made = DutyStage()
    made.crew()
    begin(made)
    return made


def begin(stage: DutyStage, seats: range = SEATS, final: bool = True) -> int:
    """An epoch with a round of its own, seeded; the number of the round."""
    if not stage.duties.epochs[-1].closed and stage.duties.epochs[-1].seed is not None:
        stage.close()
    round_ = stage.open_round(stage.duties.epochs[-1].start - 1, final)
    for seat in seats:
        stage.commit(round_, seat)
    stage.seed()
    return round_


def answer_all(stage: DutyStage, round_: int, but: tuple[int, ...] = (), seats: range = SEATS) -> None:
    """Every ticket answers all that it is drawn for, up to c."""
    for ticket in CREW:
        if ticket not in but:
            duties = stage.drawn(ticket, work_duties(round_, seats))[: stage.duties.terms.capacity]
            stage.open(ticket, [stage.result(ticket, duty) for duty in duties])


# --- answering


def test_honest_answers_are_kept_and_accuse_nobody(stage: DutyStage) -> None:
    answer_all(stage, 1)
    assert len(stage.duties.attestations) == 12
    assert not stage.duties.accusations
    stage.close()
    assert stage.duties.epochs[0].fines
    stage.compare()


def test_states_of_an_attestation_are_lists_then_keys_and_accumulators(stage: DutyStage) -> None:
    duty = work_duties(1, range(1))[0]
    stage.open(1, [stage.result(1, duty)])
    ((name, finding),) = stage.duties.findings.items()
    x, y = stage.duties.states_of(name, finding)
    start = stage.rounds.start_of(1, Seat(0))
    key = draws._words(finding.keys[0][:8])
    assert x == state_digest([*start, key, draws._words(ZERO)])
    assert y == state_digest([*finding.ends, key, draws._words(finding.accumulators[0])])
    stage.compare()
    assert refused(stage.duties.states_of, name, replace(finding, update=ZERO)) == "FindingMismatch"


def test_only_the_owner_of_a_called_ticket_opens_and_only_once(stage: DutyStage) -> None:
    assert refused(stage.open, 1, [], by=1) == "NotTheTicketsOwner"
    late = stage.register(0)
    assert refused(stage.open, late, [], secret=stage.chains[late][1]) == "NotCalled"
    assert refused(stage.open, 1, [], secret=stage.chains[1][2]) == "WrongSecret"
    stage.open(1, [])
    assert refused(stage.open, 1, []) == "CallShown"


def test_a_call_is_answered_in_its_last_second_and_not_after(stage: DutyStage) -> None:
    stage.pass_time(stage.duties.epochs[0].deadline - stage.now)
    stage.open(1, [])
    assert refused(stage.any, "closeEpoch", lambda: stage.duties.close_epoch(stage.now)) == "TooEarly"
    stage.pass_time(1)
    assert refused(stage.open, 2, []) == "TooLate"


def test_a_convicted_ticket_accuses_nobody(stage: DutyStage) -> None:
    stage.game("convict", lambda: stage.tickets.convict(TicketId(1), stage.now), 1, of="tickets")
    assert refused(stage.open, 1, []) == "TicketConvicted"


def test_duties_are_of_the_epoch_after_the_last_commitment_alone(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    start = stage.duties.epochs[0].start
    # Attack: commit after the seed, once the secrets that could draw it are shown.
    stage.set_round(1, start, True)
    assert stage.drawn(1, [duty]) == []
    row = replace(stage_result(stage, duty), duty=duty)
    assert refused(stage.open, 1, [row]) == "NotADuty"
    stage.close()
    stage.close()
    stage.close()
    stage.seed()
    assert stage.drawn(1, [duty]) == [duty]
    stage.set_round(1, stage.duties.epochs[1].start - 1, True)
    assert stage.drawn(1, [duty]) == [duty]
    stage.set_round(1, start - 1, True)
    assert refused(stage.open, 1, [row]) == "NotADuty"
    stage.set_round(1, start, True)
    stage.open(1, [stage.result(1, duty)])


def stage_result(stage: DutyStage, duty: DrawnDuty) -> DutyResult:
    """A result of a duty that may be none."""
    until = stage.rounds.until[duty.round]
    stage.rounds.until[duty.round] = stage.duties.epochs[0].start - 1
    made = stage.result(1, duty)
    stage.rounds.until[duty.round] = until
    return made


def test_results_are_of_commitments_as_they_were_made_and_in_order(stage: DutyStage) -> None:
    duties = stage.drawn(1, work_duties(1, SEATS))
    results = [stage.result(1, duty) for duty in duties]
    assert refused(stage.open, 1, results[::-1]) == "NotAscending"
    assert refused(stage.open, 1, [results[0], results[0]]) == "NotAscending"
    other = replace(results[0], work=replace(results[0].work, update=ZERO))
    assert refused(stage.open, 1, [other]) == "WorkMismatch"
    assert refused(stage.open, 1, [replace(results[0], accumulators=())]) == "AccumulatorsMissing"
    nobody = replace(results[0], duty=replace(results[0].duty, seat=Seat(9)))
    assert refused(stage.open, 1, [nobody]) == "NotADuty"
    many = DutyStage()
    many.crew()
    begin(many, range(5))
    five = [many.result(1, duty) for duty in many.drawn(1, work_duties(1, range(5)))]
    assert refused(many.open, 1, five) == "TooManyResults"
    many.open(1, five[:4])


def test_a_copied_anchor_has_draws_and_keys_of_its_own() -> None:
    terms = replace(TERMS, audit_ppm=2_000_000)
    stage = DutyStage(terms=terms)
    secrets = None
    for who in range(4):
        ticket = stage.register(who)
        secrets = secrets or stage.chains[ticket]
    copied = stage.both(
        lambda: stage.tickets.register(stage.people[0], secrets[0], stage.now),
        "tickets",
        "register",
        secrets[0],
        caller=stage.people[0],
    )
    stage.chains[copied] = secrets
    stage.pass_time(TICKETS.seasoning)
    round_ = begin(stage, range(40))
    duties = work_duties(round_, range(40))
    # Attack: copy the opening of the ticket whose anchor one copied (B2).
    true, copy = stage.drawn(1, duties), stage.drawn(copied, duties)
    assert true != copy
    duty = next(duty for duty in true if duty not in copy)
    stolen = stage.result(1, duty)
    stage.open(1, [stolen])
    assert refused(stage.open, copied, [stolen]) == "NotDrawn"
    both = next(duty for duty in true if duty in copy)
    assert stage.result(copied, both).accumulators != stage.result(1, both).accumulators


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
            assert stage.drawn(ticket, [missed(duty, 0, 2)]) == []
            stage.open(ticket, [stage.result(ticket, again)])
        else:
            stage.open(ticket, [])
    assert refused(stage.miss, 1, 0, again) in ("EpochOpen", "NotADuty")
    begin(stage, range(0))
    # A redraw belongs to one epoch.
    assert all(stage.drawn(ticket, [again]) == [] for ticket in CREW)
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


# --- epochs


def test_an_epoch_that_too_few_opened_repeats_twice_and_then_fines_nobody(stage: DutyStage) -> None:
    stage.open(1, [])
    seed = stage.duties.epochs[0].seed
    # Attack: a third that stays away stops the audits for ever (E10).
    for repeats in (1, 2):
        stage.close()
        assert (stage.duties.number, stage.duties.epochs[0].repeats) == (0, repeats)
    stage.close()
    assert stage.duties.number == 1
    assert stage.duties.epochs[0].seed == seed
    assert refused(stage.absent, 2, 0) == "EpochWithoutFines"
    assert refused(stage.miss, 1, 0, work_duties(1, SEATS)[0]) == "EpochWithoutFines"
    assert refused(stage.forfeit, 2, 0, 0) == "EpochWithoutFines"
    stage.compare()


def test_half_of_the_tickets_on_call_close_an_epoch_with_fines(stage: DutyStage) -> None:
    stage.open(1, [])
    stage.close()
    stage.open(2, [])
    stage.close()
    assert stage.duties.epochs[0].fines
    assert stage.absent(3, 0) == FINE * 3


def test_an_epoch_waits_for_its_beacon_and_is_seeded_once() -> None:
    stage = DutyStage()
    stage.crew()
    assert refused(stage.any, "seedEpoch", lambda: stage.duties.seed_epoch(stage.now)) == "BeaconNotSubmitted"
    assert refused(stage.any, "closeEpoch", lambda: stage.duties.close_epoch(stage.now)) == "EpochNotSeeded"
    assert refused(stage.open, 1, [], secret=stage.chains[1][1]) == "EpochNotSeeded"
    stage.seed()
    assert refused(stage.any, "seedEpoch", lambda: stage.duties.seed_epoch(stage.now)) == "EpochSeeded"
    assert stage.duties.epochs[0].deadline == stage.now + TERMS.length


def test_an_epoch_without_tickets_calls_nobody_and_passes() -> None:
    stage = DutyStage()
    stage.seed()
    assert stage.duties.epochs[0].on_call == 0
    stage.close()
    assert stage.duties.epochs[0].closed
    assert not stage.duties.epochs[0].fines
    stage.compare()


def test_who_gathers_tickets_in_one_shift_audits_no_larger_share() -> None:
    stage = DutyStage(contracts=False, tickets=TicketTerms(Wei(ETHER), 7200, 4), people=1)
    tickets = [stage.register(0) for _ in range(64)]
    # Attack: keep of 48 tickets those of one shift. Sixteen honest ones are spread over all four.
    hostile = {ticket for ticket in tickets[:48] if ticket % 4 == 0}
    for ticket in tickets[:48]:
        if ticket not in hostile:
            stage.tickets.retire(stage.people[0], ticket, stage.now)
    stage.pass_time(stage.tickets.terms.seasoning)
    members = [stage.tickets.ticket_at(k, stage.now, stage.now) for k in range(28)]
    of_shift = {s: [t for t in members if t % 4 == s] for s in range(4)}
    shares = [sum(t in hostile for t in of_shift[drawn % 4]) / len(of_shift[drawn % 4]) for drawn in members]
    # The seed draws one of them, and its shift is called: the share on call is that of the stake, exactly.
    assert abs(sum(shares) / len(shares) - len(hostile) / len(members)) < 1e-12
    by_turns = sum(sum(t in hostile for t in of_shift[s]) / len(of_shift[s]) for s in range(4)) / 4
    assert max(sum(t in hostile for t in of_shift[s]) / len(of_shift[s]) for s in range(4)) == 0.75
    assert by_turns < len(hostile) / len(members)


def test_shifts_are_called_as_often_as_they_are_large() -> None:
    stage = DutyStage(tickets=TicketTerms(Wei(ETHER), 7200, 3))
    for who in (0, 1, 2, 3, 0, 1):
        stage.register(who)
    stage.pass_time(7200)
    called = []
    for _ in range(12):
        stage.seed()
        epoch = stage.duties.epochs[-1]
        assert epoch.on_call == 2
        called.append(epoch.shift)
        for ticket in (TicketId(epoch.shift or 3), TicketId((epoch.shift or 3) + 3)):
            stage.open(ticket, [])
        other = TicketId((epoch.shift + 1) % 3 or 3)
        assert refused(stage.open, other, [], secret=ZERO) == "NotCalled"
        stage.close()
    assert set(called) == {0, 1, 2}
    stage.compare()


# --- accusations


def accusing(stage: DutyStage) -> Digest:
    """Ticket 1 accuses the first commitment, falsely; the accusation."""
    (duty,) = work_duties(1, range(1))
    stage.open(1, [stage.result(1, duty, lie=True)])
    ((name, made),) = stage.duties.accusations.items()
    assert made.is_work
    assert stage.duties.accusers == {(1, 0, stage.people[0])}
    shown = [stage.contracts["duties"].call("hasAccused", 1, 0, text(who)) for who in stage.people]
    assert shown == [True, False, False, False]
    return name


def test_an_accusation_freezes_the_tenure_at_once_and_lapses_without_a_game(stage: DutyStage) -> None:
    name = accusing(stage)
    answer_all(stage, 1, but=(1,))
    assert stage.rounds.accusations[1] == 1
    assert stage.duties.first_accused == {1: 1}
    # Attack: accuse and leave, so that nothing ends the accusation and the tenure is frozen for ever.
    assert stage.tickets.tickets[TicketId(1)].obligations == 1
    stage.compare()
    stage.close()
    assert refused(stage.lapse, name) == "EpochOpen"
    stage.seed()
    for ticket in CREW:
        stage.open(ticket, [])
    stage.close()
    assert stage.lapse(name) == FINE
    assert refused(stage.lapse, name) == "WrongAccusation"
    assert stage.rounds.accusations[1] == 0
    assert stage.tickets.tickets[TicketId(1)].obligations == 0
    stage.compare()


@pytest.mark.parametrize("right", [True, False])
def test_the_game_of_an_accusation_suspends_the_seat_until_its_verdict(stage: DutyStage, right: bool) -> None:
    name = accusing(stage)
    with pytest.raises(Reverted, match="NotTheGame"):
        stage.contracts["duties"].call("onTried", name, caller=text(stage.people[0]))
    judge = (lambda: stage.duties.on_judged(name, right), name, right)
    assert refused(stage.game, "onJudged", *judge) == "WrongAccusation"
    stage.game("onTried", lambda: stage.duties.on_tried(name), name)
    assert (stage.rounds.accusations[1], stage.rounds.suspensions[1]) == (1, 1)
    assert refused(stage.lapse, name) == "WrongAccusation"
    stage.compare()
    stage.game("onJudged", *judge)
    assert (stage.rounds.accusations[1], stage.rounds.suspensions[1]) == (0, 0)
    wanted = AccusationStatus.UPHELD if right else AccusationStatus.REJECTED
    assert stage.duties.accusations[name].status is wanted
    stage.compare()


def reaudits(stage: DutyStage) -> list[DrawnDuty]:
    """A duty per attestation of the epoch before."""
    made = [name for name, a in stage.duties.attestations.items() if a.epoch + 1 == stage.duties.number]
    return [DrawnDuty(DutyKind.REAUDIT, attestation=name) for name in made]


def test_a_false_attestation_is_found_by_who_audits_it_and_the_commitment_with_it(stage: DutyStage) -> None:
    (duty,) = work_duties(1, range(1))
    lie = replace(true_work(1, 0), update=mark("false"))
    stage.commit(1, 0, lie)
    blind = replace(stage.result(1, duty), update=lie.update)
    stage.open(1, [blind])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    assert not stage.duties.accusations
    begin(stage, range(0))
    (audit,) = reaudits(stage)
    # Attack: sign as committed. Nobody audits itself.
    assert stage.drawn(1, [audit]) == []
    assert refused(stage.open, 1, [stage.result(2, audit)]) == "NotADuty"
    stage.open(2, [stage.result(2, audit)])
    accused = sorted((a.is_work, a.accused) for a in stage.duties.accusations.values())
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
    assert not stage.duties.accusations
    name = list(stage.duties.attestations)[-1]
    # Its claim holds the guess too, so the next audit convicts both.
    assert mark("guessed") in stage.duties.findings[name].accumulators
    stage.open(3, [stage.result(3, audit)])
    assert [(a.is_work, a.accused) for a in stage.duties.accusations.values()] == [(False, 1)]
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
        lengths.append(len(list(stage.duties.findings.values())[-1].keys))
    assert lengths == [1, 2, 3, 4, 5, 6, 7, 1, 2]
    assert max(lengths) == MAX_AUDITED + 1
    assert not stage.duties.accusations
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
    ((name, made),) = stage.duties.accusations.items()
    assert not made.is_work
    stage.game("onTried", lambda: stage.duties.on_tried(name), name)
    for ticket in CREW:
        if ticket != 2:
            stage.open(ticket, [])
    for _ in range(4):
        stage.close()
        while stage.duties.epochs[-1].seed is not None:
            stage.close()
        stage.seed()

    def reclaim() -> None:
        stage.both(
            lambda: stage.tickets.reclaim(stage.people[0], TicketId(1)), "tickets", "reclaim", 1, caller=stage.people[0]
        )

    assert refused(reclaim) in ("SecretsOwed", "TicketObliged")
    owed = stage.tickets.tickets[TicketId(1)].until
    number = max(k for k, epoch in enumerate(stage.duties.epochs) if epoch.start < owed)
    if stage.tickets.tickets[TicketId(1)].shown < stage.duties.epochs[number].call:
        stage.show(1, number)
        for _ in range(3):
            stage.close()
            while stage.duties.epochs[-1].seed is not None:
                stage.close()
            stage.seed()
    assert refused(reclaim) == "TicketObliged"
    stage.game("onJudged", lambda: stage.duties.on_judged(name, False), name, False)
    reclaim()
    stage.compare()


# --- terms and play


@pytest.mark.parametrize(
    ("change", "good"),
    [
        ({}, True),
        ({"length": 0}, False),
        ({"length": 3601}, False),
        ({"capacity": 0}, False),
        ({"capacity": 16}, True),
        ({"capacity": 17}, False),
        ({"audit_ppm": 0}, False),
        ({"reaudit_ppm": 0}, False),
        ({"wage": 0}, False),
    ],
)
def test_terms_of_audits_are_held_to_their_bounds(change: dict[str, int], good: bool) -> None:
    terms = DutyTerms(**{name: getattr(TERMS, name) for name in DutyTerms.__slots__} | change)  # type: ignore[arg-type]
    if good:
        DutyStage(terms=terms)
        return
    assert refused(DutyStage, contracts=False, terms=terms) == "BadDutyTerms"
    stage = DutyStage()
    peers = tuple(stage.contracts["rounds"].address for _ in range(5))
    row = tuple(getattr(terms, name) for name in DutyTerms.__slots__)
    assert stage.evm is not None
    with pytest.raises(RuntimeError):
        stage.evm.deploy("Duties", (stage.contracts["tickets"].address, *peers), row)


@pytest.mark.parametrize("seed", range(4))
def test_audits_on_model_and_contract_end_alike_whatever_tickets_do(seed: int) -> None:
    chance = random.Random(seed)
    stage = DutyStage(terms=replace(TERMS, audit_ppm=1_500_000, reaudit_ppm=1_000_000, capacity=3), stake=2000 * ETHER)
    for who in (0, 1, 2, 3, 0, 1):
        stage.register(who)
    stage.pass_time(TICKETS.seasoning)
    seen: dict[str, int] = {}

    def attempt(name: str, call: object, *args: object, **more: object) -> None:
        try:
            call(*args, **more)  # type: ignore[operator]
        except RejectedError as rejected:
            name = rejected.code
        seen[name] = seen.get(name, 0) + 1

    everything: list[DrawnDuty] = []
    for _ in range(9):
        seats = range(chance.randrange(1, 6))
        round_ = stage.open_round(stage.duties.epochs[-1].start - 1, final=chance.random() < 0.8)
        for seat in seats:
            work = true_work(round_, seat)
            stage.commit(round_, seat, replace(work, update=mark("lie")) if chance.random() < 0.2 else work)
        stage.seed(chance.random())
        number = stage.duties.number
        last = work_duties(round_ - 1, range(6)) if round_ > 1 else []
        duties = (
            work_duties(round_, seats) + [replace(duty, kind=DutyKind.WORK_AGAIN) for duty in last] + reaudits(stage)
        )
        gone = [missed(duty, number - 1, ticket) for duty in everything for ticket in range(1, 7)]
        for ticket in range(1, 7):
            manner = chance.random()
            if manner < 0.15 or TicketId(ticket) not in stage.tickets.tickets:
                continue
            wanted = stage.drawn(ticket, duties + gone)[:3]
            if manner < 0.35:
                wanted = wanted[1:]
            results = [stage.result(ticket, duty, lie=chance.random() < 0.1) for duty in wanted]
            if results and chance.random() < 0.1:
                results[0] = replace(results[0], accumulators=(mark("guess"), *results[0].accumulators[1:]))
            attempt("open", stage.open, ticket, results)
        while stage.duties.number == number:
            stage.close()
        for ticket in range(1, 7):
            attempt("absent", stage.absent, ticket, number)
            attempt("show", stage.show, ticket, number) if chance.random() < 0.3 else None
            for duty in duties + gone:
                if chance.random() < 0.5:
                    attempt("miss", stage.miss, ticket, number, duty)
            if number:
                attempt("miss via", stage.miss, ticket, number - 1, chance.choice(everything), via=number)
                attempt("forfeit", stage.forfeit, ticket, number - 1, number)
        for name in list(stage.duties.accusations):
            if chance.random() < 0.3:
                attempt("lapse", stage.lapse, name)
        everything = duties
        stage.compare()
        assert stage.vault.is_conserved()
    print(dict(sorted(seen.items())))
    assert seen.keys() >= {"open", "absent", "miss", "lapse", "SecretNotShown", "NotDrawn", "DutyAnswered", "NotADuty"}


# --- gas


@pytest.mark.timeout(600)
def test_gas_of_audits_does_not_grow_with_tickets_or_commitments() -> None:
    table: dict[str, dict[str, int]] = {}
    for count in (8, 64, 1024, 10_000):
        for call, gas in gas_of_audits(count).items():
            table.setdefault(call, {})[f"{count} tickets"] = gas
    for call, row in table.items():
        assert max(row.values()) < 1.15 * min(row.values()), call
    snapshots.check("duties", table)


def gas_of_audits(count: int) -> dict[str, int]:
    """Gas of each call with this many tickets, at most 1,024 commitments, and nearly everybody drawn."""
    start = START + 7200 + 12 * count
    terms = replace(TERMS, start=start, audit_ppm=4_000_000_000, reaudit_ppm=4_000_000_000)
    tickets = TicketTerms(Wei(ETHER), 7200, 2)
    stage = DutyStage(terms=terms, tickets=tickets, people=1, stake=20_000 * ETHER)
    secrets = stage.chains[stage.register(0)]
    for _ in range(count - 1):
        stage.pass_time(12)
        stage.register(0, secrets=secrets)
    stage.pass_time(tickets.seasoning)
    gas: dict[str, int] = {}
    seats = range(min(count, 1024))
    # The first epoch is opened by half of its shift, so that it fines; the first openings write slots that are zero.
    round_ = begin(stage, seats)
    gas["seedEpoch"] = stage.gas["seedEpoch"]
    shift, called = stage.duties.epochs[0].shift, stage.duties.epochs[0].on_call
    crew = [ticket for ticket in range(1, count + 1) if ticket % 2 == shift]
    assert len(crew) == called
    some = sorted({(len(seats) - 1) * k // 11 for k in range(12)})
    duties = [stage.drawn(crew[k], work_duties(round_, some))[:4] for k in range(2)]
    stage.open(crew[0], [stage.result(crew[0], duty) for duty in duties[0]])
    gas["open, 4 results"] = stage.gas["open"]
    stage.open(crew[1], [stage.result(crew[1], duties[1][0])])
    gas["open, 1 result"] = stage.gas["open"]
    for ticket in crew[2 : called // 2 + 1]:
        stage.open(ticket, [])
    gas["open, none"] = stage.gas["open"]
    stage.close()
    gas["closeEpoch"] = stage.gas["closeEpoch"]
    stage.miss(crew[1], 0, duties[1][1], who=0)
    stage.miss(crew[1], 0, duties[1][2], who=0)
    gas["miss"] = stage.gas["miss"]
    return gas
