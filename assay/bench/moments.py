"""What moments that start at zero in each round cost: tokens to the loss that plain DiLoCo with kept moments reaches.

Tasks: `demo`, the demo's preset, or `tiny`, a smaller one; `nanogpt`, nanoGPT's CPU configuration with a rate that
stays where its warm-up ends, for a rate that falls to a set step would make tokens to a loss a matter of the schedule.
Eight seats train on shards of their own, by the exact programs of a run. Every finished training is one JSON line of a
file and not run again.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from assay.bench.nanogpt import CONTEXT, RATE, WARMUP, NanoGPT, nanogpt_recipe
from assay.bench.quality import read_records
from assay.engine.compiler.cache import cached_program, source_digest
from assay.engine.compiler.calibrate import calibrated
from assay.engine.compiler.lowering.registry import FIXED14
from assay.engine.runtime.executor import Executor
from assay.training.data import Corpus
from assay.training.evaluate import split_loss
from assay.training.initialize import initialize
from assay.training.merge import MergeRule, usual_limit
from assay.training.optimizer import Optimizer
from assay.training.outer import zero_momentum
from assay.training.presets import PRESETS
from assay.training.programs import merge_program, training_program, update_program
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.schedules import RoundWarmup, warmup_cosine
from assay.training.state import Scalars
from assay.training.step import preset_step
from assay.training.updates import UpdateWire

SEATS: Final = 8
KEPT, ZERO, COLD, INT8 = "kept", "zero", "cold", "int8"
RULES: Final = (KEPT, ZERO, COLD, INT8)
"""Plain DiLoCo; zero moments with a warm-up in each round; the same without one; with one and updates of a byte."""

TASKS: Final = ("demo", "nanogpt")
CHOICES: Final = (*TASKS, "tiny")
BAR: Final = 1.05
GOODPUT: Final = 0.90
SPARE: Final = 1.25
"""A training goes on to so many times its rounds while it has not reached the loss that it is compared by."""


@dataclass(frozen=True, slots=True)
class MomentsRun:
    """One training: `rounds` rounds of `inner_steps` steps on each seat."""

    task: str
    inner_steps: int
    rounds: int
    rule: str
    seed: int


@dataclass(frozen=True, slots=True)
class Workload:
    """What a training runs: its step by an executor, and what a seat starts from."""

    step: Executor
    module: nn.Module
    start: list[Tensor]
    optimizer: Optimizer
    rate: float
    context: int


def workload(job: MomentsRun, corpus: Corpus) -> Workload:
    """The model of a task with the step that its rule asks for."""
    if job.task in PRESETS:
        preset = replace(PRESETS[job.task], inner_steps=job.inner_steps)
        program = training_program(preset, corpus, restarts=job.rule in (ZERO, INT8))
        step = preset_step(preset, len(corpus.vocabulary))
        start = initialize(step.module, job.seed)
        return Workload(Executor(program), step.module, start, step.optimizer, preset.learning_rate, preset.context)
    warmup = RoundWarmup.usual(job.inner_steps) if job.rule in (ZERO, INT8) else None
    description: dict[str, Any] = {
        "kind": "moments",
        "warmup": None if warmup is None else asdict(warmup),
        "data": [str(corpus.train.dtype), corpus.train.numel(), len(corpus.vocabulary)],
    }

    def made(seed: int) -> RecipeStep:
        return RecipeStep(_recipe(NanoGPT(len(corpus.vocabulary), seed), corpus, warmup))

    # Calibrated on the first batch of seed 1; seeds share the program.
    program = cached_program(description, lambda: calibrated(made(1), made(1).state(key=(1, 0)), FIXED14)[0].program)
    own = made(job.seed)
    return Workload(Executor(program), own.recipe.module, own.state()[0], own.optimizer, RATE, CONTEXT)


def _recipe(module: NanoGPT, corpus: Corpus, warmup: RoundWarmup | None) -> Recipe:
    return replace(
        nanogpt_recipe(module, corpus.train), schedule=warmup_cosine(WARMUP, WARMUP + 1, 1.0), round_warmup=warmup
    )


def train(job: MomentsRun, corpus: Corpus, until: float | None, stride: int) -> dict[str, Any]:
    """The record of one training; until: the loss that it has to reach, if any. stride: of windows evaluated."""
    begun = time.process_time()
    run = workload(job, corpus)
    wire = UpdateWire.INT8 if job.rule == INT8 else UpdateWire.F32
    # Plain DiLoCo limits no update; neither does this one while `largest_update` is below 1.
    limit = usual_limit(job.inner_steps, run.rate)
    update = Executor(update_program(run.start, wire))
    merging = Executor(merge_program(run.start, SEATS, MergeRule(limit), wire))
    parameters, momentum = run.start, zero_momentum(run.start)
    moments = [run.optimizer.zero_init(parameters)] * SEATS
    curve, largest = [_loss(run, parameters, corpus, stride)], 0.0
    most = job.rounds if until is None else math.ceil(job.rounds * SPARE)
    for r in range(most):
        if r >= job.rounds and until is not None and min(curve) <= until:
            break
        sent = []
        for seat in range(SEATS):
            carried = moments[seat] if job.rule == KEPT else run.optimizer.zero_init(parameters)
            end = run.step.repeat([parameters, carried, _scalars(job, run.rate, corpus, seat, r)], job.inner_steps)
            moments[seat] = [t.clone() for t in end[1]]
            largest = max(largest, *(_spread(a - b) for a, b in zip(parameters, end[0], strict=True)))
            sent.append([t.clone() for t in update.run([parameters, list(end[0])])[0]])
        merged = merging.run([parameters, momentum, *sent, [torch.ones(SEATS)]])
        parameters, momentum = ([t.clone() for t in part] for part in merged)
        curve.append(_loss(run, parameters, corpus, stride))
    return asdict(job) | {
        "curve": [round(x, 5) for x in curve],
        "largest_update": round(largest / limit, 4),
        "cpu_s": round(time.process_time() - begun, 1),
        "executor": run.step.variant.value,
        "code": source_digest()[:16],
    }


def _scalars(job: MomentsRun, rate: float, corpus: Corpus, seat: int, r: int) -> list[Tensor]:
    """Scalars of a seat's first state in a round: shards turn, keys differ."""
    length = corpus.shard_length(SEATS)
    return Scalars.of(
        corpus.train,
        learning_rate=rate,
        step=r * job.inner_steps,
        key=(job.seed, r * SEATS + seat),
        seat=seat,
        round=r,
        shard_start=(seat + r) % SEATS * length,
        shard_length=length,
    ).to_list()


