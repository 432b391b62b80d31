"""Every update rule and every merge as a captured program of a small layer, with a state to start from.

Made from the enums and from what is compared: whoever adds a rule, a merge or a method has it here, or a test that asks
for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor

from assay.engine.runtime.values.state_io import input_specs
from assay.protocol.program.program import Program
from assay.training.data import corpus_from_text
from assay.training.guard import preset_guard
from assay.training.initialize import initialize
from assay.training.merge import MergeRule
from assay.training.methods.fragments import mixed
from assay.training.methods.lag import eager_update, late_update
from assay.training.methods.muon_inside import muon_step
from assay.training.methods.ranked import RankStep, pack_coefficients, sign_step
from assay.training.outer import zero_momentum
from assay.training.presets import TINY
from assay.training.programs import (
    carried_update_program,
    generation_program,
    merge_program,
    partial_program,
    program_of_lists,
    program_of_step,
    update_program,
)
from assay.training.robust import MergeKind
from assay.training.sparse import DECAY
from assay.training.state import Scalars, TensorLists
from assay.training.step import TrainingStep, preset_step
from assay.training.updates import COMPUTE_UPDATE, SUM_WIRES, UpdateWire, packed_sum, zero_update

Subject = tuple[Program, TensorLists]
"""A program and the tensors of its X."""

LAYER = ((64, 64), (40, 9), (7,), ())
"""Of which a part is squares of 64, a part is none, and a part is smaller than any block."""

LIMIT = 0.05
"""Of a root mean square: less than the updates here have, so that their norms say something."""

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(60))


def layer(seed: int) -> list[Tensor]:
    """Parameters or an update of the layer."""
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=draw) * 0.1 for shape in LAYER]


# --- what runs have


def _sent(wire: UpdateWire) -> Subject:
    """The update of the layer on one of the wires."""
    lists = tuple(layer(seed) for seed in (1, 2))
    return update_program(lists[0], wire), lists


def _merged(wire: UpdateWire) -> Subject:
    """The merge of three seats' updates of that layer, of which one is left out."""
    start, rule = layer(1), MergeRule(limit=LIMIT)
    return merge_program(start, 3, rule, wire), (start, layer(7), *_updates(wire, 3), [torch.tensor([1.0, 0.0, 1.0])])


def _summed(wire: UpdateWire, sums: UpdateWire = UpdateWire.F32) -> Subject:
    """The sum of a group of three seats, of which one sent nothing; and as what it travels."""
    start, (first, second) = layer(1), _updates(wire, 2)
    lists = (first, zero_update(start, wire), second)
    return partial_program(start, 3, MergeRule(limit=LIMIT), wire, sums), lists


def _robust(kind: MergeKind) -> Subject:
    """A merge of five seats by one of the rules against poison: one is left out, two go one way, two are cut."""
    start, rule = layer(1), MergeRule(limit=LIMIT, kind=kind)
    sent = [[t * (0.2 * (k + 1)) for t in layer(2 + k % 4)] for k in range(5)]
    return merge_program(start, 5, rule), (start, layer(8), *sent, [torch.tensor([1.0, 1.0, 0.0, 1.0, 1.0])])


def _robust_sum(kind: MergeKind) -> Subject:
    """The same of a group, whose second seat sent nothing."""
    start, rule = layer(1), MergeRule(limit=LIMIT, kind=kind)
    sent = [layer(2), zero_update(start, UpdateWire.F32), *(layer(3 + k) for k in range(3))]
    return partial_program(start, 5, rule), tuple(sent)


def _generation(wire: UpdateWire = UpdateWire.F32) -> Subject:
    """The merge of three groups' sums on a wire, of which the second does not count."""
    start, rule = layer(1), MergeRule(limit=LIMIT)
    sums = [packed_sum(layer(2), wire), zero_update(start, wire), packed_sum(layer(3), wire)]
    program = generation_program(start, 3, rule, sums=wire)
    return program, (start, layer(8), *sums, [torch.tensor([4.0, 0.0, 3.0])])


def _guarded(name: str) -> Subject:
    """A merge of the preset `tiny`, or of its groups' sums, behind a guard: of three, of which one does not count.

    No loss may rise, and one window says whether it does: another window says otherwise.
    """
    corpus = corpus_from_text(TEXT)
    guard, rule = replace(preset_guard(TINY, corpus, 0.0), windows=1), MergeRule(limit=LIMIT)
    start = initialize(guard.step.module, 1)
    draw = torch.Generator().manual_seed(7)
    sent = [[torch.randn(p.shape, generator=draw) * 1e-3 for p in start] for _ in range(3)]
    make = merge_program if name == "merge" else generation_program
    mask = [torch.tensor([1.0, 0.0, 1.0])]
    return make(start, 3, rule, guard=guard), (start, zero_momentum(start), *sent, mask)


def _updates(wire: UpdateWire, count: int) -> list[list[Tensor]]:
    return [COMPUTE_UPDATE[wire](layer(1), layer(2 + k))[0] for k in range(count)]


# --- what only comparisons have


