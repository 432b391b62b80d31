"""Draws: as many as the rate says, alike in rank whatever the rate, and never beyond a word."""

from __future__ import annotations

from math import sqrt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.rounds import duty_draws as draws
from assay.protocol.rounds.duty_types import DutyKind, Epoch
from assay.protocol.rounds.epochs import unopened
from assay.protocol.rounds.ticket_types import TicketId
from tests.harness.rounds.staged_rounds import mark

WORD = 1 << 256


@pytest.mark.parametrize(("ppm", "on_call"), [(100_000, 8), (200_000, 3), (3_000_000, 40)])
def test_a_commitment_is_drawn_as_often_as_the_rate_says(ppm: int, on_call: int) -> None:
    targets, below = 1500, draws.threshold(ppm, on_call)
    drawn = sum(
        draws.draw(mark("secret", ticket), mark("seed"), mark("work", k), TicketId(ticket), DutyKind.WORK) < below
        for k in range(targets)
        for ticket in range(on_call)
    )
    expected = targets * ppm / draws.PPM
    # Secrets are fixed; four deviations leave out one set of them in 16,000.
    assert abs(drawn - expected) < 4 * sqrt(expected)


@pytest.mark.parametrize(("ppm", "on_call"), [(1_000_000, 1), (7_000_000, 7), (4_000_000_000, 16), (0, 0)])
def test_a_rate_above_one_draws_everybody_on_call(ppm: int, on_call: int) -> None:
    assert draws.threshold(ppm, on_call) == WORD - 1
    assert draws.threshold(ppm + 1, on_call) == WORD - 1


@given(st.integers(0, (1 << 32) - 1), st.integers(1, (1 << 32) - 1))
def test_a_threshold_is_the_rate_and_less_than_one_part_in_a_million_below(ppm: int, on_call: int) -> None:
    below = draws.threshold(ppm, on_call)
    exact = min(WORD - 1, WORD * ppm // (draws.PPM * on_call))
    assert 0 <= exact - below <= ppm


@given(st.integers(1, WORD - 1), st.data())
def test_a_rank_fits_128_bits_and_keeps_the_order_of_draws(below: int, data: st.DataObject) -> None:
    first, second = sorted(data.draw(st.tuples(st.integers(0, below - 1), st.integers(0, below - 1))))
    assert 0 <= draws.rank_of(first, below) <= draws.rank_of(second, below) < 1 << 128


def test_draws_of_any_rate_rank_alike() -> None:
    for ppm in (50_000, 3_000_000):
        below = draws.threshold(ppm, 4)
        middle = draws.rank_of(below // 2, below)
        assert abs(middle - (1 << 127)) < 1 << 100


def test_draws_and_keys_name_secret_seed_target_ticket_and_kind() -> None:
    names = {
        (f(secret, seed, target, TicketId(ticket), kind))
        for f in (draws.draw, draws.witness_key)
        for secret in (mark(1), mark(2))
        for seed in (mark(3), mark(4))
        for target in (mark(5), mark(6))
        for ticket in (1, 2)
        for kind in (DutyKind.WORK, DutyKind.REAUDIT)
    }
    assert len(names) == 64


@pytest.mark.parametrize(
    ("on_call", "opened", "wanted"), [(0, 0, 0), (4, 4, 0), (4, 3, 25_000), (3, 1, 66_666), (3, 0, 100_000)]
)
def test_what_was_not_opened_is_drawn_again_by_its_share_rounded_down(on_call: int, opened: int, wanted: int) -> None:
    assert unopened(Epoch(0, on_call=on_call, opened=opened), 100_000) == wanted
