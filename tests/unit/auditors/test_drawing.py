"""What an auditor finds that it is drawn for, and what others missed: what the executable model says, and all of it."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from assay.protocol.errors import RejectedError
from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DrawnDuty, DutyKind, Missed, left_out
from assay.protocol.rounds.ticket_types import TicketId, TicketTerms
from assay.protocol.types import Digest
from assay_verifier.drawing import Drawn, DutyBook
from tests.harness.auditors.stage_records import StageRecords
from tests.harness.rounds.duties import TERMS, TICKETS, DutyStage, work_duties
from tests.harness.rounds.stage import ETHER
from tests.harness.rounds.staged_rounds import mark, true_work

SEATS = range(4)
PLAIN = (DutyKind.WORK, DutyKind.REAUDIT, DutyKind.WORK_AGAIN, DutyKind.REAUDIT_AGAIN)


def nameable(stage: DutyStage, number: int | None = None) -> list[DrawnDuty]:
    """Every duty that a call of an epoch, the newest, could name: any kind, any commitment or attestation, missed by
    anybody.
    """
    newest = stage.duties.number if number is None else number
    rounds = range(max(1, newest - 4), newest + 2)
    names = [name for name, a in stage.attestations.attestations.items() if -1 <= newest - a.epoch < 5]
    plain = [d for kind in PLAIN for round_ in rounds for d in work_duties(round_, SEATS, kind)]
    plain += [DrawnDuty(kind, attestation=name) for kind in PLAIN for name in names]
    shown = [(via, t) for (via, t), a in stage.duties.answers.items() if a.shown_in + 1 == newest]
    gone = [
        replace(duty, kind=DutyKind.MISSED, missed=Missed(duty.kind, number, ticket, via))
        for duty in plain
        for via, ticket in shown
        for number in range(max(0, via - 3), via + 1)
    ]
    return plain + gone


def check_drawn(stage: DutyStage, ticket: TicketId) -> list[DrawnDuty]:
    """The book of duties against the model's answer about every duty that could be named."""
    number = stage.duties.number
    found = DutyBook(StageRecords(stage)).drawn(number, ticket, stage.secret(ticket))
    wanted = stage.drawn(ticket, nameable(stage))

    def claim(duty: DrawnDuty) -> tuple[DutyKind, Digest]:
        return duty.kind, stage.duties._target_of(number, ticket, duty, stage.now).id

    # A claim that many missed is drawn again once: any miss proves it.
    assert [claim(one.duty) for one in found] == list(dict.fromkeys(map(claim, wanted)))
    assert {one.duty for one in found} <= set(wanted)
    assert [one.rank for one in found] == sorted(one.rank for one in found)
    return [one.duty for one in found]


def check_missed(stage: DutyStage, number: int, ticket: TicketId, via: int) -> int:
    """What the book says was missed against what the model fines; how many it were."""
    book = DutyBook(StageRecords(stage))
    missed = (*book.missed(number, ticket, via), *(book.missed_again(number, ticket, via) if number == via else ()))
    ours, theirs = {(one.duty.kind, one.target) for one in missed}, set()
    for duty in nameable(stage, number):
        # What was drawn again is gone through for calls that were answered themselves: it takes as long as all else.
        if duty.kind is DutyKind.MISSED and number < via:
            continue
        try:
            target = stage.duties._target_of(number, ticket, duty, stage.now)
            stage.duties._check_missed(Missed(duty.kind, number, ticket, via), target, False, stage.now)
        except RejectedError:
            continue
        theirs.add((duty.kind, target.id))
    assert ours == theirs
    return len(missed)


