"""What exactness costs: one captured step against the same step in stock eager PyTorch, with hashing and tracing.

    python -m bench.step [--preset demo] [--threads 1] [--seconds 10] [--json]

Times are the least processor time over repeated runs, so that other work on the machine disturbs them little.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter, defaultdict
from collections.abc import Callable

import torch

from assay.engine import state_io
from assay.engine.capture import capture
from assay.engine.executor import Executor
from assay.engine.trace import TorchTrace
from assay.training.data import corpus_from_text, pydoc_text
from assay.training.initialize import initialize
from assay.training.presets import preset
from assay.training.programs import example_state
from assay.training.state import Lists, Scalars
from assay.training.step import blank_state, preset_step


def best(function: Callable[[], object], seconds: float) -> float:
    """The least processor time of one call in milliseconds, over calls that take about this long together."""
    function()
    times: list[float] = []
    while sum(times) < seconds or len(times) < 3:
        start = time.process_time()
        function()
        times.append(time.process_time() - start)
    return min(times) * 1e3


def per_family(executor: Executor, state: object) -> dict[str, float]:
    """Milliseconds per family of nodes in one run."""
    spent: dict[str, float] = defaultdict(float)
    nodes = executor.program.nodes
    last = time.thread_time()

    def lap(k: int, value: torch.Tensor) -> torch.Tensor:
        nonlocal last
        now = time.thread_time()
        spent[nodes[k].family.name.lower()] += (now - last) * 1e3
        last = time.thread_time()
        return value

    executor.run(state, lap)  # type: ignore[arg-type]
    return dict(sorted(spent.items(), key=lambda item: -item[1]))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="demo")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0, help="about how long each figure is measured")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    chosen = preset(options.preset)
    corpus = corpus_from_text(pydoc_text(), min_tokens=chosen.context + 1)
    step = preset_step(chosen, len(corpus.vocabulary))
    start = time.process_time()
    program = capture(step, example_state(step, chosen, corpus.train)).program
    captured = time.process_time() - start
    scalars = Scalars.of(corpus.train, learning_rate=chosen.learning_rate, key=(1, 2))
    state: Lists = blank_state(step, initialize(step.module, 1), scalars)
    executor = Executor(program)
    for _ in range(3):
        state = tuple(executor.run(state))
    exact, eager = (best(f, options.seconds) for f in (lambda: executor.run(state), lambda: step(*state)))
    report = {
        "preset": chosen.name,
        "threads": options.threads,
        "capability": torch.backends.cpu.get_cpu_capability(),
        "parameters": sum(p.numel() for p in state[0]),
        "nodes": len(program.nodes),
        "node_megabytes": round(sum(n.spec.nbytes for n in program.nodes) / 1e6, 1),
        "capture_s": round(captured, 2),
        "exact_ms": round(exact, 2),
        "eager_ms": round(eager, 2),
        "ratio": round(exact / eager, 2),
        "state_root_ms": round(best(lambda: state_io.state_root(state), 1.0), 2),
        "trace_step_ms": round(best(lambda: TorchTrace(executor, state).prefix_root(1, 1), options.seconds), 2),
        "routes": dict(Counter(executor.routes.values())),
        "family_ms": {name: round(ms, 2) for name, ms in per_family(executor, state).items()},
    }
    if options.json:
        print(json.dumps(report))
        return
    for name, value in report.items():
        print(f"{name:>16}  {value}")


if __name__ == "__main__":
    main()
