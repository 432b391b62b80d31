"""The examples run as they are shown."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def test_the_capture_example_trains_alike_exactly_and_in_stock_pytorch(capsys: pytest.CaptureFixture[str]):
    runpy.run_path(str(EXAMPLES / "capture_a_module.py"), run_name="__main__")
    shown = capsys.readouterr().out
    before = float(re.findall(r"before (\S+)", shown)[0])
    exact, stock = map(float, re.findall(r"exact (\S+), stock (\S+)", shown)[0])
    assert exact < before / 5
    assert exact == pytest.approx(stock, abs=0.01)
    assert "refused: Cannot lower 1 operation: aten.cumsum.default at" in shown
    assert "capture_a_module.py:" in shown
