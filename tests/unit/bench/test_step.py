"""`assay bench step`: both sides train the same model, rounds alternate, and every figure is of this machine."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import nn
from typer.testing import CliRunner

from assay.bench import step
from assay.bench.memory import growth
from assay.bench.models import MODELS, recipe_of
from assay.bench.sides import Contender, Eager, Exact, program_of, start_of
from assay.bench.step import StepRow, StepTerms, alternate, clock_for, measure
from assay.cli.bench import app
from assay.protocol.errors import ConfigError, UsageError
from assay.training.recipes.recipe import Recipe, RecipeStep

SMALL = "gpt-2x96"
QUICK = StepTerms(seconds=0.0, with_memory=False, with_compile=False)


def test_rounds_alternate_between_sides() -> None:
    calls: list[str] = []
    rounds = alternate([lambda: calls.append("a"), lambda: calls.append("b")], seconds=0.0, least=4)
    assert len(rounds) == 4
    assert "".join(calls)[-8:] == "abababab"


def test_waiting_counts_on_several_threads_and_not_on_one() -> None:
    waited = [alternate([lambda: time.sleep(0.02)], 0.0, least=1, clock=clock_for(n))[0][0] for n in (1, 2)]
    assert waited[0] < 15 < waited[1]


def test_both_sides_train_the_same_model() -> None:
    eager, exact = Eager(SMALL), Exact(*start_of(SMALL, "fixed14"), "stock")
    start = RecipeStep(recipe_of(SMALL)).state()[0]
    for a, b in zip(eager.recipe.module.parameters(), start, strict=True):
        assert torch.equal(a, b)
    for _ in range(30):
        eager()
        exact()
    windows = recipe_of(SMALL).data[0].int()[torch.arange(0, 3300, 33)[:, None] + torch.arange(33)]
    module, names = recipe_of(SMALL).module, RecipeStep(recipe_of(SMALL)).names
    loss = recipe_of(SMALL).loss
    with torch.no_grad():
        stock = loss(eager.recipe.module, windows).item()
        first = loss(module, windows).item()
        module.load_state_dict(dict(zip(names, exact.state[0], strict=True)), strict=False)
        ours = loss(module, windows).item()
    assert stock < first - 1
    assert abs(ours - stock) < 0.15


@pytest.mark.parametrize("model", [m for m in MODELS if m not in ("gpt-4x384", SMALL)])
@pytest.mark.gate_takes(1)
def test_every_model_has_an_exact_step(model: str) -> None:
    assert program_of(model, "fixed14").is_iterable


def test_rows_hold_what_was_measured() -> None:
    (row,) = measure(SMALL, [Contender("fixed14", "stock")], QUICK)
    assert row.time_ratio > 0
    assert row.step_ms > 0
    assert row.memory_ratio is None
    assert row.hash_share is not None
    assert 0 < row.hash_share < 0.5


@pytest.mark.long
def test_steps_are_measured_over_what_a_compiler_makes_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "line", line)
    terms = StepTerms(seconds=0.0, with_memory=False)
    (row,) = measure("line", [Contender("f32", "eager")], terms)
    assert row.without_compile == ""
    assert row.compile_ratio is not None and row.compile_ms is not None
    assert row.compile_bf16_ratio is not None and row.compile_bf16_ms is not None
    # Medians of ratios and of times agree on a side that is measured against itself, beside noise.
    assert 0.2 < row.time_ratio < 5
    assert 0.2 < row.compile_ratio * row.compile_ms / row.step_ms < 5
    assert 0.2 < row.compile_bf16_ratio * row.compile_bf16_ms / row.step_ms < 5


def test_a_compiler_forgets_a_model_before_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it leaves the fifth to eager, and a warning alone says so."""
    done: list[str] = []
    monkeypatch.setattr(torch.compiler, "reset", lambda: done.append("forgotten"))
    monkeypatch.setattr(step, "side_of", lambda _, side, *__: lambda: done.append(f"{side.tier} by {side.executor}"))
    step._peers("line", StepTerms(seconds=0.0))
    assert done == ["forgotten", "f32 by compile", "bf16 by compile"]


def line() -> Recipe:
    """One linear layer: little to compile."""
    torch.manual_seed(1)
    module = nn.Linear(4, 1)
    data = (torch.randn(16, 4), torch.randn(16, 1))
    return Recipe(module, fit, torch.optim.AdamW(module.parameters()), data=data, batch_size=8)


