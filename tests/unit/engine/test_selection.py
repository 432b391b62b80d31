"""Orders and prefix sums: PyTorch's results on hostile values, in work that grows like n log n."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from assay.engine.compiler.lowering.registry import FIXED22
from assay.engine.runtime.executor import Executor, KernelVariant
from tests.harness.engine.helpers import bits_equal, captured, differing_nodes, run_captured

INF, NAN = math.inf, math.nan
HOSTILE = torch.tensor(
    [
        [1.0, 2.0, 2.0, -1.0, 2.0, 1.0, -0.0, 0.0],
        [0.0, -0.0, 0.0, -0.0, -1e-45, 1e-45, -0.0, 0.0],
        [NAN, 1.0, INF, NAN, -INF, INF, -NAN, -3.0],
        [NAN] * 8,
        [-INF, INF, -INF, INF, 3e38, -3e38, 5.0, 5.0],
    ]
)
"""Ties, both zeros, subnormals, infinities, NaN of either sign."""


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_sorting_hostile_values_is_torchs_stable_sort(dim: int, descending: bool):
    def f(x: Tensor) -> tuple[Tensor, ...]:
        return tuple(torch.sort(x, dim=dim, descending=descending, stable=True))

    values, places = f(HOSTILE)
    ours, ourplaces = run_captured(f, HOSTILE)
    assert torch.equal(ourplaces.long(), places)
    assert bits_equal(ours, values)
    assert differing_nodes(captured(f, HOSTILE).program, [[HOSTILE]]) == []


@pytest.mark.parametrize("largest", [False, True])
def test_topk_of_hostile_values_begins_as_the_stable_sort_does(largest: bool):
    for k in (1, 3, 8):
        values, places = torch.sort(HOSTILE, dim=1, descending=largest, stable=True)
        ours, ourplaces = run_captured(lambda x, k=k: tuple(torch.topk(x, k, 1, largest=largest)), HOSTILE)
        assert torch.equal(ourplaces.long(), places[:, :k])
        assert bits_equal(ours, values[:, :k].contiguous())


def test_sorting_in_the_middle_of_many_dimensions():
    x = torch.randn(2, 3, 4, 2, generator=torch.Generator().manual_seed(1)).round(decimals=1)
    for dim in range(4):
        values, places = torch.sort(x, dim=dim, stable=True)
        ours, ourplaces = run_captured(lambda x, dim=dim: tuple(torch.sort(x, dim=dim)), x)
        assert torch.equal(ours, values)
        assert torch.equal(ourplaces.long(), places)


def test_gradients_of_orders_are_moved_not_added_and_lose_no_bit():
    weights = torch.randn(6, 64, generator=torch.Generator().manual_seed(2)) * torch.logspace(-20, 15, 64)
    x = torch.randn(6, 64, generator=torch.Generator().manual_seed(3))

    def gradient(order: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor], tuple[Tensor, ...]]:
        def f(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
            leaf = x.detach().requires_grad_()
            found = order(leaf)
            return torch.autograd.grad((found * w[:, : found.shape[1]]).sum(), leaf)

        return f

    for order in (
        lambda t: torch.sort(t, 1)[0],
        lambda t: torch.topk(t, 5, 1)[0],
        lambda t: torch.topk(t, 5, 1, largest=False)[0],
        lambda t: t.gather(1, torch.topk(t, 7, 1)[1]),
    ):
        f = gradient(order)
        assert torch.equal(run_captured(f, x, weights)[0], f(x, weights)[0])


def test_writes_at_the_positions_of_a_topk_take_any_type():
    x = torch.randn(4, 9, generator=torch.Generator().manual_seed(4))

    def f(x: Tensor) -> tuple[Tensor, ...]:
        at = torch.topk(x, 3, 1)[1]
        kept = torch.zeros_like(x, dtype=torch.bool).scatter(1, at, True)
        order = torch.full(x.shape, 7, dtype=torch.int32).scatter(1, at, torch.arange(12, dtype=torch.int32).view(4, 3))
        return kept, order

    for ours, theirs in zip(run_captured(f, x), f(x), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("n", [1, 2, 3, 64, 1000, 4097])
def test_prefix_sums_are_rounded_at_most_log_n_times(n: int):
    x = torch.randn(2, n, generator=torch.Generator().manual_seed(n)) * torch.logspace(0, 4, n)

    def f(x: Tensor) -> tuple[Tensor, ...]:
        leaf = x.detach().requires_grad_()
        sums = leaf.cumsum(1)
        return sums.detach(), *torch.autograd.grad((sums * x).sum(), leaf)

    ours, own_grad = run_captured(f, x, precision=FIXED22)
    roundings = max(1, (n - 1).bit_length())
    for found, terms in ((ours, x.double()), (own_grad.flip(1), x.double().flip(1))):
        bound = terms.abs().cumsum(1) * roundings * 2.0**-24 * 1.01
        assert bool(((found.double() - terms.cumsum(1)).abs() <= bound).all())


def test_prefix_sums_of_integers_are_exact_and_wrap_as_torchs():
    i = torch.tensor([[2**31 - 1, 1, 5, -7], [-(2**31), -1, 3, 2**30]], dtype=torch.int32)
    ours = run_captured(lambda i: (i.cumsum(1, dtype=torch.int32), (i > 0).cumsum(0), i.long().cumsum(1)), i)
    wide = i.long().cumsum(1)
    assert torch.equal(ours[0], i.cumsum(1, dtype=torch.int32))
    assert torch.equal(ours[1].long(), (i > 0).cumsum(0))
    assert torch.equal(ours[2], wide.to(torch.int32)), "int64 is computed mod 2^32"


def test_prefix_sums_of_hostile_values_are_torchs():
    x = torch.tensor([[-0.0, -0.0, 1.0], [1.0, INF, 2.0], [INF, -INF, 1.0], [NAN, 1.0, 1.0]])
    for columns in (1, 3):
        ours = run_captured(lambda x: (x.cumsum(1),), x[:, :columns].contiguous())[0]
        assert bits_equal(ours, x[:, :columns].cumsum(1))


class _Touched(TorchDispatchMode):
    """Counts the elements that PyTorch's operations write; views write none."""

    elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        is_view = any(r.alias_info is not None and not r.alias_info.is_write for r in func._schema.returns)
        for t in result if isinstance(result, tuple | list) else (result,):
            if isinstance(t, Tensor) and not is_view:
                self.elements += t.numel()
        return result


