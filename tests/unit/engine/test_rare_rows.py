"""Sums by index: each row of the result has an exponent of its own, whatever other rows hold (ADR 0020)."""

from __future__ import annotations

import math
from functools import cache

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from assay.engine.compiler.capture import capture
from assay.engine.runtime.exact.exponents import exponent_of_magnitude
from assay.engine.runtime.executor import Executor, KernelVariant, usable_natives
from assay.protocol.program.nodes import Gather, RowExp, ScatterSum
from assay.protocol.program.program import Program
from tests.harness.engine.helpers import bits_equal, captured, differing_nodes, run_captured

VARIANTS = (KernelVariant.STOCK, KernelVariant.FUSED) if usable_natives()[0] else (KernelVariant.STOCK,)


def add_rows(x: Tensor, index: Tensor) -> tuple[Tensor, ...]:
    return (torch.zeros(6, *x.shape[1:]).index_add(0, index, x),)


def adam_step(ps: list[Tensor], moments: list[Tensor], data: list[Tensor]) -> list[list[Tensor]]:
    """One step of Adam on an embedding whose rows are weighed in the loss."""
    table, (m, v, b1, b2), (index, target, weight) = ps[0].requires_grad_(), moments, data
    loss = (weight[:, None] * (F.embedding(index, table) - target) ** 2).sum()
    (g,) = torch.autograd.grad(loss, [table])
    m, v, b1, b2 = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g, b1 * 0.9, b2 * 0.999
    moved = table.detach() - 0.02 * (m / (1.0 - b1)) / ((v / (1.0 - b2)).sqrt() + 1e-20)
    return [[moved], [m, v, b1, b2], data]


def adam_state(rare: float) -> list[list[Tensor]]:
    generator = torch.Generator().manual_seed(8)
    table, target = torch.randn(12, 8, generator=generator), torch.randn(64, 8, generator=generator)
    index = torch.randint(0, 11, (64,), generator=generator, dtype=torch.int32)
    index[7] = 11
    weight = torch.where(index == 11, rare, 1.0)
    zeros = torch.zeros_like(table)
    return [[table], [zeros, zeros.clone(), torch.ones(()), torch.ones(())], [index, target, weight]]


@pytest.mark.parametrize("rare", [1.0, 1e-8, 1e-9])
def test_a_rare_row_of_an_embedding_learns_as_in_f32(rare: float):
    state = adam_state(rare)
    start, goal = state[0][0][11].clone(), state[2][1][7].clone()
    exact = Executor(capture(adam_step, state).program).repeat(state, 200)[0][0][11]
    for _ in range(200):
        state = [[t.detach() for t in part] for part in adam_step(*state)]
    assert (state[0][0][11] - goal).norm() < 0.05 * (start - goal).norm()
    assert (exact - state[0][0][11]).norm() <= 0.01 * (start - goal).norm()


@pytest.mark.parametrize("scale", [1e-9, 1e-20, 1e-38, 1e-44])
def test_small_rows_are_added_as_if_they_were_alone(scale: float):
    torch.manual_seed(1)
    x, index = torch.randn(9, 4), torch.tensor([0, 1, 1, 2, 2, 3, 1, 0, 2], dtype=torch.int32)
    small = index == 1
    x[small] *= scale
    (together,) = run_captured(add_rows, x, index)
    exact = x[small].double().sum(0)
    tolerance = 2.0**-24 * exact.abs() + 2.0**-26 * x[small].double().abs().amax() + 2.0**-150
    assert bool(((together[1].double() - exact).abs() <= tolerance).all())


def test_what_other_rows_hold_changes_no_bit_of_a_row():
    torch.manual_seed(2)
    x, index = torch.randn(8, 3), torch.tensor([0, 1, 2, 0, 1, 2, 4, 0], dtype=torch.int32)
    (before,) = run_captured(add_rows, x, index)
    for other in (1e30, 1e-30, float("inf"), float("nan")):
        changed = x.clone()
        changed[index == 2] *= other
        (after,) = run_captured(add_rows, changed, index)
        assert bits_equal(before[[0, 1, 3, 4, 5]], after[[0, 1, 3, 4, 5]])
        assert bool(after[2].isnan().all()) == (not math.isfinite(other))


