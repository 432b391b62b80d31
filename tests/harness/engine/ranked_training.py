"""Run under torchrun by `test_ranked_compute`, through what `assay solver start` calls: rank 0 trains with the others.

torchrun --nproc-per-node 2 -m tests.harness.engine.ranked_training RUNS STEPS [FAIL]

FAIL: this rank ends at its second run, without a word, unless it was started again; `leaves`, rank 0 leaves its last
run between two exchanges and begins another; `works` and `waits`, rank 1 is stopped at its second run, or while it
waits for that. Rank 0 prints what came out as JSON. What it tells of its first step in every run fails once.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import cast

import torch

from assay.cli.ranks import follow, leading, place
from assay.engine.runtime.values import state_io
from assay.mapped_files import MappedFile
from assay.protocol.errors import AssayError, UnavailableError
from assay.protocol.program.program import Program
from assay.protocol.trees.state import ListBytes, TrainingList
from assay.training import ranked_compute
from assay.training.ranked_compute import Channel, RankedCompute, Ranks
from tests.harness.engine.ranks import gpt_step


def work() -> tuple[Program, ListBytes]:
    """What is trained."""
    program, state = gpt_step()
    return program, state_io.to_lists_of_bytes(state)


def with_mapped_data(lists: ListBytes, path: Path) -> ListBytes:
    """The same, with the data in a file, as an actor has large ones."""
    *others, data = lists[TrainingList.SCALARS]
    path.write_bytes(data)
    view = MappedFile.open(path, len(data), lambda seen: seen == data).view
    return *lists[: TrainingList.SCALARS], (*others, cast(bytes, view))


def root_of(program: Program, lists: ListBytes) -> str:
    """The root of a state, in hex."""
    return state_io.state_root(state_io.from_lists_of_bytes(state_io.input_specs(program), lists)).hex()


def main() -> None:
    """One rank's part."""
    runs, steps = int(sys.argv[1]), int(sys.argv[2])
    fails = sys.argv[3] if len(sys.argv) > 3 else ""
    torch.set_num_threads(1)
    mine = place()
    assert mine is not None
    if fails == str(mine.rank) and os.environ.get("TORCHELASTIC_RESTART_COUNT", "0") == "0":
        _at_second(Ranks, "executor", lambda: os._exit(9))
    if fails in STOPPED:
        ranked_compute.SILENCE = timedelta(seconds=5)  # type: ignore[misc]
        if mine.rank:
            _at_second(*STOPPED[fails], lambda: os.kill(os.getpid(), signal.SIGSTOP))
    try:
        if mine.rank:
            follow(mine)
        else:
            trained = work()  # before: once its compiler is loaded with ranks there, torch holds on to their threads
            with leading(mine) as compute:
                assert isinstance(compute, RankedCompute)
                print(json.dumps(_lead(compute, trained, runs, steps)), flush=True)
                if fails == "leaves":
                    _leave(compute, steps)
        # A thread that lets go of its last message while the interpreter is torn down aborts what has ended well.
        print(f"rank {mine.rank}: {_threads_of_gloo()} threads of Gloo's", flush=True)
    except AssayError as error:
        print(error.code, flush=True)
        sys.stdout.flush()
        os._exit(7)


def _threads_of_gloo() -> int:
    return sum("gloo" in (task / "comm").read_text() for task in Path("/proc/self/task").iterdir())


def _lead(compute: RankedCompute, trained: tuple[Program, ListBytes], runs: int, steps: int) -> dict[str, object]:
    program, lists = trained
    with tempfile.TemporaryDirectory() as folder:
        lists = with_mapped_data(lists, Path(folder) / "data")
    told: list[int] = []

    def fails(step: int) -> None:
        raise UnavailableError(f"nobody hears of step {step}")

    for _ in range(runs):
        try:
            compute.run(program, lists, steps, on_step=fails)
        except UnavailableError as error:
            assert "step 1" in error.message  # and everybody is where they were
        lists = compute.run(program, lists, steps, on_step=told.append)
    executor = compute.ranks.executor(program)
    return {"root": root_of(program, lists), "told": told, "exchanges": executor.traffic.calls}


def _leave(compute: RankedCompute, steps: int) -> None:
    program, lists = work()

    def interrupts(_: int) -> None:
        raise KeyboardInterrupt

    with contextlib.suppress(KeyboardInterrupt):
        compute.run(program, lists, steps, on_step=interrupts)
    compute.run(program, lists, steps)


STOPPED = {"works": (Ranks, "executor"), "waits": (Channel, "receive")}
"""What a rank is at when it is stopped."""


def _at_second(kind: type, method: str, does: Callable[[], object]) -> None:
    """Does something where a method of a class is called for the second time."""
    usual, seen = getattr(kind, method), []

    def counted(*arguments: object) -> object:
        seen.append(method)
        if len(seen) == 2:
            does()
        return usual(*arguments)

    setattr(kind, method, counted)


if __name__ == "__main__":
    main()
