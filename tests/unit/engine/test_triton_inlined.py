"""Maps of rows longer than a kernel holds: computed again by their readers, with the bits of stock torch."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton.donation import Plan, plan_of
from assay.engine.runtime.triton.groups import MapGroups
from assay.engine.runtime.triton.inlined import MOST_INSTRUCTIONS, inlined_maps
from assay.engine.runtime.triton.rows import LONGEST
from assay.engine.runtime.triton.whole import WholeRuns
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Map, Max, Operand
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

F32, I32 = DType.F32, DType.I32
ROWS, COLUMNS = 3, LONGEST + 1
DIMS = (ROWS, COLUMNS)


def scalar(make: Callable[..., Reg], *types: DType) -> ScalarProgram:
    s = ScalarBuilder(list(types))
    return s.build(make(s, *(s.operand(k) for k in range(len(types)))))


SUBTRACT = scalar(lambda s, a, b: s.sub(a, b), F32, F32)
MULTIPLY = scalar(lambda s, a, b: s.mul(a, b), F32, F32)
EXP = scalar(functions.exp, F32)
EXP_OF_DIFFERENCE = scalar(lambda s, a, b: functions.exp(s, s.sub(a, b)), F32, F32)
ONE_AT = scalar(lambda s, i, j: s.select(s.eq(s.cast(i, F32), s.cast(j, F32)), s.f32(-1.0), s.f32(0.0)), I32, I32)
GRADIENT = scalar(lambda s, one, x, most, share: s.sub(one, s.mul(functions.exp(s, s.sub(x, most)), share)), *[F32] * 4)


def of_rows(x: Ref) -> Ref:
    return x.unsqueeze(1).expand(*DIMS)


def cross_entropy(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """A loss over a long vocabulary and its gradient, as capture leaves them; beside x labels and numbers of words."""
    labels, words = b.input(0, 1), b.input(0, 2)
    most = b.max(x, 1)
    less = b.map(SUBTRACT, [x, of_rows(most)], DIMS)
    # The same elements under other dims.
    e = b.map(EXP, [less.unsqueeze(0)], (1, *DIMS)).select(0, 0)
    total = b.sum(e, 1)
    one = b.map(ONE_AT, [of_rows(labels), words.unsqueeze(0).expand(*DIMS)], DIMS)
    share = b.sum(one, 1)
    gradient = b.map(GRADIENT, [one, less, of_rows(total), of_rows(share)], DIMS)
    return [total, share, gradient, b.rowexp(gradient, 1)]


def built(make: Callable[[ProgramBuilder, Ref], list[Ref]]) -> Program:
    b = ProgramBuilder([[TensorSpec(F32, DIMS), TensorSpec(I32, DIMS[:1]), TensorSpec(I32, DIMS[1:])]])
    return b.build([make(b, b.input(0, 0))])


def inputs() -> list[Tensor]:
    torch.manual_seed(1)
    x = torch.randn(DIMS) * torch.tensor([[1.0], [40.0], [1e-3]])
    x[1, 7], x[2, 9] = float("-inf"), float("nan")
    return [x, torch.tensor([0, COLUMNS - 1, 77], dtype=torch.int32), torch.arange(COLUMNS, dtype=torch.int32)]


def test_a_map_that_does_nothing_is_not_computed_again_without_end() -> None:
    """Attack: a chain of such maps, each of which reads more of the one before it, several times."""
    length, count = COLUMNS + 40, 40
    b, s = ProgramBuilder([[TensorSpec(F32, (length,))]]), ScalarBuilder([F32] * 8)
    code, x = s.build(s.operand(7)), b.input(0, 0)
    assert code.encode() == b""
    for k in range(1, count):
        x = b.map(code, [x.slice(0, 0, length - k)] * 8, (length - k,))
    program = b.build([[b.max(x, 1)]])
    found = inlined_maps(program, set(range(len(program.nodes))), 1)
    texts: dict[int, int] = {}
    for k in sorted(found):
        node = program.nodes[k]
        assert isinstance(node, Map)
        texts[k] = 1 + sum(texts.get(o.node, 0) for o in node.operands)
    assert texts
    assert max(texts.values()) <= MOST_INSTRUCTIONS


def groups_of(program: Program, least: int = 1) -> MapGroups:
    executor = Executor(program, variant=KernelVariant.TRITON)
    return MapGroups(program, executor.kernels.of, least=least)


def agrees(program: Program, groups: MapGroups) -> bool:
    """In an arena, where what is written over too early is seen."""
    given = inputs()
    found = WholeRuns(program, groups).run(given, store=True, home=torch.device("cpu"))
    return state_root([found]) == state_root(Executor(program, variant=KernelVariant.STOCK).run([given]))


def test_a_cross_entropy_stores_no_difference_exponential_or_mark() -> None:
    program = built(cross_entropy)
    groups = groups_of(program)
    assert len(groups.inlined) == 3
    stored = {k for step in groups.members for k in step}
    assert not stored & groups.inlined.keys()
    assert agrees(program, groups)


def test_smaller_maps_are_stored() -> None:
    program = built(cross_entropy)
    groups = groups_of(program, ROWS * COLUMNS + 1)
    assert not groups.inlined
    assert agrees(program, groups)
    assert len(groups_of(program, ROWS * COLUMNS).inlined) == 3


def read_elsewhere(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """A map that something reads in another order must lie somewhere."""
    e = b.map(EXP, [x], DIMS)
    return [b.sum(e, 1), b.rowexp(e.permute(1, 0), 1)]


def two_values(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """Made of two whole values: its readers would load two in place of one."""
    e = b.map(MULTIPLY, [x, b.map(EXP, [x], DIMS)], DIMS)
    return [b.sum(e, 1), b.max(e, 1)]


def long_sum(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """Four exponentials one of another: the first ones are computed again, as many as are cheap together."""
    for _ in range(4):
        x = b.map(EXP, [x], DIMS)
    return [b.sum(x, 1)]


@pytest.mark.parametrize("case", [read_elsewhere, two_values, long_sum], ids=lambda case: case.__name__)
def test_what_would_cost_more_again_is_stored(case: Callable[[ProgramBuilder, Ref], list[Ref]]) -> None:
    program = built(case)
    groups = groups_of(program)
    maps = [k for k, node in enumerate(program.nodes) if node.family.name == "MAP"]
    assert len(groups.inlined) < len(maps)
    assert all(cost <= MOST_INSTRUCTIONS for cost in groups.inlined.values())
    assert agrees(program, groups)


def test_rows_of_other_lengths_than_a_maps_are_read_as_they_lie() -> None:
    """The first elements of a map, one after another, in as many but shorter rows: they begin elsewhere."""
    dims = (ROWS, COLUMNS + 8)
    b = ProgramBuilder([[TensorSpec(F32, dims)]])
    e = b.map(EXP, [b.input(0, 0)], dims)
    shorter = Operand(e.node, View(0, (COLUMNS, 1), (0, 0), DIMS))
    program = b.build([[b.add(Max(TensorSpec(F32, (ROWS,)), (COLUMNS,), shorter))]])
    groups = groups_of(program)
    assert groups.inlined
    torch.manual_seed(3)
    given = [torch.randn(dims)]
    given[0][0, COLUMNS + 1] = 9.0  # the second element of the second row, as it is read
    found = WholeRuns(program, groups).run(given, store=True, home=torch.device("cpu"))
    assert state_root([found]) == state_root(Executor(program, variant=KernelVariant.STOCK).run([given]))


def test_maps_that_only_maps_read_are_stored() -> None:
    program = built(lambda b, x: [b.map(EXP, [b.map(SUBTRACT, [x, of_rows(b.max(x, 1))], DIMS)], DIMS)])
    assert not inlined_maps(program, range(len(program.nodes)), 1)


# --- over what is dead


def places(plan: Plan) -> list[int]:
    """Where each request of a whole size lies."""
    return [offset for offset, (dims, _) in plan.requests if dims == DIMS]


def in_place(b: ProgramBuilder, x: Ref) -> list[Ref]:
    """Between two that are read in another order, so that all three lie somewhere and none is made in one kernel."""
    first = b.map(EXP, [x.slice(1, COLUMNS - 1, -1, -1)], DIMS)
    most = b.max(first, 1)
    second = b.map(EXP_OF_DIFFERENCE, [first, of_rows(most)], DIMS)
    return [b.rowexp(second.permute(1, 0), 1)]


def read_later(b: ProgramBuilder, x: Ref) -> list[Ref]:
    first = b.map(EXP, [x.slice(1, COLUMNS - 1, -1, -1)], DIMS)
    second = b.map(EXP_OF_DIFFERENCE, [first, of_rows(b.max(first, 1))], DIMS)
    third = b.sum(second, 1)
    return [third, b.map(MULTIPLY, [first, of_rows(third)], DIMS)]


def read_backwards(b: ProgramBuilder, x: Ref) -> list[Ref]:
    first = b.map(EXP, [x.slice(1, COLUMNS - 1, -1, -1)], DIMS)
    back = first.slice(1, COLUMNS - 1, -1, -1)
    second = b.map(EXP_OF_DIFFERENCE, [back, of_rows(b.max(first, 1))], DIMS)
    return [b.rowexp(second.permute(1, 0), 1)]


@pytest.mark.parametrize(
    ("case", "shared"),
    [(in_place, True), (read_later, False), (read_backwards, False)],
    ids=["in place", "read later", "read backwards"],
)
def test_a_map_lies_over_what_it_read_last(case: Callable[[ProgramBuilder, Ref], list[Ref]], shared: bool) -> None:
    program = built(case)
    groups = groups_of(program, 1 << 30)
    found = places(plan_of(program, groups))
    assert len(found) >= 2
    assert (found[0] == found[1]) is shared
    assert agrees(program, groups)


def test_elements_of_another_size_do_not_lie_over_those_they_are_made_of() -> None:
    """As many bytes, but four bytes of one element are four elements that other programs read."""
    b = ProgramBuilder([[TensorSpec(F32, (256,))]])
    low = b.map(scalar(lambda s, a: s.cast(a, I32), F32), [b.input(0, 0)], (256,), DType.U8)
    wide = b.map(scalar(lambda s, a: s.cast(a, F32), I32), [low.slice(0, 0, 64)], (64,))
    program = b.build([[b.map(EXP, [wide.slice(0, 63, -1, -1)], (64,))]])
    plan = plan_of(program, groups_of(program))
    of_low, of_wide, _ = (offset for offset, _ in plan.requests)
    assert of_low + 256 <= of_wide or of_wide + 256 <= of_low
