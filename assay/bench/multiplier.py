"""What a run costs beside the steps that it trains: CPU seconds of all its processes over those of the steps alone.

A run as strangers have it: a node, contracts, a process for every solver and auditor, all honest, chain time moved when
all rest. The CPU time of these processes, and of the one that moves time, counts from their start to the run's end; the
sponsor's commands before it (capture, keys, deployment) do not. Audits are drawn, so their time is a matter of luck:
they count as what a duty took times the duties that the charter's rates make expected. Steps alone are the same program
on the same state, without marks, files or chain, before the run and after it, in as many processes at once as the run's
solvers have cores: they share caches in both. Stock eager f32 alternates with them.
"""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from threading import Barrier
from typing import Any, Final

from assay.demo import play
from assay.demo.cast import TICKETS, Cast
from assay.demo.scene import DemoOptions
from assay.demo.stage import DemoActor
from assay.protocol.errors import UserError
from assay.protocol.types import Round
from assay.training.presets import preset as preset_of

BAR: Final = 1.25
PARTNER_S: Final = 600.0
"""Longer than any process is behind the others, unless it failed."""


@dataclass(frozen=True, slots=True)
class MultiplierTerms:
    """What is run. audit and reaudit: p and q in percent. `steps`: that a side of the comparison runs at a time."""

    preset: str = "gpt-4x128"
    seats: int = 8
    rounds: int = 5
    audit_percent: int = 10
    reaudit_percent: int = 20
    capacity: int = 4
    steps: int = 20
    turns: int = 5


@dataclass(frozen=True, slots=True)
class StepCpu:
    """CPU seconds of one step, one thread: medians over turns in which each side runs once, mean of the processes."""

    exact: float
    eager: float


class NoDutyDrawn(UserError):
    """Chance drew no audit, so what one takes is unknown."""

    remedy = "Run it again, or for more rounds: each commitment is drawn with the audit rate."


@dataclass(frozen=True, slots=True)
class RunCpu:
    """What a run took: CPU seconds of all its processes by kind of work, and how much work of the steps that was."""

    seconds: Mapping[str, float]
    steps: int
    commitments: int
    duties: int
    """Results of auditors: what chance drew."""


def measure(terms: MultiplierTerms, talk: Callable[[str], None], folder: Path | None = None) -> dict[str, Any]:
    """The document that the command prints. Raises NoDutyDrawn, and what a run's processes end with."""
    before = step_cpu(terms)
    run, wall = run_cpu(terms, talk, folder)
    return {**document_of(terms, run, before, step_cpu(terms)), "wall_seconds": round(wall, 1)}


def run_cpu(terms: MultiplierTerms, talk: Callable[[str], None], folder: Path | None) -> tuple[RunCpu, float]:
    """Plays a run from its posting to its end; and the seconds that it took by the clock."""
    options = DemoOptions(cheats=(), rounds=terms.rounds, preset=terms.preset, weighs=False, folder=folder)
    with play.open_scene(options, talk, cast_of(terms)) as scene:
        play.post(scene)
        play.join(scene)
        play.launch(scene)
        play.play_rounds(scene)
        view, wall = scene.view, time.monotonic() - scene.started
        works = [made for r in range(len(view.books.commitments.rounds)) for made in view.works(Round(r))]
        steps = sum(made.work.units for made in works) * view.rules.steps_per_unit
        return RunCpu(dict(scene.meter.seconds), steps, len(works), len(view.state.attestations)), wall


