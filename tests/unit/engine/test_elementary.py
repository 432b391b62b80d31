"""Elementary functions that are made of others: errors against binary64, IEEE's special values, exact remainders."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from assay.engine.runtime.executor import Executor
from tests.harness.engine.helpers import captured, run_captured
from tests.unit.engine.test_layers import assert_computes, drawn, with_gradients

M = drawn(4, 6)
P = M.abs() + 0.1
INF, NAN = math.inf, math.nan
COUNT = 1 << 15


def spread(low: float, high: float, seed: int = 0) -> Tensor:
    """Numbers between two, half of them evenly spread and half by magnitude."""
    g = torch.Generator().manual_seed(seed)
    even = low + (high - low) * torch.rand(COUNT, generator=g, dtype=torch.float64)
    largest = max(abs(low), abs(high))
    sized = largest * torch.exp2(-60 * torch.rand(COUNT, generator=g, dtype=torch.float64))
    signed = torch.where((torch.rand(COUNT, generator=g) < 0.5) & torch.tensor(low < 0), -sized, sized)
    return torch.cat([even, signed[(signed >= low) & (signed <= high)]]).float()


def ulps(ours: Tensor, true: Tensor) -> float:
    """The largest error in units of the last place of the true value."""
    exponent = torch.frexp(true.abs()).exponent.clamp(min=-125)
    return float(torch.ldexp((ours.double() - true).abs(), 24 - exponent).max())


ONE_ARGUMENT = {
    "log2": (torch.log2, spread(0.0, 1e30), 2.0),
    "log2 near 1": (torch.log2, spread(0.5, 2.0), 2.0),
    "log10": (torch.log10, spread(0.0, 1e30), 3.0),
    "exp2": (torch.exp2, spread(-126.0, 127.9), 1.5),
    "atan": (torch.atan, spread(-1e6, 1e6), 3.0),
    "asin": (torch.asin, spread(-1.0, 1.0), 5.0),
    "acos": (torch.acos, spread(-1.0, 1.0), 5.0),
    "sinh": (torch.sinh, spread(-80.0, 80.0), 8.0),
    "cosh": (torch.cosh, spread(-80.0, 80.0), 3.0),
    "asinh": (torch.asinh, spread(-1e9, 1e9), 5.0),
    "acosh": (torch.acosh, spread(1.0, 1e9), 6.0),
    "atanh": (torch.atanh, spread(-1.0, 1.0), 6.0),
    "erfinv": (torch.erfinv, spread(-1.0, 1.0), 5.0),
    "erfinv near 1": (torch.erfinv, 1.0 - spread(2**-24, 2**-10), 5.0),
}


@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_a_function_of_one_number_stays_within_its_bound(name: str):
    function, x, bound = ONE_ARGUMENT[name]
    true = function(x.double())
    keep = true.isfinite() & x.isfinite()
    (ours,) = run_captured(lambda x: (function(x),), x[keep])
    assert keep.sum() > COUNT // 2
    assert ulps(ours, true[keep]) <= bound


def test_angles_stay_within_three_ulp_in_every_quarter():
    y, x = spread(-5.0, 5.0), spread(-5.0, 5.0, seed=1)
    n = min(len(y), len(x))
    (ours,) = run_captured(lambda y, x: (torch.atan2(y, x),), y[:n], x[:n])
    assert ulps(ours, torch.atan2(y[:n].double(), x[:n].double())) <= 3.0


def test_powers_stay_within_their_bound():
    x, y = spread(0.0, 50.0), spread(-9.0, 9.0, seed=1)
    n = min(len(y), len(x))
    x, y = x[:n], y[:n]
    true = x.double() ** y.double()
    keep = (true > 1e-37) & (true < 1e38)
    (ours,) = run_captured(lambda x, y: (x**y,), x, y)
    bound = 2 + 2 * (y.double() * x.double().log2()).abs()
    exponent = torch.frexp(true).exponent
    error = torch.ldexp((ours.double() - true).abs(), 24 - exponent)
    assert keep.sum() > n // 2
    assert bool((error <= bound)[keep].all())


SPECIAL = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, INF, -INF, NAN])


def test_special_values_are_those_of_ieee_754():
    y, x = (t.reshape(-1) for t in torch.meshgrid(SPECIAL, SPECIAL, indexing="ij"))

    def function(y: Tensor, x: Tensor) -> tuple[Tensor, ...]:
        return (torch.atan2(y, x), torch.log2(y), torch.exp2(y), torch.erfinv(y), torch.atan(y), torch.copysign(y, x))

    for ours, theirs in zip(run_captured(function, y, x), function(y, x), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=3e-7, atol=0.0, equal_nan=True)
        known = ~theirs.isnan()
        assert torch.equal(torch.signbit(ours[known]), torch.signbit(theirs[known]))


def test_powers_of_special_values_are_pytorchs():
    finite = SPECIAL[SPECIAL.isfinite()]
    x, y = (t.reshape(-1) for t in torch.meshgrid(finite, torch.tensor([0.0, 1.0, 2.0, 3.0, -2.0, 0.5]), indexing="ij"))
    (ours,) = run_captured(lambda x, y: (x**y,), x, y)
    torch.testing.assert_close(ours, x**y, rtol=3e-7, atol=0.0, equal_nan=True)


def test_powers_of_two_are_exact():
    whole = torch.arange(-149, 128, dtype=torch.float32)
    powers, logs = run_captured(lambda x, p: (torch.exp2(x), torch.log2(p)), whole, torch.exp2(whole))
    assert torch.equal(powers, torch.exp2(whole.double()).float())
    assert torch.equal(logs, whole)


def test_remainders_are_exact_up_to_quotients_of_twenty_bits():
    g = torch.Generator().manual_seed(0)
    y = torch.randn(COUNT, generator=g) * torch.exp2(torch.randint(-40, 40, (COUNT,), generator=g).float())
    quotient = (torch.rand(COUNT, generator=g, dtype=torch.float64) - 0.5) * 2**21
    quotient[::3] = quotient[::3].round()
    quotient[1::3] *= 2.0**-15
    quotient[0], quotient[3] = 2.0**20 - 1, -(2.0**20 - 1)
    x = (y.double() * quotient).float()
    x, y = (t[(x / y).abs() < 2**20] for t in (x, y))
    assert len(x) > COUNT * 9 // 10
    for function in (torch.fmod, torch.remainder):
        (ours,) = run_captured(lambda x, y, f=function: (f(x, y),), x, y)
        assert torch.equal(ours, function(x, y))
    (ours,) = run_captured(lambda x, y: (torch.div(x, y, rounding_mode="floor"),), x, y)
    assert torch.equal(ours, torch.div(x.double(), y.double(), rounding_mode="floor").float())


WORDS = st.integers(-(2**31), 2**31 - 1)
DIVISORS = st.one_of(st.integers(1, 300), st.integers(-300, -1), WORDS.filter(bool))


@given(st.lists(st.tuples(WORDS, DIVISORS), min_size=24, max_size=24))
@settings(max_examples=12, deadline=None, derandomize=True)
def test_integers_divide_as_pythons_do(pairs: list[tuple[int, int]]):
    edge = [
        (2**31 - 1, 1),
        (-(2**31), 1),
        (-(2**31), 2**31 - 1),
        (2**31 - 1, -(2**31)),
        (2**31 - 1, 2**31 - 1),
        (7, -7),
    ]
    pairs = [(n, d) for n, d in [*edge, *pairs] if (n, d) != (-(2**31), -1)]
    n, d = (torch.tensor(v, dtype=torch.int32) for v in zip(*pairs, strict=True))
    ours = Executor(_divisions(len(n))).run([[n, d]])[0]
    for found, wanted in zip(ours, _divide(n.long(), d.long()), strict=True):
        assert torch.equal(found.long(), wanted)


def _divide(n: Tensor, d: Tensor) -> tuple[Tensor, ...]:
    return (
        torch.div(n, d, rounding_mode="floor"),
        torch.div(n, d, rounding_mode="trunc"),
        torch.remainder(n, d),
        torch.fmod(n, d),
    )


_PROGRAMS: dict[int, object] = {}


def _divisions(count: int):
    if count not in _PROGRAMS:
        like = torch.ones(count, dtype=torch.int32)
        _PROGRAMS[count] = captured(_divide, like, like).program
    return _PROGRAMS[count]


GRADIENTS = {
    "logarithms": lambda x, y: torch.log2(x) + torch.log10(y) + torch.exp2(x),
    "angles": lambda x, y: torch.atan2(x, -y) + torch.atan(x) + torch.tan(x),
    "arcs": lambda x, y: torch.asin(x / 4) + torch.acos(y / 4) + torch.erfinv(x / 4) + torch.erfc(x),
    "hyperbolic": lambda x, y: torch.sinh(x) + torch.cosh(y) + torch.asinh(x) + torch.acosh(y + 1) + torch.atanh(x / 4),
    "powers": lambda x, y: x**y + x**0.3 + (-2.5) ** y.detach().round(),
    "remainders": lambda x, y: torch.fmod(x, y) + torch.remainder(-x, y) + torch.remainder(x, -0.7),
    "pairs": lambda x, y: torch.hypot(x, y) + torch.copysign(x, -y) + torch.logaddexp(x, y),
    "where infinite": lambda x, y: torch.where(torch.isinf(x) ^ torch.logical_xor(x > 1, y > 1), x, y),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_of_elementary_functions(name: str):
    assert_computes(with_gradients(GRADIENTS[name]), P, P.flip(0) + 0.05)
