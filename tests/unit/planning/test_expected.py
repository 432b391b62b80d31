"""What a day brings: chances add up exactly, and nine days of ten lie where they are said to."""

from __future__ import annotations

import random

import pytest

from assay.planning.expected import DAY, answered, auditor_day, solver_day
from assay.planning.outlook import outlook_of_role, outlook_of_run
from tests.unit.sponsor.test_charters import charter_on


@pytest.mark.parametrize(("targets", "chance", "capacity"), [(3, 0.5, 2), (20, 0.1, 1), (200, 0.01, 4), (2, 1.0, 5)])
def test_answers_are_those_of_draws_up_to_the_capacity(targets: int, chance: float, capacity: int) -> None:
    mean, variance = answered(targets, chance, capacity)
    dice = random.Random(5)
    drawn = [min(sum(dice.random() < chance for _ in range(targets)), capacity) for _ in range(20_000)]
    middle = sum(drawn) / len(drawn)
    assert mean == pytest.approx(middle, abs=0.03)
    assert variance == pytest.approx(sum((d - middle) ** 2 for d in drawn) / len(drawn), abs=0.05)


def test_a_day_of_tickets_has_a_spread_that_more_tickets_narrow() -> None:
    charter = charter_on("local")
    one, ten = (auditor_day(charter, tickets, 50, 4) for tickets in (1, 10))
    for day in (one, ten):
        assert 0 <= day.low < day.mean < day.high
        assert day.loses_stake % charter.economics.ticket_bond == 0
    assert (ten.high - ten.low) / ten.mean < (one.high - one.low) / one.mean
    most = DAY / outlook_of_run(charter).epoch_seconds * charter.economics.capacity * charter.economics.wage
    assert one.high <= most


def test_a_day_of_a_seat_is_that_of_the_longest_rounds() -> None:
    charter = charter_on("local")
    day, about = solver_day(charter), outlook_of_role(charter)
    assert day.mean == pytest.approx(about.pay * DAY / outlook_of_run(charter).round_at_most_seconds)
    assert day.loses_stake == about.locks
