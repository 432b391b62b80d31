"""The kernels under address and undefined-behaviour sanitizers at small counts; `make sanitize` runs large ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.engine.fused_instruction_sets import PRESENT, needs_kernels
from tests.house.test_checks import tool

ROOT = Path(__file__).resolve().parents[3]
UNAVAILABLE = tool("sanitize").missing()


@pytest.mark.long
@needs_kernels
@pytest.mark.skipif(bool(UNAVAILABLE), reason=UNAVAILABLE or "-")
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("instruction_set", "programs", "every"), [(PRESENT[0], 30, 4), ("plain", 5, 30)])
def test_kernels_read_and_write_inside_their_memory_and_do_nothing_undefined(
    instruction_set: str, programs: int, every: int
):
    """Self-tests, products at their limits, views that read nothing, random programs with hostile states."""
    counts = ["--programs", str(programs), "--views", str(every)]
    command = [sys.executable, "tools/sanitize.py", "--instruction-sets", instruction_set, *counts]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{instruction_set}: {programs} random programs, 0 differences" in done.stdout
