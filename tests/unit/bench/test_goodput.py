"""Goodput on the executable model: by formula where all is regular, and above the bars as a rule."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.bench.goodput import Goodput, GoodputTerms
from assay.bench.goodput_model import ModelStage
from assay.bench.goodput_report import BARS, START, bytes_per_parameter, measure, report

TERMS = GoodputTerms(rounds=4)
CALLS = 4
"""Commit, hold, seal, open: what stands between the last unit of a round and the next round."""


def test_goodput_is_training_over_training_and_the_critical_path() -> None:
    found = measure(TERMS)
    path = TERMS.publish + TERMS.fetch + TERMS.compute_merge + CALLS * TERMS.inclusion
    training = TERMS.commit - TERMS.slack
    assert found.training_seconds == pytest.approx(8 * 4 * training)
    assert found.goodput == pytest.approx(training / (training + path), abs=1e-3)
    assert (found.rounds, found.solvers, found.refused) == (4, 8, {})


def test_with_every_delay_in_full_nothing_is_refused_and_every_round_is_final() -> None:
    found = measure(replace(TERMS, delay=588))
    path = TERMS.publish + TERMS.fetch + TERMS.compute_merge + CALLS * 600
    training = TERMS.commit - TERMS.slack
    assert found.goodput == pytest.approx(training / (training + path), abs=1e-3)
    assert (found.rounds, found.refused) == (4, {})


def test_units_that_take_longer_or_less_cost_a_unit_and_no_weight() -> None:
    even, uneven = measure(TERMS), measure(replace(TERMS, spread=0.05))
    assert even.goodput - 3 / TERMS.max_units < uneven.goodput < even.goodput
    assert uneven.refused == {}


def test_a_mask_that_shut_a_second_behind_two_thirds_would_cost_weight() -> None:
    found = measure(replace(TERMS, spread=0.03, delay=588))
    assert found.goodput > 0.58


@pytest.mark.parametrize("commit", sorted(BARS))
def test_goodput_is_above_its_bar(commit: int) -> None:
    assert measure(replace(TERMS, commit=commit, spread=0.03)).goodput >= BARS[commit]


def test_an_update_is_all_that_a_solver_uploads() -> None:
    found = bytes_per_parameter(8)
    assert found["f32"]["solver up"] <= 4.1
    assert found["int8"]["solver up"] <= 1.1
    assert found["f32"]["solver down"] == pytest.approx(7 * found["f32"]["solver up"], abs=0.01)


def test_a_report_has_a_row_for_each_window_as_a_rule_and_in_full() -> None:
    document = report(replace(TERMS, rounds=2), commits=(3600,))
    assert [row["inclusion_s"] for row in document["rows"]] == [12, 600]
    assert document["goodput"] == document["rows"][0]["goodput"] > document["rows"][1]["goodput"]
    assert document["solvers"] == 8 and document["training_seconds"] == document["rows"][0]["training_seconds"]


def test_a_solver_that_is_too_slow_for_the_least_counts_for_nothing() -> None:
    class OneIsAway(ModelStage):
        """A chain that takes no commitment of seat 7."""

        def commit(self, seat, *arguments) -> None:  # type: ignore[no-untyped-def]
            if seat != 7:
                super().commit(seat, *arguments)

    terms = replace(TERMS, rounds=2)
    found = Goodput(OneIsAway(terms, START), terms, START).run()
    assert found.training_seconds == pytest.approx(7 * 2 * (TERMS.commit - TERMS.slack))
