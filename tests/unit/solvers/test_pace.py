"""How long a solver trains: to the last unit that still commits in time, at every limit."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay_solver.pace import JITTER, SAMPLES, OwnPace, Pacing, RoundWindow, pacing

T0, C, F, G = 1_000_000, 3600, 600, 60
WINDOW = RoundWindow(T0 + C, G, T0 + C + F, T0 + C + F, min_units=30, max_units=60)
PACE = OwnPace(12.0, units=(60.0, 60.0), finishes=(5.0,))
TRAIN, COMMIT, MISS = Pacing.TRAIN, Pacing.COMMIT, Pacing.MISS


def test_the_last_unit_begins_when_its_commitment_is_sent_f_before_the_round_ends() -> None:
    last = int(T0 + C - JITTER * PACE.unit - PACE.finish)
    assert pacing(WINDOW, PACE, 59, last) is TRAIN
    assert pacing(WINDOW, PACE, 59, last + 1) is COMMIT


def test_where_transactions_take_longer_than_the_grace_the_mask_decides() -> None:
    slow = replace(PACE, inclusion=G + 100.0)
    last = int(T0 + C + G - JITTER * slow.unit - slow.after)
    assert last < T0 + C - JITTER * slow.unit - slow.finish
    assert pacing(WINDOW, slow, 59, last) is TRAIN
    assert pacing(WINDOW, slow, 59, last + 1) is COMMIT


def test_a_full_commitment_is_made_at_once() -> None:
    assert pacing(WINDOW, PACE, 60, T0 + 1) is COMMIT


def test_who_sees_nearly_all_commit_trains_no_further_than_the_mask() -> None:
    closing = replace(WINDOW, mask_at=T0 + 2000)
    last = int(T0 + 2000 - JITTER * PACE.unit - PACE.after)
    assert pacing(closing, PACE, 30, last) is TRAIN
    assert pacing(closing, PACE, 30, last + 1) is COMMIT
    assert pacing(closing, PACE, 29, last + 1) is TRAIN


def test_the_least_of_a_commitment_is_trained_behind_the_mask_and_no_more() -> None:
    late = T0 + C + G + 1
    assert pacing(WINDOW, PACE, 29, late) is TRAIN
    assert pacing(WINDOW, PACE, 30, late) is COMMIT


def test_what_cannot_be_a_commitment_in_time_is_not_trained() -> None:
    last = int(T0 + C + F - 2 * PACE.unit - PACE.inclusion)
    assert pacing(WINDOW, PACE, 28, last) is TRAIN
    assert pacing(WINDOW, PACE, 28, last + 1) is MISS


@pytest.mark.parametrize("units", [30, 60])
def test_what_is_done_is_sent_until_the_last_second_that_can_take_it(units: int) -> None:
    assert pacing(WINDOW, PACE, units, T0 + C + F - 1) is COMMIT
    assert pacing(WINDOW, PACE, units, T0 + C + F) is MISS


def test_a_machine_whose_pace_is_not_known_begins() -> None:
    unknown = OwnPace(12.0)
    assert pacing(WINDOW, unknown, 0, T0) is TRAIN
    assert pacing(WINDOW, unknown, 0, T0 + C + F) is MISS


def test_a_pace_follows_what_the_last_units_and_commitments_took() -> None:
    pace = OwnPace(12.0).measured(40.0).finished(5.0)
    assert (pace.unit, pace.after) == (40.0, 17.0)
    assert pace.measured(80.0).unit == 60.0
    for _ in range(SAMPLES):
        pace = pace.measured(80.0).finished(7.0)
    assert (pace.unit, pace.fastest, pace.after) == (80.0, 80.0, 19.0)
    assert pace.measured(7200.0).finished(7200.0).after == 19.0, "what stalled once is no pace"
    assert pace.measured(7200.0).unit == 80.0


def test_a_unit_that_was_slow_once_ends_neither_the_round_nor_those_that_follow() -> None:
    """Attack: a pace of what stalled or compiled once, by which nothing is in time, and no unit that would correct it.

    A machine that was slow for all units it remembers trains the first of each round, and so learns that it is well.
    """
    slow = float(C + F)
    assert pacing(WINDOW, OwnPace(12.0).measured(slow), 1, T0 + 5) is TRAIN, "the first may have compiled"
    assert pacing(WINDOW, PACE.measured(slow).measured(slow), 5, T0 + 5) is TRAIN
    assert pacing(WINDOW, PACE.finished(slow), 5, T0 + 5) is TRAIN
    poisoned = OwnPace(12.0, units=(slow,) * SAMPLES)
    assert pacing(WINDOW, poisoned, 1, T0 + 5) is MISS
    assert [pacing(WINDOW, poisoned, 0, now) for now in (T0, T0 + C - 1, T0 + C)] == [TRAIN, TRAIN, MISS]
    assert pacing(WINDOW, poisoned.measured(60.0), 1, T0 + 65) is TRAIN


def test_a_slow_unit_counts_where_training_on_would_risk_what_is_done() -> None:
    one = replace(WINDOW, min_units=1)
    assert pacing(one, OwnPace(12.0).measured(float(C)), 1, T0 + C // 2) is COMMIT
