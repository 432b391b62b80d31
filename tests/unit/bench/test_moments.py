"""`assay bench moments`: the same trainings with kept moments and with zero ones, compared by tokens to one loss."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from assay.bench.moments import COLD, INT8, KEPT, RULES, ZERO, MomentsRun, rounds_to, run_jobs, summary, train, workload
from assay.cli.bench import app
from assay.protocol.errors import UsageError
from assay.training.data import Corpus, corpus_from_text
from assay.training.evaluate import split_loss
from assay.training.presets import TINY
from assay.training.state import Scalars
from assay.training.step import preset_step
from tests.unit.bench.test_quality import WORDS

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

TEXT = "".join(WORDS[k * 7 % 90 :] for k in range(60))
JOB = MomentsRun("tiny", inner_steps=10, rounds=2, rule=ZERO, seed=1)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return corpus_from_text(TEXT)


def test_a_curve_reaches_a_loss_between_rounds_or_never() -> None:
    curve = [4.0, 3.0, 2.0, 2.5]
    assert rounds_to(curve, 3.0) == 1.0
    assert rounds_to(curve, 2.25) == 1.75
    assert rounds_to(curve, 4.0) == 0.0
    assert rounds_to(curve, 1.9) is None


def record(rule: str, seed: int, curve: list[float], rounds: int = 3) -> dict[str, object]:
    job = MomentsRun("demo", 25, rounds, rule, seed)
    return asdict(job) | {"curve": curve, "largest_update": 0.4 + seed / 100}


def test_tokens_are_compared_to_plain_dilocos_last_loss_of_the_same_seed() -> None:
    records = [
        record(KEPT, 1, [4.0, 3.0, 2.0, 1.5]),
        record(KEPT, 2, [4.0, 3.0, 2.0, 1.8]),
        record(ZERO, 1, [4.0, 3.0, 2.0, 1.6, 1.4]),
        record(ZERO, 2, [4.0, 2.8, 1.8, 1.7]),
        record(COLD, 1, [4.0, 3.5, 3.0, 2.8, 2.7]),
        record(INT8, 3, [4.0, 3.0, 2.0, 1.6]),
    ]
    rows = {row["rule"]: row for row in summary(records)}
    assert set(rows) == {ZERO, COLD}, "what has no plain DiLoCo of its own seed is not compared"
    zero = rows[ZERO]
    assert zero["each"] == [pytest.approx(3.5 / 3, abs=1e-4), pytest.approx(2 / 3, abs=1e-4)]
    assert zero["tokens"] == pytest.approx((3.5 / 3 + 2 / 3) / 2, abs=1e-4)
    assert zero["chain_time"] == pytest.approx(zero["tokens"] / 0.9, abs=1e-3)
    assert zero["loss_above_kept"] == pytest.approx(0.0, abs=1e-9)
    assert zero["largest_update"] == pytest.approx(0.42)
    assert (zero["met"], zero["seeds"]) == (True, 2)
    assert (rows[COLD]["tokens"], rows[COLD]["each"], rows[COLD]["met"]) == (None, [None], False)


def test_the_rule_decides_what_a_seat_starts_from_and_how_its_rate_rises(corpus: Corpus) -> None:
    ends = {}
    for rule in RULES:
        run = workload(replace(JOB, rule=rule), corpus)
        scalars = Scalars.of(corpus.train, learning_rate=run.rate, key=(1, 2)).to_list()
        first = run.step.run([run.start, run.optimizer.zero_init(run.start), scalars])
        ends[rule] = float((first[0][0] - run.start[0]).abs().max())
    assert ends[ZERO] == ends[INT8] == pytest.approx(ends[COLD] / 3.4, rel=0.01)
    assert ends[KEPT] == ends[COLD]


@pytest.mark.long
def test_a_training_is_the_same_again_and_its_rules_differ(corpus: Corpus) -> None:
    curves = {rule: train(replace(JOB, rule=rule), corpus, None, 1)["curve"] for rule in (KEPT, ZERO, COLD)}
    assert train(JOB, corpus, None, 1)["curve"] == curves[ZERO]
    assert len({tuple(c) for c in curves.values()}) == 3
    # In the first round plain DiLoCo has zero moments too.
    assert curves[KEPT][:2] == curves[COLD][:2] != curves[ZERO][:2]
    assert all(c[-1] < c[0] for c in curves.values())


@pytest.mark.long
def test_updates_of_a_byte_train_to_nearly_the_same_loss(corpus: Corpus) -> None:
    full, byte = (train(replace(JOB, rule=rule), corpus, None, 1)["curve"] for rule in (ZERO, INT8))
    assert full != byte
    assert byte == pytest.approx(full, abs=0.01)


def test_a_training_goes_on_for_a_while_until_it_reaches_its_loss(corpus: Corpus) -> None:
    job = replace(JOB, rounds=4)
    assert len(train(job, corpus, math.inf, 1)["curve"]) == 5
    assert len(train(job, corpus, 0.0, 1)["curve"]) == 6


def test_finished_trainings_are_not_run_again(corpus: Corpus, tmp_path: Path) -> None:
    file, jobs = tmp_path / "runs.jsonl", [replace(JOB, rule=r, rounds=1) for r in (ZERO, KEPT)]
    said: list[str] = []
    assert [r["rule"] for r in run_jobs(jobs, corpus, file, stride=1, say=said.append)] == [KEPT, ZERO]
    assert len(said) == 2
    assert list(run_jobs(jobs, corpus, file, stride=1, say=said.append)) == []


def test_the_exact_steps_train_as_stock_pytorch_does(corpus: Corpus) -> None:
    run = workload(JOB, corpus)
    step = preset_step(TINY, len(corpus.vocabulary), restarts=True)
    state = [run.start, run.optimizer.zero_init(run.start), Scalars.of(corpus.train, learning_rate=run.rate).to_list()]
    exact, eager = run.step.repeat(state, 10), state
    for _ in range(10):
        eager = step(*eager)
    losses = [split_loss(run.module, s[0], corpus.validation, run.context) for s in (state, exact, eager)]
    assert losses[1] == pytest.approx(losses[2], abs=1e-3)
    assert losses[1] < losses[0] - 0.01


def test_the_command_trains_and_says_the_ratio(tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_text(TEXT, encoding="utf-8")
    options = ["moments", "--data", str(data), "--out", str(tmp_path / "r.jsonl"), "--task", "tiny", "--seeds", "1"]
    options += ["--inner-steps", "10", "--rounds", "1", "--stride", "1", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    (row,) = document["summary"]
    assert (row["task"], row["rule"], row["inner_steps"], row["seeds"]) == ("tiny", ZERO, 10, 1)
    assert [r["rule"] for r in document["runs"]] == [KEPT, ZERO]
    assert 0 < row["largest_update"] < 1
    shown = CliRunner().invoke(app, options[:-1])
    assert "tiny" in shown.output


def test_a_task_that_does_not_exist_is_said_before_anything_runs(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["moments", "--out", str(tmp_path / "r"), "--task", "poems"])
    assert isinstance(result.exception, UsageError)
    assert "poems" in str(result.exception)