def _spread(x: Tensor) -> float:
    """The root mean square of a tensor."""
    return float(x.double().square().mean().sqrt())


def _loss(run: Workload, parameters: Sequence[Tensor], corpus: Corpus, stride: int) -> float:
    return split_loss(run.module, parameters, corpus.validation, run.context, stride=stride)


def run_jobs(
    jobs: Sequence[MomentsRun], corpus: Corpus, file: Path, *, stride: int, say: Callable[[str], None]
) -> Iterator[dict[str, Any]]:
    """Run what the file does not hold yet; a cell's plain DiLoCo comes before what is compared with it."""
    for job in sorted(jobs, key=lambda j: RULES.index(j.rule)):
        known = {identity(r): r for r in read_records(file)}
        if identity(asdict(job)) in known:
            continue
        kept = known.get(identity(asdict(replace(job, rule=KEPT))))
        record = train(job, corpus, None if kept is None else kept["curve"][-1], stride)
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(record) + "\n")
        say(f"{job.task} H {job.inner_steps} {job.rule} seed {job.seed}: {record['curve'][-1]:.4f}")
        yield record


def identity(record: dict[str, Any]) -> str:
    """What tells a training from another."""
    return json.dumps([record[name] for name in ("task", "inner_steps", "rounds", "rule", "seed")])


def rounds_to(curve: Sequence[float], loss: float) -> float | None:
    """Rounds after which a curve first is at or below this loss, between rounds along a line; None: it never is."""
    for r, (before, after) in enumerate(pairwise(curve)):
        if before <= loss:
            return float(r)
        if after <= loss:
            return r + (before - loss) / (before - after)
    return None


def summary(records: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Per cell and rule: tokens to plain DiLoCo's last loss over its own, per seed; met: the mean is within the bar."""
    known = {identity(r): r for r in records}
    cells = sorted({(r["task"], r["inner_steps"], r["rounds"]) for r in records})
    rows = []
    for (task, steps, rounds), rule in ((cell, rule) for cell in cells for rule in RULES[1:]):
        ratios, gaps, largest = [], [], []
        for record in known.values():
            if (record["task"], record["inner_steps"], record["rounds"], record["rule"]) != (task, steps, rounds, rule):
                continue
            kept = known.get(identity(record | {"rule": KEPT}))
            if kept is None:
                continue
            target = kept["curve"][-1]
            own, reached = rounds_to(kept["curve"], target), rounds_to(record["curve"], target)
            assert own is not None
            ratios.append(math.inf if reached is None else reached / own)
            gaps.append(record["curve"][rounds] - target)
            largest.append(record["largest_update"])
        if ratios:
            rows.append(_row(task, steps, rounds, rule, ratios, gaps, largest))
    return rows


def _row(
    task: str, steps: int, rounds: int, rule: str, ratios: list[float], gaps: list[float], largest: list[float]
) -> dict[str, Any]:
    ratio = sum(ratios) / len(ratios)
    return {
        "task": task,
        "inner_steps": steps,
        "rounds": rounds,
        "rule": rule,
        "seeds": len(ratios),
        "tokens": None if math.isinf(ratio) else round(ratio, 4),
        "each": [None if math.isinf(x) else round(x, 4) for x in ratios],
        "loss_above_kept": round(sum(gaps) / len(gaps), 5),
        "chain_time": None if math.isinf(ratio) else round(ratio / GOODPUT, 4),
        "largest_update": max(largest),
        "bar": BAR,
        "met": ratio <= BAR,
    }