def _carried(wire: UpdateWire, carrier: UpdateWire, decay: float) -> Subject:
    """The update of the layer by a rule that keeps what it does not send, and the list that it keeps."""
    start = layer(1)
    program = carried_update_program(start, carrier, wire, decay)
    kept = COMPUTE_UPDATE[carrier](start, layer(3))[0]
    return program, (start, layer(2), kept)


def _mixing() -> Subject:
    return program_of_lists("mixing", mixed, [layer(1), layer(2)], alpha=0.5), (layer(1), layer(2))


def _late(function: Callable[..., tuple[list[Tensor]]], kind: str, lists: int) -> Subject:
    state = tuple(layer(1 + k) for k in range(lists))
    return program_of_lists(kind, function, list(state), workers=4), state


def _sign_step() -> Subject:
    """The step of two ranks of one seat on what both sent."""
    sent = [_coefficients(layer(seed)) for seed in (2, 3)]
    state = (layer(1), [torch.tensor(0.01)], *sent)
    return program_of_lists("sign step", sign_step, state, weight_decay=0.1), state


def _coefficients(tensors: Sequence[Tensor]) -> list[Tensor]:
    pairs = [pack_coefficients(t) for t in tensors]
    return [*[places for places, _ in pairs], *[bits for _, bits in pairs]]


def _rank_step() -> Subject:
    """One rank's part of a step of the preset `tiny`."""
    step, scalars, vocabulary = _tiny(preset_step)
    parameters = initialize(step.module, 1)
    state = (parameters, zero_momentum(parameters), scalars)
    return program_of_step("rank", RankStep(step.drawn_gradients), state, TINY, vocabulary), state


def _muon_step() -> Subject:
    """A step of the preset `tiny` with Muon inside."""
    step, scalars, vocabulary = _tiny(muon_step)
    parameters = initialize(step.module, 1)
    state = (parameters, step.optimizer.zero_init(parameters), scalars)
    return program_of_step("muon", step, state, TINY, vocabulary), state


def _tiny(make: Callable[..., TrainingStep]) -> tuple[TrainingStep, list[Tensor], int]:
    corpus = corpus_from_text(TEXT)
    scalars = Scalars.of(corpus.train, learning_rate=TINY.learning_rate, key=(3, 4)).to_list()
    return make(TINY, len(corpus.vocabulary)), scalars, len(corpus.vocabulary)


ROBUST = tuple(kind for kind in MergeKind if kind is not MergeKind.MEAN)

ROUNDED = tuple(wire for wire in SUM_WIRES if wire is not UpdateWire.F32)

UPDATES: dict[str, Callable[[], Subject]] = {f"{w.value} update": (lambda w=w: _sent(w)) for w in UpdateWire}
MERGES: dict[str, Callable[[], Subject]] = {
    **{f"{wire.value} merge": (lambda wire=wire: _merged(wire)) for wire in UpdateWire},
    **{f"{kind.value} of updates": (lambda kind=kind: _robust(kind)) for kind in ROBUST},
    "guarded merge": lambda: _guarded("merge"),
}
SUMS: dict[str, Callable[[], Subject]] = {
    **{f"{wire.value} sum": (lambda wire=wire: _summed(wire)) for wire in UpdateWire},
    **{f"{kind.value} of a group": (lambda kind=kind: _robust_sum(kind)) for kind in ROBUST},
    **{f"sum as {wire.value}": (lambda wire=wire: _summed(UpdateWire.F32, wire)) for wire in ROUNDED},
    **{f"merge of {wire.value} sums": (lambda wire=wire: _generation(wire)) for wire in ROUNDED},
    "merge of sums": _generation,
    "guarded merge of sums": lambda: _guarded("sums"),
}
CARRIERS = {
    UpdateWire.SPARSE: (UpdateWire.F32, UpdateWire.INT4),
    UpdateWire.SIGN: (UpdateWire.F32,),
    UpdateWire.POWERSGD: (UpdateWire.F32,),
    UpdateWire.COCKTAIL: (UpdateWire.F32,),
}
COMPARED: dict[str, Callable[[], Subject]] = {
    **{
        f"{wire.value} update, the rest kept in {carrier.value}": (
            lambda wire=wire, carrier=carrier: _carried(wire, carrier, DECAY if wire is UpdateWire.SPARSE else 1.0)
        )
        for wire, carriers in CARRIERS.items()
        for carrier in carriers
    },
    "mixing": _mixing,
    "late update": lambda: _late(late_update, "late update", 1),
    "eager update": lambda: _late(eager_update, "eager update", 3),
    "sign step": _sign_step,
    "rank step": _rank_step,
    "muon step": _muon_step,
}
RULES = UPDATES | MERGES | SUMS | COMPARED
"""All that a run can have, and what methods that no run can have compute beside its programs."""


@cache
def rule(name: str) -> Subject:
    """A rule's program by name, with a state; captured once."""
    program, state = RULES[name]()
    assert [[tuple(spec.dims) for spec in part] for part in input_specs(program)] == [
        [tuple(t.shape) for t in part] for part in state
    ]
    return program, state
