"""What a share earned, as the explorer reckons it from events, beside Revenue.sol: any order of payments and mints."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.protocol.errors import InvariantError
from assay.protocol.payments.share_earnings import SCALE, STREAM, WEEK
from tests.harness.payments.revenue_stage import OWNERS, PAYERS, RevenueStage
from tests.harness.rounds.samples import ETHER

LEAST = 1_000_000
"""Of Revenue.sol: what can be paid in at once."""


@pytest.fixture
def stage() -> Iterator[RevenueStage]:
    made = RevenueStage()
    made.pass_time(WEEK - made.now % WEEK)
    yield made
    made.compare()
    made.end()


def at(stage: RevenueStage, time: int) -> None:
    stage.pass_time(time - stage.now)
    stage.compare()


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_the_model_is_the_contract_whatever_is_paid_and_minted_when(data: st.DataObject) -> None:
    stage = RevenueStage()
    try:
        for _ in range(data.draw(st.integers(1, 14))):
            owner, payer = data.draw(st.integers(0, len(OWNERS) - 1)), data.draw(st.integers(0, len(PAYERS) - 1))
            match data.draw(st.sampled_from(["deposit", "deposit", "mint", "transfer", "time", "border"])):
                case "deposit":
                    stage.deposit(payer, data.draw(st.integers(LEAST, 10 * LEAST) | st.integers(LEAST, 1 << 110)))
                case "mint":
                    stage.mint(owner, data.draw(st.integers(1, 7) | st.integers(1, 10**24)))
                case "transfer" if stage.held(owner):
                    stage.transfer(owner, payer, data.draw(st.integers(0, stage.held(owner))))
                case "time":
                    stage.pass_time(data.draw(st.integers(1, 3 * WEEK) | st.integers(1, 90)))
                case "border":
                    stage.pass_time(WEEK - stage.now % WEEK + data.draw(st.integers(-1, 1)))
            stage.compare()
        stage.pass_time(STREAM + WEEK)
        stage.compare()
    finally:
        stage.end()


def test_each_payer_s_part_is_exact_once_all_has_streamed(stage: RevenueStage) -> None:
    stage.mint(0, 7)
    for payer, amount in enumerate((LEAST, LEAST + 1, 3 * LEAST + 2)):
        stage.deposit(payer, amount)
    begins = stage.now + WEEK
    for later in (1, 86_399, WEEK - 1, WEEK, 2 * WEEK + 12_345, STREAM - 1, STREAM, 2 * STREAM):
        at(stage, begins + later)
    weeks = stage.stream.weeks(stage.now)
    assert [week.week for week in weeks] == [begins // WEEK + k for k in range(4)]
    paid = {who: sum(week.by[who].amount for week in weeks) for who in PAYERS}
    assert paid == {PAYERS[0]: LEAST, PAYERS[1]: LEAST + 1, PAYERS[2]: 3 * LEAST + 2}


def test_weeks_begin_where_the_contract_s_do_to_the_second(stage: RevenueStage) -> None:
    stage.mint(0, ETHER)
    border = stage.now + WEEK
    at(stage, border - 1)
    stage.deposit(0, 4 * LEAST)
    # A second later the next week has begun, and what comes then waits a week more.
    at(stage, border)
    assert stage.stream.weeks(stage.now) == []
    stage.deposit(1, 8 * LEAST)
    at(stage, border + WEEK)
    (first,) = [week for week in stage.stream.weeks(stage.now) if week.week == border // WEEK]
    assert (first.whole.amount, first.by.keys()) == (LEAST, {PAYERS[0]})
    at(stage, border + 2 * WEEK)
    second = stage.stream.weeks(stage.now, border // WEEK + 1)[0]
    assert {who: part.amount for who, part in second.by.items()} == {PAYERS[0]: LEAST, PAYERS[1]: 2 * LEAST}


def test_a_share_made_in_the_middle_of_a_week_halves_what_one_earns(stage: RevenueStage) -> None:
    stage.mint(0, ETHER)
    stage.deposit(0, 4 * LEAST)
    begins = stage.now + WEEK
    at(stage, begins + WEEK // 2)
    stage.mint(1, ETHER)
    at(stage, begins + WEEK)
    week = stage.stream.weeks(stage.now)[0]
    assert week.whole.amount == LEAST
    assert week.whole.per_share * ETHER // SCALE == LEAST * 3 // 4 - 1, (
        "half alone, half of half together, rounded down"
    )
    assert (stage.claimable(0), stage.claimable(1)) == (LEAST * 3 // 4 - 1, LEAST // 4)


def test_without_shares_nobody_earned_and_the_payer_is_named_when_it_streams_anew(stage: RevenueStage) -> None:
    stage.deposit(0, 3 * LEAST)
    stage.deposit(1, LEAST)
    begins = stage.now + WEEK
    at(stage, begins + WEEK + 5)
    weeks = stage.stream.weeks(stage.now)
    assert [(week.whole.amount, week.whole.per_share, week.by) for week in weeks] == [(0, 0, {})] * 2
    waiting = stage.stream.waiting(stage.now)
    assert waiting.keys() == set(PAYERS[:2]) and sum(waiting.values()) == 4 * LEAST * (WEEK + 5) // STREAM
    stage.mint(0, ETHER)
    assert stage.stream.waiting(stage.now) == {}
    at(stage, begins + 3 * STREAM)
    weeks = stage.stream.weeks(stage.now)
    assert {who: sum(week.by[who].amount for week in weeks if who in week.by) for who in PAYERS[:2]} == {
        PAYERS[0]: 3 * LEAST,
        PAYERS[1]: LEAST,
    }


def test_who_looks_changes_nothing(stage: RevenueStage) -> None:
    stage.mint(0, 3)
    stage.deposit(0, LEAST + 7)
    stage.pass_time(WEEK + 1_000)
    seen = stage.stream.weeks(stage.now), stage.stream.weeks(stage.now)
    assert seen[0] == seen[1]
    for later in range(0, 5 * WEEK, WEEK // 3):
        stage.stream.weeks(stage.now + later)
        stage.stream.per_share(stage.now + later)
    assert stage.stream.weeks(stage.now) == seen[0]


def test_an_event_that_says_otherwise_than_the_books_is_refused(stage: RevenueStage) -> None:
    stage.deposit(0, 4 * LEAST)
    stage.pass_time(2 * WEEK)
    with pytest.raises(InvariantError, match="had streamed to nobody"):
        stage.stream.on_stream_anew(LEAST + 1, stage.now // WEEK + 1, stage.now)
