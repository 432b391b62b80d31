"""The same bits after 100 steps whatever the threads, instruction set and executor; stock floats as the control differ.

A bit that differs after all changes the root: see the last test.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from assay.engine.runtime.executor import Executor
from assay.engine.runtime.values import state_io
from assay.engine.runtime.values.dtypes import to_bytes
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.initialize import initialize
from assay.training.presets import TINY
from assay.training.programs import training_program
from assay.training.state import Scalars
from assay.training.step import initial_state, preset_step

ROOT = Path(__file__).resolve().parents[3]
STEPS = 100

LIMITS: dict[str, dict[str, str]] = {
    "unset": {},
    "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2", "MKL_ENABLE_INSTRUCTIONS": "AVX2"},
    "SSE": {"ONEDNN_MAX_CPU_ISA": "SSE41", "ATEN_CPU_CAPABILITY": "default", "MKL_ENABLE_INSTRUCTIONS": "SSE4_2"},
    "plain C": {"ASSAY_NATIVE": "plain", "ATEN_CPU_CAPABILITY": "default"},
}


def run(how: str, limits: dict[str, str], threads: int, cache: Path) -> dict[str, object]:
    """The report of one process that trains under these limits."""
    clean = {k: v for k, v in os.environ.items() if k not in LIMITS["AVX2"] and not k.endswith("_NUM_THREADS")}
    environment = {**clean, **limits, "ASSAY_CACHE": str(cache), "OMP_NUM_THREADS": str(threads)}
    command = [sys.executable, "-m", "tests.harness.engine.steps_under_limits", how, str(STEPS), str(threads)]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True, timeout=900)
    report: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    report["onednn"] = next((line.rpartition("isa:")[2] for line in done.stdout.splitlines() if "isa:" in line), "?")
    print(limits or "no limits", json.dumps(report))
    return report


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_exact_steps_end_in_one_root_on_every_instruction_set_and_number_of_threads(tmp_path: Path):
    reports = [run("exact", limits, threads, tmp_path) for limits in LIMITS.values() for threads in (1, 2)]
    reports += [run(how, {}, 1, tmp_path) for how in ("stock", "cross-check")]
    assert len({r["torch"] for r in reports}) > 1, "the limits had no effect"
    assert reports[-2]["product_variants"] != reports[-1]["product_variants"], "the second look takes the same products"
    assert len({r["root"] for r in reports}) == 1


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_stock_steps_do_not(tmp_path: Path):
    reports = [run("eager", limits, 1, tmp_path) for limits in LIMITS.values()]
    assert len({r["root"] for r in reports}) > 1


def test_a_flipped_bit_in_any_state_tensor_changes_that_steps_root():
    corpus = corpus_from_text(pydoc_text()[:5_000])
    step = preset_step(TINY, len(corpus.vocabulary))
    state = initial_state(step, initialize(step.module, 1), Scalars.of(corpus.train, learning_rate=3e-3))
    executor = Executor(training_program(TINY, corpus))
    rng = random.Random(11)
    for _ in range(2):
        state = executor.run(state)
        honest, seen = state_io.state_root(state), set()
        for number, part in enumerate(state):
            for index, tensor in enumerate(part):
                # A storage bit of a number, never one that makes a NaN of it: there is one NaN only.
                byte, bit = rng.randrange(tensor.numel() * tensor.element_size()), rng.randrange(8)
                if tensor.dtype is torch.float32:
                    byte = byte // 4 * 4 + rng.randrange(2)
                flipped = tensor.clone()
                flipped.view(-1).view(torch.uint8)[byte] ^= 1 << bit
                assert to_bytes(flipped) != to_bytes(tensor)
                lists = [list(p) for p in state]
                lists[number][index] = flipped
                seen.add(state_io.state_root(lists))
        assert honest not in seen
        assert len(seen) == sum(map(len, state)), "every flip has a root of its own"
