"""The stages of `make device`: each gives its figures as plain JSON, again and again as they grow.

A stage that dies leaves what it gave last, so it gives something after each thing that may be the last.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from assay.bench import quality as trainings
from assay.bench import tasks
from assay.bench.models import LARGE, MODELS
from assay.bench.sides import CPU, YARDSTICK, Contender, Exact, default_variant, device_of, start_of
from assay.bench.step import StepRow, StepTerms, measure, with_memory
from assay.conformance import nodes
from assay.conformance.answers import Tally, check_all, default_vectors, executor_results
from assay.device import parts
from assay.engine.runtime.devices import Device
from assay.engine.runtime.executor import KernelVariant
from assay.engine.runtime.values.state_io import root_of
from assay.training.data import pydoc_text, read_text

Figures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class DeviceTerms:
    """On which device, until when (monotonic seconds), and on what.

    out: the folder of all figures. data: a text to train on; this Python's documentation without one. is_small: the
    least that shows that a stage runs.
    """

    device: Device
    ends: float
    out: Path
    data: Path | None = None
    is_small: bool = False

    def left(self) -> float:
        """Seconds."""
        return self.ends - time.monotonic()


def conformance(terms: DeviceTerms) -> Iterator[Figures]:
    """The known answers by every executor here: `equal`, or why it is absent; those of a device that is asked for
    first, since they are what its time is for.
    """
    tallies: list[Tally] = []
    for tally in check_all(default_vectors(), gpu_first=terms.device is Device.CUDA):
        tallies.append(tally)
        results = executor_results(tallies)
        # A GPU that was asked for and whose kernels are absent was asked nothing.
        absent = {r.executor: r.reason for r in results if r.equal is None and r.executor == nodes.BY_TRITON}
        yield {
            "executors": [asdict(result) for result in results],
            "wrong": [asdict(t) for t in tallies if t.wrong],
            "failed": absent if terms.device is Device.CUDA else {},
        }


def training(terms: DeviceTerms) -> Iterator[Figures]:
    """Some steps from one state, on the device and by other kernels on the CPU: the tensors that end otherwise."""
    place = device_of(terms.device)
    is_far = place.type != "cpu"
    model, steps = ("gpt-4x384", 12) if is_far and not terms.is_small else ("gpt-2x96", 2)
    program, state = start_of(model, "fixed14")
    variants = default_variant(place), default_variant() if is_far else KernelVariant.STOCK.value
    ends, seconds = list[list[Tensor]](), list[float]()
    found: Figures = {"model": model, "steps": steps, "by": variants, "equal": None}
    for variant, where in zip(variants, (place, CPU), strict=True):
        # A side takes its state over, and may write over it.
        side = Exact(program, tuple([t.clone() for t in part] for part in state), variant, where)
        begin = time.monotonic()
        for _ in range(steps):
            side()
        ends.append([t.cpu() for part in side.state for t in part])
        seconds.append(round(time.monotonic() - begin, 2))
        yield found | {"seconds_of_steps": [*seconds]}
    wrong = [k for k, pair in enumerate(zip(*ends, strict=True)) if len({root_of(t) for t in pair}) > 1]
    yield found | {"tensors": len(ends[0]), "equal": not wrong, "wrong": wrong, "seconds_of_steps": seconds}


def step(terms: DeviceTerms) -> Iterator[Figures]:
    """`assay bench step` on the device; where exact steps cannot be measured, PyTorch's alone, and why."""
    place = device_of(terms.device)
    seconds, with_rest = (0.0, False) if terms.is_small else (15.0, True)
    # Beside a GPU all processors capture programs; alone, one thread is timed by its own processor time.
    threads = 1 if place.type == "cpu" else torch.get_num_threads()
    measured = StepTerms(seconds, threads, place, with_memory=with_rest, with_compile=with_rest)
    briefly = replace(measured, seconds=seconds / 5, with_memory=False, with_compile=False)
    tiers = ("fixed14",) if terms.is_small else ("fixed14", "fixed8")
    rows: list[StepRow] = []
    failed: dict[str, str] = {}
    left_out: list[str] = []
    for model in _models(terms):
        if terms.left() <= 0:
            left_out.append(model)
            continue
        try:
            exact = [Contender(tier, default_variant(place)) for tier in tiers]
            if place.type != "cpu" and with_rest:
                # Other tiers take as long to capture, torch.compile takes minutes: what matters most is there first.
                for sides in (exact[:1], exact):
                    yield {"rows": [*map(asdict, [*rows, *measure(model, sides, briefly)])], "failed": failed}
            timed = measure(model, exact, replace(measured, with_memory=False))
            if with_rest:
                yield {"rows": [*map(asdict, [*rows, *timed])], "failed": failed}
                timed = with_memory(timed, measured)
            rows += timed
        except Exception as error:  # what it is belongs to the figures; the other models are measured all the same
            failed[model] = sentence(error)
            # A GPU that was left in an error gives none of PyTorch's times either.
            yield {"rows": [asdict(row) for row in rows], "failed": failed}
            rows += measure(model, [YARDSTICK], replace(measured, with_memory=False))
        yield {"rows": [asdict(row) for row in rows], "failed": failed}
    yield {"rows": [asdict(row) for row in rows], "failed": failed, "no_time_for": left_out}