def fit(module: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return nn.functional.mse_loss(module(x), y)


def test_where_no_compiler_is_the_rows_and_the_command_say_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(MODELS, "line", line)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    options = ["--model", "line", "--tier", "fixed14", "--executor", "stock", "--no-memory", "--seconds", "0", "--json"]
    result = CliRunner().invoke(app, ["step", *options])
    (row,) = json.loads(result.stdout)["rows"]
    assert (row["compile_ratio"], row["compile_bf16_ratio"]) == (None, None)
    assert row["without_compile"] == "torch.compile needs a C++ compiler, and there is none"
    assert row["time_ratio"] > 0


def test_a_gpu_that_is_not_there_is_refused_by_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for words in (["step"], ["quality", "--steps", "1"]):
        refused = CliRunner().invoke(app, [*words, "--device", "cuda"]).exception
        assert isinstance(refused, ConfigError)
        assert refused.code == "NoDevice"
        assert "There is no GPU that torch can use" in refused.message


@pytest.mark.long
def test_a_witnessed_step_is_measured_over_the_plain_one_beside_it() -> None:
    sides = [Contender("fixed14", "stock"), Contender("fixed14", "stock", is_witnessed=True)]
    plain, witnessed = measure(SMALL, sides, QUICK)
    assert (plain.witnessed, plain.over_plain) == (False, None)
    assert witnessed.witnessed and witnessed.over_plain is not None
    assert 0.5 < witnessed.over_plain < 2
    assert plain.nodes is not None and witnessed.nodes is not None
    assert witnessed.nodes > plain.nodes
    (alone,) = measure(SMALL, sides[1:], QUICK)
    assert alone.over_plain is None


@pytest.mark.long
def test_a_process_grows_by_at_least_the_state_it_trains() -> None:
    grown = growth(SMALL, Contender("f32", "eager"), 1)
    parameters = sum(p.numel() for p in recipe_of(SMALL).module.parameters())
    assert grown is not None
    assert grown > 4 * 4 * parameters


def test_the_command_prints_rows_as_json() -> None:
    options = [
        "--model",
        SMALL,
        "--tier",
        "fixed14",
        "--no-memory",
        "--no-compile",
        "--seconds",
        "0",
        "--deterministic",
        "--json",
    ]
    result = CliRunner().invoke(app, ["step", *options])
    assert result.exit_code == 0, result.output
    rows = json.loads(result.stdout)["rows"]
    assert [(r["model"], r["tier"]) for r in rows] == [(SMALL, "fixed14"), (SMALL, "f32")]
    assert rows[1]["executor"] == "deterministic"


@pytest.mark.parametrize(
    "option", [["--model", "gpt-9"], ["--tier", "fixed9"], ["--executor", "magic"], ["--device", "tpu"]]
)
def test_what_does_not_exist_is_said_with_the_choices(option: list[str]) -> None:
    result = CliRunner().invoke(app, ["step", *option])
    if option[0] == "--device":  # an option of many commands, refused by the parser
        assert result.exit_code == 2 and option[1] in result.output
        return
    assert isinstance(result.exception, UsageError)
    assert option[1] in str(result.exception)


def test_the_table_of_steps_fits_a_terminal_of_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody looks at it too: a cell that is broken over lines can be searched for by nobody."""

    def measured(model: str, sides: Sequence[Contender], terms: StepTerms) -> list[StepRow]:
        figures = {"time_ratio": 0.85, "compile_ratio": 0.87, "compile_bf16_ratio": 0.05, "over_plain": None}
        return [
            StepRow(
                model, side.tier, side.executor, witnessed=False, device="cpu", **figures, memory_ratio=1.19,
                hash_share=0.0128, step_ms=61_062.47, eager_ms=71_254.91, compile_ms=1.0, compile_bf16_ms=1.0,
                best_ms={}, rounds=10, threads=1, nodes=1593, without_compile="",
            )
            for side in sides
        ]  # fmt: skip

    monkeypatch.setattr(step, "measure", measured)
    found = CliRunner().invoke(app, ["step", "--model", "gpt2-12x768"], env={"COLUMNS": "80"})
    lines = found.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    (row,) = [line for line in lines if "fixed14" in line]
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        *("gpt2-12x768", "fixed14", "0.85", "0.87", "0.05", "1.19", "1.28%", "61,062.47")
    ]
