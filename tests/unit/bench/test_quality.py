"""`assay bench quality`: fair comparisons, runs that continue where they stopped, bars that can be missed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from assay.bench import tasks
from assay.bench.nanogpt import NanoGPT, NanoSize, nanogpt_recipe, window_loss
from assay.bench.quality import bits_of, pictures, read_records, run_jobs, summary
from assay.bench.sides import CPU
from assay.bench.tasks import QualityRun, Trainer, program_of, seconds_of_a_step, step_of, text_of
from assay.bench.tried_small import TriedSmall
from assay.cli.bench import app
from assay.engine.compiler import losses
from assay.engine.compiler.calibrate import calibrated
from assay.engine.compiler.lowering.registry import FIXED8, FIXED14
from assay.protocol.errors import UsageError
from assay.training.recipes.recipe import RecipeStep

WORDS = "the model that nobody trusts is trained by many and checked by all who care to look at what was done "


@pytest.fixture
def text() -> str:
    return "".join(WORDS[k * 7 % 90 :] for k in range(60))


@pytest.fixture
def small_gpu(monkeypatch: pytest.MonkeyPatch) -> NanoSize:
    """The task of a GPU in a size for one core, everything that it drops included."""
    size = NanoSize(layers=1, heads=2, width=32, context=16, batch=4, steps=6, dropout=0.2)
    monkeypatch.setattr(tasks, "GPU_SIZE", size)
    tasks.treatments_of.cache_clear()
    return size


def run(jobs: list[QualityRun], text: str, file: Path, seconds: float | None = None) -> list[dict[str, object]]:
    return list(run_jobs(jobs, text, file, seconds=seconds, say=lambda _: None))


def test_an_interrupted_run_ends_as_one_that_was_not(text: str, tmp_path: Path) -> None:
    job = QualityRun("characters", "f32", 1, steps=3)
    (whole,) = run([job], text, tmp_path / "a.jsonl")
    for _ in range(2):
        assert run([job], text, tmp_path / "b.jsonl", seconds=0.0) == []
        assert list(tmp_path.glob("b.*.partial"))
    (resumed,) = run([job], text, tmp_path / "b.jsonl")
    assert resumed["loss"] == whole["loss"]
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.long
def test_finished_runs_are_not_run_again_and_a_torn_line_is(text: str, tmp_path: Path) -> None:
    file, jobs = tmp_path / "runs.jsonl", [QualityRun("characters", "f32", seed, steps=1) for seed in (1, 2)]
    assert len(run(jobs, text, file)) == 2
    assert run(jobs, text, file) == []
    assert len(run(jobs, text + "another text", file)) == 2
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:40]]) + "\n")
    assert [r["seed"] for r in run(jobs, text, file)] == [2]
    assert len(read_records(file)) == 2


@pytest.mark.long
def test_a_large_task_has_the_program_of_its_whole_trial_and_calibrates_once(
    small_gpu: NanoSize, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "LIMIT", 1e-4)  # or nothing so small would be raised
    tokens = text_of("gpu", text)
    job = QualityRun("gpu", "fixed14", 1, small_gpu.steps)
    step = step_of(job, tokens)
    assert isinstance(step, TriedSmall)
    whole = RecipeStep(step.recipe)
    captured, _ = calibrated(whole, whole.state(key=(1, 0)), FIXED14)
    assert captured.treatments
    assert program_of(job, tokens).root == captured.program.root
    monkeypatch.setattr(tasks, "calibrated", lambda *_, **__: pytest.fail("it was calibrated before"))
    # Another number of steps is another schedule, and another text of the same digest the same.
    fewer = program_of(QualityRun("gpu", "fixed14", 2, 3), text_of("gpu", text))
    assert fewer.root != captured.program.root
    assert bits_of(fewer) == bits_of(captured.program)


@pytest.mark.long
def test_both_tiers_see_the_same_batches_and_drop_the_same(small_gpu: NanoSize, text: str, tmp_path: Path) -> None:
    """Another batch or another mask of one step alone parts losses a hundred times as far."""
    jobs = [QualityRun("gpu", tier, 1, steps=4) for tier in ("f32", "fixed14")]
    eager, exact = run(jobs, text, tmp_path / "runs.jsonl")
    other = QualityRun("gpu", "f32", 2, steps=4)
    trainer = Trainer(other, text_of("gpu", text))
    trainer.put(Trainer(jobs[0], text_of("gpu", text)).state)
    trainer.state[2][2].copy_(torch.tensor([2, 0]))
    trainer(4)
    elsewhere = tasks.loss_on(trainer.step, trainer.state[0], text_of("gpu", text).validation)
    apart = abs(elsewhere - eager["loss"])
    assert abs(exact["loss"] - eager["loss"]) < apart / 100
    found = {r["tier"]: r for r in summary([eager, exact])}
    assert found["fixed14"]["bar"] == 0.01 and found["fixed14"]["met"] is True


@pytest.mark.long
@pytest.mark.parametrize("tier", ["f32", "fixed14"])
def test_steps_that_are_asked_for_together_are_those_asked_for_one_by_one(
    tier: str, small_gpu: NanoSize, text: str, tmp_path: Path
) -> None:
    job = QualityRun("gpu", tier, 1, steps=5)
    (single,) = run([job], text, tmp_path / "a.jsonl")
    trainer = Trainer(job, text_of("gpu", text))
    trainer.at_once = 3
    assert seconds_of_a_step(trainer) > 0
    ready = run_jobs([job], text, tmp_path / "b.jsonl", seconds=None, say=lambda _: None, device=CPU, ready=[trainer])
    (together,) = ready
    assert together["loss"] == single["loss"]
    assert int(trainer.state[2][0][0]) == 5, "the trainer that was ready did it"


@pytest.mark.long
def test_tiers_train_alike_and_differ_in_their_products(text: str, tmp_path: Path) -> None:
    jobs = [QualityRun("characters", tier, 1, steps=3) for tier in ("f32", "fixed14", "uniform8")]
    eager, fixed, uniform = run(jobs, text, tmp_path / "runs.jsonl")
    assert abs(fixed["loss"] - eager["loss"]) < 1e-3
    assert uniform["loss"] != eager["loss"]
    assert set(uniform["bits"]) == {"8x8"}
    assert {"14x14", "14x22"} <= set(fixed["bits"])


@pytest.mark.long
def test_calibration_makes_outlier_columns_products_of_their_own(text: str) -> None:
    tokens = text_of("characters", text)
    found = []
    for has_outliers in (False, True):
        module = NanoGPT(tokens.vocabulary, 1, layers=1, width=128, heads=2, context=8, has_outliers=has_outliers)
        step = RecipeStep(nanogpt_recipe(module, tokens.train, 2, batch=2))
        captured, report = calibrated(step, step.state(key=(1, 0)), FIXED8)
        assert not any(loss.is_above_limit for loss in report)
        found.append(bits_of(captured.program))
    plain, outliers = found
    assert outliers == plain | {"24x24": 2}


def test_outliers_change_what_is_quantized_and_not_what_is_computed(text: str) -> None:
    tokens = text_of("characters", text)
    states = [step_of(QualityRun(t, "f32", 1, 10), tokens) for t in ("characters", "outliers")]
    plain, outliers = (step(*step.state(key=(1, 0)))[0] for step in states)
    for a, b in zip(plain, outliers, strict=True):
        torch.testing.assert_close(a, b, rtol=0, atol=2e-5)


def test_the_model_starts_at_the_entropy_of_knowing_nothing() -> None:
    module = NanoGPT(65, 3)
    windows = torch.arange(130).reshape(2, 65).remainder(65)
    assert abs(window_loss(module, windows).item() - 4.174) < 0.1
    assert sum(p.numel() for p in module.parameters()) == 804_096


def record(task: str, tier: str, seed: int, loss: float) -> dict[str, object]:
    names = {"task": task, "tier": tier, "seed": seed, "steps": 10, "text": "t"}
    return names | {"loss": loss, "curve": [[0, 4.0], [10, loss]], "training_cpu_s": 1.0}


def test_a_tier_is_compared_with_f32_of_the_same_seed_and_task_only() -> None:
    records = [
        record("characters", "f32", 1, 2.0),
        record("characters", "f32", 2, 2.2),
        record("outliers", "f32", 1, 9),
    ]
    records += [record("characters", "fixed8", s, x) for s, x in ((1, 2.02), (2, 2.26), (3, 7.0))]
    rows = {(r["task"], r["tier"]): r for r in summary(records)}
    row = rows["characters", "fixed8"]
    assert row["difference"] == pytest.approx(0.04)
    assert row["worst"] == pytest.approx(0.06)
    assert row["met"] is False
    assert summary([*records[:2], record("characters", "fixed14", 1, 2.005)])[1]["met"] is True
    assert summary([record("characters", "fixed8", 1, 2.0)])[0]["met"] is None
    assert set(pictures(records)) >= {"quality-characters.png", "quality-characters-difference.png"}


@pytest.mark.parametrize("option", [["--tier", "fixed9"], ["--task", "poems"]])
def test_what_does_not_exist_is_said_before_anything_runs(option: list[str], tmp_path: Path) -> None:
    out = tmp_path / "runs.jsonl"
    result = CliRunner().invoke(app, ["quality", "--out", str(out), *option])
    assert isinstance(result.exception, UsageError)
    assert option[1] in str(result.exception)
    assert not out.exists()


def test_the_command_runs_compares_and_draws(text: str, tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_text(text, encoding="utf-8")
    options = ["--data", str(data), "--out", str(tmp_path / "r.jsonl"), "--task", "characters", "--seeds", "1"]
    options += ["--steps", "2", "--tier", "f32", "--tier", "fixed14", "--plots", str(tmp_path)]
    result = CliRunner().invoke(app, ["quality", *options])
    assert result.exit_code == 0, result.output
    assert "fixed14" in result.output
    assert (tmp_path / "quality-characters-difference.png").read_bytes()[:4] == b"\x89PNG"
