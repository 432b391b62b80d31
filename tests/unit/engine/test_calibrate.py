"""Calibration finds operands whose rows are rounded away, and raises their precision until little is lost."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.engine import ops
from assay.engine.compiler.calibrate import calibrated
from assay.engine.compiler.capture import CannotLowerError, capture
from assay.engine.compiler.losses import LIMIT, limit_of, losses
from assay.engine.compiler.lowering.registry import FIXED8, FIXED14, FIXED22, Treatment
from assay.engine.runtime import devices
from assay.engine.runtime.executor import Executor, KernelVariant, cpu_variant
from assay.protocol.program.nodes import Dot
from tests.harness.engine.helpers import captured, relative


def product(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return (a @ b,)


def heavy_tailed() -> tuple[Tensor, Tensor]:
    """Rows whose one large element rounds the many small ones to zero at 14 bits."""
    torch.manual_seed(0)
    a = torch.rand(4, 4000) * 1e-5
    a[:, 0] = 1.0
    return a, torch.rand(4000, 3) + 1.0


def looked_up(a: Tensor, b: Tensor, index: Tensor) -> tuple[Tensor, ...]:
    """The product of operands that no weight names."""
    return (ops.take(a.t(), index).t() @ ops.take(b, index),)


def test_an_even_row_loses_little_and_a_heavy_tailed_one_its_tail():
    even = [torch.rand(4, 50) + 1.0, torch.rand(50, 3) + 1.0]
    for loss in losses(captured(product, *even), [even]):
        assert 0.0 < loss.error < 1e-4
        assert (loss.zeroed, loss.worst, loss.is_above_limit) == (0.0, 0.0, False)
    tensors = list(heavy_tailed())
    report = losses(captured(product, *tensors), [tensors])
    assert sorted(loss.side for loss in report) == ["A", "B"]
    of_a = next(loss for loss in report if loss.side == "A")
    assert of_a.bits == 14
    assert of_a.error > 0.5
    assert of_a.worst >= of_a.zeroed > 0.99
    assert "test_calibrate.py" in of_a.source


def test_few_rows_of_a_product_ask_for_the_bits_that_all_of_them_ask_for():
    """Of many batches, and of many rows: what a few show is what they all have."""
    torch.manual_seed(2)
    for shape in ((400, 40, 300), (1, 4000, 300)):
        a, b = torch.rand(*shape) * 1e-3, torch.rand(shape[0], 300, 6) + 1.0
        # Large where no column is: three in each row, anywhere.
        a.scatter_(2, torch.rand(*shape).topk(3, 2)[1], 1.0)
        function, given = (lambda part: [list(product(*part))]), [[a.clone(), b]]
        whole, report = calibrated(function, given, FIXED14)
        few, thinned = calibrated(function, given, FIXED14, rows=128)
        assert whole.treatments and few.treatments == whole.treatments
        assert few.program.root == whole.program.root
        for one, other in zip(report, thinned, strict=True):
            assert other.error == pytest.approx(one.error, rel=0.2) and other.error != one.error
        again = capture(function, given, FIXED14, few.treatments)
        assert again.program.root == whole.program.root


def test_products_are_looked_at_on_the_cpu_whichever_device_is_asked_for(monkeypatch: pytest.MonkeyPatch):
    """By Triton, node by node, minutes would go into compiling kernels that nobody needs."""
    used: list[KernelVariant] = []

    def executor(*given: Any, **named: Any) -> Executor:
        made = Executor(*given, **named)
        used.append(made.variant)
        return made

    tensors = list(heavy_tailed())
    wanted = losses(captured(product, *tensors), [tensors])
    monkeypatch.setattr("assay.engine.compiler.losses.Executor", executor)
    monkeypatch.setenv(devices.VARIABLE, devices.Device.CUDA)
    assert losses(captured(product, *tensors), [tensors]) == wanted
    assert used == [cpu_variant()]


def test_the_largest_terms_of_a_row_are_no_measure_of_its_error():
    torch.manual_seed(4)
    a, b = torch.randn(6, 256), torch.randn(256, 5)
    found = []
    for size in (1.0, 1e3, 1e6):
        a[:, 9] = size
        found.append(max(loss.error for loss in losses(captured(product, a, b), [[a, b]])))
    assert found[0] < LIMIT < 0.02 < found[1] < 0.5 < found[2]


def test_operands_above_the_limit_are_captured_with_more_bits():
    tensors = [*heavy_tailed(), torch.arange(4000, dtype=torch.int32)]
    plain = captured(looked_up, *tensors)
    better, report = calibrated(lambda part: [list(looked_up(*part))], [tensors])
    (dot,) = (n for n in better.program.nodes if isinstance(n, Dot))
    assert dot.precision_a > 26
    assert not any(loss.is_above_limit for loss in report)
    exact = tensors[0].double() @ tensors[1].double()
    before, after = (relative(Executor(c.program).run([tensors])[0][0], exact) for c in (plain, better))
    assert after < before / 4


def test_what_is_within_its_limit_is_captured_as_without_calibration():
    torch.manual_seed(5)
    tensors = [torch.randn(8, 64), torch.randn(64, 8)]
    for precision in (FIXED8, FIXED14, FIXED22):
        found, _ = calibrated(lambda part: [list(product(*part))], [tensors], precision)
        assert found.program.root == captured(product, *tensors, precision=precision).program.root


def test_an_operand_of_few_bits_may_lose_what_few_bits_cost():
    assert limit_of(14) == limit_of(22) == limit_of(31) == LIMIT
    assert limit_of(8) == 2.0**-4
    torch.manual_seed(5)
    tensors = [torch.randn(8, 64), torch.randn(64, 8)]
    worst = max(loss.error for loss in losses(captured(product, *tensors, precision=FIXED8), [tensors]))
    assert LIMIT < worst < limit_of(8) / 3


def test_targets_and_attended_tokens_are_no_outliers():
    torch.manual_seed(6)
    x, w, targets = torch.randn(48, 16), torch.randn(16, 8192) * 0.1, torch.randint(0, 8192, (48,), dtype=torch.int32)

    def grads(x: Tensor, w: Tensor, targets: Tensor) -> tuple[Tensor, ...]:
        x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
        return torch.autograd.grad(F.cross_entropy(x @ w, targets.long()), [x, w])

    found, report = calibrated(lambda part: [list(grads(*part))], [[x, w, targets]])
    assert found.program.root == captured(grads, x, w, targets).program.root
    assert sorted(loss.whole for loss in report) == [False, False, True, True, True, True]
    assert not any(loss.is_above_limit for loss in report)


def test_what_stays_above_the_limit_is_reported():
    a = torch.rand(4, 4096) * 1e-12
    a[:, 0] = 1.0
    tensors = [a, torch.rand(4096, 3) + 1.0, torch.arange(4096, dtype=torch.int32)]
    better, report = calibrated(lambda part: [list(looked_up(*part))], [tensors], FIXED22)
    (dot,) = (n for n in better.program.nodes if isinstance(n, Dot))
    assert dot.precision_a + dot.precision_b - 2 + 12 <= 62
    assert report[0].is_above_limit


def test_rows_that_are_not_finite_lose_nothing():
    tensors = [torch.tensor([[float("inf"), 1.0], [0.0, 0.0]]), torch.ones(2, 1)]
    found = losses(captured(product, *tensors), [tensors])
    assert all((loss.error, loss.zeroed, loss.worst) == (0.0, 0.0, 0.0) for loss in found)


def test_bits_that_a_long_sum_has_no_room_for_are_not_added():
    a = torch.rand(2, 1 << 20) * 1e-9
    a[:, 0] = 1.0
    tensors = [a, torch.rand(1 << 20, 1) + 1.0]
    better = capture(lambda part: [list(product(*part))], [tensors], FIXED22, {0: Treatment(bits_a=31, bits_b=31)})
    (dot,) = (n for n in better.program.nodes if isinstance(n, Dot))
    assert (dot.precision_a, dot.precision_b) == (22, 22)
    better = capture(lambda part: [list(product(*part))], [tensors], FIXED14, {0: Treatment(bits_a=31)})
    (dot,) = (n for n in better.program.nodes if isinstance(n, Dot))
    assert (dot.precision_a, dot.precision_b) == (30, 14)


def test_a_sum_that_is_too_long_for_its_tier_is_refused_with_a_remedy():
    tensors = [torch.zeros(1, 1 << 21), torch.zeros(1 << 21, 1)]
    with pytest.raises(
        CannotLowerError, match=r"2097152 terms at 22 and 22 bits, of which 62 are exact .*micro-batches"
    ):
        captured(product, *tensors, precision=FIXED22)
