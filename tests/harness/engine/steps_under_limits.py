"""Run as a script by `test_reproducibility`: trains; prints roots, product variants and the machine's capability.

python -m tests.harness.engine.steps_under_limits exact|stock|cross-check|eager STEPS THREADS
"""

from __future__ import annotations

import json
import sys

import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.values import state_io
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.initialize import initialize
from assay.training.presets import preset
from assay.training.programs import training_program
from assay.training.state import Scalars
from assay.training.step import initial_state, preset_step

PRESET = preset("demo")


def main() -> None:
    """Train and report as JSON."""
    how, steps, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    torch.set_num_threads(threads)
    corpus = corpus_from_text(pydoc_text()[:50_000])
    step = preset_step(PRESET, len(corpus.vocabulary))
    state = initial_state(step, initialize(step.module, 1), Scalars.of(corpus.train, learning_rate=3e-3, key=(3, 4)))
    per_dot: dict[int, str] = {}
    if how == "eager":
        for _ in range(steps):
            state = step(*state)
    else:
        executor = Executor(
            training_program(PRESET, corpus),
            cross_check=how == "cross-check",
            variant=KernelVariant.STOCK if how == "stock" else None,
        )
        per_dot = executor.product_variants
        state = executor.repeat(state, steps)
    with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):  # says which instructions oneDNN takes
        ones = torch.ones(32, 32, dtype=torch.int8)
        torch._int_mm(ones, ones)
    report = {
        "how": how,
        "threads": torch.get_num_threads(),
        "torch": torch.backends.cpu.get_cpu_capability(),
        "product_variants": per_dot,
        "root": state_io.state_root(state).hex(),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