def _models(terms: DeviceTerms) -> Sequence[str]:
    if terms.is_small:
        return ("gpt-2x96",)
    return (*LARGE, "gpt-4x384") if terms.device is Device.CUDA else tuple(MODELS)


def quality(terms: DeviceTerms) -> Iterator[Figures]:
    """nanoGPT's training in f32 and in fixed14, as many steps of each as there is time for (`assay bench quality`)."""
    text = pydoc_text() if terms.data is None else read_text(terms.data)
    task = "gpu" if terms.device is Device.CUDA else "characters"
    whole = tasks.size_of(task).steps
    tiers, place = (tasks.EAGER, "fixed14"), device_of(terms.device)
    tokens = tasks.text_of(task, text)
    ready = [] if terms.is_small else [tasks.Trainer(tasks.QualityRun(task, t, 1, whole), tokens, place) for t in tiers]
    seconds = {t.job.tier: tasks.seconds_of_a_step(t) for t in ready}
    file, said = terms.out / "quality.jsonl", _say
    # What an earlier call finished is compared with as many steps of the others.
    known = {trainings.identity(r) for r in trainings.read_records(file)}
    done = {t.job.tier for t in ready if trainings.identity(asdict(t.job) | {"text": tokens.digest}) in known}
    affordable = int(0.8 * terms.left() / sum(seconds.values())) if seconds else 1
    steps = whole if done else min(whole, max(1, affordable))
    found: Figures = {"task": task, "steps": steps, "published_steps": whole, "step_s": seconds, "runs": []}
    yield found
    runs = [tasks.QualityRun(task, tier, 1, steps) for tier in tiers]
    # Those of another number of steps are let go: on a GPU an executor holds memory.
    ready = [trainer for trainer in ready if trainer.job in runs]
    wanted = {trainings.identity(asdict(run) | {"text": tokens.digest}) for run in runs}
    for _ in trainings.run_jobs(runs, text, file, seconds=terms.left(), say=said, device=place, ready=ready):
        found["runs"] = [r for r in trainings.read_records(file) if trainings.identity(r) in wanted]
        yield found
    # Also of runs that an earlier call finished.
    found["runs"] = [r for r in trainings.read_records(file) if trainings.identity(r) in wanted]
    found["summary"] = trainings.summary(found["runs"])
    yield found


def products(terms: DeviceTerms) -> Iterator[Figures]:
    """fixed14 products by themselves over torch's, in the shapes of GPT-2 small's step; bar 1.2, goal 0.8."""
    place = device_of(terms.device)
    shapes = parts.SMALL if terms.is_small or place.type == "cpu" else parts.SHAPES
    seconds = 0.0 if terms.is_small else min(30.0, 0.5 * terms.left())
    rows: list[Figures] = []
    for row in parts.product_rows(place, default_variant(place), seconds, shapes):
        rows.append(row)
        yield {"rows": rows}


def root(terms: DeviceTerms) -> Iterator[Figures]:
    """The root of a state where it lies; of GPT-2 small with its moments a bar of 2 % of 25 steps, 0.5 % the goal."""
    place = device_of(terms.device)
    is_large = place.type != "cpu" and not terms.is_small
    sizes = parts.sizes_of_gpt2_small() if is_large else [1000, 5000, 1]
    yield from parts.root_figures(place, sizes, _step_ms(terms.out / "step.json") if is_large else None)


def attention(terms: DeviceTerms) -> Iterator[Figures]:
    """A step of GPT-2 small that stores the scores of its attention, and one that computes them by tiles."""
    place = device_of(terms.device)
    if place.type == "cpu":
        yield {"rows": [], "reason": "tiles are for GPUs"}
        return
    program, state = start_of("gpt-2x96" if terms.is_small else "gpt2-12x768", "fixed14")
    there = [[t.to(place) for t in part] for part in state]
    rows: list[Figures] = []
    for row in parts.attention_rows(program, there, place, 0.0 if terms.is_small else 2.0):
        rows.append(row)
        yield {"rows": rows, "wrong": [r for r in rows if not r.get("equal", True)]}


def _step_ms(file: Path) -> float | None:
    """A fixed14 step of GPT-2 small as the stage before has measured it."""
    if not file.exists():
        return None
    rows = json.loads(file.read_text(encoding="utf-8")).get("rows", ())
    return next((r["step_ms"] for r in rows if (r["model"], r["tier"]) == ("gpt2-12x768", "fixed14")), None)


STAGES: Final[dict[str, Callable[[DeviceTerms], Iterator[Figures]]]] = {
    "conformance": conformance,
    "training": training,
    "step": step,
    "products": products,
    "root": root,
    "attention": attention,
    "quality": quality,
}
"""By name, in the order in which they run."""

SHARES: Final = {"conformance": 2, "training": 1, "step": 4, "products": 1, "root": 1, "attention": 2, "quality": 4}
"""Of the time that is left, what a stage may take beside those after it."""


def sentence(error: BaseException) -> str:
    """What happened, in one line."""
    notes = "".join(f" {note}" for note in getattr(error, "__notes__", ()))
    return f"{type(error).__name__}: {' '.join(str(error).split())[:500]}{notes}"


def _say(line: str) -> None:
    print(line, flush=True)
