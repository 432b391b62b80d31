"""Real processes over Gloo train one program together and end in the root of one executor alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.harness.engine import ranks

ROOT = Path(__file__).resolve().parents[3]
STEPS = 100


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One capture for all processes of a test."""
    monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))


def trained(tmp_path: Path, size: int, steps: int, *divisions: str) -> list[dict[str, object]]:
    """What so many ranks report, rank by rank and division by division."""
    store = tmp_path / f"store-{size}"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.harness.engine.ranks", str(store)]
    started = [
        subprocess.Popen(
            [*command, str(rank), str(size), str(steps), *divisions],
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(size)
    ]
    reports: list[dict[str, object]] = []
    try:
        for process in started:
            out, _ = process.communicate(timeout=900)
            assert process.returncode == 0
            reports += json.loads(out.splitlines()[-1])
    finally:
        for process in started:
            process.kill()
            process.wait()
    for report in reports:
        print(json.dumps(report))
    return reports


def figures(reports: list[dict[str, object]], division: str, what: str) -> list[object]:
    """One figure of every rank."""
    return [r[what] for r in reports if r["division"] == division]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_two_ranks_end_in_the_root_of_one_however_work_and_state_are_divided(tmp_path: Path):
    expected = ranks.alone(2)
    reports = trained(tmp_path, 2, 2, "alone", "batches", "shards", "terms", "all")
    assert {r["root"] for r in reports} == {expected}
    whole, half = (max(figures(reports, d, "nodes")) for d in ("alone", "batches"))  # type: ignore[type-var]
    assert half < 0.8 * whole, "a rank computes the other's micro-batches"  # type: ignore[operator]
    stored, sharded = (max(figures(reports, d, "state")) for d in ("batches", "shards"))  # type: ignore[type-var]
    assert sharded < 0.6 * stored, "a rank stores the other's rows"  # type: ignore[operator]
    assert figures(reports, "batches", "exchanges") == [2.0, 2.0]
    assert figures(reports, "alone", "bytes") == [0.0, 0.0]


@pytest.mark.long
@pytest.mark.timeout(300)
def test_two_ranks_add_up_to_the_accumulator_of_one_and_share_the_work(tmp_path: Path):
    reports = trained(tmp_path, 2, 2, "batches", "witness")
    assert set(figures(reports, "witness", "root")) == {ranks.alone(2, "witness")}
    plain, witnessed = (max(figures(reports, d, "nodes")) for d in ("batches", "witness"))  # type: ignore[type-var]
    assert witnessed < 1.15 * plain, "a rank computes the other's micro-batches for the witness"  # type: ignore[operator]
    (one, sent), (other, more) = (
        (figures(reports, d, "exchanges"), figures(reports, d, "bytes")) for d in ("batches", "witness")
    )
    assert (one, other) == ([2.0, 2.0], [3.0, 3.0])
    assert [b - a for a, b in zip(sent, more, strict=True)] == [4 * 8 * 8.0] * 2, "32 sums of bytes"  # type: ignore[operator]


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_a_hundred_steps_of_one_two_and_four_ranks_end_in_one_root(tmp_path: Path):
    expected = ranks.alone(STEPS)
    reports = trained(tmp_path, 1, STEPS, "batches")
    reports += trained(tmp_path, 2, STEPS, "batches", "shards", "terms")
    reports += trained(tmp_path, 4, STEPS, "batches", "shards")
    assert {r["root"] for r in reports} == {expected}
    assert ranks.alone(STEPS - 1) != expected


torch.set_num_threads(1)
