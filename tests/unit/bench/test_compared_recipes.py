"""`assay train compare --recipe`: a model of one's own by every method, and by the programs of a run of it."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from typer.testing import CliRunner

from assay.bench.compare import METHODS, ComparedRun, Training, check_job, run_jobs, setting_of, summary, train
from assay.bench.methods.own_model import RecipeModel
from assay.cli.train import app
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.values.state_io import list_roots
from assay.programs.factory import load_recipe
from assay.protocol.errors import UsageError, UserError
from assay.sponsor.preparing import prepare_recipe_rounds
from assay.training.recipes.evaluation import captured_validation
from assay.training.recipes.in_rounds import lasting_recipe
from assay.training.recipes.recipe import Recipe
from assay.training.updates import UpdateWire
from examples.own_run import rows

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")


def loss(module: nn.Module, points: torch.Tensor, classes: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(module(points), classes)


def plain(seed: int = 1, **terms: object) -> Recipe:
    """Two data tensors, a hidden matrix, one AdamW."""
    torch.manual_seed(seed)
    module = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2))
    torch.manual_seed(0)
    train_rows, held_out = rows(400), rows(70)
    data, validation = ((t[:, :2], t[:, 2].to(torch.int64)) for t in (train_rows, held_out))
    optimizer = torch.optim.AdamW(module.parameters(), lr=1e-2, weight_decay=0.1)
    return Recipe(module, loss, optimizer, data=data, batch_size=32, validation=validation, **terms)  # type: ignore


def without_validation() -> Recipe:
    return replace(plain(), validation=None)


def by_sgd() -> Recipe:
    made = plain()
    return replace(made, optimizer=torch.optim.SGD(made.module.parameters(), lr=1e-2))


def unseeded() -> Recipe:
    """Another start at each call, and no seed to ask for."""
    return plain(seed=next(CALLS))


def slower() -> Recipe:
    made = plain()
    return replace(made, optimizer=torch.optim.AdamW(made.module.parameters(), lr=5e-3, weight_decay=0.1))


def of_16_bits() -> Recipe:
    made = plain()
    made.module.to(torch.bfloat16)
    data, held_out = ((points.bfloat16(), classes) for points, classes in (made.data, made.validation or ()))
    optimizer = torch.optim.AdamW(made.module.parameters(), lr=1e-2)
    return replace(made, data=data, validation=held_out, optimizer=optimizer)


def frozen() -> Recipe:
    made = plain()
    made.module[0].weight.requires_grad_(False)  # type: ignore[index, union-attr]
    return replace(made, optimizer=torch.optim.AdamW(list(made.module.parameters())[1:], lr=1e-2))


CALLS = count(1)
HERE = "tests.unit.bench.test_compared_recipes"
PLAIN, STATISTICS = RecipeModel(f"{HERE}:plain", workers=4), RecipeModel("examples.own_run:factory", workers=4)
JOB = ComparedRun("f32", PLAIN.name, workers=2, seed=1, rounds=2, inner_steps=10)
OF_STATISTICS = replace(JOB, model=STATISTICS.name)
RUN = "ab" * 32


@pytest.mark.parametrize(("model", "statistics"), [(PLAIN, 0), (STATISTICS, 3)], ids=["plain", "norm"])
@pytest.mark.parametrize("method", ["f32", "int8"])
@pytest.mark.gate_takes(1)
def test_a_training_begins_as_a_run_of_the_recipe_does(model: RecipeModel, statistics: int, method: str) -> None:
    run = prepare_recipe_rounds(load_recipe(model.name), "own", 2, inner_steps=10, wire=UpdateWire(method))
    training = Training(replace(JOB, model=model.name, method=method, run_id=RUN, seed=7), model)
    executors = [training._step, training._update._executor, training._merge._program._executor]
    assert [executor.program.root for executor in executors] == [program.root for program in run.programs[:3]]
    begun, genesis = list_roots([training.parameters, training._moments, training.momentum]), run.genesis
    assert list(begun) == [genesis.parameters, genesis.zero_optimizer, genesis.momentum]
    *_, start, length, data = training.setting.scalars(0, 1)
    assert torch.equal(data, run.data) and int(start) == int(length) == genesis.data_length // 2
    assert training.setting.rule.statistics == statistics


@pytest.mark.parametrize("name", ["f32", "int4", "sparse-carried", "muloco", "streaming", "eager", "demo-ranks"])
@pytest.mark.gate_takes(1)
def test_methods_train_a_recipe_on_as_many_examples(name: str) -> None:
    row = train(replace(JOB, method=name, rounds=3), PLAIN)
    assert row.tokens == 3 * 10 * 2 * 32 and row.loss < PLAIN.loss(PLAIN.start(1, as_a_run=False))
    assert row.model == PLAIN.name and bool(row.root) == (name in ("f32", "int4"))


def test_running_statistics_are_merged_and_counted_in_what_is_sent() -> None:
    training = Training(OF_STATISTICS, STATISTICS)
    before = [t.clone() for t in training.parameters[-3:]]
    training.round(0)
    assert all(not torch.equal(a, b) for a, b in zip(before, training.parameters[-3:], strict=True))
    assert training.peak == sum(4 * t.numel() for t in training.parameters)
    for name in METHODS:
        if name in {wire.value for wire in UpdateWire}:
            check_job(replace(OF_STATISTICS, method=name), STATISTICS)
            continue
        with pytest.raises(UsageError, match="running statistics"):
            check_job(replace(OF_STATISTICS, method=name), STATISTICS)


def test_a_factorys_seed_starts_it_elsewhere_and_a_run_starts_where_the_factory_does() -> None:
    first, other, run = PLAIN.start(1, as_a_run=False), PLAIN.start(2, as_a_run=False), PLAIN.start(2, as_a_run=True)
    assert torch.equal(first[0], run[0]) and not torch.equal(first[0], other[0])
    assert torch.equal(STATISTICS.start(1, as_a_run=False)[0], STATISTICS.start(2, as_a_run=False)[0])
    assert (
        setting_of(JOB, PLAIN).scalars(0, 0)[2].tolist()
        != setting_of(replace(JOB, seed=2), PLAIN).scalars(0, 0)[2].tolist()
    )


def test_the_loss_is_that_of_the_runs_own_validation() -> None:
    for model in (PLAIN, STATISTICS):
        start, made = model.start(1, as_a_run=True), captured_validation(lasting_recipe(model.recipe))
        assert made is not None
        executor, size = Executor(made.program), model.recipe.batch_size
        parts = [executor.run([start, [part]])[0][0].clone() for part in torch.split(made.examples, size)]
        assert model.loss(start) == pytest.approx(float(torch.stack(parts).mean()), rel=1e-3)
    assert made.examples.shape[0] == 1024 and PLAIN.digest != STATISTICS.digest


@pytest.mark.parametrize(
    ("name", "terms", "error", "code"),
    [
        ("plain", {"guard": 0.1}, UsageError, "MethodNotForRecipe"),
        ("plain", {"poison": "label-flip", "poisoned": 1}, UsageError, "MethodNotForRecipe"),
        ("by_sgd", {"method": "demo-ranks"}, UsageError, "MethodNotForRecipe"),
        ("frozen", {"method": "demo-ranks"}, UsageError, "MethodNotForRecipe"),
        ("by_sgd", {"method": "muloco"}, UsageError, "MethodNotForRecipe"),
        ("without_validation", {}, UserError, "BadRunRecipe"),
    ],
    ids=["guard", "poison", "ranks", "frozen", "muon", "validation"],
)
def test_what_is_not_for_a_recipe_is_said_before_anything_is_trained(
    tmp_path: Path, name: str, terms: dict[str, object], error: type, code: str
) -> None:
    model = RecipeModel(f"{HERE}:{name}", workers=2)
    job = replace(JOB, model=model.name)
    with pytest.raises(error) as refused:
        list(run_jobs([job, replace(job, **terms)], model, tmp_path / "r.csv", lambda _line: None))  # type: ignore
    assert refused.value.code == code and not (tmp_path / "r.csv").exists()


@pytest.mark.long
def test_a_recipe_that_changes_under_its_name_is_another_and_its_data_too() -> None:
    digests = {RecipeModel(f"{HERE}:{name}", 2).digest for name in ("plain", "slower", "by_sgd", "frozen")}
    assert len(digests | {STATISTICS.digest}) == 5 and RecipeModel(PLAIN.name, 2).digest in digests


def test_methods_of_a_factory_without_a_seed_start_alike() -> None:
    model = RecipeModel(f"{HERE}:unseeded", workers=2)
    starts = [Training(replace(JOB, model=model.name, method=name), model).parameters for name in ("f32", "int8")]
    assert all(torch.equal(a, b) for a, b in zip(*starts, strict=True))


@pytest.mark.long
def test_ranks_train_a_model_of_sixteen_bits() -> None:
    model = RecipeModel(f"{HERE}:of_16_bits", workers=2)
    row = train(replace(JOB, model=model.name, method="demo-ranks", rounds=3), model)
    assert row.loss < model.loss(model.start(1, as_a_run=False))


@pytest.mark.parametrize("poison", ["noise", "alie", "scale-100", "not-finite"])
@pytest.mark.gate_takes(1)
def test_running_statistics_of_whoever_poisons_are_true(poison: str) -> None:
    training = Training(replace(OF_STATISTICS, poison=poison, poisoned=1, merge="median"), STATISTICS)
    plain_training = Training(OF_STATISTICS, STATISTICS)
    for one in (training, plain_training):
        one.round(0)
    assert all(torch.equal(a, b) for a, b in zip(training.parameters[-3:], plain_training.parameters[-3:], strict=True))
    assert not torch.equal(training.parameters[0], plain_training.parameters[0])


def test_beside_a_loss_of_nothing_or_less_stands_no_ratio() -> None:
    row = train(replace(JOB, rounds=1), PLAIN)
    for loss in (0.0, -1.0):
        none = replace(row, loss=loss)
        assert summary([none], [none.run], none.text)[0]["above"] is None


def test_updates_of_a_recipe_are_poisoned_like_others() -> None:
    plain_row, poisoned = (
        train(replace(JOB, poison=name, poisoned=k), PLAIN) for name, k in (("none", 0), ("sign-flip", 1))
    )
    assert poisoned.loss > plain_row.loss


def test_more_workers_than_shards_are_refused_before_anything_runs(tmp_path: Path) -> None:
    model = RecipeModel(PLAIN.name, workers=401)
    with pytest.raises(UserError) as refused:
        list(run_jobs([replace(JOB, workers=401)], model, tmp_path / "r.csv", lambda _line: None))
    assert refused.value.code == "BadRunRecipe" and not (tmp_path / "r.csv").exists()


def test_the_command_trains_a_recipe(tmp_path: Path) -> None:
    options = ["compare", "--recipe", PLAIN.name, "--out", str(tmp_path / "r.csv"), "--method", "bf16"]
    options += ["--workers", "2", "--rounds", "1", "--json"]
    result = CliRunner().invoke(app, options)
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["rows"]
    assert [(row["method"], row["model"], row["inner_steps"]) for row in found] == [
        ("f32", PLAIN.name, 25),
        ("bf16", PLAIN.name, 25),
    ]
    clash = CliRunner().invoke(app, [*options, "--preset", "tiny"])
    assert isinstance(clash.exception, UsageError) and clash.exception.code == "OptionsClash"


@pytest.mark.long
def test_the_table_fits_a_screen_and_says_above_it_what_is_the_same_in_all_rows(tmp_path: Path) -> None:
    options = ["compare", "--recipe", PLAIN.name, "--out", str(tmp_path / "r.csv"), "--method", "sparse-carried-int4"]
    result = CliRunner().invoke(app, [*options, "--workers", "2", "--rounds", "1", "--inner-steps", "2"])
    lines = result.stdout.splitlines()
    assert result.exit_code == 0 and max(map(len, lines)) <= 80
    assert "2 workers, seed 1" in " ".join(lines) and not any("┃ seed" in line for line in lines)
    assert any("sparse-carried-int4" in line for line in lines)
