"""Products are checked in turn while a program runs; one wrong bit is noticed, non-finite rows are no error."""

from __future__ import annotations

import pytest
import torch

from assay.engine import routes
from assay.engine.executor import Executor
from assay.engine.freivalds import ProductWatch
from assay.protocol.errors import InvariantError
from tests.engine.helpers import captured


def operands(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    a, b = (torch.randint(-8192, 8193, (2, n, 40), generator=generator).float() for n in (7, 5))
    return a, b, routes.INT64.multiply(a, b)


@pytest.mark.parametrize("dtype", [torch.float64, torch.int64])
def test_a_right_product_passes_and_every_wrong_element_is_found(dtype: torch.dtype):
    a, b, s = operands()
    watch = ProductWatch()
    watch.check(3, a, b, s.to(dtype))
    for index in range(0, s.numel(), 3):
        for change in (1, -1, 1 << 20):
            wrong = s.clone()
            wrong.view(-1)[index] += change
            watch.begin()
            with pytest.raises(InvariantError) as caught:
                watch.check(3, a, b, wrong.to(dtype))
            assert caught.value.code == "HardwareFault"


def test_rows_that_are_not_finite_are_left_out():
    a, b, s = operands()
    a[0, 2, 5], b[1, 1, 0] = float("nan"), float("inf")
    product = s.double()
    product[0, 2], product[1, :, 1] = float("nan"), float("nan")
    ProductWatch().check(0, a, b, product)


def test_each_product_of_a_program_is_checked_in_its_turn(monkeypatch: pytest.MonkeyPatch):
    x, y = torch.randn(4, 6), torch.randn(6, 4)
    executor = Executor(captured(lambda a, b: (a @ b, (b @ a).relu() @ b), x, y).program)
    checked: list[int] = []
    original = ProductWatch.check
    monkeypatch.setattr(
        ProductWatch, "check", lambda self, k, qa, qb, s: (checked.append(k), original(self, k, qa, qb, s))
    )
    for _ in range(6):
        executor.run([[x, y]])
    assert len(checked) == 6
    assert sorted(set(checked)) == sorted(executor.routes)
    assert checked[:3] == checked[3:]


def test_a_library_that_miscalculates_stops_the_run(monkeypatch: pytest.MonkeyPatch):
    x = torch.randn(4, 4)
    monkeypatch.setattr("assay.engine.dot.native_dot", lambda *_: None)
    executor = Executor(captured(lambda a: (a @ a,), x).program)
    honest = torch.mm
    monkeypatch.setattr(torch, "mm", lambda a, b: honest(a, b).add_(1.0))
    with pytest.raises(InvariantError, match="miscalculates"):
        executor.run([[x]])
