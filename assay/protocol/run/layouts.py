"""Do the programs of a run fit each other, its data and its first lists? Checked before anything is staked.

The contracts see roots only: programs that do not fit stall the run, and no party can be convicted of it. So the party
that posts a run, and every party that stakes in one, looks first. Source: rule ST-8 (docs/protocol/claims.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, Protocol

from assay.protocol.errors import RejectedError
from assay.protocol.program.program import Program
from assay.protocol.trees.state import SCALAR_SPECS, Scalar, TrainingList, list_root
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType

MAX_ELEMENTS: Final = 1 << 31
"""Shards are addressed by i32: they end below this element."""

Layout = tuple[tuple[TensorSpec, ...], ...]
"""Type and dims of every slot, per list."""


class WrongLayout(RejectedError):
    """The programs of a run do not fit each other, its data or its first lists."""

    remedy = "Stake nothing in the run: it would stand still. Its sponsor has to post another."


def check_round_layouts(
    step: Program, update: Program, merge: Program, training: RoundStart, partial: Program | None = None
) -> None:
    """Of a run; `partial`: the program of a group's sum, above 64 seats.

    Raises WrongLayout with everything that does not fit.
    """
    found = tuple(round_layout_faults(step, update, merge, training, partial))
    if found:
        raise WrongLayout(f"The run cannot be trained: {'; '.join(found)}.", faults=list(found))


def round_layout_faults(
    step: Program, update: Program, merge: Program, training: RoundStart, partial: Program | None = None
) -> Iterator[str]:
    """Everything that does not fit, in words. Updates and sums may travel in any layout, which the next has to read."""
    yield from _step_faults(step, training)
    if (parameters := _parameters(step)) is None:
        return
    yield from _side("update", "reads", layout(update, update.input_nodes), (parameters, parameters))
    returned = layout(update, update.output_nodes)
    if len(returned) != 1:
        yield f"the update program returns {len(returned)} lists, not 1"
        return
    merged, what = training.seats, returned[0]
    if partial is not None:
        yield from _side("partial sum", "reads", layout(partial, partial.input_nodes), returned * training.group_size)
        sums = layout(partial, partial.output_nodes)
        if len(sums) != 1:
            yield f"the partial sum program returns {len(sums)} lists, not 1"
            return
        merged, what = -(-training.seats // training.group_size), sums[0]
        if training.zero_partial != zero_root(what):
            yield "zeroPartial is not the root of a sum of zeros"
    wanted = (parameters, parameters, *[what] * merged, (TensorSpec(DType.F32, (merged,)),))
    yield from _side("merge", "reads", layout(merge, merge.input_nodes), wanted)
    yield from _side("merge", "returns", layout(merge, merge.output_nodes), (parameters, parameters))
    if training.zero_update != zero_root(returned[0]):
        yield "zeroUpdate is not the root of an update list of zeros"


class RoundStart(Protocol):
    """What the programs of a run have to fit: its charter's training, or its rounds' terms."""

    @property
    def shards(self) -> int: ...
    @property
    def shard_length(self) -> int: ...
    @property
    def seats(self) -> int: ...
    @property
    def zero_update(self) -> Digest: ...
    @property
    def group_size(self) -> int: ...
    @property
    def zero_partial(self) -> Digest: ...


def _parameters(step: Program) -> tuple[TensorSpec, ...] | None:
    """Layout of the parameters; None where the step program reads something else than a training state."""
    x = layout(step, step.input_nodes)
    return x[TrainingList.PARAMETERS] if len(x) == len(TrainingList) else None


def _step_faults(step: Program, training: RoundStart) -> Iterator[str]:
    """The step program against itself and the data."""
    x = layout(step, step.input_nodes)
    if len(x) != len(TrainingList):
        yield f"the step program reads {len(x)} lists, a training state has {len(TrainingList)}"
        return
    if not step.is_iterable():
        yield "the step program's results are laid out otherwise than what it reads, so no second step can follow"
    if not x[TrainingList.PARAMETERS]:
        yield "the step program has no parameters"
    yield from _scalar_faults(x[TrainingList.SCALARS], training)


def _scalar_faults(scalars: Sequence[TensorSpec], training: RoundStart) -> Iterator[str]:
    """The third list is built by the contract: its slots are given, and the data must hold every shard."""
    if len(scalars) != len(Scalar):
        yield f"the scalars list has {len(scalars)} slots, not {len(Scalar)}"
        return
    for slot, spec in SCALAR_SPECS.items():
        if scalars[slot] != spec:
            yield f"the scalar {slot.name.lower()} is {_words(scalars[slot])}, not {_words(spec)}"
    data, needed = scalars[Scalar.DATA], training.shards * training.shard_length
    if not data.dims:
        yield f"the data is {_words(data)}, which holds no examples"
    elif data.dims[0] < needed:
        yield f"the data holds {data.dims[0]} examples, {training.shards} shards take {needed}"
    if needed >= MAX_ELEMENTS:
        yield f"{training.shards} shards of {training.shard_length} end beyond what an i32 can say"


def _side(name: str, verb: str, found: Layout, wanted: Layout) -> Iterator[str]:
    """The first place at which what a program reads or returns is laid out otherwise than it must be."""
    if len(found) != len(wanted):
        yield f"the {name} program {verb} {len(found)} lists, not {len(wanted)}"
        return
    for number, (have, want) in enumerate(zip(found, wanted, strict=True)):
        if len(have) != len(want):
            yield f"list {number} that the {name} program {verb} has {len(have)} slots, not {len(want)}"
            return
        for slot, (a, b) in enumerate(zip(have, want, strict=True)):
            if a != b:
                yield f"slot {slot} of list {number} that the {name} program {verb} is {_words(a)}, not {_words(b)}"
                return


def layout(program: Program, nodes: Sequence[Sequence[int]]) -> Layout:
    """Type and dims of the slots of X or Y."""
    return tuple(tuple(program.specs[k] for k in part) for part in nodes)


def zero_root(specs: Sequence[TensorSpec]) -> Digest:
    """The root of a list of zeros."""
    return list_root([tensor_root(spec, spec.zeros()) for spec in specs])


def _words(spec: TensorSpec) -> str:
    return f"{spec.dtype.name.lower()} {list(spec.dims)}"