def grads(order: Callable[[Tensor], Tensor]) -> Callable[[Tensor], tuple[Tensor, ...]]:
    def f(x: Tensor) -> tuple[Tensor, ...]:
        leaf = x.detach().requires_grad_()
        found = order(leaf)
        return found.detach(), *torch.autograd.grad((found * found).sum(), leaf)

    return f


WORK = {
    "sort": grads(lambda x: torch.sort(x)[0]),
    "topk": grads(lambda x: torch.topk(x, x.shape[0] // 4)[0]),
    "cumsum": grads(lambda x: x.cumsum(0)),
}


@pytest.mark.parametrize("name", WORK)
def test_work_grows_like_n_log_n(name: str):
    per: list[float] = []
    for bits in (8, 12, 16):
        x = torch.randn(1 << bits, generator=torch.Generator().manual_seed(bits))
        executor = Executor(captured(WORK[name], x).program, variant=KernelVariant.STOCK)
        with _Touched() as touched:
            executor.run([[x]])
        per.append(touched.elements / ((1 << bits) * bits))
        # Long maps run in pieces, which copies once more; n^2 would grow by 10 from the first size to the second.
        assert per[-1] <= min(2.0 * per[0], 16.0), per


@pytest.mark.parametrize("descending", [False, True])
def test_integers_of_all_bits_are_sorted_and_equal_ones_keep_their_order(descending: bool):
    g = torch.Generator().manual_seed(0)
    x = torch.randint(-(2**31), 2**31 - 1, (3, 40), generator=g, dtype=torch.int64).to(torch.int32)
    x[0, ::3] = x[0, 0]
    x[1] = (x[1] & 3) - (1 << 24)
    x[2, :4] = torch.tensor([2**31 - 1, -(2**31), 0, -1])
    found = run_captured(lambda x: tuple(torch.sort(x, dim=1, descending=descending, stable=True)), x)
    for ours, theirs in zip(found, torch.sort(x, dim=1, descending=descending, stable=True), strict=True):
        assert torch.equal(ours.long(), theirs.long())


def test_bools_and_bytes_are_sorted():
    flags, small = HOSTILE[0] > 0, torch.tensor([3, -1, 3, 127, -128], dtype=torch.int8)
    found = run_captured(lambda f, s: (*f.sort(stable=True), *s.sort(stable=True, descending=True)), flags, small)
    theirs = (*flags.sort(stable=True), *small.sort(stable=True, descending=True))
    assert all(torch.equal(a.long(), b.long()) for a, b in zip(found, theirs, strict=True))
