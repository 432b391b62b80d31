"""The grid's verdicts at their limits, and the page that follows from its rows."""

from __future__ import annotations

import math
from dataclasses import asdict, replace

import pytest

from assay.bench.compare import DENSE, METHODS, ComparedRow, ComparedRun
from tools.grid import BOUND, LEFT_OUT, PAGE, ROWS, SEEDS, STEPS, TASKS, WORKERS, jobs_of, page, read_rows, verdict

TASK = "documentation"


def row(job: ComparedRun, loss: float, text: str = "a") -> ComparedRow:
    sizes = {"fooled": 0.0, "bytes_per_parameter": 4.0, "peak_bytes_per_parameter": 4.0, "carried": 0.0}
    rest = {"tokens": 1, "cpu_s": 1.0, "rule_share": 0.0, "text": text, "code": "", "root": "", "refused": 0}
    return ComparedRow(**asdict(job), loss=loss, **sizes, **rest)  # type: ignore[arg-type]


def rows_of(ratios: list[float], method: str = "int4") -> dict[ComparedRun, ComparedRow]:
    """Losses of f32 that differ by worker and seed, and a method's at these ratios to them."""
    found = {}
    for number, (job, ratio) in enumerate(zip(jobs_of(TASK, [method])[-12:], ratios, strict=True)):
        found[job.dense], found[job] = row(job.dense, 2.0 + number / 10), row(job, (2.0 + number / 10) * ratio)
    return found


def test_a_grid_has_every_method_with_all_workers_and_seeds_at_as_many_steps() -> None:
    for task in TASKS:
        jobs = jobs_of(task)
        assert len(jobs) == len(set(jobs)) == (len(METHODS) - len(LEFT_OUT.get(task, ()))) * len(WORKERS) * len(SEEDS)
        assert {job.workers * job.rounds * job.inner_steps for job in jobs} == {STEPS}
        assert all(job.dense in jobs for job in jobs) and jobs[0].method == DENSE


@pytest.mark.parametrize(
    ("mean", "spread", "word"),
    [
        (0.0, 0.0, "equal"),
        (BOUND * 0.999, 0.0, "equal"),
        (BOUND * 1.001, 0.0, "above"),
        (-BOUND * 0.999, 0.0, "equal"),
        (-BOUND * 1.001, 0.0, "below"),
        (BOUND * 0.999, 0.001, "not decided"),
        (BOUND * 1.001, 0.001, "not decided"),
        (0.0, 0.0092, "equal"),
        (0.0, 0.00922, "not decided"),
    ],
)
def test_a_verdict_is_that_of_two_one_sided_tests(mean: float, spread: float, word: str) -> None:
    """Of twelve, half `spread` above and half below: the interval reaches 1.7959 spread / sqrt(11) to each side."""
    ratios = [math.exp(mean + (spread if k % 2 else -spread)) for k in range(12)]
    found = verdict("int4", TASK, rows_of(ratios))
    assert found.word == word and found.pairs == 12
    half = 1.7959 * spread / math.sqrt(11)
    assert (found.low, found.high) == pytest.approx((mean - half, mean + half), abs=1e-9)


def test_what_is_not_run_of_another_text_or_no_number_is_said() -> None:
    rows = rows_of([1.0] * 12)
    last = jobs_of(TASK, ["int4"])[-1]
    assert verdict("int4", TASK, {j: r for j, r in rows.items() if j != last}).word == "11 of 12 run"
    assert verdict("int4", TASK, rows | {last: replace(rows[last], text="b")}).word == "11 of 12 run"
    assert verdict("int4", TASK, rows | {last: replace(rows[last], loss=math.inf)}).word == "diverged"
    assert verdict("int4", TASK, rows | {last: replace(rows[last], loss=math.nan)}).word == "diverged"
    assert verdict("int4", TASK, {}).word == "0 of 12 run"


def test_the_page_is_made_of_the_rows_that_are_checked_in() -> None:
    assert PAGE.read_text(encoding="utf-8") == page({one.run: one for one in read_rows(ROWS)})
