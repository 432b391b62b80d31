"""What a day brings: chances add up exactly, and nine days of ten lie where they are said to."""

from __future__ import annotations

import random

import pytest

from assay.amounts import TEST_MONEY
from assay.cli.this_machine import income_lines
from assay.planning.burdens import MERGE, gas_of
from assay.planning.expected import DAY, answered, auditor_day, drawn, solver_day
from assay.planning.outlook import outlook_of_role, outlook_of_run
from assay.planning.spans import LAST, RoundSpans, rounds_of_epoch, spans_of
from assay.protocol.economics.run_bounds import audit_terms, most_unsettled
from assay.protocol.types import Wei
from assay_ledger.chain.fees import Market
from tests.harness.rounds.charters import ETHER, RUN, WIDE
from tests.harness.rounds.run_limits import changed
from tests.unit.sponsor.test_charters import charter_on

PAID = changed(RUN, "economics", unit_price=Wei(ETHER // 100))
"""60 units of 0.01 tokens for a commitment, 0.01 for a merge; rounds of at most 7,824 s, epochs of 19,200 s."""


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
    spans = spans_of(charter, [], 60, 4)
    one, ten = (auditor_day(charter, tickets, 50, 4, spans, 1000) for tickets in (1, 10))
    for day in (one, ten):
        assert 0 <= day.low < day.mean < day.high
        assert day.loses_stake % charter.economics.ticket_bond == 0
    assert (ten.high - ten.low) / ten.mean < (one.high - one.low) / one.mean
    most = DAY / outlook_of_run(charter).epoch_seconds * charter.economics.capacity * charter.economics.wage
    assert one.high <= most


# --- spans of rounds


def test_spans_are_what_the_charter_admits_until_two_rounds_began() -> None:
    """Five tickets answer 20, less a fifth: twice a tenth of eight seats, ten times."""
    assert rounds_of_epoch(PAID, 5, 8) == 10 and rounds_of_epoch(PAID, 5, 200) == 1
    for begun in ([], [777]):
        assert spans_of(PAID, begun, 5, 8) == RoundSpans(1920, 7824, 7824)
    assert spans_of(PAID, [], 5, 80) == RoundSpans(19_200, 19_200, 19_200), "an epoch audits no more than one"


def test_spans_are_those_of_the_last_rounds() -> None:
    assert spans_of(PAID, [0, 2400, 5760, 14_400], 5, 8) == RoundSpans(2400, 4800, 8640, 3)
    quick = [0, *range(10**6, 10**6 + 60 * (LAST + 1), 60)]
    assert spans_of(PAID, quick, 5, 8) == RoundSpans(60, 60, 7824, LAST)


# --- seats


def test_a_day_of_a_seat_by_hand() -> None:
    """18 rounds as of late; at the least ten of which one is missed; at the most 36."""
    day, about = solver_day(PAID, spans_of(PAID, [0, 2400, 5760, 14_400], 5, 8), 1000), outlook_of_role(PAID)
    assert day.mean == 18 * 61 * ETHER // 100 and day.merges == 18 * ETHER // 100
    assert (day.low, day.high) == (9 * 60 * ETHER // 100, 36 * 61 * ETHER // 100)
    assert day.shares == 18 * 60 * ETHER
    assert day.gas == 18 * gas_of("commit", "settle", "hold", *MERGE)
    assert day.loses_stake == about.locks and day.loses_pay % (61 * ETHER // 100) == 0
    assert "rounds of 1 h 20 min, the mean of the last 3;" in day.assumes and "left" not in day.assumes
    assert "at the least rounds of 2 h 24 min, one a day missed and no merge" in day.assumes
    assert "at the most rounds of 40 min, the shortest of these" in day.assumes


def test_at_the_worst_as_many_rounds_are_unpaid_as_the_gate_lets_open() -> None:
    """Rounds that end before C: the gate looks at what the stake outweighs, not at what rounds of C lead to."""
    rich = changed(PAID, "economics", ticket_bond=Wei(2 * PAID.economics.ticket_bond))
    least, most = audit_terms(rich).unsettled, most_unsettled(rich)
    assert least < most
    spans = RoundSpans(60, 60, 7824, LAST)
    assert solver_day(rich, spans, 1000).loses_pay == most * 61 * ETHER // 100
    assert solver_day(rich, spans, least + 1).loses_pay == (least + 1) * 61 * ETHER // 100


def test_a_day_of_a_seat_before_any_round_is_that_of_the_longest() -> None:
    day = solver_day(PAID, spans_of(PAID, [], 5, 8), 1000)
    assert day.mean == pytest.approx(DAY / 7824 * 0.61 * ETHER)
    assert day.low == pytest.approx((DAY / 7824 - 1) * 0.6 * ETHER)
    assert day.high == 45 * 61 * ETHER // 100, "ten rounds an epoch"
    assert "the longest that they may last" in day.assumes and "more than that the tickets cannot" in day.assumes


def test_a_day_brings_no_more_rounds_than_are_left() -> None:
    day = solver_day(PAID, spans_of(PAID, [], 5, 8), 10)
    assert (day.low, day.mean, day.high) == (54 * ETHER // 10, 61 * ETHER // 10, 61 * ETHER // 10)
    assert day.assumes.endswith("and 10 rounds, all that are left")
    none = solver_day(PAID, spans_of(PAID, [], 5, 8), 0)
    assert (none.low, none.mean, none.high, none.gas, none.loses_pay) == (0, 0, 0, 0, 0)
    assert none.assumes.endswith("and that the run begins no further round")
    assert solver_day(PAID, spans_of(PAID, [], 5, 8), 1).loses_pay == 61 * ETHER // 100


def test_a_voted_price_is_paid_for_work_and_not_for_merges() -> None:
    """Work of 0.3 tokens for 0.6, and 0.01 for a merge as before."""
    spans = spans_of(PAID, [0, 2400, 5760, 14_400], 5, 8)
    day, whole = solver_day(PAID, spans, 1000, 500_000), solver_day(PAID, spans, 1000)
    assert day.mean == 18 * 31 * ETHER // 100 and day.merges == whole.merges
    assert (day.low, day.high) == (9 * 30 * ETHER // 100, 36 * 31 * ETHER // 100)
    assert day.loses_pay * 61 == whole.loses_pay * 31 and day.loses_stake == whole.loses_stake
    assert "at 50 % of the charter's price, as was voted," in day.assumes and "voted" not in whole.assumes


def test_a_run_without_pay_brings_what_merges_do() -> None:
    day = solver_day(changed(PAID, "economics", pays=False), RoundSpans(8640, 8640, 8640, 1), 1000)
    assert day.low == 0 and day.mean == day.merges == day.high == ETHER // 10


# --- merges above 64 seats


def test_above_64_seats_merges_are_paid_to_the_tickets_that_are_drawn() -> None:
    """A node pays a ticket once, however many of its positions fell to it."""
    seat = solver_day(WIDE, RoundSpans(8640, 8640, 8640, 1), 1000)
    assert seat.merges == 0 and seat.gas == 10 * gas_of("commit", "settle") and "merge" not in seat.assumes
    assert drawn(WIDE, 2, 33) == pytest.approx([1 - 0.5**15, 1 - 0.5**15, 1 - 0.5**63])
    assert drawn(PAID, 2, 8) == []
    alone = auditor_day(WIDE, 1, 0, 64, RoundSpans(8640, 8640, 8640, 1), 1000)
    assert alone.merges == 10 * 3 * ETHER // 100, "two groups and the generation, in each of ten rounds"


def test_gas_of_tickets_is_that_of_what_they_are_drawn_for() -> None:
    spans = RoundSpans(8640, 8640, 8640, 1)
    few, wide = (auditor_day(charter, 1, 0, 64, spans, 1000) for charter in (RUN, WIDE))
    calls = DAY / 19_200
    found = calls * answered(round(64 * 19_200 / 8640), 0.1, 4)[0]
    gas = calls * gas_of("open a secret") + found * gas_of("attest", "settle a finding")
    assert few.merges == 0 and few.gas == pytest.approx(gas, abs=1)
    merges = 10 * (2 * gas_of("hold") + 3 * gas_of(*MERGE))
    assert wide.gas == pytest.approx(gas + merges, abs=1)
    assert "64 solvers, 1 ticket, and rounds of 2 h 24 min" in few.assumes


def test_tickets_are_drawn_for_no_more_rounds_than_are_left() -> None:
    """Ten rounds a day, 2.2 of them in an epoch: one that is left is one epoch's, five are 2.25 epochs'."""
    spans = RoundSpans(8640, 8640, 8640, 1)
    whole, five, one, none = (auditor_day(WIDE, 1, 0, 64, spans, left) for left in (1000, 5, 1, 0))
    assert (five.merges, one.merges) == (whole.merges // 2, whole.merges // 10)
    assert five.mean == pytest.approx(whole.mean / 2) and five.gas == pytest.approx(whole.gas / 2, abs=1)
    findings, wage = answered(64, 0.1, 4)[0], WIDE.economics.wage
    assert one.mean == pytest.approx(findings * wage + one.merges)
    assert one.loses_pay == pytest.approx(one.mean) and one.loses_pay < whole.loses_pay
    assert (none.low, none.mean, none.high, none.merges) == (0, 0, 0, 0)
    assert (none.shares, none.gas, none.loses_pay) == (0, 0, 0)
    assert "left" not in whole.assumes and five.assumes.endswith("and 5 rounds, all that are left")
    assert none.assumes.endswith("and that the run begins no further round")


def test_what_is_reckoned_is_not_written_to_eighteen_digits() -> None:
    """The pay that an auditor may lose is a mean: digits beyond the second are a float's noise."""
    day = auditor_day(PAID, 3, 2, 2, RoundSpans(1020, 1020, 1020, 0), 2)
    *_, worst = income_lines(day, TEST_MONEY, Market(0, 10**6))
    said = worst.partition("up to ")[2].partition(" that")[0]
    assert said == TEST_MONEY.brief(day.loses_pay) and len(said.partition(".")[2]) <= 2 < len(str(day.loses_pay))
