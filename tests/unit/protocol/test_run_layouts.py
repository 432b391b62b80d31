"""Programs of a run fit each other, its data and its zeros, or are refused with what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from assay.protocol.run.layouts import WrongLayout, check_round_layouts, zero_root
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.actors.programs import outer_program, update_program
from tests.harness.rounds.charters import RUN
from tests.unit.protocol.test_layouts import DATA, OTHERS, SPECS, STEP, respecified

UPDATE, MERGE = update_program(SPECS), outer_program(SPECS)
TRAINING = replace(RUN.training, seats=8, shards=8, shard_length=DATA.dims[0] // 8, zero_update=zero_root(SPECS))
GOOD: dict[str, Any] = {"step": STEP, "update": UPDATE, "merge": MERGE, "training": TRAINING}
BYTE = TensorSpec(DType.I8, SPECS[0].dims)

WRONG: dict[str, tuple[Callable[[], dict[str, Any]], str]] = {
    "a step of one list": (lambda: {"step": UPDATE}, "reads 2 lists, a training state has 3"),
    "an update of other parameters": (
        lambda: {"update": update_program(OTHERS)},
        "list 0 that the update program reads",
    ),
    "an update of two lists": (lambda: {"update": replace(UPDATE, outputs=(1, 1))}, "returns 2 lists, not 1"),
    "a merge of other parameters": (lambda: {"merge": outer_program(OTHERS)}, "slot 0 of list 0 that the merge"),
    "a merge of seven seats": (lambda: {"training": replace(TRAINING, seats=7)}, "reads 11 lists, not 10"),
    "a merge that reads updates otherwise": (
        lambda: {"update": replace(UPDATE, nodes=(*UPDATE.nodes[:-1], replace(UPDATE.nodes[-1], spec=BYTE)))},
        "list 2 that the merge program reads",
    ),
    "a mask of integers": (
        lambda: {"merge": respecified(MERGE, 10, 0, TensorSpec(DType.I32, (8,)))},
        r"slot 0 of list 10 that the merge program reads is i32 \[8\], not f32 \[8\]",
    ),
    "zeros of another layout": (lambda: {"training": replace(TRAINING, zero_update=zero_root(OTHERS))}, "zeroUpdate"),
    "data that ends inside the last shard": (
        lambda: {"training": replace(TRAINING, shard_length=DATA.dims[0] // 8 + 1)},
        "the data holds .* examples, 8 shards take",
    ),
}


def test_programs_that_fit_pass() -> None:
    check_round_layouts(**GOOD)


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_fit_is_named(name: str) -> None:
    change, words = WRONG[name]
    with pytest.raises(WrongLayout, match=words) as caught:
        check_round_layouts(**GOOD | change())
    assert caught.value.code == "WrongLayout"
