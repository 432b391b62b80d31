"""The functions' errors on 2^16 inputs each, by the torch executor against binary64."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from assay.engine.runtime.stock.scalar import compile_scalar
from tests.unit.protocol.test_functions import ABSOLUTE_BOUNDS, RANGES, ULP_BOUNDS, inputs, programs

COUNT = 1 << 16


def _phi(x: Tensor) -> Tensor:
    return torch.erfc(-x * math.sqrt(0.5)) / 2


ORACLES: dict[str, Callable[[Tensor], Tensor]] = {
    "exp": torch.exp,
    "log": torch.log,
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "rsqrt": lambda x: 1 / torch.sqrt(x),
    "erf": torch.erf,
    "gauss": lambda x: torch.exp(-x * x / 2),
    "gelu": lambda x: x * _phi(x),
    "gelu_grad": lambda x: _phi(x) + x * torch.exp(-x * x / 2) / math.sqrt(2 * math.pi),
    "gelu_tanh": lambda x: x * torch.sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)),
    "sin": torch.sin,
    "cos": torch.cos,
}


def _values(name: str) -> tuple[Tensor, Tensor, Tensor]:
    """Finite inputs, results and true values, all in binary64."""
    x = torch.tensor(inputs(name, COUNT), dtype=torch.int64).to(torch.int32).view(torch.float32)
    columns = [x]
    for program in programs(name):
        columns.append(compile_scalar(program)(columns))
    true = ORACLES[name](x.double())
    keep = x.isfinite() & true.isfinite() & (true.abs() < 2.0**128 - 2.0**103)
    return x[keep].double(), columns[-1][keep].double(), true[keep]


@pytest.mark.parametrize("name", ULP_BOUNDS)
def test_the_error_in_ulp(name: str) -> None:
    x, y, true = _values(name)
    size = torch.maximum(true.abs(), x.abs() * 2.0**-24) if name in ("erf", "gelu") else true.abs()
    exponent = torch.frexp(size).exponent.clamp(min=-125)
    errors = torch.ldexp((y - true).abs(), 24 - exponent)
    assert len(x) > COUNT // 4
    assert float(errors.max()) <= ULP_BOUNDS[name]


@pytest.mark.parametrize("name", ABSOLUTE_BOUNDS)
def test_the_absolute_error(name: str) -> None:
    x, y, true = _values(name)
    claimed = (x >= RANGES[name][0]) & (x <= RANGES[name][1])
    assert int(claimed.sum()) > COUNT // 4
    assert float((y - true).abs()[claimed].max()) <= ABSOLUTE_BOUNDS[name]
