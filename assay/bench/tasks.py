"""What `assay bench quality` trains: tasks, their texts as tokens, and a training as it stands after some steps.

Tasks: `characters`, nanoGPT's CPU configuration; `bytepairs`, the same on 8,192 byte-pair tokens; `outliers`,
characters with a few columns of activations 64 times the others; `gpu`, nanoGPT's GPU configuration on characters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache, partial
from hashlib import sha256
from statistics import median
from typing import Final

import torch
from torch import Tensor

from assay.bench.bytepairs import encode, train_merges
from assay.bench.nanogpt import CPU_SIZE, GPU_SIZE, STEPS, NanoGPT, NanoSize, nanogpt_recipe
from assay.bench.sides import CPU, default_variant, there
from assay.bench.step import alternate, clock_for
from assay.bench.tried_small import TriedSmall
from assay.engine.compiler.cache import cached_program
from assay.engine.compiler.calibrate import calibrated
from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import Precision, Treatment
from assay.engine.runtime.executor import Executor, KernelVariant
from assay.programs.capture import TIERS
from assay.protocol.program.program import Program
from assay.training.data import corpus_from_text
from assay.training.evaluate import split_loss
from assay.training.recipes.recipe import RecipeStep
from assay.training.state import TensorLists

EAGER: Final = "f32"
UNIFORM: Final = {"uniform8": Precision(8, 8), "uniform14": Precision(14, 14)}
"""Controls: every operand at the same bits, none raised."""

ALL_TIERS: Final = (EAGER, *TIERS, *UNIFORM)
TASKS: Final = ("characters", "bytepairs", "outliers")
LARGE_TASKS: Final = ("gpu",)
"""Those that take a CPU core days: their steps are tried on one example, their programs calibrated on few rows."""
VOCABULARY = 8192

_ROWS = 128
"""Rows of an operand by which programs of large tasks are calibrated."""

_AT_ONCE = 25
"""Steps that a GPU is given before it is waited for: waiting for each would leave it idle in between."""


@dataclass(frozen=True, slots=True)
class QualityRun:
    """One training run."""

    task: str
    tier: str
    seed: int
    steps: int = STEPS


@dataclass(frozen=True, slots=True)
class Text:
    """A text as tokens: train and validation u8 or u16 [L]; characters: per token of the validation split.

    Two are equal where their digests and vocabularies are: tokens follow from these.
    """

    train: Tensor = field(compare=False)
    validation: Tensor = field(compare=False)
    vocabulary: int
    characters: float
    digest: str


def size_of(task: str) -> NanoSize:
    """The configuration that a task trains."""
    return GPU_SIZE if task == "gpu" else CPU_SIZE


def text_of(task: str, text: str) -> Text:
    """The tokens of a task; nine tenths are for training. Byte pairs are learned on the training part alone."""
    corpus = corpus_from_text(text, min_tokens=size_of(task).context + 1)
    digest = sha256(text.encode()).hexdigest()[:16]
    if task != "bytepairs":
        return Text(corpus.train, corpus.validation, len(corpus.vocabulary), 1.0, digest)
    cut = corpus.train.numel()
    merges = train_merges(text[:cut], VOCABULARY)
    train, validation = encode(text[:cut], merges), encode(text[cut:], merges)
    return Text(train, validation, 256 + len(merges), (len(text) - cut) / validation.numel(), digest)


def step_of(job: QualityRun, text: Text) -> RecipeStep:
    """The training step of a job, and with it its first state."""
    size = size_of(job.task)
    module = NanoGPT(
        text.vocabulary,
        job.seed,
        layers=size.layers,
        width=size.width,
        heads=size.heads,
        context=size.context,
        dropout=size.dropout,
        has_outliers=job.task == "outliers",
    )
    recipe = nanogpt_recipe(module, text.train, job.steps, batch=size.batch)
    return TriedSmall(recipe) if job.task in LARGE_TASKS else RecipeStep(recipe)


def program_of(job: QualityRun, text: Text) -> Program:
    """The program of a tier, calibrated on the first batch of seed 1; seeds share it, and numbers of steps of a large
    task share what calibration chose.
    """

    def make() -> Program:
        step = step_of(replace(job, seed=1), text)
        state = step.state(key=(1, 0))
        if job.tier in UNIFORM:
            return capture(step, state, UNIFORM[job.tier]).program
        if job.task in LARGE_TASKS:
            return capture(step, state, TIERS[job.tier], treatments_of(job.task, job.tier, text)).program
        return calibrated(step, state, TIERS[job.tier])[0].program

    described = asdict(job) | {"seed": 1, "kind": "quality", "size": asdict(size_of(job.task))}
    return cached_program(described | {"text": text.digest, "vocabulary": text.vocabulary}, make)


@lru_cache(maxsize=len(TIERS))
def treatments_of(task: str, tier: str, text: Text) -> Mapping[int, Treatment]:
    """What the products of a large task get, by their numbers: as calibration finds it on the first batch of seed 1.

    Found once for all numbers of steps: these change the schedule, and no product reads a learning rate.
    """
    step = step_of(QualityRun(task, tier, 1, size_of(task).steps), text)
    return calibrated(step, step.state(key=(1, 0)), TIERS[tier], rows=_ROWS)[0].treatments


def loss_on(step: RecipeStep, parameters: Sequence[Tensor], tokens: Tensor, stride: int = 1) -> float:
    """Mean cross-entropy in nats over the windows of a split (every `stride`-th one), in eager f32, nothing dropped."""
    module, place = step.recipe.module, parameters[0].device
    module.to(place).eval()
    try:
        with there(place):
            context: int = module.position.num_embeddings  # type: ignore[union-attr, assignment]
            return split_loss(module, parameters, tokens.to(place), context, stride=stride)
    finally:
        module.train()


class Trainer:
    """A run and where it stands: a step by the module itself, or by the tier's program.

    Either way a step draws its batch and what it drops from the state's key and number, on the device: runs of one seed
    see the same, and the CPU only says that a step is to begin. at_once: steps that are best asked for together.
    """

    def __init__(self, job: QualityRun, text: Text, device: torch.device = CPU) -> None:
        self.job, self.step, self.device = job, step_of(job, text), device
        self.at_once = 1 if device.type == "cpu" else _AT_ONCE
        self.program = None if job.tier == EAGER else program_of(job, text)
        self.step.recipe.module.to(device)
        # Left open, programs may run by kernels of the CPU, which cannot read a GPU's memory.
        variant = None if device.type == "cpu" or self.program is None else KernelVariant(default_variant(device))
        with there(device):
            self.executor = None if self.program is None else Executor(self.program, variant=variant)
        self.begin()

    def begin(self) -> None:
        """Before the first step."""
        self.put(self.step.state(key=(self.job.seed, 0)))

    def put(self, state: TensorLists) -> None:
        """Goes on from a state."""
        self.state: TensorLists = tuple([t.to(self.device) for t in part] for part in state)

    def __call__(self, steps: int = 1) -> None:
        """So many steps; afterwards they are done."""
        with there(self.device):
            if self.executor is not None:
                self.state = tuple(self.executor.repeat(self.state, steps))
            else:
                for _ in range(steps):
                    self.state = tuple(self.step(*self.state))
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def seconds_of_a_step(trainer: Trainer) -> float:
    """The median of a few steps by the clock, after some warm ones; the trainer is then where it began.

    On a GPU of several that are asked for together, as in training: the state of each alone would be copied.
    """
    steps = min(trainer.at_once, 5)
    rounds = alternate([partial(trainer, steps)], 0.0, clock=clock_for(2, trainer.device))
    trainer.begin()
    return median(r[0] for r in rounds) / 1e3 / steps