def test_a_row_that_is_not_finite_spoils_no_other_slice_of_an_index_per_element():
    x, index = torch.rand(3, 4) + 0.5, torch.tensor([[0, 1, 2, 3], [1, 1, 0, 0], [3, 2, 1, 0]])

    def scattered(x: Tensor) -> tuple[Tensor, ...]:
        return (torch.zeros(3, 4).scatter_add(1, index, x),)

    (before,) = run_captured(scattered, x)
    x[1, 2] = float("inf")
    (after,) = run_captured(scattered, x)
    assert bits_equal(before[[0, 2]], after[[0, 2]])
    assert bool(after[1].isnan().all())


FLOATS = st.one_of(
    st.floats(width=32),
    st.sampled_from([2.0**128 * (1 - 2**-24), -(2.0**-149), 2.0**-126, 0.0, float("nan"), float("-inf")]),
    st.builds(lambda m, n: m * 2.0**n, st.sampled_from([1.0, -1.5]), st.integers(-149, 127)),
)


@cache
def sum_of(terms: int) -> Program:
    """The program that adds so many numbers into six rows; it is the same for all values."""
    return captured(add_rows, torch.zeros(terms), torch.zeros(terms, dtype=torch.int32)).program


@given(st.lists(st.tuples(FLOATS, st.integers(-2, 7)), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_every_exponent_of_a_row_bounds_its_terms_closely_and_executors_agree(terms: list[tuple[float, int]]):
    x = torch.tensor([v for v, _ in terms], dtype=torch.float64).float()
    index = torch.tensor([i for _, i in terms], dtype=torch.int32)
    program = sum_of(len(terms))
    for variant in VARIANTS:
        assert differing_nodes(program, [[x, index]], variant) == []
    sums = [n for n in program.nodes if isinstance(n, ScatterSum)]
    found: dict[int, Tensor] = {}
    Executor(program).run([[x, index]], lambda k, value: found.setdefault(k, value.clone()))
    bounds = found[sums[-1].exponent.node]
    assert bounds.shape == (6,)
    for row, bound in enumerate(bounds.tolist()):
        own = x[index == row].abs()
        most = int(exponent_of_magnitude(own).amax()) if len(own) else -149
        if most in (-149, 129):
            assert bound == most
        else:
            assert most <= bound <= min(most + math.ceil(math.log2(len(own))) + (len(own) > 1), 128)


def test_a_sum_near_the_largest_number_is_no_nan():
    x = torch.full((4, 2), 3e38)
    x[2:] *= -1
    index = torch.tensor([1, 1, 1, 1], dtype=torch.int32)
    (y,) = run_captured(add_rows, x, index)
    assert bool((y == 0).all())


def test_an_embedding_takes_as_many_gathers_and_rows_as_before():
    torch.manual_seed(3)
    table, index = torch.randn(6, 4), torch.tensor([[0, 1], [5, 5]], dtype=torch.int32)

    def grads(table: Tensor, index: Tensor) -> tuple[Tensor, ...]:
        table = table.clone().requires_grad_()
        return torch.autograd.grad((F.embedding(index, table) ** 2).sum(), [table])

    program = captured(grads, table, index).program
    windows, rows = (n for n in program.nodes if isinstance(n, ScatterSum))
    assert windows.spec.dims == (6, 10)
    assert rows.spec.dims == (6, 4)
    assert sum(isinstance(n, Gather) for n in program.nodes) == 1
    assert not any(isinstance(n, RowExp) and n.spec.dims == () for n in program.nodes)
    for variant in VARIANTS:
        assert "SCATTER_SUM" not in str(Executor(program, variant=variant).fallbacks)


@pytest.mark.parametrize("alpha", [2.0, -0.5, 3])
def test_sums_at_indices_have_their_factor(alpha: float):
    places = torch.tensor([0, 2, 0, 1, 1, 5, 0, 0], dtype=torch.int32)
    x = torch.linspace(-1.0, 1.0, 48).reshape(8, 6)

    def function(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        return torch.ones(6, 6).index_add(0, i, x, alpha=alpha), torch.ones(8, 7).index_add(1, i[:6], x, alpha=alpha)

    for got, eager in zip(run_captured(function, x, places), function(x, places), strict=True):
        torch.testing.assert_close(got, eager)
