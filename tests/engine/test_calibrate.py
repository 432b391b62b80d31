"""Calibration finds operands whose rows are rounded away, and raises their precision until little is lost."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from assay.engine.calibrate import LIMIT, calibrated, losses
from assay.engine.capture import CannotLowerError
from assay.engine.executor import Executor
from assay.engine.lowering.registry import FIXED8, FIXED22
from assay.protocol.nodes import Dot
from tests.engine.helpers import captured, relative


def product(a: Tensor, b: Tensor) -> tuple[Tensor, ...]:
    return (a @ b,)


def heavy_tailed() -> tuple[Tensor, Tensor]:
    """Rows whose one large element rounds the many small ones to zero at 14 bits."""
    torch.manual_seed(0)
    a = torch.rand(4, 4000) * 1e-5
    a[:, 0] = 1.0
    return a, torch.rand(4000, 3) + 1.0


def test_an_even_row_loses_nothing_and_a_heavy_tailed_one_nearly_all_of_its_tail():
    even = [torch.rand(4, 50) + 1.0, torch.rand(50, 3) + 1.0]
    assert all(loss.share == 0.0 for loss in losses(captured(product, *even), [even]))
    tensors = list(heavy_tailed())
    report = losses(captured(product, *tensors), [tensors])
    assert [loss.side for loss in report] == ["A", "B"]
    assert 0.01 < report[0].share < 0.05
    assert report[0].bits == 14
    assert "test_calibrate.py" in report[0].source
    assert report[1].share == 0.0


def test_operands_above_the_limit_are_captured_with_more_bits():
    tensors = list(heavy_tailed())
    function = lambda part: [list(product(*part))]  # noqa: E731
    plain = captured(product, *tensors)
    better, report = calibrated(function, [tensors])
    (dot,) = (n for n in better.program.nodes if isinstance(n, Dot))
    assert dot.precision_a > 14
    assert dot.precision_b == 14
    assert report[0].share <= LIMIT
    exact = tensors[0].double() @ tensors[1].double()
    before, after = (relative(Executor(c.program).run([tensors])[0][0], exact) for c in (plain, better))
    assert after < before / 4


def test_what_stays_above_the_limit_is_reported():
    tensors = [torch.tensor([[1.0, 1e-12]]), torch.ones(2, 1)]
    _, report = calibrated(lambda part: [list(product(*part))], [tensors], FIXED8, limit=0.0)
    assert report[0].bits == 26
    assert report[0].share > 0.0


def test_rows_that_are_not_finite_lose_nothing():
    tensors = [torch.tensor([[float("inf"), 1.0], [0.0, 0.0]]), torch.ones(2, 1)]
    assert all(loss.share == 0.0 for loss in losses(captured(product, *tensors), [tensors]))


def test_bits_that_a_long_sum_has_no_room_for_are_not_added():
    a = torch.zeros(2, 1 << 20)
    a[:, :2] = torch.tensor([1.0, 1e-12])
    tensors = [a, torch.rand(1 << 20, 1) + 1.0]
    tensors[1][0] = 1e12
    better, report = calibrated(lambda part: [list(product(*part))], [tensors], FIXED22, limit=0.0)
    (dot,) = (n for n in better.program.nodes if isinstance(n, Dot))
    assert dot.precision_a + dot.precision_b - 2 + 20 <= 62
    assert report[0].share > 0.0


def test_a_sum_that_is_too_long_for_its_tier_is_refused_with_a_remedy():
    tensors = [torch.zeros(1, 1 << 21), torch.zeros(1 << 21, 1)]
    with pytest.raises(
        CannotLowerError, match=r"2097152 terms at 22 and 22 bits, of which 62 are exact .*micro-batches"
    ):
        captured(product, *tensors, precision=FIXED22)
