"""The three programs of a run fit each other, its data and its first lists, or are refused with what does not fit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from assay.protocol.program.nodes import Input, Output
from assay.protocol.program.program import Program
from assay.protocol.run.layouts import WrongLayout, check_layouts, layout_faults, zero_root
from assay.protocol.trees.state import Scalar
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.actors.programs import outer_program, update_program
from tests.harness.contracts.world import TRAINING as ANY
from tests.harness.programs import mlp_step

STEP = mlp_step().program
SPECS = [STEP.specs[k] for k in STEP.input_nodes[0]]
DATA = STEP.specs[STEP.input_nodes[2][Scalar.DATA]]
TRAINING = replace(ANY, zero_update=zero_root(SPECS), shards=8, shard_length=DATA.dims[0] // 8)
GOOD = {"step": STEP, "update": update_program(SPECS), "outer": outer_program(SPECS), "training": TRAINING}


def respecified(program: Program, number: int, slot: int, spec: TensorSpec, *, outputs: bool = True) -> Program:
    """The program with another type or shape in a slot of X (and of Y); its nodes between are as they were."""
    nodes = list(program.nodes)
    for k, node in enumerate(nodes):
        is_slot = isinstance(node, Input) or (outputs and isinstance(node, Output))
        if is_slot and (node.list_index, node.index) == (number, slot):
            nodes[k] = replace(node, spec=spec)
    return replace(program, nodes=tuple(nodes))


def scalar(slot: Scalar, spec: TensorSpec) -> Callable[[], dict[str, object]]:
    return lambda: {"step": respecified(STEP, 2, slot, spec)}


F32, I32, U8 = DType.F32, DType.I32, DType.U8
WIDE = TensorSpec(F32, (*SPECS[0].dims, 2))
OTHERS = [WIDE, *SPECS[1:]]
WRONG: dict[str, tuple[Callable[[], dict[str, object]], str]] = {
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
    "an update that returns another shape": (
        lambda: {"update": replace(GOOD["update"], nodes=_last_output(GOOD["update"], WIDE))},  # type: ignore[arg-type, type-var]
        "that the update program returns is",
    ),
    "an outer step of other parameters": (lambda: {"outer": outer_program(OTHERS)}, "slot 0 of list 0 that the outer"),
    "an outer step of two lists": (lambda: {"outer": update_program(SPECS)}, "the outer program reads 2 lists, not 11"),
    "a mask of integers": (
        lambda: {"outer": respecified(GOOD["outer"], 10, 0, TensorSpec(I32, (8,)))},  # type: ignore[arg-type]
        r"slot 0 of list 10 that the outer program reads is i32 \[8\], not f32 \[8\]",
    ),
    "a mask of seven": (
        lambda: {"outer": respecified(GOOD["outer"], 10, 0, TensorSpec(F32, (7,)))},  # type: ignore[arg-type]
        r"list 10 that the outer program reads is f32 \[7\]",
    ),
    "zeros of another layout": (
        lambda: {"training": replace(TRAINING, zero_update=zero_root(OTHERS))},
        "zeroUpdate is not the root",
    ),
}


def _last_output(program: Program, spec: TensorSpec) -> tuple:
    return (*program.nodes[:-1], replace(program.nodes[-1], spec=spec))


def test_programs_that_fit_pass_up_to_the_last_example():
    check_layouts(**GOOD)
    assert DATA.dims[0] == 8 * TRAINING.shard_length
    check_layouts(**GOOD | {"training": replace(TRAINING, shard_length=TRAINING.shard_length - 1)})
    last = (1 << 31) - 8
    long = respecified(STEP, 2, Scalar.DATA, replace(DATA, dims=(last,)))
    check_layouts(**GOOD | {"step": long, "training": replace(TRAINING, shard_length=last // 8)})


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_named(name: str):
    change, words = WRONG[name]
    with pytest.raises(WrongLayout, match=words) as caught:
        check_layouts(**GOOD | change())
    assert caught.value.code == "WrongLayout"
    assert caught.value.remedy


def test_everything_that_does_not_fit_is_named_at_once():
    parts = GOOD | {"update": update_program(OTHERS), "training": replace(TRAINING, zero_update=zero_root([]))}
    assert len(list(layout_faults(**parts))) == 3
