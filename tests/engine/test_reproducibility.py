"""The same bits after 100 steps whatever the threads and the instruction set; stock floats as the control differ."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STEPS = 100

LIMITS: dict[str, dict[str, str]] = {
    "unset": {},
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "SSE": {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
}


def run(how: str, limits: dict[str, str], threads: int, cache: Path) -> dict[str, object]:
    """The report of one process that trains under these limits."""
    clean = {k: v for k, v in os.environ.items() if k not in LIMITS["AVX2"] and not k.endswith("_NUM_THREADS")}
    environment = {**clean, **limits, "ASSAY_CACHE": str(cache), "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "tests.engine.steps_under_limits", how, str(STEPS), str(threads)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=900)
    report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    report["onednn"] = next((line.rpartition("isa:")[2] for line in done.stdout.splitlines() if "isa:" in line), "?")
    print(limits or "no limits", json.dumps(report))
    return report


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_exact_steps_end_in_one_root_on_every_instruction_set_and_number_of_threads(tmp_path: Path):
    reports = [run("exact", limits, threads, tmp_path) for limits in LIMITS.values() for threads in (1, 2)]
    reports.append(run("careful", {}, 1, tmp_path))
    assert len({r["torch"] for r in reports}) > 1, "the limits had no effect"
    assert reports[0]["routes"] != reports[-1]["routes"], "the second look takes the same products"
    assert len({r["root"] for r in reports}) == 1


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_stock_steps_do_not(tmp_path: Path):
    reports = [run("eager", limits, 1, tmp_path) for limits in LIMITS.values()]
    assert len({r["root"] for r in reports}) > 1
