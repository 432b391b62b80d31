"""Outputs are written over inputs that the caller gave, and no bit changes: nothing is read after it is gone."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.fused import plan as plan_module
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.engine.fused_instruction_sets import needs_kernels
from tests.harness.engine.helpers import captured, same_lists
from tests.unit.engine.test_fused_steps import training

pytestmark = needs_kernels

SIZE, SLOTS = 24, 4


def over(program: Program) -> dict[int, int]:
    """Per slot of Y that is written over one of X that one."""
    plan = Executor(program, variant=KernelVariant.FUSED)._plan
    assert plan is not None
    inputs = {k: n for n, k in enumerate(program.input_nodes[0])}
    computed = [program.nodes[k].node for k in program.output_nodes[0]]  # type: ignore[union-attr]
    return {n: inputs[plan.over[k]] for n, k in enumerate(computed) if k in plan.over}


def square(count: int, size: int = SIZE) -> list[Tensor]:
    return [torch.randn(size, size) for _ in range(count)]


def check(program: Program, inputs: list[Tensor], monkeypatch: pytest.MonkeyPatch, block: int = 512) -> None:
    """Runs that may write over their inputs, in small blocks, end as those of stock torch."""
    expected = Executor(program, variant=KernelVariant.STOCK).repeat([inputs], 3)
    monkeypatch.setattr(plan_module, "_BLOCK_BYTES", block)
    monkeypatch.setattr(plan_module, "_PARALLEL_BYTES", 0)
    before = [t.clone() for t in inputs]
    executor = Executor(program, variant=KernelVariant.FUSED)
    assert same_lists(executor.repeat([inputs], 3), expected)
    assert same_lists([inputs], [before])  # what a caller did not give is the caller's
    state = [[t.clone() for t in inputs]]
    for _ in range(3):
        state = executor.run(state, give=True)
    assert same_lists(state, expected)


def test_a_slot_that_is_mapped_element_by_element_is_written_over_its_input(monkeypatch: pytest.MonkeyPatch):
    program = captured(lambda a, b: (a + b, b * 2.0), *square(2)).program
    assert over(program) == {0: 0, 1: 1}
    check(program, square(2), monkeypatch)


def test_memory_of_what_is_given_is_that_of_what_comes():
    inputs = square(1)
    executor = Executor(captured(lambda a: (a * 2.0,), *inputs).program, variant=KernelVariant.FUSED)
    place = inputs[0].data_ptr()
    assert executor.run([inputs])[0][0].data_ptr() != place
    assert executor.run([inputs], give=True)[0][0].data_ptr() == place


@pytest.mark.parametrize(
    "function",
    [
        pytest.param(lambda a, b: (a + a.T, b), id="transposed"),
        pytest.param(lambda a, b: (a + a.flip(0), b), id="reversed"),
        pytest.param(lambda a, b: (a + a[:1], b), id="a row for all rows"),
        pytest.param(lambda a, b: (a + torch.nn.functional.pad(a[1:], (0, 0, 0, 1)), b), id="shifted"),
        pytest.param(lambda a, b: (a * 2.0, a.T * 3.0), id="read otherwise by a later slot"),
        pytest.param(lambda a, b: (a * 2.0, a - b), id="read as it is by a later slot"),
        pytest.param(lambda a, b: (b * 2.0, a), id="for another slot only"),
    ],
)
def test_what_is_read_elsewhere_or_later_stays(function: object, monkeypatch: pytest.MonkeyPatch):
    program = captured(function, *square(2)).program  # type: ignore[arg-type]
    assert 0 not in over(program)
    check(program, square(2), monkeypatch)


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_that_are_read_before_they_are_written_are_no_hindrance(threads: int, monkeypatch: pytest.MonkeyPatch):
    program = captured(lambda a: (a - a.sum(1, keepdim=True) * 0.125,), *square(1)).program
    assert over(program) == {0: 0}
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        check(program, square(1), monkeypatch)
    finally:
        torch.set_num_threads(before)


def test_inputs_that_share_memory_are_not_written_over():
    x, y = square(2)
    program = captured(lambda a, b: (a * 2.0, b * 3.0), x, y).program
    assert over(program) == {0: 0, 1: 1}
    expected = Executor(program, variant=KernelVariant.STOCK).run([[x, x.clone()]])
    assert same_lists(Executor(program, variant=KernelVariant.FUSED).run([[x, x]], give=True), expected)


def test_a_training_step_holds_parameters_and_moments_once():
    program, _ = training("tiny")
    plan = Executor(program, variant=KernelVariant.FUSED)._plan
    assert plan is not None
    own = {program.nodes[k].node for nodes in program.output_nodes[:2] for k in nodes}  # type: ignore[union-attr]
    assert {k for k in own if program.specs[k].numel > 1} <= plan.over.keys()
    assert len(own - plan.over.keys()) <= 2  # powers of the betas


def drawn(seed: int) -> Program:
    """Slots that add up views of inputs, of earlier slots, and of sums along rows and columns."""
    rng = random.Random(seed)
    b = ProgramBuilder([[TensorSpec(DType.F32, (SIZE, SIZE))] * SLOTS])
    known: list[Ref] = [b.input(0, k) for k in range(SLOTS)]

    def looked_at(ref: Ref) -> Ref:
        match rng.randrange(8):
            case 0:
                return ref.permute(1, 0)
            case 1:
                return ref.slice(0, SIZE - 1, -1, -1)
            case 2:
                total = b.sum(ref if rng.random() < 0.5 else ref.permute(1, 0), 1)
                return total.unsqueeze(rng.randrange(2)).expand(SIZE, SIZE)
            case _:
                return ref

    slots: list[Ref] = []
    for n in range(SLOTS):
        own = [known[n]] if rng.random() < 0.8 else []
        sources = [looked_at(ref) for ref in (*own, *rng.sample(known, rng.randint(1, 3)))]
        s = ScalarBuilder([DType.F32] * len(sources))
        total = s.operand(0)
        for k in range(1, len(sources)):
            total = s.mul(s.add(total, s.operand(k)), s.f32(0.5))
        slots.append(b.map(s.build(total), sources, (SIZE, SIZE)))
        known.append(slots[-1])
    rng.shuffle(slots)
    return b.build([slots])


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_random_programs_end_alike(seed: int):
    program = drawn(seed)
    torch.manual_seed(seed)
    with pytest.MonkeyPatch.context() as patch:
        check(program, square(SLOTS), patch, block=random.Random(seed).choice((256, 1024, 1 << 17)))


def test_random_programs_do_write_over_their_inputs():
    """Else the test before would show nothing."""
    counts = [len(over(drawn(seed))) for seed in range(40)]
    assert sum(counts) > 20
    assert 0 in counts
