"""The transcendental functions: error against mpmath, special values, and that every one fits its map.

Bounds over all 2^32 inputs come from `tools/ulp_sweep.py`; here the same bounds are held on special inputs and on a
random subset, by the reference interpreter.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import mpmath as mp
import pytest

from assay.protocol.arithmetic import f32, functions
from assay.protocol.arithmetic.scalar import ScalarProgram, evaluate
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.types import DType
from tests.unit.protocol.test_f32 import bits, value

mp.mp.prec = 120
Real = mp.mpf
NAN, INF = f32.NAN, f32.INF
MINUS_INF, MINUS_ZERO = INF | 1 << 31, 1 << 31


def _phi(x: Real) -> Real:
    return mp.erfc(-x / mp.sqrt(2)) / 2


def _sigmoid(x: Real) -> Real:
    return mp.exp(x) / (1 + mp.exp(x)) if x < 0 else 1 / (1 + mp.exp(-x))


ORACLES: dict[str, Callable[[Real], Real]] = {
    "exp": mp.exp,
    "log": mp.log,
    "tanh": mp.tanh,
    "sigmoid": _sigmoid,
    "rsqrt": lambda x: 1 / mp.sqrt(x),
    "erf": mp.erf,
    "gauss": lambda x: mp.exp(-x * x / 2),
    "gelu": lambda x: x * _phi(x),
    "gelu_grad": lambda x: _phi(x) + x * mp.npdf(x),
    "gelu_tanh": lambda x: x * _sigmoid(2 * mp.sqrt(2 / mp.pi) * (x + mp.mpf("0.044715") * x**3)),
    "sin": mp.sin,
    "cos": mp.cos,
}
ULP_BOUNDS = {
    "exp": 0.93, "log": 0.85, "tanh": 1.31, "sigmoid": 1.69, "rsqrt": 1.5, "erf": 1.56, "gauss": 1.1, "gelu": 2.81
}  # fmt: skip
ABSOLUTE_BOUNDS = {"sin": 2.0**-23, "cos": 2.0**-23, "gelu_grad": 2.0**-22, "gelu_tanh": 2.0**-20}
RANGES: dict[str, tuple[float, float]] = {
    "exp": (-110, 92), "log": (0, 3), "tanh": (-10, 10), "sigmoid": (-110, 30), "rsqrt": (0, 9), "erf": (-4.5, 4.5),
    "gauss": (-15, 15), "gelu": (-7, 7), "gelu_grad": (-7, 7), "gelu_tanh": (-7, 7), "sin": (-32768, 32768),
    "cos": (-32768, 32768),
}  # fmt: skip
SUBSET = 1 << 16


def programs(name: str) -> list[ScalarProgram]:
    """The maps of a function in order; of two, the second takes the operand and the value of the first."""
    function: Callable[..., Reg] = getattr(functions, name)
    b = ScalarBuilder([DType.F32])
    if name in ("gelu", "gelu_grad"):
        first = ScalarBuilder([DType.F32])
        return [
            first.build(functions.gauss(first, first.operand(0))),
            b.build(function(b, b.operand(0), b.add_operand(DType.F32))),
        ]
    return [b.build(function(b, b.operand(0)))]


def apply(maps: list[ScalarProgram], x: int) -> int:
    if len(maps) == 2:
        return evaluate(maps[1].encode(), (x, evaluate(maps[0].encode(), (x,))))
    return evaluate(maps[0].encode(), (x,))


def inputs(name: str, count: int) -> list[int]:
    """Half from the interval where the function lives, half from all patterns."""
    source = random.Random(f"functions {name}")
    low, high = RANGES[name]
    near = [bits(source.uniform(low, high)) for _ in range(count // 2)]
    return near + [source.getrandbits(32) for _ in range(count // 2)]


def ulps(name: str, x: int, y: int) -> float:
    """The error of y in units of the last place of the true value, for erf and gelu never below that of 2^-24 |x|."""
    true = ORACLES[name](Real(value(x)))
    size = abs(true)
    if name in ("erf", "gelu"):
        size = max(size, abs(Real(value(x))) * Real(2) ** -24)
    exponent = max(int(mp.frexp(size)[1]) if size else -125, -125)
    return float(abs(Real(value(y)) - true) / Real(2) ** (exponent - 24))


def overflows(true: Real) -> bool:
    return bool(abs(true) >= Real(2) ** 128 - Real(2) ** 103)


@pytest.mark.gate_takes(3)
@pytest.mark.parametrize("name", ULP_BOUNDS)
def test_the_error_is_within_its_bound_in_ulp(name: str, vector_count: int) -> None:
    maps, worst = programs(name), 0.0
    for x in inputs(name, max(SUBSET // 32, min(SUBSET, vector_count * 4))):
        number = value(x)
        if number != number or abs(number) == float("inf") or (name in ("log", "rsqrt") and number <= 0):
            continue
        y = apply(maps, x)
        if name == "exp" and overflows(ORACLES[name](Real(number))):
            assert y == INF
            continue
        worst = max(worst, ulps(name, x, y))
    assert worst <= ULP_BOUNDS[name]


@pytest.mark.parametrize("name", ABSOLUTE_BOUNDS)
def test_the_absolute_error_is_within_its_bound_where_accuracy_is_claimed(name: str, vector_count: int) -> None:
    maps, worst = programs(name), Real(0)
    for x in inputs(name, max(SUBSET // 32, min(SUBSET, vector_count * 4))):
        number = value(x)
        if number != number or not RANGES[name][0] <= number <= RANGES[name][1]:
            continue
        worst = max(worst, abs(Real(value(apply(maps, x))) - ORACLES[name](Real(number))))
    assert worst <= ABSOLUTE_BOUNDS[name]


SPECIAL_VALUES: dict[str, dict[int, int]] = {
    "exp": {INF: INF, MINUS_INF: 0, 0: bits(1.0), MINUS_ZERO: bits(1.0), bits(89.0): INF, bits(-104.0): 0},
    "log": {INF: INF, MINUS_INF: NAN, 0: MINUS_INF, MINUS_ZERO: MINUS_INF, bits(1.0): 0, bits(-1.0): NAN},
    "tanh": {INF: bits(1.0), MINUS_INF: bits(-1.0), 0: 0, MINUS_ZERO: 0, 1: 1, bits(10.0): bits(1.0)},
    "sigmoid": {INF: bits(1.0), MINUS_INF: 0, 0: bits(0.5), MINUS_ZERO: bits(0.5), bits(-105.0): 0},
    "rsqrt": {INF: 0, MINUS_INF: NAN, 0: INF, MINUS_ZERO: MINUS_INF, bits(4.0): bits(0.5)},
    "erf": {INF: bits(1.0), MINUS_INF: bits(-1.0), 0: 0, MINUS_ZERO: MINUS_ZERO, bits(4.0): bits(1.0)},
    "gauss": {INF: 0, MINUS_INF: 0, 0: bits(1.0), MINUS_ZERO: bits(1.0)},
    "gelu": {INF: INF, 0: 0, bits(20.0): bits(20.0), bits(-20.0): 0},
    "gelu_grad": {INF: bits(1.0), 0: bits(0.5), bits(20.0): bits(1.0), bits(-20.0): MINUS_ZERO},
    "gelu_tanh": {INF: INF, 0: 0, bits(20.0): bits(20.0)},
    "sin": {INF: NAN, MINUS_INF: NAN, 0: 0, 1: 1},
    "cos": {INF: NAN, MINUS_INF: NAN, 0: bits(1.0)},
}


@pytest.mark.parametrize("name", ORACLES)
def test_special_inputs_give_the_values_that_the_function_has_there(name: str) -> None:
    maps = programs(name)
    assert apply(maps, NAN) == apply(maps, 0xFF800001) == NAN
    found = {hex(x): hex(apply(maps, x)) for x in SPECIAL_VALUES[name]}
    assert found == {hex(x): hex(y) for x, y in SPECIAL_VALUES[name].items()}


@pytest.mark.parametrize("name", ("tanh", "erf", "sin"))
def test_odd_functions_are_odd_on_every_bit(name: str) -> None:
    maps = programs(name)
    for x in (bits(0.1), bits(0.6), bits(1.2), bits(5.0), 1, 0x007FFFFF):
        assert apply(maps, x | MINUS_ZERO) == apply(maps, x) ^ MINUS_ZERO


@pytest.mark.parametrize("name", ("exp", "tanh", "sigmoid", "erf"))
def test_monotonic_functions_never_step_back_by_more_than_an_ulp(name: str) -> None:
    """Between neighbours a rounded function may fall by an ulp; more would be a seam between two branches."""
    maps, seams = programs(name), (0.5625, 1.125, 0.34657359, 1.0397207, 2.0, 17.0)
    for seam in seams:
        ys = [apply(maps, bits(seam) + d) for d in range(-40, 41)]
        assert all(later >= earlier - 1 for earlier, later in pairwise(ys))


@pytest.mark.parametrize("name", ("sin", "cos"))
def test_far_from_zero_the_bits_are_defined_and_bounded(name: str) -> None:
    maps = programs(name)
    for x in (bits(1e6), bits(1e20), 0x7F7FFFFF, 0xFF7FFFFF):
        assert abs(value(apply(maps, x))) <= 1.0


def test_the_sum_of_squares_of_sine_and_cosine_is_one() -> None:
    sine, cosine = programs("sin"), programs("cos")
    for x in inputs("sin", 200):
        if abs(value(x)) <= 32768:
            squares = [Fraction(value(apply(m, x))) ** 2 for m in (sine, cosine)]
            assert abs(sum(squares) - 1) < Fraction(1, 1 << 21)


@pytest.mark.parametrize("name", ORACLES)
def test_every_function_fits_a_map(name: str) -> None:
    limits = {"exp": 34, "log": 46, "tanh": 58, "sigmoid": 47, "rsqrt": 3, "erf": 63, "gauss": 44, "gelu": 54}
    for program in programs(name):
        assert len(program.instructions) <= max(limits.get(name, 54), 44)
        assert program.result_type is DType.F32
