"""Merges that withstand poison: an independent reader agrees with them, liars lead them nowhere, groups stay groups."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
import torch
from torch import Tensor

from assay.engine.runtime.executor import Executor
from assay.protocol.errors import UserError
from assay.training.merge import MergeRule, merge, merge_partials, partial
from assay.training.programs import merge_program, partial_program
from assay.training.robust import BUCKET, MergeKind, bucket_order, merge_kind
from assay.training.updates import COMPUTE_UPDATE, UpdateWire, zero_update
from tests.harness.engine.helpers import both_executors, check_executors, same_lists
from tools.recompute.bases import limited
from tools.recompute.merges import BUCKET as READERS_BUCKET
from tools.recompute.merges import MERGES, agreed

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

SHAPES = ((3, 70), (5,), ())
ROBUST = tuple(kind for kind in MergeKind if kind is not MergeKind.MEAN)
SEATS = 4


def rule_of(kind: MergeKind, limit: float = 0.5, momentum: float = 0.9) -> MergeRule:
    return MergeRule(limit=limit, momentum=momentum, kind=kind)


def random_list(seed: int, scale: float = 1.0, shift: float = 0.0) -> list[Tensor]:
    draw = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=draw) * scale + shift for shape in SHAPES]


def zeros() -> list[Tensor]:
    return zero_update(random_list(0), UpdateWire.F32)


def mask_of(seats: int, included: tuple[int, ...]) -> list[Tensor]:
    return [torch.tensor([float(k in included) for k in range(seats)])]


def updates_of(seats: int, included: tuple[int, ...]) -> list[list[Tensor]]:
    return [random_list(10 + k, 0.02, 0.1) if k in included else zeros() for k in range(seats)]


def merged(kind: MergeKind, updates: list[list[Tensor]], included: tuple[int, ...]) -> list[Tensor]:
    """What these updates come to: the outer momentum after one merge from none."""
    return merge(zeros(), zeros(), *updates, mask_of(len(updates), included), rule=rule_of(kind))[1]


@cache
def executors(kind: MergeKind, wire: UpdateWire = UpdateWire.F32) -> tuple[Executor, Executor]:
    return both_executors(merge_program(random_list(0), SEATS, rule_of(kind), wire))


# --- what they are


@pytest.mark.parametrize("included", [(2,), (0, 3), (0, 1, 4), tuple(range(8))], ids=["one", "two", "three", "eight"])
@pytest.mark.parametrize("kind", MergeKind)
def test_numpy_alone_makes_the_same_of_updates(kind: MergeKind, included: tuple[int, ...]) -> None:
    assert list(MERGES) == [k.value for k in MergeKind] and READERS_BUCKET == BUCKET
    updates = updates_of(8, included)
    for k, got in enumerate(merged(kind, updates, included)):
        wanted = agreed(kind.value, [updates[s][k].numpy() for s in included], list(included), 8)
        np.testing.assert_allclose(got.numpy(), wanted, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("kind", MergeKind)
def test_numpy_counts_what_is_beyond_f32_as_zero_as_the_merge_does(kind: MergeKind) -> None:
    included, rule = tuple(range(SEATS)), rule_of(kind)
    updates = updates_of(SEATS, included)
    updates[0] = [torch.full(shape, 1e30) for shape in SHAPES]  # finite, but its squares are not
    updates[1][0][0, :3] = torch.tensor([math.inf, math.nan, -40.0])
    updates[2] = [torch.full(shape, 1e18) for shape in SHAPES]  # a norm that f32 has
    found = check_numbers(kind, updates, included)
    for k, got in enumerate(found):
        cut = [limited(updates[s][k].numpy(), rule.bound(SHAPES[k])) for s in included]
        assert not cut[0].any() and cut[2].any()
        np.testing.assert_allclose(got.numpy(), agreed(kind.value, cut, list(included), SEATS), rtol=2e-5, atol=1e-6)


def check_numbers(kind: MergeKind, updates: list[list[Tensor]], included: tuple[int, ...]) -> list[Tensor]:
    """What a program of this merge makes of them, as `merged`."""
    lists = [zeros(), zeros(), *updates, mask_of(SEATS, included)]
    return executors(kind)[1].run(lists)[1]


@pytest.mark.parametrize("kind", ROBUST)
def test_updates_that_are_all_alike_are_what_most_agree_on(kind: MergeKind) -> None:
    same = random_list(1, 0.1)
    for got, wanted in zip(merged(kind, [same] * 7, tuple(range(7))), same, strict=True):
        torch.testing.assert_close(got, wanted, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("kind", ROBUST)
def test_nobody_counted_changes_nothing(kind: MergeKind) -> None:
    lists = [random_list(1), random_list(2), *updates_of(SEATS, (0, 1, 2)), mask_of(SEATS, ())]
    assert same_lists(merge(*lists, rule=rule_of(kind)), lists[:2])
    for executor in executors(kind):
        assert same_lists(executor.run(lists), lists[:2])


# --- what liars can do


@pytest.mark.parametrize("kind", ROBUST)
@pytest.mark.parametrize("lie", [-5.0, 100.0], ids=["against", "along"])
def test_liars_lead_no_merge_half_as_far_as_the_mean(kind: MergeKind, lie: float) -> None:
    included = tuple(range(8))
    updates = updates_of(8, included)
    liars = (0,) if kind is MergeKind.BUCKETED_CLIP else (0, 1)  # of which each spoils a bucket of two
    honest = [torch.stack(same).mean(0) for same in zip(*updates[len(liars) :], strict=True)]
    for liar in liars:
        updates[liar] = [torch.full(shape, lie) for shape in SHAPES]
    away = [
        sum(float((got - h).norm()) for got, h in zip(merged(k, updates, included), honest, strict=True))
        for k in (kind, MergeKind.MEAN)
    ]
    assert away[0] < away[1] / 2


def test_a_median_stays_within_honest_updates_while_fewer_than_half_lie() -> None:
    included = tuple(range(7))
    for lie in (-0.4, 0.4, 1e20):
        updates = [[torch.full(shape, lie) for shape in SHAPES]] * 3 + updates_of(7, included)[3:]
        for k, got in enumerate(merged(MergeKind.MEDIAN, updates, included)):
            honest = torch.stack([u[k] for u in updates[3:]])
            assert bool(((got >= honest.amin(0) - 1e-6) & (got <= honest.amax(0) + 1e-6)).all())


def test_half_of_a_group_cannot_lift_the_norm_that_others_are_cut_to() -> None:
    updates = updates_of(4, (0, 1)) + [[torch.full(s, 0.45) for s in SHAPES]] * 2
    largest = [max(float(u[k].norm()) for u in updates[:2]) for k in range(len(SHAPES))]
    got = merged(MergeKind.MEDIAN_NORM, [*updates[:2], *updates[4:]], (0, 1, 2, 3))
    assert all(float(t.norm()) <= most * 1.0001 for t, most in zip(got, largest, strict=True))


def test_half_of_a_group_that_sends_zeros_stops_a_merge_of_median_norms() -> None:
    """The price of a lower middle that half cannot lift: half can lower it to nothing. One fewer cannot."""
    included = (0, 1, 2, 3)
    still = [*updates_of(SEATS, (0, 1))[:2], zeros(), zeros()]
    assert not any(t.any() for t in merged(MergeKind.MEDIAN_NORM, still, included))
    moving = [*updates_of(SEATS, (0, 1, 2))[:3], zeros()]
    assert all(t.any() for t in merged(MergeKind.MEDIAN_NORM, moving, included))


@pytest.mark.parametrize("counted", [(0, 1), (0, 1, 2)], ids=["two", "three"])
def test_one_liar_leads_two_buckets_as_it_leads_the_mean(counted: tuple[int, ...]) -> None:
    updates = updates_of(SEATS, counted)
    honest = merged(MergeKind.BUCKETED_CLIP, updates, counted)
    updates[counted[0]] = [torch.full(shape, -0.5) for shape in SHAPES]
    led = merged(MergeKind.BUCKETED_CLIP, updates, counted)
    assert all(float((a - b).abs().mean()) >= 0.5 / 4 for a, b in zip(honest, led, strict=True))


@pytest.mark.parametrize("seats", [1, 2, 7, 64])
def test_buckets_hold_every_seat_once_in_an_order_of_their_own(seats: int) -> None:
    order = bucket_order(seats)
    assert sorted(order) == list(range(seats)) and (seats < 7 or order != sorted(order))


# --- the same bits everywhere


@pytest.mark.parametrize("kind", ROBUST)
@pytest.mark.parametrize("included", [(1,), (0, 1, 2, 3)], ids=["one", "four"])
def test_hostile_updates_have_the_bits_of_the_reference(kind: MergeKind, included: tuple[int, ...]) -> None:
    updates = updates_of(SEATS, included)
    if len(included) > 1:
        updates[0] = [torch.full(shape, math.inf) for shape in SHAPES]
        updates[1] = [t * 1e19 for t in updates[1]]
        updates[2][0][0, :4] = torch.tensor([math.nan, -0.0, 1e-42, -1e30])
        updates[3] = [t.clone() for t in updates[2]]  # ties
    lists = [random_list(1), random_list(2), *updates, mask_of(SEATS, included)]
    check_executors(executors(kind), lists, merge(*lists, rule=rule_of(kind)))


@pytest.mark.long
@pytest.mark.parametrize("wire", [UpdateWire.INT8, UpdateWire.INT4, UpdateWire.SPARSE])
@pytest.mark.parametrize("kind", ROBUST)
def test_every_rule_reads_every_wire(kind: MergeKind, wire: UpdateWire) -> None:
    start = random_list(1)
    sent = [COMPUTE_UPDATE[wire](start, random_list(3 + k))[0] for k in range(SEATS)]
    lists = [start, random_list(2), *sent, mask_of(SEATS, (0, 1, 3))]
    expected = merge(*lists, rule=rule_of(kind), wire=wire)
    check_executors(executors(kind, wire), lists, expected)


# --- groups


@pytest.mark.parametrize("kind", ROBUST)
def test_a_group_sums_what_it_agrees_on_as_often_as_it_has_sent(kind: MergeKind) -> None:
    rule, updates = rule_of(kind), updates_of(SEATS, (0, 1, 3))
    (sums,) = partial(*updates, rule=rule, shapes=SHAPES)
    for total, mean in zip(sums, merged(kind, updates, (0, 1, 3)), strict=True):
        torch.testing.assert_close(total, mean * 3, rtol=1e-5, atol=1e-6)
    lists = [random_list(1), random_list(2), sums, zeros(), [torch.tensor([3.0, 0.0])]]
    one = merge(random_list(1), random_list(2), *updates, mask_of(SEATS, (0, 1, 3)), rule=rule)
    for a, b in zip(merge_partials(*lists, rule=rule)[0], one[0], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)
    (nothing,) = partial(*[zeros()] * SEATS, rule=rule, shapes=SHAPES)
    assert same_lists([nothing], [zeros()])
    if kind is MergeKind.BUCKETED_CLIP:  # of which all others are parts
        check_executors(both_executors(partial_program(random_list(0), SEATS, rule)), updates, (sums,))


def test_a_group_in_which_most_lie_says_what_they_say_and_has_no_more_than_its_share() -> None:
    """Medians of groups are no median of all: two groups of three honest and one of three liars, a third of all."""
    rule = rule_of(MergeKind.MEDIAN, momentum=0.0)
    honest = partial(*updates_of(3, (0, 1, 2)), rule=rule, shapes=SHAPES)[0]
    lie = [torch.full(shape, -0.5) for shape in SHAPES]
    false = partial(lie, lie, lie, rule=rule, shapes=SHAPES)[0]
    weights = [torch.tensor([3.0, 3.0, 3.0])]
    _, moved = merge_partials(zeros(), zeros(), honest, honest, false, weights, rule=rule)
    for got, own, low in zip(moved, honest, lie, strict=True):
        torch.testing.assert_close(got, (own * 2 + low * 3) / 9, rtol=1e-5, atol=1e-6)


# --- programs


def test_every_rule_is_a_program_of_its_own_and_no_other_name_is_one() -> None:
    assert len({executors(kind)[0].program.root for kind in ROBUST}) == len(ROBUST)
    assert [merge_kind(kind.value) for kind in MergeKind] == list(MergeKind)
    with pytest.raises(UserError) as caught:
        merge_kind("krum")
    assert caught.value.code == "UnknownMerge" and "median-norm" in caught.value.remedy
