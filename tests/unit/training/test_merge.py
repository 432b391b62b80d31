"""The merge: what honest updates make is what DiLoCo makes of them, and what a hostile one can do is bounded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor
from assay.engine.runtime.values.state_io import list_roots, state_root
from assay.protocol.rounds.ids import merge_input, partial_input, weighed_input
from assay.training.merge import SPIKE, MergeRule, limited_sum, merge, merge_partials, partial
from assay.training.outer import OUTER_MOMENTUM, OUTER_RATE, SLOTS, outer_step
from assay.training.programs import generation_program, merge_program, partial_program, with_terms
from assay.training.updates import UpdateWire, compute_update_int8, received, zero_update
from tests.harness.engine.helpers import both_executors, check_executors, differing_nodes, same_lists

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

SHAPES = ((3, 70), (5,), (2, 3), ())
RULE = MergeRule(limit=0.5)
HOSTILE = (math.nan, math.inf, -math.inf, 3.4e38, -1e30, 1.9e19, 1e-42, -0.0, 7.0)


def random_list(seed: int, scale: float = 1.0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator) * scale for shape in SHAPES]


def mask_of(seats: int, included: Sequence[int]) -> list[Tensor]:
    return [torch.tensor([float(k in included) for k in range(seats)])]


def updates_of(seats: int, included: Sequence[int], scale: float = 0.1) -> list[list[Tensor]]:
    """An update of each seat, zeros where it is not included, as the contract fills them in."""
    zeros = zero_update(random_list(0), UpdateWire.F32)
    return [random_list(10 + k, scale) if k in included else zeros for k in range(seats)]


def hostile_updates(seats: int) -> list[list[Tensor]]:
    """Updates of which one holds what is not finite, one huge numbers, one a norm just above the limit."""
    updates = updates_of(seats, range(seats))
    for k, value in enumerate(HOSTILE):
        updates[k % seats][k % 3].view(-1)[k % 2] = value
    updates[1] = [t * 1e19 for t in updates[1]]
    updates[2] = [torch.full(shape, RULE.limit * 1.000001) for shape in SHAPES]
    return updates


@cache
def executors(
    kind: str, count: int, wire: UpdateWire = UpdateWire.F32, sums: UpdateWire = UpdateWire.F32
) -> tuple[Executor, Executor]:
    """A program on stock torch and on native kernels."""
    shapes = random_list(0)
    program = {
        "merge": lambda: merge_program(shapes, count, RULE, wire),
        "partial": lambda: partial_program(shapes, count, RULE, wire, sums),
        "generation": lambda: generation_program(shapes, count, RULE, sums=sums),
    }[kind]()
    return both_executors(program)


# --- honest


@pytest.mark.parametrize("included", [(), (3,), (0, 2, 7), tuple(range(8))])
def test_honest_updates_are_merged_bit_for_bit_as_plain_diloco_merges_them(included: tuple[int, ...]) -> None:
    lists = [random_list(1), random_list(2), *updates_of(SLOTS, included), mask_of(SLOTS, included)]
    assert (RULE.rate, RULE.momentum) == (OUTER_RATE, OUTER_MOMENTUM)
    expected = outer_step(*lists)
    assert same_lists(merge(*lists, rule=RULE), expected)
    for executor in executors("merge", SLOTS):
        assert same_lists(executor.run(lists), expected)


def test_a_merge_of_nobody_changes_nothing_whatever_its_lists_hold() -> None:
    parameters, momentum = random_list(1), random_list(2)
    lists = [parameters, momentum, *hostile_updates(3), mask_of(3, ())]
    assert same_lists(merge(*lists, rule=RULE), [parameters, momentum])


@pytest.mark.parametrize("seats", [1, 8, 64])
def test_x_of_a_merge_is_what_the_contract_prepares(seats: int) -> None:
    included = tuple(range(0, seats, 3))
    lists = [random_list(1), random_list(2), *updates_of(seats, included), mask_of(seats, included)]
    parameters, momentum, *updates, _ = list_roots(lists)
    mask = sum(1 << k for k in included)
    assert state_root(lists) == merge_input(parameters, momentum, updates, mask)


def test_x_of_a_partial_and_of_a_merge_of_partials_is_what_the_contract_prepares() -> None:
    updates, sums = updates_of(5, (0, 2, 4)), [random_list(3), random_list(4), random_list(5)]
    assert state_root(updates) == partial_input(list_roots(updates))
    weights = [3, 0, 64]
    lists = [random_list(1), random_list(2), *sums, [torch.tensor(weights, dtype=torch.float32)]]
    parameters, momentum, *roots, _ = list_roots(lists)
    assert state_root(lists) == weighed_input(parameters, momentum, roots, weights)


def test_sixty_four_seats_are_merged_in_one_program() -> None:
    seats = 64
    honest = [random_list(10 + k, 0.1) for k in range(seats - 2)]
    updates = [
        *honest,
        [torch.full(shape, math.nan) for shape in SHAPES],
        [torch.full(shape, 1e12) for shape in SHAPES],
    ]
    zeros = zero_update(random_list(0), UpdateWire.F32)
    lists = [random_list(1), zeros, *updates, mask_of(seats, range(seats))]
    for executor in executors("merge", seats):
        _, momentum = executor.run(lists)
        for k, got in enumerate(momentum):
            wanted = oracle([u[k] for u in updates], [RULE.bound(SHAPES[k])] * seats) / seats
            np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-6)


# --- hostile, on every executor


def oracle(parts: Sequence[Tensor], bounds: Sequence[float]) -> np.ndarray:
    """The sum in binary64, by numpy alone: each part's finite values, scaled to its bound."""
    total = np.zeros(tuple(parts[0].shape))
    for part, bound in zip(parts, bounds, strict=True):
        x = part.numpy().astype(np.float64)
        x = np.where(np.isfinite(x), x, 0.0)
        norm = np.sqrt((x * x).sum())
        if norm * norm <= float(np.finfo(np.float32).max):
            total += x * min(1.0, bound / norm) if norm else x
    return total


