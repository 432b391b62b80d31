"""The event model keeps the rules of audits: draws, misses, redraws, fines, slashes and settlement."""

from __future__ import annotations

import math

import numpy as np
import pytest

from assay.simulation.event_model import EventModel, EventRules
from assay.simulation.interface import OwnerNumber, ReplayDuty, TenureNumber, TicketNumber

SOLVER, AUDITOR, OTHER = OwnerNumber(0), OwnerNumber(1), OwnerNumber(2)


class HandPlayedModel:
    """A model with seats of one owner and tickets of two, played by hand."""

    def __init__(self, *, seats: int = 8, tickets: int = 4, others: int = 0, **rules: float) -> None:
        self.model = EventModel(EventRules(seats=seats, **rules), np.random.default_rng(1))  # type: ignore[arg-type]
        taken = [self.model.take_seat(SOLVER) for _ in range(seats)]
        self.tenures = [TenureNumber(t) for t in taken if t is not None]
        self.mine = [self.model.buy_ticket(AUDITOR) for _ in range(tickets)]
        self.others = [self.model.buy_ticket(OTHER) for _ in range(others)]

    @property
    def tickets(self) -> list[TicketNumber]:
        return [*self.mine, *self.others]

    def epoch(
        self, *, silent: tuple[TicketNumber, ...] = (), missing: tuple[TicketNumber, ...] = ()
    ) -> list[ReplayDuty]:
        """An epoch in which these tickets do not open, and these open and do not answer; its duties."""
        self.model.commit([t for t in self.tenures if self.model.is_seated(t)])
        drawn = list(self.model.draw())
        for ticket in self.tickets:
            if self.model.is_staked(ticket) and ticket not in silent:
                self.model.open_secret(ticket)
        for duty in drawn:
            if duty.ticket not in (*silent, *missing):
                self.model.attest(duty)
        while not self.model.close():
            self.model.draw()
        self.model.settle()
        return drawn


def test_draws_are_independent_at_the_rate_of_the_terms() -> None:
    """Of 400 epochs with 50 commitments at p = 0.3, none drawn in a share e^-0.3, and 0.3 duties each."""
    table = HandPlayedModel(seats=50, tickets=40, audit_rate=0.3, reaudit_rate=0.0)
    drawn = [table.epoch() for _ in range(400)]
    untouched = [50 - len({d.claim for d in duties}) for duties in drawn]
    assert np.mean([len(d) for d in drawn]) / 50 == pytest.approx(0.3, abs=0.01)
    assert np.mean(untouched) / 50 == pytest.approx((1 - 0.3 / 40) ** 40, abs=0.01)
    assert np.mean(untouched) / 50 == pytest.approx(math.exp(-0.3), abs=0.011)


def test_attestations_of_the_last_epoch_are_drawn_and_nobody_audits_itself() -> None:
    table = HandPlayedModel(tickets=1, audit_rate=1.0, reaudit_rate=1.0)
    assert [len(table.epoch()) for _ in range(3)] == [8, 8, 8]
    table = HandPlayedModel(tickets=1, others=1, audit_rate=2.0, reaudit_rate=2.0)
    # Both draw everything: 8 commitments, and from the second epoch on the other's attestations.
    assert [len(table.epoch()) for _ in range(3)] == [16, 16 + 16, 16 + 32]


def test_honest_work_is_paid_two_epochs_later_and_costs_nothing() -> None:
    table = HandPlayedModel(audit_rate=1.0)
    duties = [len(table.epoch()) for _ in range(3)]
    assert table.model.tally(SOLVER).paid == 16
    assert table.model.tally(AUDITOR).wages == sum(duties[:2])
    assert table.model.tally(AUDITOR).fines == 0


def test_a_miss_is_fined_and_its_claim_drawn_again_at_rate_three_once() -> None:
    table = HandPlayedModel(seats=1, tickets=60, audit_rate=1.0, reaudit_rate=0.0)
    redrawn = []
    for _ in range(300):
        missing = tuple(table.mine)
        missed = table.epoch(missing=missing)
        fines = table.model.tally(AUDITOR).fines
        next_duties = table.epoch()
        redrawn += [sum(d.claim == missed[0].claim for d in next_duties)] if missed else []
        assert table.model.tally(AUDITOR).fines == fines
    # However many tickets missed it: three on average, not three for each of them.
    assert np.mean(redrawn) == pytest.approx(3.0, abs=0.3)
    assert table.model.tally(AUDITOR).fines > 0


def test_what_is_drawn_again_is_paid_an_epoch_later() -> None:
    table = HandPlayedModel(seats=1, tickets=60, audit_rate=20.0, reaudit_rate=0.0)
    table.epoch(missing=tuple(table.mine))
    table.epoch()
    paid = [table.model.tally(SOLVER).paid]
    table.epoch()
    assert (*paid, table.model.tally(SOLVER).paid) == (1, 2)
    # The first commitment was ready only after the epoch in which it was drawn again.


