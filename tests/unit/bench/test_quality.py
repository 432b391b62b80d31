"""`assay bench quality`: fair comparisons, runs that continue where they stopped, bars that can be missed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from assay.bench.nanogpt import NanoGPT, nanogpt_recipe, window_loss
from assay.bench.quality import bits_of, pictures, read_records, run_jobs, summary
from assay.bench.tasks import QualityRun, step_of, text_of
from assay.cli.bench import app
from assay.engine.compiler.calibrate import calibrated
from assay.engine.compiler.lowering.registry import FIXED8
from assay.protocol.errors import UsageError
from assay.training.recipes.recipe import RecipeStep

WORDS = "the model that nobody trusts is trained by many and checked by all who care to look at what was done "


@pytest.fixture
def text() -> str:
    return "".join(WORDS[k * 7 % 90 :] for k in range(60))


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
def test_tiers_train_alike_and_differ_in_their_products(text: str, tmp_path: Path) -> None:
    jobs = [QualityRun("characters", tier, 1, steps=3) for tier in ("f32", "fixed14", "uniform8")]
    eager, fixed, uniform = run(jobs, text, tmp_path / "runs.jsonl")
    assert abs(fixed["loss"] - eager["loss"]) < 1e-3
    assert uniform["loss"] != eager["loss"]
    assert set(uniform["bits"]) == {"8x8"}
    assert {"14x14", "14x22"} <= set(fixed["bits"])


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