@pytest.mark.parametrize("seats", [1, 3, 8])
def test_hostile_updates_are_merged_as_an_independent_oracle_says(seats: int) -> None:
    updates = hostile_updates(max(seats, 3))[:seats]
    (sums,) = partial(*updates, rule=RULE, shapes=SHAPES)
    for k, got in enumerate(sums):
        wanted = oracle([u[k] for u in updates], [RULE.bound(SHAPES[k])] * seats)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=2e-6, atol=1e-6)
        assert np.isfinite(got.numpy()).all()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.floats(width=32), min_size=4, max_size=4), min_size=1, max_size=9), st.floats(0.01, 10))
def test_any_numbers_are_limited_as_an_independent_oracle_says(rows: list[list[float]], bound: float) -> None:
    parts = [torch.tensor(row, dtype=torch.float32) for row in rows]
    got = limited_sum(parts, bound).numpy()
    assert np.linalg.norm(got) <= len(parts) * bound * 1.00001
    squares = [sum(x * x for x in row if math.isfinite(x)) for row in rows]
    # Within rounding of the largest square that f32 holds both answers are right.
    if not any(0.99 < square / float(np.finfo(np.float32).max) < 1.01 for square in squares):
        np.testing.assert_allclose(got, oracle(parts, [bound] * len(parts)), rtol=1e-5, atol=1e-5 * bound)


@pytest.mark.parametrize("included", [(), (1,), (0, 1, 2, 3)])
def test_a_hostile_merge_has_the_bits_of_the_reference_on_every_executor(included: tuple[int, ...]) -> None:
    zeros = zero_update(random_list(0), UpdateWire.F32)
    updates = [u if k in included else zeros for k, u in enumerate(hostile_updates(4))]
    lists = [random_list(1), random_list(2), *updates, mask_of(4, included)]
    check_executors(executors("merge", 4), lists, merge(*lists, rule=RULE))


def test_one_seat_moves_the_mean_by_no_more_than_its_share() -> None:
    seats, worst = 8, [torch.full(shape, 1e17) for shape in SHAPES]
    honest = updates_of(seats, range(seats))
    moved = []
    zeros = zero_update(random_list(0), UpdateWire.F32)
    for first in (zeros, worst):
        moved.append(merge(zeros, zeros, first, *honest[1:], mask_of(seats, range(seats)), rule=RULE))
    for without, with_it, shape in zip(moved[0][1], moved[1][1], SHAPES, strict=True):
        assert float((with_it - without).norm()) == pytest.approx(RULE.bound(shape) / seats, rel=1e-4)


def test_a_norm_at_its_limit_is_left_as_it_is_and_one_above_is_scaled() -> None:
    at = torch.tensor([3.0, 4.0])
    assert limited_sum([at], 5.0).tolist() == [3.0, 4.0]
    above = limited_sum([at * (1 + 2.0**-20)], 5.0)
    assert float(above.norm()) == pytest.approx(5.0, rel=1e-6)
    assert above.tolist() != (at * (1 + 2.0**-20)).tolist()
    assert limited_sum([torch.tensor([1.8e19, 0.0])], 5.0).tolist() == pytest.approx([5.0, 0.0])
    assert limited_sum([torch.tensor([1.9e19, 0.0])], 5.0).tolist() == [0.0, 0.0]


