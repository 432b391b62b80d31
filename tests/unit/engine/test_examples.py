"""The examples run as they are shown."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest
import torch

from assay.engine.compiler.randomness import Randomness
from assay.engine.runtime.executor import Executor
from assay.programs import capture_recipe, load_recipe
from assay.training.recipes.recipe import RecipeStep

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


def test_the_capture_example_trains_alike_exactly_and_in_stock_pytorch(capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLES / "capture_a_module.py"), run_name="__main__")
    shown = capsys.readouterr().out
    before = float(re.findall(r"before (\S+)", shown)[0])
    exact, stock = map(float, re.findall(r"exact (\S+), stock (\S+)", shown)[0])
    assert exact < before / 5
    assert exact == pytest.approx(stock, abs=0.01)
    assert "refused: Cannot lower 1 operation: aten.lgamma.default at" in shown
    assert "capture_a_module.py:" in shown


def test_the_own_model_of_the_example_learns(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(EXAMPLES.parent))
    torch.manual_seed(0)
    captured = capture_recipe(load_recipe("examples.own_model:factory"))
    step = RecipeStep(load_recipe("examples.own_model:factory"))
    parameters, optimizer, scalars = Executor(captured.program).repeat(captured.state, 60)
    moments = optimizer[len(optimizer) - len(step.buffers) :]
    with torch.no_grad():
        step.recipe.module.eval()
        loss, _, _ = step.loss_of(parameters, moments, step.recipe.data, Randomness(scalars[2], scalars[0]))
    assert float(loss) < 0.6 * captured.first_loss
    assert int(scalars[0][0]) == 60
