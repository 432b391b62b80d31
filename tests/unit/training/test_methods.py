"""Methods that keep a state: which parameters travel together, what is late, and what ranks send of their momentum."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from assay.engine.compiler.graph import GraphFunction
from assay.training.methods.fragments import fragments_of, mixed
from assay.training.methods.lag import eager_update, late_update
from assay.training.methods.muon_inside import muon_step
from assay.training.methods.ranked import (
    SENT,
    RankStep,
    coefficients_of,
    cosines,
    pack_coefficients,
    piece_layout,
    sign_step,
    unpack_coefficients,
)
from assay.training.presets import DEMO, TINY
from assay.training.programs import program_of_lists
from assay.training.state import Scalars
from assay.training.step import preset_step
from tests.harness.engine.helpers import both_executors, check_executors, differing_nodes, same_lists

torch.set_num_threads(1)
pytestmark = pytest.mark.usefixtures("own_cache")

SHAPES = ((8, 12), (5,))


def normal(*shape: int, seed: int = 1) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def lists_of(count: int) -> list[list[Tensor]]:
    return [[normal(*shape, seed=10 * k + j) for j, shape in enumerate(SHAPES)] for k in range(count)]


def test_fragments_hold_every_parameter_once_and_are_even() -> None:
    sizes = [p.numel() for p in preset_step(DEMO, 100).module.parameters()]
    parts = fragments_of(sizes, 4)
    assert sorted(k for part in parts for k in part) == list(range(len(sizes)))
    held = [sum(sizes[k] for k in part) for part in parts]
    assert max(held) < 1.2 * sum(sizes) / 4
    assert fragments_of([3, 5], 4) == [[1], [0]]


@pytest.mark.parametrize(
    ("function", "count", "terms"),
    [(mixed, 2, {"alpha": 0.5}), (late_update, 1, {"workers": 3}), (eager_update, 3, {"workers": 3})],
    ids=["mixing", "late", "eager"],
)
def test_programs_of_methods_have_the_bits_of_stock_pytorch(
    function: GraphFunction, count: int, terms: dict[str, float]
) -> None:
    lists = lists_of(count)
    for executor in both_executors(program_of_lists("tested", function, lists, **terms)):
        assert same_lists(executor.run(lists), function(*lists, **terms))
        assert differing_nodes(executor.program, lists, executor.variant) == []


def test_eager_workers_apply_every_update_once_and_differ_by_their_newest_alone() -> None:
    """Three rounds of three workers, each update a power of two, so that sums are exact."""
    workers, rounds = 3, 3
    updates = [[torch.tensor(3.0 * 2 ** (workers * r + k)) for k in range(workers)] for r in range(rounds)]
    applied = [torch.zeros(()) for _ in range(workers)]
    own, total = [torch.zeros(())] * workers, torch.zeros(())
    for now in updates:
        for k in range(workers):
            ((mean,),) = eager_update([now[k]], [own[k]], [total], workers=workers)
            applied[k] = applied[k] + mean
        own, total = now, torch.stack(now).sum()
    before = sum(float(u) for r in updates[:-1] for u in r) / workers
    assert [float(a) for a in applied] == [before + float(u) / workers for u in updates[-1]]


# --- momentum between ranks


def test_pieces_are_as_large_as_sides_divide() -> None:
    shapes = ((128, 192), (96, 288), (7, 96), (70,), ())
    assert [piece_layout(s) for s in shapes] == [(6, 64, 64), (12, 48, 48), (2, 7, 48), (2, 1, 35), (1, 1, 1)]


def test_the_transform_is_orthonormal_and_of_a_constant_is_one_coefficient() -> None:
    torch.testing.assert_close(cosines(48) @ cosines(48).t(), torch.eye(48), rtol=0, atol=1e-5)
    sent = coefficients_of(*pack_coefficients(torch.ones(48, 48)), (48, 48))
    assert float(sent[0, 0]) == pytest.approx(48.0, rel=0.01) and float(sent[0, 1:].abs().max()) < 1e-3


def test_the_largest_coefficients_of_each_piece_are_what_numpy_finds() -> None:
    """By the transform's definition, one coefficient after another, in double precision."""
    x = normal(16, 24)
    rows, bits = pack_coefficients(x)
    assert piece_layout(x.shape) == (1, 16, 24)
    vertical, horizontal = (
        [
            [math.sqrt((2 if k else 1) / n) * math.cos(math.pi * (2 * i + 1) * k / (2 * n)) for i in range(n)]
            for k in range(n)
        ]
        for n in (16, 24)
    )
    wanted = (np.array(horizontal) @ x.double().numpy().T @ np.array(vertical).T).flatten()
    largest = np.argsort(-np.abs(wanted), kind="stable")[:SENT]
    got = coefficients_of(rows, bits, x.shape)[0].numpy()
    assert sorted(got.nonzero()[0]) == sorted(largest)
    np.testing.assert_allclose(got[largest], wanted[largest], rtol=1 / 128)
    back = np.array(vertical).T @ got.reshape(24, 16).T @ np.array(horizontal)
    np.testing.assert_allclose(unpack_coefficients(rows, bits, x.shape).numpy(), back, rtol=1e-4, atol=1e-5)


def test_what_a_rank_sends_leaves_its_momentum_and_the_rest_stays() -> None:
    step = preset_step(TINY, 20)
    parameters = [normal(*p.shape, seed=k) * 0.1 for k, p in enumerate(step.module.parameters())]
    momentum = [normal(*p.shape, seed=100 + k) for k, p in enumerate(parameters)]
    data = (torch.arange(300) * 7 % 20).to(torch.uint8)
    scalars = Scalars.of(data, learning_rate=0.0, key=(1, 2)).to_list()
    sent, rest, after = RankStep(step.drawn_gradients, decay=0.5)(parameters, momentum, scalars)
    assert int(after[0][0]) == 1
    count = len(parameters)
    for k, (m, r) in enumerate(zip(momentum, rest, strict=True)):
        whole = unpack_coefficients(sent[k], sent[count + k], m.shape) + r
        torch.testing.assert_close(whole, m * 0.5, rtol=1e-4, atol=1e-5)


def test_all_ranks_step_by_the_sign_of_what_all_sent_whatever_bytes_that_is() -> None:
    (parameters,) = lists_of(1)
    packed = [[pack_coefficients(x) for x in one] for one in lists_of(2)]
    sent = [[*[rows for rows, _ in own], *[bits for _, bits in own]] for own in packed]
    lists = [parameters, [torch.tensor(0.125)], *sent]
    executors = both_executors(program_of_lists("tested", sign_step, lists, weight_decay=0.0))
    check_executors(executors, lists, sign_step(*lists, weight_decay=0.0))
    moves = [p - n for p, n in zip(parameters, executors[0].run(lists)[0], strict=True)]
    assert all(bool(((m.abs() - 0.125).abs() < 1e-6).all()) for m in moves)
    lie = [torch.full_like(t.to(torch.int32), 255 if t.dtype is torch.uint8 else 0x7F80).to(t.dtype) for t in sent[0]]
    ends = [executor.run([parameters, lists[1], lie, sent[1]]) for executor in executors]
    assert same_lists(*ends) and all(bool(t.isfinite().all()) for t in ends[0][0])


def test_muon_is_for_the_matrices_between_the_table_and_the_head() -> None:
    step = muon_step(TINY, 20)
    names = [name for name, _ in step.module.named_parameters()]
    inside, outside = step.optimizer.groups
    assert {names[k].split(".")[-2] for k in inside.positions} == {"qkv", "out", "up", "down"}
    assert sorted((*inside.positions, *outside.positions)) == list(range(len(names)))