def document_of(terms: MultiplierTerms, run: RunCpu, before: StepCpu, after: StepCpu) -> dict[str, Any]:
    """The figures of a run beside those of its steps alone. Raises NoDutyDrawn."""
    if not run.duties:
        raise NoDutyDrawn(f"None of {run.commitments} commitments was drawn for an audit.")
    exact, eager = (before.exact + after.exact) / 2, (before.eager + after.eager) / 2
    expected = expected_duties(run.commitments, terms)
    parts = {**run.seconds, "audit": run.seconds["audit"] / run.duties * expected}
    alone, whole = exact * run.steps, sum(parts.values())
    return {
        "multiplier": round(whole / alone, 3),
        "bar": BAR,
        "over_eager": round(whole / (eager * run.steps), 3),
        "parts": {kind: round(seconds / alone, 4) for kind, seconds in parts.items()},
        "cpu_seconds": {kind: round(seconds, 1) for kind, seconds in run.seconds.items()},
        "exact_step_ms": [round(side.exact * 1e3, 2) for side in (before, after)],
        "eager_step_ms": [round(side.eager * 1e3, 2) for side in (before, after)],
        "processes_at_once": at_once(terms),
        "steps": run.steps,
        "commitments": run.commitments,
        "duties_drawn": run.duties,
        "duties_expected": round(expected, 2),
        "cpu_seconds_per_duty": round(run.seconds["audit"] / run.duties, 2),
        "seats": terms.seats,
        "rounds": terms.rounds,
    }


def expected_duties(commitments: int, terms: MultiplierTerms) -> float:
    """Of p a commitment, and q of every finding, those of re-audits included: p / (1 - q) in all."""
    return commitments * terms.audit_percent / (100 - terms.reaudit_percent)


def cast_of(terms: MultiplierTerms) -> Cast:
    """Honest actors alone; every ticket is on call in every epoch, as runs have it."""
    solvers = tuple(DemoActor("solver", f"solver-{i + 1}") for i in range(terms.seats))
    auditors = tuple(DemoActor(n.partition("-")[0], n, tickets=count) for n, count in TICKETS.items())
    return Cast(
        solvers,
        auditors,
        capacity=terms.capacity,
        reaudit_percent=terms.reaudit_percent,
        audit_percent=terms.audit_percent,
        shifts=1,
        strangers=0,
    )


def at_once(terms: MultiplierTerms) -> int:
    """How many solvers train at the same time on this machine."""
    return min(terms.seats, len(os.sched_getaffinity(0)))


def step_cpu(terms: MultiplierTerms) -> StepCpu:
    """Measured in processes of their own, which no meter watches."""
    count, context = at_once(terms), multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(count, mp_context=context) as pool:
        together = manager.Barrier(count, timeout=PARTNER_S)
        jobs = [pool.submit(_step_cpu, terms.preset, terms.steps, terms.turns, together) for _ in range(count)]
        found = [job.result() for job in jobs]
    return StepCpu(fmean(side.exact for side in found), fmean(side.eager for side in found))


def _step_cpu(preset_name: str, steps: int, turns: int, together: Barrier) -> StepCpu:
    import torch

    from assay.engine.runtime.values.state_io import to_lists_of_bytes
    from assay.sponsor.preparing import GENESIS_SEED
    from assay.training.data import corpus_from_text, pydoc_text
    from assay.training.initialize import initialize
    from assay.training.programs import training_program
    from assay.training.rounds import TorchCompute
    from assay.training.state import Scalars
    from assay.training.step import initial_state, preset_step

    torch.set_num_threads(1)
    preset = preset_of(preset_name)
    corpus = corpus_from_text(pydoc_text())
    step = preset_step(preset, len(corpus.vocabulary), restarts=True)
    scalars = Scalars.of(corpus.train, learning_rate=preset.learning_rate)
    state = initial_state(step, initialize(step.module, GENESIS_SEED), scalars)
    program, compute = training_program(preset, corpus, restarts=True), TorchCompute()
    lists, tensors = to_lists_of_bytes(state), state
    lists, tensors = compute.run(program, lists, 1), step(*tensors)
    found: dict[str, list[float]] = {"exact": [], "eager": []}
    for _ in range(turns):
        together.wait()
        begin = time.process_time()
        lists = compute.run(program, lists, steps)
        found["exact"].append((time.process_time() - begin) / steps)
        together.wait()
        begin = time.process_time()
        for _ in range(steps):
            tensors = step(*tensors)
        found["eager"].append((time.process_time() - begin) / steps)
    return StepCpu(median(found["exact"]), median(found["eager"]))
