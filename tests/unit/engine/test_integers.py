"""Integers are what PyTorch makes of them: of 8 bits they wrap, of 32 none is rounded; what is lacking is named."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.engine.compiler.capture import CannotLowerError
from tests.harness.engine.helpers import bits_equal, captured, differing_nodes, run_captured

BYTES = torch.tensor([0, 1, 3, 5, 16, 127, 128, 200, 254, 255], dtype=torch.uint8)
SMALL = torch.tensor([0, 1, 3, -1, -2, 16, 100, 127, -127, -128], dtype=torch.int8)
WIDE = torch.tensor([5000, -5001, 3, 2**24 + 1, -(2**24) - 3, 46341, -(2**31), 2**31 - 1], dtype=torch.int32)
PLACES = torch.tensor([0, 2, 0, 1, 1, 5, 0, 0], dtype=torch.int32)

NARROW = {
    "negatives": lambda x: -x,
    "magnitudes": lambda x: x.abs(),
    "shifts": lambda x: (x << 4) >> 4,
    "powers": lambda x: x**3,
    "sums": lambda x: x.sum(dtype=x.dtype),
    "prefix sums": lambda x: x.cumsum(0, dtype=x.dtype),
}

WIDE_FUNCTIONS = {
    "powers": lambda x: (x**2, x**3, x**0, torch.square(x)),
    "roundings": lambda x: (x.floor(), x.ceil(), x.trunc(), x.round()),
    "rectified": lambda x: (F.relu(x), F.relu6(x)),
    "signs": lambda x: (torch.sign(x) * (2**24 + 1),),
    "the least": lambda x: (x.amin(), x.min(), *x.min(0), x.argmin(), *x.reshape(2, 4).min(1)),
    "the least so far": lambda x: (*x.cummin(0), *x.cummax(0)),
}


def _held(x: Tensor) -> Tensor:
    return x.to(torch.int32) if x.dtype is torch.int64 else x


@pytest.mark.parametrize("name", NARROW)
@pytest.mark.parametrize("x", [BYTES, SMALL], ids=["uint8", "int8"])
def test_integers_of_8_bits_wrap_before_they_are_widened(name: str, x: Tensor):
    def function(x: Tensor) -> tuple[Tensor, ...]:
        found = NARROW[name](x)
        assert found.dtype is x.dtype
        return found.to(torch.int32) * 3, found.float()

    for got, eager in zip(run_captured(function, x), function(x), strict=True):
        assert bits_equal(got, eager)


@pytest.mark.parametrize("name", WIDE_FUNCTIONS)
def test_no_integer_of_32_bits_is_rounded_to_24(name: str):
    def function(x: Tensor) -> tuple[Tensor, ...]:
        return tuple(_held(y) for y in WIDE_FUNCTIONS[name](x))

    for got, eager in zip(run_captured(function, WIDE), function(WIDE), strict=True):
        assert bits_equal(got, eager)


SUMS = {
    "by index": lambda x, i: torch.ones(6, dtype=torch.int64).index_add(0, i, x.long()),
    "of bytes": lambda x, i: torch.full((6,), 200, dtype=torch.uint8).index_add(0, i, x.to(torch.uint8)).int(),
    "scattered": lambda x, i: torch.ones(6, 4, dtype=torch.int32).scatter_add(
        0, i.reshape(2, 4).long(), x.reshape(2, 4)
    ),
    "written": lambda x, i: torch.zeros(6, dtype=torch.int32).index_put((i,), x, accumulate=True),
    "anew": lambda x, i: torch.ones(6, dtype=torch.int32).scatter_reduce(0, i.long(), x, "sum", include_self=False),
    "of flags": lambda x, i: torch.zeros(6, dtype=torch.bool).index_add(0, i, x > 3),
}


@pytest.mark.parametrize("name", SUMS)
def test_integers_are_added_at_indices_as_they_are(name: str):
    def function(x: Tensor, i: Tensor) -> tuple[Tensor, ...]:
        return (_held(SUMS[name](x, i)),)

    assert bits_equal(run_captured(function, WIDE, PLACES)[0], function(WIDE, PLACES)[0])
    assert differing_nodes(captured(function, WIDE, PLACES).program, [[WIDE, PLACES]]) == []


REFUSED = {
    "a product": (lambda x: x.reshape(2, 4) @ x.reshape(4, 2), "a product of I32 (convert to float32 first)"),
    "a number beside bytes": (lambda x: x.to(torch.uint8) < 300, "the number 300, which U8 does not hold"),
    "a divisor of bytes": (lambda x: x.to(torch.uint8) // -3, "the number -3"),
    "a bound of bytes": (lambda x: x.to(torch.int8).clamp(max=200), "the number 200, which I8"),
    "a power": (lambda x: 2 ** (x & 15), "powers of integers by tensors"),
    "a maximum": (lambda x: x[0].max(0)[0], "a single number along a dimension"),
    "a gather": (lambda x: torch.gather(x[0], 0, torch.tensor(0)), "a single number along a dimension"),
    "a part of a dimension": (
        lambda x: torch.zeros(5, 5).scatter_reduce(
            0, torch.zeros(2, 3, dtype=torch.int64), x[0] * torch.ones(4, 5), "amax"
        ),
        "aten.scatter_reduce.two",
    ),
    "a reduction": (lambda x: torch.index_reduce(x[0].float(), 0, PLACES[:1], x[0].float(), "mean"), "index_reduce"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_program_has_no_form_for_is_refused_by_name(name: str):
    function, words = REFUSED[name]
    with pytest.raises(CannotLowerError, match=r"test_integers\.py") as refused:
        captured(lambda x: (function(x),), WIDE)
    assert words in str(refused.value)


def test_sums_of_a_single_number_along_a_dimension_are_that_number():
    def function(x: Tensor) -> tuple[Tensor, ...]:
        return x[0].sum(0), x[0].amax(0), x[0].amin(0), x[0].mean(0), x[0].logsumexp(0)

    x = torch.tensor([1.5, 2.0])
    for got, eager in zip(run_captured(function, x), function(x), strict=True):
        torch.testing.assert_close(got, eager)