def test_an_unopened_secret_is_fined_by_what_could_be_expected_and_shown_by_the_next() -> None:
    table = HandPlayedModel(seats=40, tickets=4, audit_rate=0.5, reaudit_rate=0.0)
    silent = table.mine[0]
    hidden = [d for d in table.epoch(silent=(silent,)) if d.ticket == silent]
    assert table.model.tally(AUDITOR).fines == 3 * (1 + 40 * 0.5 / 4)
    table.epoch()
    assert table.model.tally(AUDITOR).fines == 3 * (1 + 40 * 0.5 / 4) + 3 * len(hidden)
    assert table.model.is_staked(silent)


def test_two_epochs_in_a_row_without_a_secret_cost_the_ticket() -> None:
    table = HandPlayedModel(tickets=4)
    silent = (table.mine[0],)
    table.epoch(silent=silent)
    table.epoch()
    table.epoch(silent=silent)
    assert table.model.is_staked(silent[0])
    table.epoch(silent=silent)
    assert not table.model.is_staked(silent[0])
    assert table.model.tally(AUDITOR).stakes == 1


def test_less_than_half_of_the_tickets_repeat_an_epoch_twice_and_are_never_fined() -> None:
    table = HandPlayedModel(tickets=4)
    table.model.commit(table.tenures)
    table.model.draw()
    table.model.open_secret(table.mine[0])
    assert [table.model.close() for _ in range(3)] == [False, False, True]
    assert table.model.tally(AUDITOR).fines == 0


def test_a_ticket_owes_no_more_than_its_capacity() -> None:
    table = HandPlayedModel(seats=60, tickets=2, audit_rate=1.0, capacity=5)
    for _ in range(10):
        duties = table.epoch()
        assert max(sum(d.ticket == t for d in duties) for t in table.mine) <= 5


def test_a_conviction_takes_the_lock_and_all_unsettled_pay_and_the_seat() -> None:
    table = HandPlayedModel(tickets=2, others=2, audit_rate=0.0)
    table.epoch()
    claims = table.model.commit(table.tenures)
    table.model.draw()
    table.model.uphold(claims[0], [table.mine[0], table.mine[1], table.others[0]], SOLVER)
    table.model.uphold(claims[0], [table.mine[0]], None)
    tally = table.model.tally(SOLVER)
    assert (tally.locks, tally.third_locks) == (1, 0)
    assert not table.model.is_seated(table.tenures[0])
    shares = [table.model.tally(owner).drawn_locks for owner in (AUDITOR, OTHER)]
    assert shares == pytest.approx([2 / 3, 1 / 3])
    for ticket in table.tickets:
        table.model.open_secret(ticket)
    table.model.close()
    table.model.settle()
    # Seven of the first epoch: the convicted tenure's is void.
    assert table.model.tally(SOLVER).paid == 7


def test_a_third_party_is_paid_only_where_no_drawn_accuser_is_right() -> None:
    table = HandPlayedModel(tickets=1, others=1)
    claims = table.model.commit(table.tenures)
    table.model.uphold(claims[0], [], OTHER)
    table.model.uphold(claims[1], [table.mine[0]], OTHER)
    assert table.model.tally(OTHER).third_locks == 1
    assert table.model.tally(AUDITOR).drawn_locks == 1


def test_a_convicted_ticket_loses_its_stake_and_unsettled_wages() -> None:
    table = HandPlayedModel(tickets=1, others=1, audit_rate=8.0)
    table.model.commit(table.tenures)
    attested = [table.model.attest(d) for d in table.model.draw() if d.ticket == table.mine[0]]
    table.model.uphold(attested[0], [table.others[0]], None)
    tally = table.model.tally(AUDITOR)
    assert (tally.stakes, tally.wages) == (1, 0)
    assert table.model.tally(OTHER).drawn_stakes == 1
    assert not table.model.is_staked(table.mine[0])


def test_a_lost_accusation_costs_the_ticket_and_pays_the_accused() -> None:
    table = HandPlayedModel(tickets=2)
    claims = table.model.commit(table.tenures)
    table.model.dismiss(claims[0], table.mine[0])
    assert table.model.tally(AUDITOR).stakes == 1
    assert table.model.tally(SOLVER).third_stakes == 1


def test_absent_seats_are_evicted_for_their_fee_and_a_waiver_does_not_repeat() -> None:
    table = HandPlayedModel(seats=8)
    table.model.commit(table.tenures[:6])
    table.model.commit(table.tenures[:6])
    assert table.model.tally(SOLVER).fees == 2
    assert [table.model.is_seated(t) for t in table.tenures] == [True] * 6 + [False] * 2
    table = HandPlayedModel(seats=8)
    fees = []
    for _ in range(4):
        table.model.commit(table.tenures[:3])
        fees.append(table.model.tally(SOLVER).fees)
    # Most were away: the first round is left out, and the third absence costs the seat.
    assert fees == [0, 0, 5, 5]
    assert sum(table.model.is_seated(t) for t in table.tenures) == 3
