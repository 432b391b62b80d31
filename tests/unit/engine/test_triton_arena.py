"""Whole runs by Triton in one arena: nothing is allocated after the first, and nothing still read is written over."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec
from itertools import combinations

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from assay.engine.runtime.executor import Executor, KernelVariant
from assay.engine.runtime.triton import arena
from assay.engine.runtime.triton.donation import Plan
from assay.engine.runtime.triton.whole import WholeRuns
from assay.engine.runtime.values.state_io import state_root
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.errors import InvariantError
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Output, reads
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.engine.helpers import tensors_of
from tests.harness.programs import mlp_step

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")

N = 40
F32, BOOL = TensorSpec(DType.F32, (N,)), TensorSpec(DType.BOOL, (N,))
EXAMPLE = mlp_step()


def sum_of_two() -> ScalarProgram:
    s = ScalarBuilder([DType.F32, DType.F32])
    return s.build(s.add(s.operand(0), s.operand(1)))


def add(b: ProgramBuilder, x: Ref, y: Ref) -> Ref:
    return b.map(sum_of_two(), [x, y], (N,))


ArenaCase = Callable[[ProgramBuilder, Ref, Ref], list[Ref]]


def added_in_place(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    return [add(b, x, y), y]


def read_in_the_next_step(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    """x is read after its new value is there: by a reduction, which shares no kernel."""
    new = add(b, x, y)
    return [new, add(b, y, b.max(x.slice(0, N - 1, -1, -1), 1).expand(N))]


def read_in_the_kernel_of_its_rows(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    """Rows of x are loaded by threads of which others may store the same elements of its new value."""
    new = add(b, x, y)
    return [new, add(b, y, b.max(new, 1).expand(N))]


def read_last_before_the_step(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    return [b.sum(add(b, y, y).unsqueeze(0).expand(N, N), 1, b.rowexp(x.unsqueeze(1), 1)), y]


def read_backwards(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    return [add(b, x.slice(0, N - 1, -1, -1), y), y]


def read_both_ways_in_one_group(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    new = add(b, x, y)
    return [new, add(b, new, x.slice(0, N - 1, -1, -1))]


def read_in_the_group_after_the_new_value(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    """The new x is made of y alone, and the same kernel loads the old x for the first time after that."""
    new = add(b, y, y)
    return [new, add(b, new, x)]


def swapped(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    return [y, x]


def one_over_the_other(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    return [add(b, x, y), x]


def one_value_twice(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    new = add(b, x, y)
    return [new, new]


def a_constant(b: ProgramBuilder, x: Ref, y: Ref) -> list[Ref]:
    return [b.const(F32, bytes(range(4 * N))), add(b, x, y)]


CASES: dict[ArenaCase, set[int]] = {
    added_in_place: {0},
    read_in_the_next_step: {1},
    read_in_the_kernel_of_its_rows: set(),
    read_last_before_the_step: {0},
    read_backwards: set(),
    read_both_ways_in_one_group: {1},
    read_in_the_group_after_the_new_value: {1},
    swapped: set(),
    one_over_the_other: set(),
    one_value_twice: {0},
    a_constant: {1},
}
"""Programs on slots x and y, and the slots that are written over in place."""


def built(case: ArenaCase) -> Program:
    b = ProgramBuilder([[F32, F32]])
    return b.build([case(b, b.input(0, 0), b.input(0, 1))])


def whole(program: Program) -> tuple[Executor, WholeRuns]:
    executor = Executor(program, variant=KernelVariant.TRITON)
    assert executor.whole is not None
    return executor, executor.whole


@cache
def trained() -> tuple[Executor, WholeRuns]:
    return whole(EXAMPLE.program)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_slots_are_written_over_where_nothing_reads_them_any_more(case: ArenaCase) -> None:
    program = built(case)
    executor, runs = whole(program)
    assert runs.plan.donated == CASES[case]
    torch.manual_seed(1)
    state = [[torch.randn(N), torch.randn(N)]]
    kept = [t.clone() for t in state[0]]
    wanted = Executor(program, variant=KernelVariant.STOCK).repeat(state, 3)
    assert state_root(executor.repeat(state, 3)) == state_root(wanted)
    assert all(torch.equal(a, b) for a, b in zip(kept, state[0], strict=True))


def overlapping(plan: Plan) -> list[tuple[int, int]]:
    return [
        (a.key, b.key)
        for (low, a), (other, b) in combinations(plan.lives, 2)
        if a.first <= b.last and b.first <= a.last and low < other + b.size and other < low + a.size
    ]


def test_no_two_values_of_a_training_step_overlap_while_both_are_in_use() -> None:
    plan = trained()[1].plan
    assert overlapping(plan) == []
    assert plan.size < sum(life.size for _, life in plan.lives)
    assert len(plan.donated) >= 5


def test_no_step_writes_over_what_it_reads_but_element_by_element() -> None:
    """By the memory of a run itself, which the interpreter might get away with sharing."""
    runs = trained()[1]
    state = tensors_of(EXAMPLE.program, EXAMPLE.state)
    runs.run([t for part in state for t in part], store=True, home=torch.device("cpu"))
    shared: list[tuple[int, int]] = []
    groups, seen = runs.groups, 0

    def see(step: int, values: Sequence[Tensor | None]) -> None:
        nonlocal seen
        members = runs.groups.members[step]
        for k in members:
            for j in {j for m in members for j in reads(EXAMPLE.program.nodes[m])} - set(members):
                made, read = values[k], values[j]
                if made is not None and read is not None and not isinstance(EXAMPLE.program.nodes[k], Output):
                    seen += 1
                    is_meant = j in runs.plan.donated or (step in groups.overwriting and j in groups.dead[step])
                    if memory_of(made) & memory_of(read) and not is_meant:
                        shared.append((k, j))

    runs._arena.begin()
    with arena.within(runs._arena):
        runs.groups.run(runs._slots, see)
    assert shared == []
    assert seen > 80


def memory_of(t: Tensor) -> set[int]:
    """The addresses of its elements."""
    return {t.data_ptr() + t.element_size() * i for i in range(t.numel())}


def test_a_training_repeated_in_its_arena_ends_in_the_state_of_stock_torch() -> None:
    state = tensors_of(EXAMPLE.program, EXAMPLE.state)
    wanted = Executor(EXAMPLE.program, variant=KernelVariant.STOCK).repeat(state, 3)
    assert state_root(trained()[0].repeat(state, 3)) == state_root(wanted)


class Allocations(TorchDispatchMode):
    """Counts the tensors with memory of their own that torch makes."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.known: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        before = {t.untyped_storage().data_ptr() for t in args if isinstance(t, Tensor)}
        made = func(*args, **(kwargs or {}))
        is_alias = "set_" in str(func)  # the interpreter's, of memory that is there
        if (
            isinstance(made, Tensor)
            and made.numel()
            and not is_alias
            and made.untyped_storage().data_ptr() not in before
        ):
            self.found.append(f"{func} {list(made.shape)}")
        return made


