"""Running statistics travel with the parameters, and no half of the seats moves them where nobody honest went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache
from itertools import chain

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.capture import capture
from assay.engine.compiler.lowering.registry import FIXED22
from assay.engine.runtime.executor import Executor
from assay.training.merge import MergeRule, merge, merge_partials, partial
from assay.training.programs import generation_program, merge_program, partial_program, update_program
from assay.training.recipes.recipe import Recipe, RecipeStep
from assay.training.statistics import MOST_COUNTED, middle, present
from assay.training.updates import COMPUTE_UPDATE, UpdateWire, compute_update, received, zero_update
from tests.harness.engine.helpers import both_executors, check_executors, relative, same_lists

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

RULE = MergeRule(limit=0.5, statistics=2)
HOSTILE = (math.nan, math.inf, -math.inf, 3.4e38, -1e30, 1e-42, -0.0)


def lists_of(seed: int, counter: int = 0) -> list[Tensor]:
    """A matrix and a vector that are trained, a variance and a counter that are not."""
    generator = torch.Generator().manual_seed(seed)
    trained = [torch.randn(shape, generator=generator) * 0.1 for shape in ((3, 70), (5,))]
    return [*trained, torch.rand(5, generator=generator) + 0.5, torch.tensor(counter, dtype=torch.int32)]


def ones(*values: float) -> Tensor:
    return torch.tensor(values)


def counted(*seats: bool) -> Tensor:
    return torch.tensor(seats)


def chosen(values: Sequence[float]) -> float:
    """The middle of some numbers by the words of the rule, and nothing of the code."""
    clean = sorted(v if math.isfinite(v) else 0.0 for v in values)
    a, b = clean[(len(clean) - 1) // 2], clean[len(clean) // 2]
    return 0.0 if a * b <= 0 and a != b else min((a, b), key=abs)


# --- the middle


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        ([3.0], 3.0),
        ([3.0, 5.0], 3.0),
        ([-3.0, -5.0], -3.0),
        ([-1.0, 5.0], 0.0),
        ([0.0, 5.0], 0.0),
        ([1.0, 9.0, -7.0], 1.0),
        ([-4.0, -2.0, 8.0], -2.0),
        ([math.nan, 5.0, 6.0], 5.0),
        ([math.inf, -math.inf, 6.0], 0.0),
    ],
)
def test_an_element_goes_where_the_middle_seat_went_or_the_nearer_of_two(moves, expected) -> None:
    got = middle([ones(m) for m in moves], torch.ones(len(moves), dtype=torch.bool))
    assert got.tolist() == [expected] and chosen(moves) == expected


def test_seats_that_are_not_counted_have_no_say() -> None:
    moves = [ones(4.0), ones(0.0), ones(6.0), ones(0.0), ones(5.0)]
    assert middle(moves, counted(True, False, True, False, True)).tolist() == [5.0]
    assert middle(moves, counted(True, False, False, False, False)).tolist() == [4.0]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(width=32), st.booleans()), min_size=1, max_size=9).filter(
        lambda s: any(c for _, c in s)
    )
)
def test_any_moves_have_the_middle_that_the_words_give(seats: list[tuple[float, bool]]) -> None:
    got = float(middle([ones(v) for v, _ in seats], counted(*(c for _, c in seats))))
    assert got == pytest.approx(chosen([v for v, c in seats if c]), rel=0, abs=0)


LIES = st.sampled_from([math.nan, math.inf, -1e30, -150.0, 0.0, 150.0, 1e30]) | st.floats(width=32)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=4), st.lists(LIES, min_size=1, max_size=4))
@example([1.0], [-1e30])
@example([-1.0], [1e30])
@example([1.0, 2.0], [-3e38, -3e38])
def test_no_half_of_the_seats_takes_a_statistic_where_nobody_honest_went(
    honest: list[float], lies: list[float]
) -> None:
    moves = [ones(v) for v in (*lies[: len(honest)], *honest)]
    got = float(middle(moves, torch.ones(len(moves), dtype=torch.bool)))
    assert min(0.0, *honest) <= got <= max(0.0, *honest)


def test_a_counter_moves_as_far_as_it_can_be_put_in_order_and_no_farther() -> None:
    moves = [torch.tensor([v], dtype=torch.int32) for v in (-50, -50, int(MOST_COUNTED) + 5)]
    all_three = counted(True, True, True)
    assert middle(moves, all_three).tolist() == [-50] and middle(moves, all_three).dtype is torch.int32
    alone = counted(False, False, True)
    assert middle(moves, alone).tolist() == [1 << 24]
    moves[2] = torch.tensor([1 << 24], dtype=torch.int32)
    assert middle(moves, alone).tolist() == [1 << 24]


def test_who_moves_no_statistic_is_not_present_in_a_group() -> None:
    still, tiny = [torch.zeros(3), torch.tensor(0, dtype=torch.int32)], [ones(0.0, 0.0, 1e-30), torch.tensor(0)]
    assert present([still, tiny, [torch.zeros(3), torch.tensor(-1, dtype=torch.int32)]]).tolist() == [False, True, True]


# --- programs


def hostile(seed: int) -> list[Tensor]:
    """An update of which every tensor holds what nobody honest sends."""
    update = lists_of(seed)
    for k, value in enumerate(HOSTILE):
        update[k % 3].view(-1)[k % 5] = value
    return [*update[:3], torch.tensor(-(2**31), dtype=torch.int32)]


@cache
def executors(kind: str, count: int, wire: UpdateWire = UpdateWire.F32) -> tuple[Executor, Executor]:
    """A program on stock torch and on native kernels."""
    shapes = lists_of(0)
    program = {
        "merge": lambda: merge_program(shapes, count, RULE, wire),
        "partial": lambda: partial_program(shapes, count, RULE, wire),
        "generation": lambda: generation_program(shapes, count, RULE),
        "update": lambda: update_program(shapes, wire, statistics=RULE.statistics),
    }[kind]()
    return both_executors(program)


@pytest.mark.parametrize("wire", list(UpdateWire))
@pytest.mark.gate_takes(3)
def test_a_merge_takes_statistics_to_the_middle_and_no_step_on_them(wire: UpdateWire) -> None:
    start, momentum = lists_of(1, 100), [torch.zeros_like(t) for t in lists_of(0)]
    make = COMPUTE_UPDATE[wire]
    ends = [lists_of(20 + k, 150) for k in range(3)]
    updates = [make(start, end, statistics=2)[0] for end in ends]
    zeros = zero_update(start, wire, statistics=2)
    assert [(t.shape, t.dtype) for t in zeros] == [(t.shape, t.dtype) for t in updates[0]]
    # Seat 1 is absent; the last is hostile, as far as its layout lets it.
    lie = hostile(9) if wire is UpdateWire.F32 else [*updates[2][:-2], *hostile(9)[2:]]
    sent, mask = [updates[0], zeros, updates[1], updates[2], lie], torch.tensor([1.0, 0.0, 1.0, 1.0, 1.0])
    lists = [start, momentum, *sent, [mask]]
    expected = merge(*lists, rule=RULE, wire=wire)
    check_executors(executors("merge", 5, wire), lists, expected)
    (parameters, moments) = expected
    assert parameters[3].item() == 150 and [m.count_nonzero().item() for m in moments[2:]] == [0, 0]
    for at in range(5):
        went = [start[2][at].item(), *(end[2][at].item() for end in ends)]
        assert min(went) - 1e-6 <= parameters[2][at].item() <= max(went) + 1e-6
    nobody = [start, momentum, *sent, [torch.zeros(5)]]
    for executor in executors("merge", 5, wire):
        assert same_lists(executor.run(nobody), [start, momentum])


@pytest.mark.parametrize("wire", list(UpdateWire))
def test_an_update_program_sends_statistics_unrounded(wire: UpdateWire) -> None:
    start, end = lists_of(1, 100), lists_of(2, 150)
    for executor in executors("update", 0, wire):
        sent = executor.run([start, end])[0]
        assert same_lists([sent[-2:]], [[start[2] - end[2], torch.tensor(-50, dtype=torch.int32)]])
        got = received(sent, wire, [t.shape for t in start], statistics=2)
        assert [t.shape for t in got] == [t.shape for t in start]


def test_groups_take_the_middle_of_who_trained_and_generations_that_of_groups() -> None:
    zeros = zero_update(lists_of(0), UpdateWire.F32)
    start = lists_of(1, 100)
    updates = [compute_update(start, lists_of(20 + k, 150))[0] for k in range(3)]
    group = [updates[0], zeros, updates[1], zeros, updates[2]]
    (first,) = partial(*group, rule=RULE, shapes=[t.shape for t in start])
    check_executors(executors("partial", 5), group, [first])
    alone = [middle([u[k] for u in updates], counted(True, True, True)) for k in (2, 3)]
    assert same_lists([first[2:]], [alone])
    momentum = [torch.zeros_like(t) for t in start]
    sums, weights = [first, hostile(9), first, zeros], torch.tensor([3.0, 2.0, 3.0, 0.0])
    lists = [start, momentum, *sums, [weights]]
    expected = merge_partials(*lists, rule=RULE)
    check_executors(executors("generation", 4), lists, expected)
    assert expected[0][3].item() == 150
    np.testing.assert_allclose(expected[0][2].numpy(), (start[2] - alone[0]).numpy(), rtol=1e-6)


def test_statistics_are_a_constant_of_every_program_that_has_them() -> None:
    shapes = lists_of(0)[:3]
    with_them, without = MergeRule(limit=0.5, statistics=1), MergeRule(limit=0.5)
    assert merge_program(shapes, 2, with_them).root != merge_program(shapes, 2, without).root
    assert partial_program(shapes, 2, with_them).root != partial_program(shapes, 2, without).root
    int8 = [update_program(shapes, UpdateWire.INT8, statistics=n).root for n in (0, 1)]
    assert int8[0] != int8[1]


# --- the step


class Odd(nn.Module):
    """Buffers of every kind that a step changes."""

    def __init__(self) -> None:
        super().__init__()
        self.line, self.norm = nn.Linear(2, 4), nn.BatchNorm1d(4)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seen", torch.zeros(4, dtype=torch.bool))
        self.register_buffer("last", torch.zeros(4), persistent=False)
        self.register_buffer("still", torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm(self.line(x)) * self.still
        with torch.no_grad():
            self.steps += 1
            self.seen |= x.mean() > 0
            self.last.copy_(h.amax(0))
        return h


def test_a_step_of_a_run_carries_what_the_module_keeps_and_numbers_can_say() -> None:
    torch.manual_seed(0)
    module, x = Odd(), torch.randn(32, 2)
    recipe = Recipe(
        module,
        lambda m, x, y: F.cross_entropy(m(x), y),
        torch.optim.SGD(module.parameters(), lr=0.1),
        (x, (x[:, 0] > 0).long()),
        batch_size=8,
    )
    step, plain = RecipeStep(recipe, merges_statistics=True), RecipeStep(recipe)
    carried = ["steps", "norm.running_mean", "norm.running_var", "norm.num_batches_tracked"]
    assert (sorted(step.carried), plain.carried) == (sorted(carried), [])
    assert step.slot_names[0] == [*step.names, *step.carried] and plain.slot_names[0] == plain.names
    assert set(step.buffers) == set(plain.buffers) == {*carried, "seen", "last"}
    state = step.state()
    program = capture(step, state, FIXED22).program
    assert program.is_iterable() and len(program.input_nodes[0]) == len(step.slot_names[0])
    ours, theirs, same = Executor(program).repeat(state, 3), state, plain.state()
    for _ in range(3):
        theirs, same = step(*theirs), plain(*same)
    named = [
        dict(zip(chain(*s.slot_names), chain(*lists), strict=True))
        for s, lists in ((step, ours), (step, theirs), (plain, same))
    ]
    for name in (*step.slot_names[0], "seen", "last"):
        exact, eager, elsewhere = (part[name] for part in named)
        assert torch.equal(eager, elsewhere), name
        assert relative(exact, eager) < 1e-4 if exact.is_floating_point() else torch.equal(exact, eager), name
