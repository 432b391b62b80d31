"""Run as a script by `test_parallel`: trains in pieces and prints root, peak memory above the start, and CPU time.

python -m tests.harness.engine.pieces_memory FOLDER PIECES STEPS LAYERS WIDTH MICRO_BATCHES

PIECES 0: the ordinary executor, stock.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import torch

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.parallel.pieces import PieceExecutor
from assay.engine.runtime.values import state_io
from tests.harness.engine.ranks import gpt_step


def resident(field: str) -> int:
    """A figure of this process in bytes: VmRSS, memory in use now, or VmHWM, the most so far."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def main() -> None:
    """Train and report as JSON."""
    folder, (pieces, steps, layers, width, micro_batches) = Path(sys.argv[1]), map(int, sys.argv[2:])
    torch.set_num_threads(1)
    program, state = gpt_step(layers, width, batch=8, micro_batches=micro_batches)
    made = PieceExecutor(program, pieces, folder=folder) if pieces else Executor(program, variant=KernelVariant.STOCK)
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the most so far
    start = time.process_time()
    ends = made.repeat(state, steps)
    spent, peak = time.process_time() - start, resident("VmHWM") - before
    report = {"pieces": pieces, "root": state_io.state_root(ends).hex(), "peak": peak, "ms": 1000 * spent / steps}
    print(json.dumps(report))


if __name__ == "__main__":
    main()