# --- updates of a byte a parameter


def test_a_merge_reads_updates_of_a_byte_and_distrusts_their_scales() -> None:
    starts, zeros = [random_list(20 + k) for k in range(4)], zero_update(random_list(0), UpdateWire.INT8)
    updates = [compute_update_int8(s, random_list(30 + k))[0] for k, s in enumerate(starts)]
    updates[1] = zeros
    count = len(SHAPES)
    updates[2] = [*[torch.full(s, -128, dtype=torch.int8) for s in SHAPES], *updates[2][count:]]
    for scale, value in zip(updates[2][count:], (math.nan, math.inf, 3e38, -1.0), strict=True):
        scale[0] = value
    lists = [random_list(1), random_list(2), *updates, mask_of(4, (0, 2, 3))]
    expected = merge(*lists, rule=RULE, wire=UpdateWire.INT8)
    assert all(bool(t.isfinite().all()) for part in expected for t in part)
    check_executors(executors("merge", 4, UpdateWire.INT8), lists, expected)


# --- two levels


def test_two_levels_make_the_sum_that_one_level_makes() -> None:
    groups, size = 3, 5
    included = (0, 1, 4, 5, 9, 11)
    updates = updates_of(groups * size, included)
    sums = [partial(*updates[g * size : (g + 1) * size], rule=RULE, shapes=SHAPES)[0] for g in range(groups)]
    weights = [torch.tensor([3.0, 2.0, 1.0])]
    one = merge(random_list(1), random_list(2), *updates, mask_of(groups * size, included), rule=RULE)
    two = merge_partials(random_list(1), random_list(2), *sums, weights, rule=RULE)
    for a, b in zip([t for part in one for t in part], [t for part in two for t in part], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    for executor in executors("partial", size):
        assert same_lists(executor.run(updates[:size]), [sums[0]])
    lists = [random_list(1), random_list(2), *sums, weights]
    for executor in executors("generation", groups):
        assert same_lists(executor.run(lists), two)
        assert differing_nodes(executor.program, lists, executor.variant) == []


@pytest.mark.parametrize(("wire", "error"), [(UpdateWire.BF16, 2.0**-8), (UpdateWire.INT8, 1 / 254)])
def test_rounded_sums_merge_to_what_whole_ones_do_within_a_step_of_each(wire: UpdateWire, error: float) -> None:
    updates, included = updates_of(6, (0, 1, 2, 4)), [torch.tensor([3.0, 1.0])]
    whole, rounded = (
        [partial(*updates[k : k + 3], rule=RULE, shapes=SHAPES, sums=sums)[0] for k in (0, 3)]
        for sums in (UpdateWire.F32, wire)
    )
    lists = [random_list(1), random_list(2), *rounded, included]
    made = merge_partials(*lists, rule=RULE, sums=wire)
    exact = merge_partials(*lists[:2], *whole, included, rule=RULE)
    for before, got, *of_groups in zip(exact[1], made[1], *whole, strict=True):
        largest = sum(float(one.abs().max()) for one in of_groups)
        assert float((before - got).abs().max()) <= largest * error / 4
    assert not same_lists(exact, made)
    for executor in executors("partial", 3, sums=wire):
        assert same_lists(executor.run(updates[:3]), [rounded[0]])
    for executor in executors("generation", 2, sums=wire):
        assert same_lists(executor.run(lists), made)


@pytest.mark.parametrize("wire", [UpdateWire.BF16, UpdateWire.INT8])
def test_a_rounded_sum_is_distrusted_like_a_whole_one(wire: UpdateWire) -> None:
    """Attack: scales that are not finite or huge, beside the largest numbers; a sum moves what its group may."""
    zeros, start, weights = zero_update(random_list(0), UpdateWire.F32), random_list(1), [torch.tensor([4.0, 1.0])]
    updates, nothing = updates_of(4, range(4)), zero_update(random_list(0), wire)
    (honest,) = partial(*updates, rule=RULE, shapes=SHAPES, sums=wire)
    calm = merge_partials(start, zeros, honest, nothing, weights, rule=RULE, sums=wire)
    for word in (255, 127):
        false = [torch.full_like(t.view(torch.uint8) if t.ndim else t[None].view(torch.uint8), word) for t in nothing]
        hostile = [raw.view(t.dtype).reshape(t.shape) for raw, t in zip(false, nothing, strict=True)]
        lists = [start, zeros, honest, hostile, weights]
        hit = merge_partials(*lists, rule=RULE, sums=wire)
        for a, b, shape in zip(calm[1], hit[1], SHAPES, strict=True):
            assert float((a - b).norm()) <= RULE.bound(shape) / 5 * 1.00001
        check_executors(executors("generation", 2, sums=wire), lists, hit)


@pytest.mark.parametrize("shape", [(512, 32), (64, 256), (4096,)], ids=["short rows", "rows", "vector"])
@pytest.mark.parametrize("wire", [UpdateWire.BF16, UpdateWire.INT8])
def test_one_seats_spikes_do_not_round_its_group_away(wire: UpdateWire, shape: tuple[int, ...]) -> None:
    """All that its norm allows, on one element of each 256: a row, a block, a tensor are rounded by their largest."""
    draws, elements = torch.Generator().manual_seed(3), math.prod(shape)
    honest = [torch.randn(shape, generator=draws) * (0.1 * RULE.limit) for _ in range(7)]
    spikes = torch.zeros(elements)
    spikes[::256] = RULE.limit * 16
    (sums,) = partial(*[[x] for x in honest], [spikes.reshape(shape)], rule=RULE, shapes=[shape], sums=wire)
    (got,) = received(sums, wire, [shape])
    quiet = (spikes == 0.0).reshape(shape)
    wanted = torch.stack(honest).sum(0)[quiet]
    assert float((got[quiet] - wanted).norm()) < 0.05 * float(wanted.norm())
    largest = float(got.abs().max())
    assert largest <= RULE.limit * (SPIKE + 7) and largest >= RULE.limit * (SPIKE - 1)


def test_whole_sums_keep_what_an_update_holds() -> None:
    """Only rounding asks for it: without, what a norm allows is kept as it is."""
    spike = [torch.zeros(400)]
    spike[0][0] = RULE.limit * 20  # at its limit
    assert same_lists(list(partial(spike, rule=RULE, shapes=[(400,)])), [spike])


@pytest.mark.parametrize("value", [math.nan, math.inf, 1e30, 1e10])
def test_a_false_partial_moves_the_mean_by_no_more_than_the_share_of_its_group(value: float) -> None:
    zeros, weights = zero_update(random_list(0), UpdateWire.F32), [torch.tensor([4.0, 1.0, 0.0])]
    honest = partial(*updates_of(4, range(4)), rule=RULE, shapes=SHAPES)[0]
    false = [torch.full(shape, value) for shape in SHAPES]
    calm = merge_partials(random_list(1), zeros, honest, zeros, zeros, weights, rule=RULE)
    hit = merge_partials(random_list(1), zeros, honest, false, false, weights, rule=RULE)
    for a, b, shape in zip(calm[1], hit[1], SHAPES, strict=True):
        assert float((a - b).norm()) <= RULE.bound(shape) / 5 * 1.00001
    check_executors(executors("generation", 3), [random_list(1), zeros, honest, false, false, weights], hit)


def test_a_true_sum_of_updates_at_their_limit_is_not_scaled_again() -> None:
    update = [torch.full(shape, RULE.limit) for shape in SHAPES]
    sums = partial(*[update] * 4, rule=RULE, shapes=SHAPES)[0]
    assert same_lists([sums], [[t * 4 for t in update]])
    zeros = zero_update(random_list(0), UpdateWire.F32)
    _, momentum = merge_partials(zeros, zeros, sums, [torch.tensor([4.0])], rule=RULE)
    assert same_lists([momentum], [update])


def test_no_group_that_counts_changes_nothing() -> None:
    lists = [random_list(1), random_list(2), random_list(3), random_list(4), [torch.zeros(2)]]
    assert same_lists(merge_partials(*lists, rule=RULE), lists[:2])


# --- programs


def test_every_constant_of_the_rule_is_in_the_program() -> None:
    shapes = random_list(0)
    rules = [RULE, MergeRule(limit=0.25), MergeRule(limit=0.5, rate=0.6), MergeRule(limit=0.5, momentum=0.8)]
    roots = {merge_program(shapes, 2, rule).root for rule in rules}
    roots |= {merge_program(shapes, 3, RULE).root, merge_program(shapes, 2, RULE, UpdateWire.INT8).root}
    assert len(roots) == 6


def test_a_program_from_the_cache_is_the_captured_one() -> None:
    shapes = random_list(0)
    lists = [shapes, shapes, shapes, shapes, [torch.zeros(2)]]
    fresh = capture(with_terms(merge, rule=RULE, wire=UpdateWire.F32), lists).program
    assert [merge_program(shapes, 2, RULE).root for _ in range(2)] == [fresh.root] * 2
