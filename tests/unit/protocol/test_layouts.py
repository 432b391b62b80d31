"""Programs of a run fit each other, its data and its zeros, or are refused with everything that does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from assay.engine.runtime.values.state_io import list_roots
from assay.protocol.digests import ZERO
from assay.protocol.program.nodes import Input, Output
from assay.protocol.program.program import Program
from assay.protocol.run.layouts import WrongLayout, check_round_layouts, round_layout_faults, zero_root
from assay.protocol.trees.state import Scalar
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay.training import programs
from assay.training.merge import MergeRule
from assay.training.updates import SUM_WIRES, UpdateWire, zero_update
from tests.harness.actors.programs import outer_program, update_program
from tests.harness.programs import mlp_step
from tests.harness.rounds.charters import RUN

pytestmark = pytest.mark.usefixtures("own_cache")

STEP = mlp_step().program
SPECS = [STEP.specs[k] for k in STEP.input_nodes[0]]
DATA = STEP.specs[STEP.input_nodes[2][Scalar.DATA]]
UPDATE, MERGE = update_program(SPECS), outer_program(SPECS)
TRAINING = replace(RUN.training, seats=8, shards=8, shard_length=DATA.dims[0] // 8, zero_update=zero_root(SPECS))
GOOD: dict[str, Any] = {"step": STEP, "update": UPDATE, "merge": MERGE, "training": TRAINING}


def respecified(program: Program, number: int, slot: int, spec: TensorSpec, *, outputs: bool = True) -> Program:
    """The program with another type or shape in a slot of X (and of Y); its nodes between are as they were."""
    nodes = list(program.nodes)
    for k, node in enumerate(nodes):
        is_slot = isinstance(node, Input) or (outputs and isinstance(node, Output))
        if is_slot and (node.list_index, node.index) == (number, slot):
            nodes[k] = replace(node, spec=spec)
    return replace(program, nodes=tuple(nodes))


def scalar(slot: Scalar, spec: TensorSpec) -> Callable[[], dict[str, Any]]:
    return lambda: {"step": respecified(STEP, 2, slot, spec)}


F32, I32, U8 = DType.F32, DType.I32, DType.U8
WIDE, BYTES = TensorSpec(F32, (*SPECS[0].dims, 2)), TensorSpec(DType.I8, SPECS[0].dims)
OTHERS = [WIDE, *SPECS[1:]]
WRONG: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "a step of one list": (lambda: {"step": update_program(SPECS)}, "reads 2 lists, a training state has 3"),
    "a step that nothing follows": (
        lambda: {"step": respecified(STEP, 0, 0, WIDE, outputs=False)},
        "no second step can follow",
    ),
    "a step without its last scalar": (
        lambda: {"step": replace(STEP, inputs=(*STEP.inputs[:2], 7), outputs=(*STEP.outputs[:2], 7))},
        "the scalars list has 7 slots, not 8",
    ),
    "a rate that is an integer": (scalar(Scalar.LR, TensorSpec(I32, ())), "the scalar lr is i32 [], not f32 []"),
    "a step that is one word": (
        scalar(Scalar.STEP, TensorSpec(I32, ())),
        r"the scalar step is i32 \[\], not i32 \[2\]",
    ),
    "a key of numbers": (scalar(Scalar.KEY, TensorSpec(F32, (2,))), r"the scalar key is f32 \[2\]"),
    "a seat of bytes": (scalar(Scalar.SEAT, TensorSpec(U8, ())), r"the scalar seat is u8 \[\]"),
    "data that is one number": (scalar(Scalar.DATA, TensorSpec(U8, ())), "holds no examples"),
    "data that ends inside the last shard": (
        scalar(Scalar.DATA, replace(DATA, dims=(8 * TRAINING.shard_length - 1,))),
        "the data holds .* examples, 8 shards take",
    ),
    "shards beyond an i32": (
        lambda: {
            "step": respecified(STEP, 2, Scalar.DATA, replace(DATA, dims=(1 << 31,))),
            "training": replace(TRAINING, shard_length=1 << 28),
        },
        "end beyond what an i32 can say",
    ),
    "an update of other parameters": (lambda: {"update": update_program(OTHERS)}, "slot 0 of list 0 that the update"),
    "an update of fewer parameters": (
        lambda: {"update": update_program(SPECS[1:])},
        "that the update program reads has",
    ),
    "an update of three lists": (lambda: {"update": outer_program(SPECS)}, "the update program reads 11 lists, not 2"),
    "an update that returns two lists": (lambda: {"update": replace(UPDATE, outputs=(1, 1))}, "returns 2 lists, not 1"),
    "a merge that reads updates otherwise": (
        lambda: {"update": replace(UPDATE, nodes=_last_output(UPDATE, BYTES))},
        "list 2 that the merge program reads",
    ),
    "a merge of other parameters": (lambda: {"merge": outer_program(OTHERS)}, "slot 0 of list 0 that the merge"),
    "a merge of two lists": (lambda: {"merge": UPDATE}, "the merge program reads 2 lists, not 11"),
    "a merge of seven seats": (lambda: {"training": replace(TRAINING, seats=7)}, "reads 11 lists, not 10"),
    "a merge that returns another shape": (
        lambda: {"merge": replace(MERGE, nodes=_last_output(MERGE, WIDE))},
        "that the merge program returns is",
    ),
    "a mask of integers": (
        lambda: {"merge": respecified(MERGE, 10, 0, TensorSpec(I32, (8,)))},
        r"slot 0 of list 10 that the merge program reads is i32 \[8\], not f32 \[8\]",
    ),
    "a mask of seven": (
        lambda: {"merge": respecified(MERGE, 10, 0, TensorSpec(F32, (7,)))},
        r"list 10 that the merge program reads is f32 \[7\]",
    ),
    "zeros of another layout": (
        lambda: {"training": replace(TRAINING, zero_update=zero_root(OTHERS))},
        "zeroUpdate is not the root",
    ),
}


def _last_output(program: Program, spec: TensorSpec) -> tuple[Any, ...]:
    return (*program.nodes[:-1], replace(program.nodes[-1], spec=spec))


def test_programs_that_fit_pass_up_to_the_last_example() -> None:
    check_round_layouts(**GOOD)
    assert DATA.dims[0] == 8 * TRAINING.shard_length
    check_round_layouts(**GOOD | {"training": replace(TRAINING, shard_length=TRAINING.shard_length - 1)})
    last = (1 << 31) - 8
    long = respecified(STEP, 2, Scalar.DATA, replace(DATA, dims=(last,)))
    check_round_layouts(**GOOD | {"step": long, "training": replace(TRAINING, shard_length=last // 8)})


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_named(name: str) -> None:
    change, words = WRONG[name]
    with pytest.raises(WrongLayout, match=words) as caught:
        check_round_layouts(**GOOD | change())
    assert caught.value.code == "WrongLayout"
    assert caught.value.remedy


def test_everything_that_does_not_fit_is_named_at_once() -> None:
    parts = GOOD | {"update": update_program(OTHERS), "training": replace(TRAINING, zero_update=zero_root([]))}
    assert len(list(round_layout_faults(**parts))) == 3


PARAMETERS = [torch.zeros(spec.dims) for spec in SPECS]
RULE = MergeRule(limit=0.5)


def in_groups(sums: UpdateWire, merged: UpdateWire | None = None) -> dict[str, Any]:
    """Nine seats in three groups, whose sums travel so, and are merged as if they travelled so."""
    zeros = zero_update(PARAMETERS, sums)
    start = replace(TRAINING, seats=9, group_size=3, zero_partial=list_roots([zeros])[0])
    return {
        "step": STEP,
        "update": programs.update_program(PARAMETERS),
        "merge": programs.generation_program(PARAMETERS, 3, RULE, sums=merged or sums),
        "training": start,
        "partial": programs.partial_program(PARAMETERS, 3, RULE, sums=sums),
    }


@pytest.mark.parametrize("sums", SUM_WIRES, ids=lambda wire: wire.value)
def test_sums_of_groups_may_travel_in_any_layout_that_the_merge_reads(sums: UpdateWire) -> None:
    good = in_groups(sums)
    check_round_layouts(**good)
    other = in_groups(sums, UpdateWire.BF16 if sums is not UpdateWire.BF16 else UpdateWire.F32)
    for change, words in (
        ({"merge": other["merge"]}, "list 2 that the merge program reads"),
        ({"training": replace(good["training"], zero_partial=ZERO)}, "zeroPartial is not the root"),
        ({"training": replace(good["training"], group_size=2)}, "the partial sum program reads 3 lists, not 2"),
        ({"training": replace(good["training"], seats=10)}, "the merge program reads 6 lists, not 7"),
        ({"partial": other["merge"]}, "the partial sum program reads"),
        ({"partial": replace(good["partial"], outputs=(1, good["partial"].outputs[0] - 1))}, "returns 2 lists, not 1"),
    ):
        with pytest.raises(WrongLayout, match=words):
            check_round_layouts(**good | change)