def play(seed: int, shifts: int) -> Counter[str]:
    """Epochs of tickets that answer, drop, name what they drop, stay silent and show later, half of them without fines;
    every draw checked. What occurred, counted.
    """
    chance, seen = random.Random(seed), Counter[str]()
    terms = replace(TERMS, audit_ppm=1_500_000, reaudit_ppm=1_000_000, capacity=3)
    stage = DutyStage(False, terms, TicketTerms(TICKETS.bond, TICKETS.seasoning, shifts), stake=3000 * ETHER)
    crew = [stage.register(who % 4) for who in range(6)]
    stage.pass_time(TICKETS.seasoning)
    for _ in range(7):
        round_ = stage.open_round(stage.duties.epochs[-1].start - 1)
        for seat in SEATS[: chance.randrange(1, 5)]:
            work = true_work(round_, seat)
            stage.commit(round_, seat, replace(work, update=mark("lie")) if chance.random() < 0.2 else work)
        stage.seed(chance.random())
        number, silent = stage.duties.number, chance.choice((0.2, 0.7))
        for ticket in crew:
            if not stage.duties._is_called(ticket, stage.duties.epochs[number], stage.now):
                continue
            wanted = check_drawn(stage, ticket)
            seen.update(duty.kind.name for duty in wanted)
            unfined = {duty for duty in wanted if not stage.duties.epochs[duty.missed.epoch].fines}
            seen["missed without fines"] += sum(duty.kind is DutyKind.MISSED for duty in unfined)
            if chance.random() < silent:
                continue
            answered = wanted[:3] if chance.random() < 0.5 else wanted[1:3]
            results = [stage.result(ticket, duty, lie=chance.random() < 0.1) for duty in answered]
            results = [left_out(one.duty) if chance.random() < 0.2 else one for one in results]
            seen["named"] += sum(not one.accumulators for one in results)
            try:
                stage.open(ticket, results)
            except RejectedError as refused:
                seen[refused.code] += 1
        while stage.duties.number == number:
            stage.close()
        for ticket in crew:
            if (number, ticket) not in stage.duties.answers and chance.random() < 0.3:
                try:
                    stage.show(ticket, number)
                except RejectedError as refused:
                    seen[refused.code] += 1
        for (via, ticket), answer in list(stage.duties.answers.items()):
            if via == number or answer.shown_in == number:
                for before in range(max(0, via - 2), via + 1):
                    missed = check_missed(stage, before, ticket, via)
                    seen["missed"] += missed
                    seen["missed by a skipped call"] += missed * (before < via)
    return seen


@pytest.mark.parametrize("seed", [0, 4])
@pytest.mark.parametrize("shifts", [1, 2])
@pytest.mark.gate_takes(1)
def test_an_auditor_finds_what_the_model_lets_it_answer_and_nothing_else(seed: int, shifts: int) -> None:
    seen = play(seed, shifts)
    print(dict(seen))
    assert all(seen[kind.name] for kind in (DutyKind.WORK, DutyKind.REAUDIT, DutyKind.WORK_AGAIN, DutyKind.MISSED))
    assert seen["missed"] and seen["missed by a skipped call"] and seen["missed without fines"] and seen["named"]


def test_a_key_is_the_calls_own_and_audited_keys_follow() -> None:
    stage = DutyStage(False)
    stage.crew()
    round_ = stage.open_round(stage.duties.epochs[-1].start - 1)
    stage.commit(round_, 0)
    stage.seed()
    (drawn,) = DutyBook(StageRecords(stage)).drawn(0, TicketId(1), stage.secret(1))
    seed = stage.duties.epochs[0].seed
    assert seed is not None
    assert drawn.key == draws.witness_key(stage.secret(1), seed, drawn.target, TicketId(1), DutyKind.WORK)
    assert drawn.audited == ()
    for ticket in (1, 2, 3):
        stage.open(ticket, [stage.result(ticket, drawn.duty)])
    stage.close()
    stage.seed()
    again = DutyBook(StageRecords(stage)).drawn(1, TicketId(2), stage.secret(2))
    audited: dict[bytes, Drawn] = {one.duty.attestation: one for one in again if one.duty.kind is DutyKind.REAUDIT}
    assert len(audited) == 2, "the first's and the third's; none of its own"
    for name, one in audited.items():
        assert one.audited == stage.attestations.findings[name].keys  # type: ignore[index]
