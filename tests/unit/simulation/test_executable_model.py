"""Populations on the executable model of the contracts: what each strategy comes to, by the contracts' own rules."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.protocol.economics import audit_prices
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.terms import GenerationStatus
from assay.simulation import experiments
from assay.simulation.blind_audits import OF_99_PERCENT
from assay.simulation.executable_model import ExecutableModel
from assay.simulation.experiments import LabStage, default_lab
from assay.simulation.incomes import Estimate, turning_point
from assay.simulation.interface import AuditWord, OwnerNumber, ReplayDuty
from assay.simulation.model_terms import ModelTerms
from assay.simulation.population import AuditorWork, Character, Complicity, Population, SolverWork

ME, OTHERS = 0, 1
TERMS = ModelTerms(seats=8, audit_rate=1.0, reaudit_rate=0.5, capacity=8, links=60)


def played(*characters: Character, epochs: int = 12, terms: ModelTerms = TERMS) -> tuple[ExecutableModel, Population]:
    """Some epochs of owners on a run."""
    model = ExecutableModel(terms, 1)
    population = Population(model, characters)
    population.play(epochs)
    assert model.run.vault.is_conserved()
    return model, population


def statuses(model: ExecutableModel) -> set[AccusationStatus]:
    return {made.status for made in model.run.attestations.accusations.values()}


def test_honest_work_is_merged_audited_and_paid_and_nobody_is_accused() -> None:
    model, population = played(Character(8, 4))
    assert statuses(model) == set()
    # Of 12 rounds those are paid that belong to epochs 1 to 9: epoch 12 is open, and 9 and 10 can be drawn again.
    assert population.tally(ME).paid == 8 * 9
    assert population.tally(ME).fines == population.tally(ME).locks == population.tally(ME).stakes == 0
    made = len(model.run.attestations.attestations)
    assert made == population.labour(ME).attested
    assert 0.6 * made < population.tally(ME).wages < made
    generations = model.run.books.generations
    assert [generations.status_of(g) for g in (10, 11)] == [GenerationStatus.FINAL] * 2


def test_invented_work_is_accused_by_who_replays_it_and_loses_seat_and_unsettled_pay() -> None:
    model, population = played(Character(2, solver=SolverWork.FALSE), Character(6, 4), epochs=20)
    mine, others = population.tally(ME), population.tally(OTHERS)
    assert mine.locks > 4
    assert mine.paid == 0  # each is found before four epochs are over
    assert others.drawn_locks == mine.locks
    assert others.fines == others.locks == others.stakes == 0
    assert statuses(model) == {AccusationStatus.UPHELD, AccusationStatus.EXCUSED}
    tenures = model.run.books.tenures.tenures.values()
    assert {t.holder for t in tenures if t.convicted_at} == {t.holder for t in tenures if t.seat in (0, 1)}
    assert all(t.accusations == t.suspensions == t.games == 0 for t in tenures)


def test_who_attests_its_accomplices_lies_is_found_by_the_next_epoch() -> None:
    liar = Character(2, 1, SolverWork.FALSE, complicity=Complicity.LIE)
    _, population = played(liar, Character(6, 4), epochs=20)
    assert population.tally(ME).stakes > 0
    assert population.tally(OTHERS).drawn_stakes > 0


def test_who_never_opens_is_fined_and_loses_its_stake_after_two_epochs() -> None:
    model, population = played(Character(tickets=1, auditor=AuditorWork.SILENT), Character(8, 4), epochs=4)
    # Called in epochs 1, 2 and 3; the epochs 1 and 2 end without a secret, and the ticket that follows counts later.
    assert population.tally(ME).stakes == 1
    assert population.tally(ME).fines == 2 * (3 + 3 * TERMS.capacity / 2)
    assert model.run.tickets.tickets[next(iter(model.run.tickets.tickets))].convicted_at


@pytest.mark.parametrize("mine", [5, 7])
def test_who_keeps_epochs_from_fining_is_drawn_for_no_more_than_who_answers(mine: int) -> None:
    """Attack: half of a shift leaves every third epoch undone, for which nobody is fined, and is paid for drawing it
    again: by the share that did not open, and three times more for each miss.
    """
    terms, made = ModelTerms(seats=16, audit_rate=0.4, reaudit_rate=0.2, capacity=8, links=60), []
    for work in (AuditorWork.REPLAY, AuditorWork.SILENT):
        characters = [Character(tickets=mine, auditor=work, every=3), Character(16, 8 - mine)]
        model, population = played(*characters, epochs=45, terms=terms)
        unfined = [not epoch.fines for epoch in model.run.duties.epochs[1:-1]].count(True)
        assert unfined == (14 if work is AuditorWork.SILENT else 0)
        assert population.tally(ME).fines == population.tally(ME).stakes == 0
        answered = population.labour(ME).attested
        made.append((answered, answered + population.labour(OTHERS).attested))
    (honest, all_honest), (silent, all_silent) = made
    assert silent < honest
    # Nor does a sponsor pay for more.
    assert all_silent < 1.1 * all_honest


def test_who_accuses_the_honest_loses_its_stake_and_leaves_nobody_frozen() -> None:
    model, population = played(Character(tickets=1, auditor=AuditorWork.ACCUSE), Character(8, 4))
    assert population.tally(ME).stakes > 2
    assert population.tally(OTHERS).locks == population.tally(OTHERS).stakes == 0
    assert AccusationStatus.UPHELD not in statuses(model)
    assert all(t.accusations == t.suspensions == 0 for t in model.run.books.tenures.tenures.values())
    assert population.tally(OTHERS).paid >= 8 * 8


def test_who_stays_away_is_put_off_for_its_fee() -> None:
    _, population = played(Character(2, solver=SolverWork.AWAY), Character(6, 4), epochs=13)
    # Two absences, then a round in which the seat that it took again has not begun.
    assert population.tally(ME).fees == 2 * 4
    assert population.tally(OTHERS).fees == 0


def test_an_epoch_that_half_of_the_tickets_do_not_open_repeats_twice() -> None:
    model = ExecutableModel(TERMS, 1)
    owner = OwnerNumber(0)
    seats = [model.take_seat(owner) for _ in range(8)]
    tickets = [model.buy_ticket(owner) for _ in range(4)]
    closed = []
    for _ in range(2):
        model.commit([seat for seat in seats if seat is not None])
        model.draw()
        while not (done := model.close()):
            closed.append(done)
            model.draw()
        model.settle()
    assert closed == [False, False]
    assert model.run.duties.epochs[1].repeats == 2
    assert not model.run.duties.epochs[1].fines
    assert model.tally(owner).fines == 0
    assert all(model.is_staked(ticket) for ticket in tickets)


def test_a_blind_re_audit_repeats_what_it_audits_and_hides_nothing() -> None:
    """E2: it answers for the guess of the one before, so that the next replay convicts both."""
    model = ExecutableModel(replace(TERMS, audit_rate=4.0, reaudit_rate=4.0), 1)
    owners = [OwnerNumber(k) for k in range(4)]
    seats = [model.take_seat(owners[0])]
    tickets = [model.buy_ticket(owner) for owner in owners]
    words = {tickets[0]: AuditWord.INVENTED, tickets[1]: AuditWord.INVENTED}
    for _ in range(4):
        model.commit([seat for seat in seats if seat is not None])
        for duty in model.draw():
            model.open_secret(duty.ticket)
            model.attest(ReplayDuty(duty.ticket, duty.claim), words.get(duty.ticket, AuditWord.REPLAYED))
        for ticket in tickets:
            model.open_secret(ticket)
        assert model.close()
        model.settle()
    accused = {(made.is_work, made.accused) for made in model.run.attestations.accusations.values()}
    assert accused == {(False, tickets[0]), (False, tickets[1])}
    by = {made.ticket for made in model.run.attestations.accusations.values()}
    assert by == {tickets[2], tickets[3]}


LAB = default_lab(epochs=30, seeds=4, stage=LabStage.CONTRACTS)
HARSH = replace(LAB, terms=replace(LAB.terms, audit_ppm=500_000, reaudit_ppm=500_000))
"""Rates at which little has to be played."""


def test_every_false_commitment_is_found_with_the_chance_of_its_tickets() -> None:
    terms = ModelTerms(8, 0.5, 0.2, capacity=8, links=60)
    shares = []
    for seed in range(1, 5):
        population = Population(ExecutableModel(terms, seed), [Character(4, 0, SolverWork.FALSE), Character(4, 9)])
        population.play(30)
        # The last round's commitments are not drawn yet.
        shares.append(len(population.found) / (population.labour(ME).invented - 4))
    assert Estimate.of(shares).holds(1 - (1 - 0.5 / 9) ** 9, times=OF_99_PERCENT)


@pytest.mark.parametrize("complicity", [Complicity.NONE, Complicity.LIE, Complicity.JOIN])
def test_invented_work_turns_below_its_bound_on_the_contracts_model(complicity: Complicity) -> None:
    """Without the wages that its tickets earn elsewhere."""
    earned = HARSH.play(8, [Character(4, 3, SolverWork.FALSE, complicity=complicity), Character(4, 6)])
    prices = replace(HARSH.prices, wage=0.0)
    turns = turning_point(earned, lambda lock: replace(prices, lock=lock))
    assert turns.mean + turns.half < HARSH.in_pay(audit_prices.lazy_lock(HARSH.terms))
    assert experiments.per(earned, prices, experiments.commitments).mean < -0.5


@pytest.mark.parametrize("work", [AuditorWork.BLIND, AuditorWork.COPY])
def test_invented_results_earn_less_than_replays_on_the_contracts_model(work: AuditorWork) -> None:
    earned = HARSH.play(8, [Character(tickets=3, auditor=work), Character(8, 6)])
    income = experiments.per(earned, HARSH.prices_with_work, experiments.duties)
    assert income.mean + income.half < HARSH.margin
