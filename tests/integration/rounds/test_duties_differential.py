"""Random play of audits on model and contracts at once: calls end alike, and so do the money and what events tell."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.errors import RejectedError
from assay.protocol.rounds.duty_types import DrawnDuty, DutyKind, left_out
from assay.protocol.rounds.ticket_types import TicketId, chain_of
from tests.harness.rounds.duties import TERMS, TICKETS, missed, work_duties
from tests.harness.rounds.duty_scenes import reaudits
from tests.harness.rounds.stage import ETHER
from tests.harness.rounds.staged_rounds import mark, true_work
from tests.harness.rounds.told_duties import ToldDutyStage

EPOCHS = 9


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.gate_takes(2)
def test_audits_on_model_contract_and_index_end_alike_whatever_tickets_do(seed: int) -> None:
    chance = random.Random(seed)
    stage = ToldDutyStage(
        terms=replace(TERMS, audit_ppm=1_500_000, reaudit_ppm=1_000_000, capacity=3), stake=2000 * ETHER
    )
    for who in (0, 1, 2, 3, 0):
        stage.register(who)
    # The last one's chain ends in zero, which is a secret like any other.
    stage.register(1, chain_of(ZERO, EPOCHS))
    stage.pass_time(TICKETS.seasoning)
    seen: dict[str, int] = {}

    def attempt(name: str, call: object, *args: object, **more: object) -> None:
        try:
            call(*args, **more)  # type: ignore[operator]
        except RejectedError as rejected:
            name = rejected.code
        seen[name] = seen.get(name, 0) + 1

    everything: list[DrawnDuty] = []
    for _ in range(EPOCHS):
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
        # Every third epoch fines nobody, or nearly so.
        silent = chance.choice((0.15, 0.15, 0.6))
        for ticket in range(1, 7):
            manner = chance.random()
            if manner < silent or TicketId(ticket) not in stage.tickets.tickets:
                continue
            wanted = stage.drawn(ticket, duties + gone)[:3]
            if chance.random() < 0.2:
                wanted = wanted[1:]
            results = [stage.result(ticket, duty, lie=chance.random() < 0.1) for duty in wanted]
            if results and chance.random() < 0.1:
                results[0] = replace(results[0], accumulators=(mark("guess"), *results[0].accumulators[1:]))
            results = [left_out(one.duty) if chance.random() < 0.1 else one for one in results]
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
        for name in list(stage.attestations.accusations):
            if chance.random() < 0.3:
                attempt("lapse", stage.lapse, name)
        everything = duties
        stage.compare()
        assert stage.vault.is_conserved()
    print(dict(sorted(seen.items())))
    assert seen.keys() >= {"open", "absent", "miss", "lapse", "SecretNotShown", "NotDrawn", "DutyAnswered", "NotADuty"}
    assert "EpochWithoutFines" in seen
