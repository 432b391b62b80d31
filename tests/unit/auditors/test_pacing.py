"""Paces: what ends in time, what is tried all the same, and what is given up before it is too late."""

from __future__ import annotations

import pytest

from assay_verifier.pacing import LAST_FEW, Measured, OutOfTime, Stint, UnitPace


def measured(*seconds: float) -> float | None:
    """The estimate after units that took so long."""
    made = Measured()
    for one in seconds:
        made.note(one)
    return made.unit_s


def test_work_that_ends_in_time_to_the_second_is_gone_on_with() -> None:
    assert UnitPace(2.0).ends_in(120.0, 60) and not UnitPace(2.0).ends_in(119.9, 60)
    assert UnitPace(2.0).ends_in(2.0, 1) and not UnitPace(2.0).ends_in(1.9, 1)


def test_before_a_unit_was_measured_all_work_seems_to_end_in_time() -> None:
    assert UnitPace().ends_in(1.0, 60) and not UnitPace().ends_in(0.0, 60)
    assert UnitPace().may_try(1.0) and not UnitPace().may_try(0.0)


def test_one_slow_unit_among_quick_ones_changes_no_estimate() -> None:
    assert measured() is None
    assert measured(2.0, 7200.0, 2.0) == measured(7200.0, 2.0) == 2.0


def test_a_machine_that_became_slow_is_believed_after_a_few_units() -> None:
    assert measured(*[2.0] * LAST_FEW, *[9.0] * 2) == 2.0
    assert measured(*[2.0] * LAST_FEW, *[9.0] * 3) == 9.0


def test_work_is_tried_where_there_is_time_for_a_step() -> None:
    assert UnitPace(400.0, steps=4).may_try(100.0) and not UnitPace(400.0, steps=4).may_try(99.0)


def test_no_estimate_is_too_long_for_a_try_at_the_beginning_of_a_call() -> None:
    assert UnitPace(10**9, steps=2, window=1000).may_try(500.0) and not UnitPace(10**9, steps=2, window=1000).may_try(
        499.0
    )


@pytest.mark.parametrize(("left_s", "steps"), [(105.0, 4), (104.0, 3), (80.0, 3), (79.0, 2), (60.0, 2), (59.0, 1)])
def test_a_unit_is_given_up_before_a_step_that_would_end_too_late(left_s: float, steps: int) -> None:
    # Steps of 30, 20, 25 and 25 seconds: each is expected to take as long as the longest before it.
    times = iter([0.0, 30.0, 50.0, 75.0, 100.0])
    stint, done = Stint(lambda: next(times), 4, left_s), 0
    try:
        for step in range(1, 5):
            done = step
            stint(step)
    except OutOfTime:
        pass
    assert (done, stint.seconds) == (steps, [120.0, 100.0, 100.0, 100.0][steps - 1])


def test_a_unit_without_a_step_says_nothing_of_its_time() -> None:
    assert Stint(lambda: 0.0, 4, 10.0).seconds is None


def test_the_last_step_of_a_unit_gives_nothing_up() -> None:
    times = iter([0.0, 500.0])
    Stint(lambda: next(times), 1, 10.0)(1)
