"""The three programs of a run, captured from the very code that stock PyTorch would run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import torch
from torch import Tensor

from assay.engine.compiler.cache import cached_program
from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED14, Precision
from assay.protocol.program.program import Program
from assay.training.data import Corpus
from assay.training.outer import SLOTS, compute_update, outer_step, zero_momentum
from assay.training.presets import Preset
from assay.training.state import Scalars, TensorLists
from assay.training.step import TrainingStep, initial_state, preset_step


def training_program(preset: Preset, corpus: Corpus, precision: Precision = FIXED14) -> Program:
    """(parameters, optimizer, scalars) to the same one step later, for this data's vocabulary and length.

    Raises what `capture` raises.
    """
    step = preset_step(preset, len(corpus.vocabulary))

    def make() -> Program:
        return capture(step, example_state(step, preset, corpus.train), precision).program

    return cached_program(_description(preset, corpus, precision), make)


def update_program(parameters: Sequence[Tensor]) -> Program:
    """(parameters at the start, parameters at the end) to (update), for parameters of these shapes."""
    zeros = zero_momentum(parameters)
    return cached_program(_shapes("update", parameters), lambda: capture(compute_update, [zeros, zeros]).program)


def outer_program(parameters: Sequence[Tensor]) -> Program:
    """(parameters, outer momentum, update of slot 0..7, mask) to (parameters, outer momentum), for these shapes."""
    zeros = zero_momentum(parameters)
    lists = [zeros, zeros, *[zeros] * SLOTS, [torch.zeros(SLOTS)]]
    return cached_program(_shapes("outer", parameters), lambda: capture(outer_step, lists).program)


def example_state(step: TrainingStep, preset: Preset, data: Tensor) -> TensorLists:
    """A state of the right shapes."""
    return initial_state(step, zero_parameters(step), Scalars.of(data, learning_rate=preset.learning_rate))


def zero_parameters(step: TrainingStep) -> list[Tensor]:
    """Zeros in the shapes of the parameters."""
    return [torch.zeros_like(p, requires_grad=False) for p in step.module.parameters()]


def _shapes(kind: str, parameters: Sequence[Tensor]) -> dict[str, object]:
    return {"kind": kind, "parameters": [[str(p.dtype), list(p.shape)] for p in parameters]}


def _description(preset: Preset, corpus: Corpus, precision: Precision) -> dict[str, object]:
    return {
        "kind": "training",
        "preset": asdict(preset),
        "vocabulary": len(corpus.vocabulary),
        "data": [str(corpus.train.dtype), corpus.train.numel()],
        "precision": asdict(precision),
    }
