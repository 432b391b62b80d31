"""Operators that are written out in simpler ones: values and gradients as in PyTorch.

Every case is also computed by the reference, node by node, bit by bit.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.engine.compiler.capture import CannotLowerError
from assay.protocol.errors import UserError
from tests.harness.engine.helpers import captured, run_captured
from tests.unit.engine.test_layers import assert_computes, drawn, with_gradients

M = drawn(4, 6)
P = M.abs() + 0.1
MASK = torch.eye(6, dtype=torch.bool)[:4] | (torch.arange(6) == 4)
INDEX = torch.tensor([[0, 1, 2, 0, 1, 1]]).expand(4, 6)
BAG = torch.tensor([[0, 1, 2], [3, 1, 0]])
NAN, INF = float("nan"), float("inf")


def chosen_inside(x: Tensor) -> Tensor:
    edges = torch.tensor([[0, 1, 2, 0, 3], [1, 1, 3, 0, 0]])
    kept = edges[0] != edges[1]
    rows = torch.arange(4).repeat_interleave(torch.tensor([1, 2, 0, 1]))
    return x[edges[0][kept]] * x[rows[:3]] + x[: int(kept.sum())]


def written_diagonal(x: Tensor) -> Tensor:
    y = x[:, :4] * 2.0
    y.diagonal().mul_(3.0)
    y.diagonal(1).copy_(x[:3, 5])
    return y


def reduced(how: str, *, include_self: bool):
    return lambda x: torch.full((4, 4), 0.7).scatter_reduce(1, INDEX, x, how, include_self=include_self)


CASES = {
    "a constant mask": (lambda x: torch.cat([x[MASK], x.masked_select(MASK[:, :1]), x[:, MASK[0]].flatten()]), M),
    "constants made inside": (chosen_inside, M),
    "a triangle": (lambda x: x[torch.triu(torch.ones(4, 6)).bool()][:10] * x[tuple(torch.tril_indices(4, 6))], M),
    "written under a constant mask": (lambda x: (x * 1.0).index_put((MASK,), x[0, :2].repeat(4)[: MASK.sum()]), M),
    "masked_scatter": (lambda x: x.masked_scatter(x > 0, x.flip(0) * 3) + x.masked_scatter(MASK, x[:2]), M),
    "flat positions": (lambda x: x.put(torch.tensor([0, 5]), x[0, :2])[:, :3] * x.take(torch.tensor([0, 5, 5])), M),
    "products": (lambda x: x.prod(1, keepdim=True) * x.cumprod(0) * x.prod(), P),
    "prefixes": (lambda x: x.cummax(1)[0] + x.cummin(0)[0] * x.logcumsumexp(1), M),
    "moments": (lambda x: torch.cat([*torch.var_mean(x, 1), *torch.std_mean(x, 0, correction=0)]), M),
    "sum by index": (reduced("sum", include_self=False), M),
    "mean by index": (lambda x: reduced("mean", include_self=True)(x) * reduced("mean", include_self=False)(x), M),
    "largest by index": (lambda x: reduced("amax", include_self=True)(x) * reduced("amax", include_self=False)(x), M),
    "smallest by index": (reduced("amin", include_self=False), M),
    "product by index": (lambda x: reduced("prod", include_self=True)(x) * reduced("prod", include_self=False)(x), P),
    "largest of slices": (lambda x: x[:3].index_reduce(0, torch.tensor([0, 1, 1, 2]), x * 2, "amax"), M),
    "bags of sums": (lambda w: F.embedding_bag(BAG, w, mode="sum", padding_idx=1), M),
    "bags of means": (lambda w: F.embedding_bag(BAG.flatten(), w, torch.tensor([0, 2, 2]), mode="mean"), M),
    "bags of maxima": (lambda w: F.embedding_bag(BAG, w.round(), mode="max"), M),
    "bilinear": (lambda x: F.bilinear(x[:, :3], x[:, 1:], x.reshape(-1)[:15].reshape(1, 3, 5)), M),
    "places": (lambda x: x * torch.bucketize(x.detach(), torch.tensor([-1.0, 0.0, 0.5]), right=True), M),
    "bins": (lambda x: x[0] * torch.histc(x.detach(), 6, -1, 2), M),
    "norms of other orders": (lambda x: torch.stack([x.norm(p, 1) for p in (3, 0.5, -1, 1.5, -INF)]) * x.norm(3), P),
    "distances of two": (lambda x: torch.stack([torch.dist(x, x.flip(0), p) for p in (1.0, 2.0, 3.0)]), P),
    "covariances": (lambda x: torch.cat([torch.cov(x), x.T.cov(correction=0)[:4, :4], torch.corrcoef(x)]), M),
    "a variance of one row": (lambda x: torch.cov(x[0]) + torch.corrcoef(x[0]).detach(), M),
    "a likelihood of its own width": (
        lambda x: (
            F.gaussian_nll_loss(x, x.flip(0) * 2, x.abs().clamp(min=0.2), full=True, reduction="none")
            + F.gaussian_nll_loss(x, x.roll(1, 1), x[:, 0].abs(), eps=0.5)
            + F.gaussian_nll_loss(x, x.roll(1, 1), x[:, :1] ** 2, reduction="sum")
        ),
        M,
    ),
    "a written diagonal": (
        lambda x: (
            torch.diagonal_scatter(x, x[:, 0], 1).diagonal_scatter(x[:2, 0], -2)
            + torch.stack([x, x * 2]).diagonal_scatter(x[:2, :3], -3, 2, 1).sum(0)
        ),
        M,
    ),
    "diagonals filled in place": (lambda x: (x @ x.T).fill_diagonal_(-9.0).softmax(1) * written_diagonal(x), M),
    "the larger number": (lambda x: torch.fmax(x, x.flip(0)) + torch.fmin(x, x.flip(1)), M),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:index_reduce")
@pytest.mark.gate_takes(3)
def test_operators_written_out_and_their_gradients(name: str):
    function, x = CASES[name]
    assert_computes(with_gradients(function), x)


REPEATED = {
    "rows of a constant": lambda x: torch.eye(6)[:4].repeat(2, 1, 1).add_(torch.stack([x, x * 2])),
    "once": lambda x: x.repeat(1, 1).mul_(2.0) + x,
    "along a dimension of one": lambda x: (
        x[:, None].repeat(1, 3, 1).add_(torch.stack([x, x * 2, x * 3], 1)) * x[:, None]
    ),
    "by nothing": lambda x: x.roll(0).add_(x) * x.tile(1, 1).mul_(x) + F.pad(x, (0, 0)).mul_(2.0),
}


@pytest.mark.parametrize("name", REPEATED)
def test_what_is_written_into_copies_reaches_neither_the_original_nor_other_copies(name: str):
    assert_computes(with_gradients(REPEATED[name]), M)


def test_weights_of_single_indices_of_bags_have_gradients():
    assert_computes(
        with_gradients(lambda w, p: F.embedding_bag(BAG, w, mode="sum", per_sample_weights=p)), M, drawn(2, 3)
    )


def routed(x: Tensor, w: Tensor) -> Tensor:
    """Rows sorted by expert, multiplied in groups whose sizes are values."""
    order = torch.argsort(x.detach()[:, 0] > 0, stable=True)
    ends = torch.stack([(x.detach()[:, 0] <= 0).sum(), torch.tensor(5)]).to(torch.int32)
    return torch._grouped_mm(x[order], w, offs=ends)


def test_groups_of_rows_whose_sizes_are_values_and_their_gradients():
    x, w = drawn(5, 4), drawn(2, 4, 8, seed=1)
    assert_computes(with_gradients(routed), x, w)
    swapped = torch.cat([x[3:], x[:3]]) * -1
    assert_computes(with_gradients(routed), swapped, w)


def test_rows_behind_the_last_group_are_zero():
    (ours,) = run_captured(
        lambda x, w, e: (torch._grouped_mm(x, w, offs=e),), drawn(4, 4), drawn(2, 4, 8), torch.tensor([1, 3]).int()
    )
    assert ours[3].tolist() == [0.0] * 8
    assert bool((ours[:3] != 0).all())


def test_extremes_of_prefixes_say_where_they_stand_and_keep_nan():
    x = torch.tensor([[1.0, 3.0, 3.0, -INF, NAN, 5.0], [-INF, -INF, 2.0, 2.0, 1.0, INF]])
    for function in (torch.cummax, torch.cummin):
        values, places = run_captured(lambda x, f=function: tuple(f(x, 1)), x)
        theirs, theirplaces = function(x, 1)
        torch.testing.assert_close(values, theirs, rtol=0, atol=0, equal_nan=True)
        known = ~theirs.isnan()
        assert torch.equal(places.long()[known], theirplaces[known])


@pytest.mark.parametrize("how", ["amax", "amin", "prod"])
def test_reductions_by_index_keep_nan_infinities_and_empty_groups(how: str):
    x = torch.tensor([NAN, 1.0, INF, -INF, 2.0, -3.0, 0.0])
    index = torch.tensor([0, 0, 1, 2, 4, 4, 5])

    def function(x: Tensor) -> tuple[Tensor, ...]:
        base = torch.full((7,), 9.0)
        return (
            base.scatter_reduce(0, index, x, how, include_self=False),
            base.scatter_reduce(0, index, x, how, include_self=True),
        )

    for ours, theirs in zip(run_captured(function, x), function(x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=0, equal_nan=True)


def test_products_over_nothing_are_one():
    assert run_captured(lambda x: (x[:, :0].prod(1), x[:0].prod()), M)[0].tolist() == [1.0] * 4


def test_a_mask_that_was_written_to_is_known_no_longer():
    def function(x: Tensor) -> tuple[Tensor]:
        mask = torch.zeros(4, dtype=torch.bool)
        mask[x[:, 0] > 0] = True
        return (x[mask],)

    with pytest.raises(UserError, match=r"values|mask"):
        captured(function, M)


def test_a_constant_that_the_function_changes_is_known_no_longer():
    def function(x: Tensor) -> tuple[Tensor]:
        ends = torch.arange(4)
        view = ends[1:]
        view += (x[:3, 0] > 0).long()
        return (x[ends > 1],)

    with pytest.raises(UserError, match=r"values|mask"):
        captured(function, M)


def test_a_mask_by_values_is_refused_by_name():
    with pytest.raises(CannotLowerError, match="by a mask"):
        captured(lambda x: (x[x > 0],), M)


def test_boundaries_lie_before_what_is_no_number():
    """PyTorch counts all of them: examples of which a figure is missing stand in the last bin, not in the first."""
    x, edges = torch.tensor([NAN, -1.0, 0.3, INF, -INF, 1.0]), torch.tensor([-1.0, 0.0, 1.0])

    def places(x: Tensor) -> tuple[Tensor, ...]:
        columns = edges.expand(6, 3).contiguous(), x[:, None].contiguous()
        return (
            *(torch.bucketize(x, edges, right=right) for right in (False, True)),
            *(torch.searchsorted(*columns, right=right) for right in (False, True)),
        )

    assert [y.tolist() for y in run_captured(places, x)] == [y.tolist() for y in places(x)]


def test_the_norm_of_order_nothing_counts():
    (found,) = run_captured(lambda x: (torch.linalg.vector_norm(x, 0, dim=1),), torch.tensor([[0.0, -0.0, 2.0, NAN]]))
    assert found.tolist() == [2.0]


IMAGE = drawn(2, 3, 6, 5)
ADAPTED = {
    "one": lambda x: F.adaptive_max_pool2d(x, 1),
    "alike": lambda x: F.adaptive_max_pool2d(x.round(), (3, None)),
    "unlike": lambda x: torch.nn.AdaptiveMaxPool2d((4, 2))(x.round()),
    "with places": lambda x: (lambda y, at: y * at)(*F.adaptive_max_pool2d(x, (4, 3), return_indices=True)),
    "lines": lambda x: F.adaptive_max_pool1d(x[0], 2) * torch.nn.AdaptiveMaxPool1d(2)(x[:, :, 0])[0][:, None],
    "lines with places": lambda x: (lambda y, at: y * at)(*torch.adaptive_max_pool1d(x[0].round(), 3)),
    "no batch": lambda x: F.adaptive_max_pool2d(x[0], (7, 2)),
}


@pytest.mark.parametrize("name", ADAPTED)
@pytest.mark.gate_takes(3)
def test_maxima_of_adapted_windows(name: str):
    assert_computes(with_gradients(ADAPTED[name]), IMAGE)
