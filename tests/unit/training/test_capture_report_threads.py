"""A capture report where nobody limits threads: what it forks must not wait for threads that its parent had."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.long
def test_a_report_ends_where_no_number_of_threads_is_set() -> None:
    environment = {k: v for k, v in os.environ.items() if k not in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    words = ["model", "capture-report", "examples.own_model:factory", "--steps", "1", "--seconds", "90", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "assay", *words], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=150
    )
    assert done.returncode == 0, (done.stdout[-1500:], done.stderr[-1500:])
    (row,) = json.loads(done.stdout).values()
    assert (row["outcome"], row["captured"]) == ("right", True)
