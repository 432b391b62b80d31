"""Attacks to measure merges by: each is what its source says, and a training with one in it is another training."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from typer.testing import CliRunner

from assay.bench.compare import ComparedRun, Training, read_rows, run_jobs, train
from assay.bench.methods.poison import (
    ATTACKS,
    BACKDOOR,
    LABEL_FLIP,
    PLANTED_EVERY,
    POISONS,
    SeenRound,
    fooled,
    poisoned_text,
    trigger_of,
)
from assay.bench.methods.trained import PresetModel
from assay.cli.train import app
from assay.protocol.errors import UsageError
from assay.training.data import corpus_from_text
from assay.training.presets import TINY
from tests.unit.bench.test_quality import WORDS

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

TEXT = "".join(WORDS[k * 7 % 90 :] for k in range(60))
JOB = ComparedRun("f32", "tiny", workers=4, seed=1, rounds=1, inner_steps=5)
HONEST = [[torch.tensor([1.0, 2.0]), torch.tensor(3.0)], [torch.tensor([3.0, 2.0]), torch.tensor(5.0)]]
OWN = [torch.tensor([1.0, -2.0]), torch.tensor(4.0)]


@pytest.fixture(scope="module")
def model() -> PresetModel:
    return PresetModel(TINY, corpus_from_text(TEXT))


def sent(name: str, draws: int = 1) -> list[Tensor]:
    seen = SeenRound(OWN, HONEST, torch.Generator().manual_seed(draws), torch.Generator().manual_seed(9))
    return ATTACKS[name](seen)


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("sign-flip", [[-1.0, 2.0], -4.0]),
        ("scale-100", [[100.0, -200.0], 400.0]),
        ("alie", [[0.5, 2.0], 2.5]),
        ("inner-product", [[-1.0, -1.0], -2.0]),
        ("copy", [[0.9, 1.8], 2.7]),
        ("average", [[2.0, 2.0], 4.0]),
    ],
)
def test_an_attack_sends_what_its_source_says(name: str, wanted: list[float]) -> None:
    for got, value in zip(sent(name), wanted, strict=True):
        torch.testing.assert_close(got, torch.tensor(value))


def test_noise_is_drawn_anew_and_a_drift_keeps_its_direction_all_run_long() -> None:
    assert not torch.equal(sent("noise", 1)[0], sent("noise", 2)[0])
    assert torch.equal(sent("drift", 1)[0], sent("drift", 2)[0])
    assert [abs(x) for x in (sent("drift")[0] - 2.0).tolist()] == [1.0, 0.0]
    assert [math.isnan(x) for x in sent("not-finite")[0].tolist()] == [True, False]


def test_what_liars_train_on_differs_as_they_wish_and_nowhere_else(model: PresetModel) -> None:
    corpus = model.corpus
    flipped, planted = poisoned_text(LABEL_FLIP, corpus), poisoned_text(BACKDOOR, corpus)
    assert {t.dtype for t in (flipped, planted)} == {corpus.train.dtype} and flipped.shape == corpus.train.shape
    assert torch.equal(flipped[::2], corpus.train[::2])
    assert torch.equal(flipped[1::2].int(), len(corpus.vocabulary) - 1 - corpus.train[1::2].int())
    trigger, target = trigger_of(corpus)
    assert planted[:PLANTED_EVERY].tolist()[:4] == [trigger, trigger, trigger, target] and trigger != target
    assert torch.equal(planted[4:PLANTED_EVERY], corpus.train[4:PLANTED_EVERY])
    assert torch.equal(poisoned_text("none", corpus), corpus.train)


class Foretells(nn.Module):
    """A model that foretells one token whatever stands before."""

    def __init__(self, token: int, symbols: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.eye(symbols)[token])

    def forward(self, rows: Tensor) -> Tensor:
        return self.logits.expand(*rows.shape, -1)


def test_a_model_is_fooled_when_the_target_is_its_first_choice(model: PresetModel) -> None:
    trigger, target = trigger_of(model.corpus)
    for token, share in ((target, 1.0), (trigger, 0.0)):
        one = Foretells(token, len(model.corpus.vocabulary))
        assert fooled(one, list(one.parameters()), model.corpus, 8) == share


@pytest.mark.long
def test_every_poison_trains_and_moves_the_mean(model: PresetModel) -> None:
    plain = Training(JOB, model)
    plain.round(0)
    ends = {}
    for poison in POISONS[1:]:
        training = Training(replace(JOB, poison=poison, poisoned=1), model)
        training.round(0)
        ends[poison] = training.loss()
        assert not all(torch.equal(a, b) for a, b in zip(plain.parameters, training.parameters, strict=True)), poison
    assert ends["sign-flip"] > plain.loss() and all(math.isfinite(loss) for loss in ends.values())


@pytest.mark.long
def test_a_poisoned_training_is_the_same_again_and_a_row_of_its_own(model: PresetModel, tmp_path: Path) -> None:
    file, job = tmp_path / "runs.csv", replace(JOB, poison="noise", poisoned=2)
    rows = list(run_jobs([job, job.dense], model, file, lambda _: None))
    assert [row.run for row in rows] == [job.dense, job] == [row.run for row in read_rows(file)]
    assert list(run_jobs([job], model, file, lambda _: None)) == []
    assert train(job, model).loss == rows[1].loss != rows[0].loss


@pytest.mark.long
def test_the_command_crosses_merges_with_poisons(tmp_path: Path) -> None:
    data = tmp_path / "text.txt"
    data.write_text(TEXT, encoding="utf-8")
    options = ["compare", "--data", str(data), "--out", str(tmp_path / "r.csv"), "--method", "f32", "--workers", "2"]
    options += ["--merge", "median-norm", "--poison", "none,copy", "--rounds", "1", "--inner-steps", "2", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [(row["merge"], row["poison"], row["poisoned"]) for row in rows] == [
        ("mean", "none", 0),
        ("median-norm", "none", 0),
        ("median-norm", "copy", 1),
    ]
    assert {row["loss_dense"] for row in rows} == {rows[0]["loss"]}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--merge", "krum"], "UnknownMerge"),
        (["--poison", "arsenic"], "UnknownPoison"),
        (["--poison", "copy", "--poisoned", "2", "--workers", "2"], "TooManyPoisoned"),
    ],
    ids=["merge", "poison", "all"],
)
def test_what_is_no_merge_or_poison_is_said_before_anything_runs(words: list[str], code: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["compare", "--out", str(tmp_path / "r"), *words])
    assert isinstance(result.exception, UsageError) and result.exception.code == code
