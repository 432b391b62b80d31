"""`assay bench multiplier`: figures follow from what processes took, and chance in draws does not move them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from assay.bench.multiplier import (
    MultiplierTerms,
    NoDutyDrawn,
    RunCpu,
    StepCpu,
    cast_of,
    document_of,
    expected_duties,
    measure,
    step_cpu,
)

TERMS = MultiplierTerms()
STEP = StepCpu(exact=0.1, eager=0.2)
RUN = RunCpu(
    {"training": 90.0, "commitment": 4.0, "audit": 6.0, "dispute": 0.0, "chain": 8.0, "start": 2.0},
    steps=1000,
    commitments=40,
    duties=3,
)


def test_expected_duties_are_audits_and_audits_of_their_findings_without_end() -> None:
    expected = expected_duties(40, TERMS)
    assert expected == 5.0
    level, total = 40 * 0.1, 0.0
    for _ in range(60):
        level, total = level * 0.2, total + level
    assert total == pytest.approx(expected)


def test_a_multiplier_counts_all_processes_and_what_audits_are_expected_to_take() -> None:
    found = document_of(TERMS, RUN, STEP, STEP)
    # Three duties took 2 s each, and five are expected.
    assert found["cpu_seconds_per_duty"] == 2.0 and found["duties_expected"] == 5.0
    assert found["multiplier"] == pytest.approx((90 + 4 + 10 + 8 + 2) / 100)
    assert found["over_eager"] == pytest.approx((90 + 4 + 10 + 8 + 2) / 200)
    assert sum(found["parts"].values()) == pytest.approx(found["multiplier"])


def test_more_draws_of_equal_duties_do_not_move_the_multiplier() -> None:
    luckier = replace(RUN, seconds={**RUN.seconds, "audit": 18.0}, duties=9)
    assert document_of(TERMS, luckier, STEP, STEP)["multiplier"] == document_of(TERMS, RUN, STEP, STEP)["multiplier"]


def test_steps_alone_are_those_before_the_run_and_those_after_it() -> None:
    slower = replace(STEP, exact=0.3)
    assert document_of(TERMS, RUN, STEP, slower)["multiplier"] == pytest.approx(114 / 200)


def test_a_run_without_a_draw_is_no_measurement() -> None:
    with pytest.raises(NoDutyDrawn) as refused:
        document_of(TERMS, replace(RUN, duties=0), STEP, STEP)
    assert "40 commitments" in refused.value.message


def test_everybody_is_honest_and_every_ticket_on_call() -> None:
    cast = cast_of(TERMS)
    assert len(cast.solvers) == cast.seats == 8 and {p.cheat for p in cast.players} == {"none"}
    assert cast.shifts == 1 and (cast.audit_percent, cast.reaudit_percent) == (10, 20)


@pytest.mark.long
def test_a_step_alone_is_a_real_one_of_the_preset() -> None:
    found = step_cpu(MultiplierTerms(preset="tiny", steps=2, turns=1))
    assert 0 < found.exact < 1 and 0 < found.eager < 1


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_run_of_real_processes_is_measured_to_its_end() -> None:
    terms = MultiplierTerms(preset="tiny", seats=4, rounds=3, audit_percent=100, steps=2, turns=1)
    found = measure(terms, lambda _: None)
    assert found["commitments"] == 12 and found["steps"] == 120
    assert found["parts"]["training"] > 0.5 and found["parts"]["chain"] > 0 and found["duties_drawn"] > 0
