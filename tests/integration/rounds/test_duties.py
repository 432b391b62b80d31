"""Duties on model and contract: what a call must answer, how epochs open and close, what terms are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.digests import ZERO, state_digest
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DrawnDuty, DutyResult, DutyTerms
from assay.protocol.rounds.ticket_types import TicketId, TicketTerms
from assay.protocol.types import Digest, Seat, Wei
from tests.harness.rounds.duties import CREW, TERMS, TICKETS, DutyStage, work_duties
from tests.harness.rounds.duty_scenes import FINE, SEATS, answer_all, begin, crewed_stage, reaudits
from tests.harness.rounds.samples import mark
from tests.harness.rounds.stage import ETHER, refused
from tests.harness.rounds.staged import deploy_charter, modules_at


@pytest.fixture
def stage() -> DutyStage:
    """Four tickets, all drawn for three commitments in the first epoch, which is seeded."""
    return crewed_stage()


# --- answering


def test_honest_answers_are_kept_and_accuse_nobody(stage: DutyStage) -> None:
    answer_all(stage, 1)
    assert len(stage.attestations.attestations) == 12
    assert not stage.attestations.accusations
    stage.close()
    assert stage.duties.epochs[0].fines
    stage.compare()


def test_a_finding_is_a_claim_for_each_key_and_one_of_its_update(stage: DutyStage) -> None:
    duty = work_duties(1, range(1))[0]
    stage.open(1, [stage.result(1, duty)])
    for ticket in CREW[1:]:
        stage.open(ticket, [])
    begin(stage, range(0))
    (audit,) = reaudits(stage)
    stage.open(2, [stage.result(2, audit)])
    first, second = stage.attestations.findings.items()
    start = stage.rounds.start_of(1, Seat(0))
    for (name, finding), count in ((first, 1), (second, 2)):
        assert len(finding.keys) == count
        for part, (key, accumulator) in enumerate(zip(finding.keys, finding.accumulators, strict=True)):
            claim = stage.prepare(name, part)
            words = draws._words(key[:8])
            assert claim.x == state_digest([*start, words, draws._words(ZERO)])
            assert claim.y == state_digest([*finding.ends, words, draws._words(accumulator)])
            assert claim.steps == 60 * 5
        claim = stage.prepare(name, count)
        assert claim.x == state_digest([start[0], finding.ends[0]])
        assert (claim.y, claim.steps) == (state_digest([finding.update]), 1)
        assert refused(stage.prepare, name, count + 1) == "ClaimNotFound"
        # Attack: X or Y of the challenger's own choice.
        assert refused(stage.prepare, name, 0, replace(finding, update=ZERO)) == "FindingMismatch"
    stage.compare()


def test_only_the_owner_of_a_called_ticket_opens_and_only_once(stage: DutyStage) -> None:
    assert refused(stage.open, 1, [], by=1) == "NotTheTicketsOwner"
    late = stage.register(0)
    assert refused(stage.open, late, [], secret=stage.chains[late][1]) == "NotCalled"
    assert refused(stage.open, 1, [], secret=stage.chains[1][2]) == "WrongSecret"
    stage.open(1, [])
    assert refused(stage.open, 1, []) == "CallShown"


@pytest.mark.parametrize("before", [0, 1])
def test_a_ticket_is_called_until_the_second_at_which_it_leaves(stage: DutyStage, before: int) -> None:
    ticket, leaver = TicketId(1), stage.owner(1)
    stage.both(lambda: stage.tickets.retire(leaver, ticket, stage.now), "tickets", "retire", ticket, caller=leaver)
    until = stage.tickets.tickets[ticket].until
    answer_all(stage, 1)
    stage.pass_time(until - before - stage.now)
    stage.close()
    stage.seed()
    assert stage.duties.epochs[1].start == until - before
    assert stage.duties.epochs[1].on_call == len(CREW) - 1 + before
    if before:
        stage.open(ticket, [])
    else:
        # Attack: show more calls than one is owed for, so that what one owes is below zero.
        assert refused(stage.open, ticket, []) == "NotCalled"
        for other in CREW[1:]:
            stage.open(other, [])
        stage.close()
        assert refused(stage.show, ticket, 1) == "NotCalled"
    stage.compare()


def test_a_call_is_answered_in_its_last_second_and_not_after(stage: DutyStage) -> None:
    stage.pass_time(stage.duties.epochs[0].deadline - stage.now)
    stage.open(1, [])
    assert refused(stage.any, "closeEpoch", lambda: stage.duties.close_epoch(stage.now)) == "TooEarly"
    stage.pass_time(1)
    assert refused(stage.open, 2, []) == "TooLate"


def test_a_convicted_ticket_accuses_nobody(stage: DutyStage) -> None:
    stage.game("dispute", lambda: stage.tickets.dispute(TicketId(1)), 1, of="tickets")
    stage.game("undispute", lambda: stage.tickets.undispute(TicketId(1), True, stage.now), 1, True, of="tickets")
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
    two = (*results[0].accumulators, ZERO)
    assert refused(stage.open, 1, [replace(results[0], accumulators=two)]) == "AccumulatorsMissing"
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


def test_a_call_is_answered_by_the_seed_that_stands_and_no_other(stage: DutyStage) -> None:
    seed = stage.duties.epochs[0].seed
    assert seed is not None
    # Attack: after a reorganization the same ticket is called by another seed, and its answer is mined again as it was.
    for other in (mark("the seed of blocks that are gone"), ZERO, Digest(seed[:-1] + bytes([seed[-1] ^ 1]))):
        assert refused(stage.open, 1, [], seed=other) == "SeedMismatch"
    stage.open(1, [], seed=seed)
    stage.compare()


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


# --- terms


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
    assert stage.evm is not None
    charter = deploy_charter(stage.evm, modules_at(), duties=terms, tickets=stage.tickets.terms)
    with pytest.raises(RuntimeError):
        stage.evm.deploy("Duties", charter.address)
