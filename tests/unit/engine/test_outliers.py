"""Outliers do not drown what the other terms of a product say: bars on the whole product's error (ADR 0021).

The error is the root mean square over that of the product without the outliers' own terms.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.engine import ops
from assay.engine.compiler.calibrate import calibrated
from assay.engine.compiler.capture import Captured, capture
from assay.engine.compiler.losses import losses
from assay.engine.compiler.lowering.registry import FIXED8, FIXED14, FIXED22, Precision, Treatment
from assay.engine.runtime.executor import Executor, KernelVariant, usable_natives
from assay.protocol.program.nodes import Dot
from tests.harness.engine.helpers import captured, differing_nodes

BAR = 1e-3
K, ROWS, COLUMNS = 4096, 32, 24
VARIANTS = (KernelVariant.STOCK, KernelVariant.FUSED) if usable_natives()[0] else (KernelVariant.STOCK,)


def product(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return (a @ b,)


def taken(a: Tensor, b: Tensor, index: Tensor) -> tuple[Tensor, ...]:
    """A product of two operands that no weight names: both are looked up."""
    return (ops.take(a, index).t() @ ops.take(b, index),)


def best(function: Callable[..., tuple[Tensor, ...]], *tensors: Tensor, precision: Precision = FIXED14) -> Captured:
    return calibrated(lambda part: [list(function(*part))], [list(tensors)], precision)[0]


def results(program: Captured, *tensors: Tensor) -> list[Tensor]:
    return Executor(program.program).run([list(tensors)])[0]


def error(y: Tensor, a: Tensor, b: Tensor, outliers: Tensor) -> float:
    """Of y for the product of a [M, K] and b [K, N]; outliers: which elements of a are left out of what is compared."""
    exact, others = a.double() @ b.double(), a.masked_fill(outliers, 0.0).double() @ b.double()
    return float((y.double() - exact).square().mean().sqrt() / others.square().mean().sqrt())


def bits(found: Captured) -> list[tuple[int, int]]:
    return sorted((n.precision_a, n.precision_b) for n in found.program.nodes if isinstance(n, Dot))


def with_channel(size: float, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """Activations with one channel of this size, a weight, and where the outliers are."""
    generator = torch.Generator().manual_seed(9)
    a, b = torch.randn(ROWS, K, generator=generator), torch.randn(K, COLUMNS, generator=generator)
    a[:, 77] *= size
    where = torch.zeros(ROWS, K, dtype=torch.bool)
    where[:, 77] = True
    return a.to(dtype).float(), b.to(dtype).float(), where


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("size", [1.0, 30.0, 100.0, 1_000.0, 10_000.0])
def test_an_outlier_channel_becomes_a_product_of_its_own(size: float, dtype: torch.dtype):
    a, b, where = with_channel(size, dtype)
    found = best(product, a, b)
    assert error(results(found, a, b)[0], a, b, where) <= BAR
    assert bits(found) == ([(14, 14), (24, 24)] if size >= 30 else [(14, 14)])
    if size >= 100:
        plain = captured(product, a, b)
        assert error(results(plain, a, b)[0], a, b, where) > 3 * BAR


@pytest.mark.parametrize("size", [1.0, 1_000.0, 10_000.0])
def test_fixed22_needs_it_from_ten_thousand_on(size: float):
    a, b, where = with_channel(size)
    found = best(product, a, b, precision=FIXED22)
    assert error(results(found, a, b)[0], a, b, where) <= BAR
    assert bits(found) == ([(22, 22), (24, 24)] if size == 10_000 else [(22, 22)])


@pytest.mark.parametrize("size", [30.0, 100.0, 1_000.0, 10_000.0])
def test_fixed8_with_outliers_is_as_good_as_without(size: float):
    a, b, where = with_channel(size)
    plain = error(results(captured(product, a, b, precision=FIXED8), a, b)[0], a, b, where)
    found = error(results(best(product, a, b, precision=FIXED8), a, b)[0], a, b, where)
    assert found <= 0.02 < 0.08 < plain


def test_several_outliers_of_several_sizes_on_either_side():
    a, b, where = with_channel(1.0)
    where = torch.zeros_like(where)
    for column, size in ((5, 300.0), (900, 40.0), (901, 3_000.0)):
        a[:, column] *= size
        where[:, column] = True
    b[2000] *= 200.0
    where[:, 2000] = True
    found = best(product, a, b)
    assert error(results(found, a, b)[0], a, b, where) <= BAR
    assert (14, 14) in bits(found)


@pytest.mark.parametrize("share", [1e-3, 1e-4])
def test_one_large_token_drowns_no_weight_gradient(share: float):
    generator = torch.Generator().manual_seed(4)
    g, x = share * torch.randn(K, ROWS, generator=generator), torch.randn(K, COLUMNS, generator=generator)
    where = torch.zeros(K, ROWS, dtype=torch.bool)
    where[torch.randint(0, K, (ROWS,), generator=generator), torch.arange(ROWS)] = True
    g[where] = 1.0
    index = torch.arange(K, dtype=torch.int32)
    plain, found = captured(taken, g, x, index), best(taken, g, x, index)
    assert error(results(plain, g, x, index)[0], g.t(), x, where.t()) > 50 * BAR
    assert error(results(found, g, x, index)[0], g.t(), x, where.t()) <= BAR
    # No weight names tokens, so their places are not fixed at capture: the operand gets more bits instead.
    ((bits_a, bits_b),) = bits(found)
    assert bits_a > 20
    assert 14 < bits_b < bits_a


def test_all_three_products_of_a_layer_keep_what_the_others_say():
    generator = torch.Generator().manual_seed(6)
    tokens, inner, outer = 512, 256, 192
    x, g = torch.randn(tokens, inner, generator=generator), torch.randn(tokens, outer, generator=generator)
    w = torch.randn(inner, outer, generator=generator)
    x[:, 3] *= 2_000.0
    g[:, 190] *= 5_000.0
    index = torch.arange(tokens, dtype=torch.int32)

    def layer(x: Tensor, g: Tensor, w: Tensor, index: Tensor) -> tuple[Tensor, ...]:
        x, w = ops.take(x, index).requires_grad_(), w.clone().requires_grad_()
        y = x @ w
        return (y.detach(), *torch.autograd.grad((y * ops.take(g, index)).sum(), [x, w]))

    y, dx, dw = results(best(layer, x, g, w, index), x, g, w, index)
    in_x, in_g = torch.zeros_like(x, dtype=torch.bool), torch.zeros_like(g, dtype=torch.bool)
    in_x[:, 3], in_g[:, 190] = True, True
    assert error(y, x, w, in_x) <= BAR
    assert error(dx, g, w.t(), in_g) <= BAR
    keep = [k for k in range(inner) if k != 3]
    inside = x.t()[keep]
    assert error(dw[keep][:, :190], inside, g[:, :190], torch.zeros_like(inside, dtype=torch.bool)) <= BAR


def test_an_outlier_channel_of_a_convolution_becomes_a_product_of_its_own():
    generator = torch.Generator().manual_seed(7)
    x, w = torch.randn(2, 32, 8, 8, generator=generator), torch.randn(6, 32, 3, 3, generator=generator)
    x[:, 11] *= 3_000.0

    def convolved(x: Tensor, w: Tensor) -> tuple[Tensor, ...]:
        return (F.conv2d(x, w, padding=1),)

    found = best(convolved, x, w)
    others = x.clone()
    others[:, 11] = 0.0
    size = F.conv2d(others.double(), w.double(), padding=1).square().mean().sqrt()
    exact = F.conv2d(x.double(), w.double(), padding=1)
    plain = results(captured(convolved, x, w), x, w)[0]
    assert bits(found) == [(14, 14), (24, 24)]
    assert float((plain.double() - exact).square().mean().sqrt() / size) > 50 * BAR
    assert float((results(found, x, w)[0].double() - exact).square().mean().sqrt() / size) <= BAR


def test_the_report_sees_what_one_huge_activation_drowns():
    a, b = with_channel(1.0)[:2]
    a, b = a[:, :1024].contiguous(), b[:1024].contiguous()
    a[:, 77] = 2e5
    of_a, of_b = sorted(losses(captured(product, a, b), [[a, b]]), key=lambda loss: loss.side)
    assert of_a.zeroed == pytest.approx(1023 / 1024, abs=1e-3)
    assert of_a.worst >= of_a.zeroed
    assert 0.9 < of_a.error < 1.5
    assert of_a.is_above_limit
    assert of_b.zeroed < 1e-3
    assert of_b.error > 0.1  # its rounding is multiplied by the outlier
    where = torch.zeros_like(a, dtype=torch.bool)
    where[:, 77] = True
    assert error(results(best(product, a, b), a, b)[0], a, b, where) <= BAR


def test_outliers_at_places_that_change_get_bits_instead():
    a, b = with_channel(1.0)[:2]
    a, b = a[:, :1024].contiguous(), b[:1024].contiguous()
    where = torch.zeros_like(a, dtype=torch.bool)
    where[torch.arange(ROWS), torch.arange(ROWS) * 31 % 1024] = True
    a[where] = 2e5
    found = best(product, a, b)
    ((bits_a, _),) = bits(found)
    assert bits_a > 24
    assert error(results(found, a, b)[0], a, b, where) <= BAR


@pytest.mark.parametrize("variant", VARIANTS)
def test_executors_and_the_reference_agree_on_divided_products(variant: KernelVariant):
    torch.manual_seed(3)
    x, w, a = torch.randn(2, 4, 5, 5), torch.randn(3, 4, 3, 3), torch.randn(4, 25)

    def function(part: list[Tensor]) -> list[list[Tensor]]:
        return [[F.conv2d(part[0], part[1], padding=1), part[3] @ part[2]]]

    lists = [[x, w, torch.randn(25, 2), a]]
    treatments = {0: Treatment(axis=2, columns=(1, 3)), 1: Treatment(bits_b=20, columns=(0, 24))}
    found = capture(function, lists, FIXED14, treatments)
    assert bits(found) == [(14, 14), (14, 20), (24, 24), (24, 24)]
    assert differing_nodes(found.program, lists, variant) == []
    x[0, 3, 2, 2] = a[3, 24] = float("inf")
    assert differing_nodes(found.program, lists, variant) == []
    spoilt = Executor(found.program, variant=variant).run(lists)[0][1]
    assert spoilt.isnan().any(1).tolist() == [False, False, False, True]