def test_nothing_is_allocated_after_the_first_step() -> None:
    _, runs = whole(EXAMPLE.program)
    state = tensors_of(EXAMPLE.program, EXAMPLE.state)
    home = torch.device("cpu")
    with Allocations() as first:
        flat = runs.run([t for part in state for t in part], store=False, home=home)
    assert any("empty" in name for name in first.found)
    with Allocations() as second:
        for _ in range(2):
            flat = runs.run(flat, store=False, home=home)
    assert second.found == []


def test_what_a_run_gave_stays_when_the_next_one_writes_its_arena() -> None:
    executor, _ = whole(built(added_in_place))
    x, y = torch.ones(N), torch.ones(N)
    first = executor.run([[x, y]])
    second = executor.run(first)
    assert (first[0][0][0].item(), second[0][0][0].item(), x[0].item()) == (2.0, 3.0, 1.0)


def test_a_state_of_the_arena_is_refused_when_another_run_came_between() -> None:
    executor, _ = whole(built(added_in_place))
    x, y = torch.ones(N), torch.ones(N)
    ours = executor.run([[x, y]], store=False)
    executor.run([[x, y]])
    with pytest.raises(InvariantError, match="another run came between") as caught:
        executor.run(ours)
    assert caught.value.code == "StaleState"


def test_a_passed_slot_that_its_owner_changed_is_read_again() -> None:
    executor, _ = whole(built(added_in_place))
    x, y = torch.ones(N), torch.ones(N)
    state = executor.run([[x, y]], store=False)
    y += 1
    assert executor.run(state)[0][0][0].item() == 4.0


def test_slots_that_pass_through_keep_their_bytes_whatever_they_are() -> None:
    b = ProgramBuilder([[F32, BOOL]])
    program = b.build([[b.input(0, 0), b.input(0, 1)]])
    x, flags = torch.zeros(N), torch.zeros(N, dtype=torch.uint8)
    x.view(torch.int32)[3], flags[2] = 0x7FC00005, 7
    state = [[x, flags.view(torch.bool)]]
    ours = whole(program)[0].repeat(state, 2)
    assert state_root(ours) == state_root(state)


def test_a_kernel_that_asks_for_what_is_not_planned_is_refused() -> None:
    memory = arena.Arena(64)
    memory.give([memory.tensor(0, (4,), torch.float32)])
    memory.begin()
    with pytest.raises(InvariantError, match=r"asks for torch.int32 \[4\]"), arena.within(memory):
        arena.take((4,), torch.int32)
