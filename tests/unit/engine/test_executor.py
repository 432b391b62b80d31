"""The stock-torch executor equals the reference on every bit: hand-written programs and random ones of every family."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.conformance.fuzz.programs import draw
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.errors import UserError
from tests.harness.engine.helpers import differing_nodes, same_lists, tensors_of
from tests.harness.programs import Example, all_examples


@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_hand_written_programs_agree_with_the_reference(example: Example):
    assert differing_nodes(example.program, tensors_of(example.program, example.state)) == []


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_random_programs_of_every_family_agree_with_the_reference(seed: int):
    case = draw(seed)
    assert differing_nodes(case.program, tensors_of(case.program, case.state)) == []


def test_a_hook_sees_every_node_and_what_it_returns_is_read_afterwards():
    example = all_examples()[0]
    inputs = tensors_of(example.program, example.state)
    seen: list[int] = []
    honest = Executor(example.program).run(inputs)

    def hook(k: int, value: torch.Tensor) -> torch.Tensor:
        seen.append(k)
        return torch.zeros_like(value) if k == 0 else value

    altered = Executor(example.program).run(inputs, hook)
    assert seen == list(range(len(example.program.nodes)))
    zeros = [[torch.zeros_like(t) if (i, j) == (0, 0) else t for j, t in enumerate(p)] for i, p in enumerate(inputs)]
    assert [to_bytes(t) for p in altered for t in p] == [
        to_bytes(t) for p in Executor(example.program).run(zeros) for t in p
    ]
    assert [to_bytes(t) for p in altered for t in p] != [to_bytes(t) for p in honest for t in p]


@pytest.mark.parametrize("example", all_examples(), ids=lambda e: e.name)
def test_a_cross_check_takes_other_product_variants_to_the_same_bits(example: Example):
    inputs = tensors_of(example.program, example.state)
    usual, cross_check = Executor(example.program), Executor(example.program, cross_check=True)
    assert same_lists(usual.run(inputs), cross_check.run(inputs))
    assert all(usual.product_variants[k] != cross_check.product_variants[k] for k in usual.product_variants)


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_a_cross_check_agrees_on_random_programs(seed: int):
    case = draw(seed)
    inputs = tensors_of(case.program, case.state)
    assert same_lists(Executor(case.program).run(inputs), Executor(case.program, cross_check=True).run(inputs))


def test_inputs_of_another_shape_or_type_are_refused():
    example = all_examples()[0]
    inputs = tensors_of(example.program, example.state)
    executor = Executor(example.program)
    with pytest.raises(UserError, match="takes lists"):
        executor.run([])
    with pytest.raises(UserError, match="not"):
        executor.run([[t.to(torch.float64) for t in part] for part in inputs])


def test_inputs_are_not_changed_by_a_run():
    for example in all_examples():
        inputs = tensors_of(example.program, example.state)
        Executor(example.program).run(inputs)
        assert [[to_bytes(t) for t in part] for part in inputs] == [list(map(bytes, part)) for part in example.state]
