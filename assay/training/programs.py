"""The programs of a run, captured from the very code that stock PyTorch would run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial as with_terms
from typing import Any

import torch
from torch import Tensor

from assay.engine.compiler.cache import cached_program
from assay.engine.compiler.capture import capture
from assay.engine.compiler.graph import GraphFunction
from assay.engine.compiler.hidden.guard import Known
from assay.engine.compiler.lowering.registry import FIXED14, Precision
from assay.protocol.program.program import Program
from assay.training.carried import compute_update_carried
from assay.training.data import Corpus
from assay.training.guard import Guard
from assay.training.merge import MergeRule, merge, merge_partials, partial
from assay.training.outer import SLOTS, outer_step, zero_momentum
from assay.training.presets import Preset
from assay.training.sparse import DECAY
from assay.training.state import Scalars, TensorLists
from assay.training.step import TrainingStep, initial_state, preset_step
from assay.training.updates import COMPUTE_UPDATE, UpdateWire, compute_update, zero_update


def training_program(
    preset: Preset, corpus: Corpus, precision: Precision = FIXED14, *, restarts: bool = False
) -> Program:
    """(parameters, optimizer, scalars) to the same one step later, for this data's vocabulary and length.

    restarts: moments are zero when a round begins, so that the rate rises in each. Raises what `capture` raises.
    """
    step = preset_step(preset, len(corpus.vocabulary), restarts=restarts)

    def make() -> Program:
        return capture(step, example_state(step, preset, corpus.train), precision).program

    return cached_program(_description(preset, corpus, precision) | {"restarts": restarts}, make)


def update_program(parameters: Sequence[Tensor], wire: UpdateWire = UpdateWire.F32, *, statistics: int = 0) -> Program:
    """(parameters at the start, parameters at the end) to (update on the wire), for parameters of these shapes.

    statistics: how many at their end are running statistics.
    """
    zeros = zero_momentum(parameters)
    description = _shapes("update", parameters, wire=wire.value, statistics=statistics)
    if wire is UpdateWire.F32:
        return cached_program(description, lambda: _captured(compute_update, [zeros, zeros]))
    return cached_program(description, lambda: _captured(COMPUTE_UPDATE[wire], [zeros, zeros], statistics=statistics))


def carried_update_program(
    parameters: Sequence[Tensor],
    carrier: UpdateWire,
    wire: UpdateWire = UpdateWire.SPARSE,
    decay: float = DECAY,
) -> Program:
    """(parameters at the start, at the end, kept list) to (update on the wire, kept list), for these shapes."""
    lists = [zero_momentum(parameters), zero_momentum(parameters), zero_update(parameters, carrier)]
    description = _shapes("carried update", parameters, carrier=carrier.value, wire=wire.value, decay=decay)

    def make() -> Program:
        return _captured(compute_update_carried, lists, carrier=carrier, wire=wire, decay=decay)

    return cached_program(description, make)


def outer_program(parameters: Sequence[Tensor]) -> Program:
    """(parameters, outer momentum, update of slot 0..7, mask) to (parameters, outer momentum), for these shapes."""
    zeros = zero_momentum(parameters)
    lists = [zeros, zeros, *[zeros] * SLOTS, [torch.zeros(SLOTS)]]
    return cached_program(_shapes("outer", parameters), lambda: _captured(outer_step, lists))


def merge_program(
    parameters: Sequence[Tensor],
    seats: int,
    rule: MergeRule,
    wire: UpdateWire = UpdateWire.F32,
    guard: Guard | None = None,
) -> Program:
    """(parameters, outer momentum, update of each seat, mask) to (parameters, outer momentum), for up to 64 seats."""
    zeros, absent = zero_momentum(parameters), zero_update(parameters, wire, statistics=rule.statistics)
    lists = [zeros, zeros, *[absent] * seats, [torch.zeros(seats)]]
    description = _shapes("merge", parameters, seats=seats, rule=asdict(rule), wire=wire.value) | _guarded(guard)
    return cached_program(description, lambda: _captured(merge, lists, rule=rule, wire=wire, guard=guard))


def partial_program(
    parameters: Sequence[Tensor],
    seats: int,
    rule: MergeRule,
    wire: UpdateWire = UpdateWire.F32,
    sums: UpdateWire = UpdateWire.F32,
) -> Program:
    """(update of each seat of a group) to (their sum, as sums travel)."""
    lists = [zero_update(parameters, wire, statistics=rule.statistics)] * seats
    description = _shapes("partial", parameters, seats=seats, rule=asdict(rule), wire=wire.value, sums=sums.value)
    shapes = [tuple(p.shape) for p in parameters]
    return cached_program(
        description, lambda: _captured(partial, lists, rule=rule, shapes=shapes, wire=wire, sums=sums)
    )


def generation_program(
    parameters: Sequence[Tensor],
    groups: int,
    rule: MergeRule,
    guard: Guard | None = None,
    sums: UpdateWire = UpdateWire.F32,
) -> Program:
    """(parameters, outer momentum, sum of each group as it travels, weights) to (parameters, outer momentum)."""
    zeros, absent = zero_momentum(parameters), zero_update(parameters, sums, statistics=rule.statistics)
    lists = [zeros, zeros, *[absent] * groups, [torch.zeros(groups)]]
    description = _shapes("generation", parameters, groups=groups, rule=asdict(rule), sums=sums.value)
    description |= _guarded(guard)
    return cached_program(description, lambda: _captured(merge_partials, lists, rule=rule, sums=sums, guard=guard))


def program_of_lists(kind: str, function: GraphFunction, lists: Sequence[Sequence[Tensor]], **terms: object) -> Program:
    """The program of a function of lists of tensors, captured once for this kind, these shapes and terms."""
    shapes = [[[str(t.dtype), list(t.shape)] for t in part] for part in lists]
    return cached_program(
        {"kind": kind, "lists": shapes, "terms": repr(sorted(terms.items()))},
        lambda: _captured(function, lists, **terms),
    )


def program_of_step(kind: str, step: GraphFunction, state: TensorLists, preset: Preset, vocabulary: int) -> Program:
    """The program of a preset's step of this kind, for this state's shapes. Raises what `capture` raises."""
    description = {"kind": kind, "preset": asdict(preset), "vocabulary": vocabulary, "data": state[2][-1].numel()}
    return cached_program(
        description | {"type": str(state[2][-1].dtype)}, lambda: capture(step, state, FIXED14).program
    )


def example_state(step: TrainingStep, preset: Preset, data: Tensor) -> TensorLists:
    """A state of the right shapes."""
    return initial_state(step, zero_parameters(step), Scalars.of(data, learning_rate=preset.learning_rate))


def zero_parameters(step: TrainingStep) -> list[Tensor]:
    """Zeros in the shapes of the parameters."""
    return [torch.zeros_like(p, requires_grad=False) for p in step.module.parameters()]


def _captured(function: GraphFunction, lists: Sequence[Sequence[Tensor]], **terms: object) -> Program:
    """The program of a function of this package with these terms. It reads no clock and keeps nothing: to look at every
    call of it would take three times as long as to trace it.
    """
    own: Any = with_terms(function, **terms)
    own.hidden = Known({"the function": function}, calls_are_checked=True)
    return capture(own, lists).program


def _guarded(guard: Guard | None) -> dict[str, object]:
    """What a guard adds to a program's description."""
    return {} if guard is None else {"guard": guard.terms}


def _shapes(kind: str, parameters: Sequence[Tensor], **terms: object) -> dict[str, object]:
    return {"kind": kind, "parameters": [[str(p.dtype), list(p.shape)] for p in parameters]} | terms


def _description(preset: Preset, corpus: Corpus, precision: Precision) -> dict[str, object]:
    return {
        "kind": "training",
        "preset": asdict(preset),
        "vocabulary": len(corpus.vocabulary),
        "data": [str(corpus.train.dtype), corpus.train.numel()],
        "precision": asdict(precision),
    }
