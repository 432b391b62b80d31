"""What Float32 costs per operation, on random patterns and on edges: the table of contracts/libraries/Float32.md.

Gas is read around each call inside a contract, the cost of reading it taken off. That nothing of an operation is moved
out from between the readings is checked against the gas of whole calls.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from statistics import median

import pytest

from assay.protocol.arithmetic import f32
from tests.harness.contracts import snapshots
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.scalars import FLOAT_EDGES

WORD = 1 << 256
BATCH = 200
RANDOM = 1000
"""Random operands per operation; what a median is worth depends on it, what the extremes are worth on the edges."""

EDGES = [edge | sign << 31 for edge in FLOAT_EDGES for sign in (0, 1)]
SHIFTS = (-(2**31), -300, -150, -149, -127, -24, -1, 0, 1, 24, 127, 150, 300, 2**31 - 1)
WIDTHS = (32, 64)
INTEGERS = [s * (1 << k) + d for k in (0, 1, 23, 24, 25, 31, 62, 63, 127, 254) for d in (-1, 0, 1) for s in (1, -1)]

Operands = Callable[[random.Random], tuple[int, int]]


def pattern(source: random.Random) -> int:
    """Any of the 2^32, each as likely: a subnormal in 128, a NaN or infinity in 128."""
    return source.getrandbits(32)


def two(source: random.Random) -> tuple[int, int]:
    """Two patterns, half of the time near in exponent, where sums have something to do."""
    x = pattern(source)
    near = (x & 0x7FFFFFFF) + (source.randrange(-8, 9) << 23)
    return x, near % (1 << 31) | source.getrandbits(1) << 31 if source.getrandbits(1) else pattern(source)


def integer(source: random.Random) -> tuple[int, int]:
    """A signed integer of 1 to 64 bits."""
    return source.getrandbits(source.randrange(1, 65)) * source.choice((1, -1)), 0


BINARY = (two, list(product(EDGES, EDGES)))
UNARY = (lambda source: (pattern(source), 0), [(x, 0) for x in EDGES])
OPERATIONS: dict[str, tuple[int, Callable[..., int | bool], tuple[Operands, list[tuple[int, int]]]]] = {
    "add": (1, f32.add, BINARY),
    "sub": (2, f32.sub, BINARY),
    "mul": (3, f32.mul, BINARY),
    "div": (4, f32.div, BINARY),
    "sqrt": (5, f32.sqrt, (lambda source: (pattern(source) >> 1, 0), [(x, 0) for x in EDGES])),
    "rint": (6, f32.rint, UNARY),
    "floor": (7, f32.floor, UNARY),
    "min": (8, f32.minimum, BINARY),
    "max": (9, f32.maximum, BINARY),
    "eq": (10, f32.eq, BINARY),
    "lt": (11, f32.lt, BINARY),
    "le": (12, f32.le, BINARY),
    "scale2": (13, f32.scale2, (lambda s: (pattern(s), s.randrange(-300, 301)), list(product(EDGES, SHIFTS)))),
    "exponentOf": (14, f32.exponent, UNARY),
    "fromInt": (15, f32.from_int, (integer, [(n, 0) for n in INTEGERS])),
    "toInt": (16, f32.to_int, (lambda s: (pattern(s), s.choice(WIDTHS)), list(product(EDGES, WIDTHS)))),
}


@pytest.fixture(scope="module")
def bench() -> EvmContract:
    return Evm().deploy("Float32Gas")


def operands(name: str) -> list[tuple[int, int]]:
    """Random and edge operands of an operation, the same every time."""
    _, _, (draw, edges) = OPERATIONS[name]
    source = random.Random(754)
    return [draw(source) for _ in range(RANDOM)] + edges


def measure(bench: EvmContract, which: int, rows: list[tuple[int, int]]) -> tuple[list[int], list[int], int]:
    """Results and gas of each row, and the gas of the whole call."""
    results, used = bench.call("measure", which, [x % WORD for x, _ in rows], [y % WORD for _, y in rows])
    return list(results), list(used), bench.gas


def test_the_table_of_operations_holds_and_every_result_is_the_references(bench: EvmContract) -> None:
    (reading,) = set(measure(bench, 0, EDGES_ONLY)[1])
    table = {}
    for name, (which, reference, _) in OPERATIONS.items():
        rows, gas = operands(name), []
        unary = name in ("sqrt", "rint", "floor", "exponentOf", "fromInt")
        for start in range(0, len(rows), BATCH):
            batch = rows[start : start + BATCH]
            results, used, _ = measure(bench, which, batch)
            assert results == [int(reference(*row[: 1 if unary else 2])) % WORD for row in batch], name
            gas += [g - reading for g in used]
        table[name] = {"min": min(gas), "median": round(median(gas)), "max": max(gas)}
    snapshots.check("float32", table)


EDGES_ONLY = [(x, 0) for x in EDGES]


@pytest.mark.parametrize("name", OPERATIONS)
def test_all_that_depends_on_the_operands_is_between_the_readings(bench: EvmContract, name: str) -> None:
    which, rows = OPERATIONS[name][0], operands(name)
    batches = [rows[:50], rows[50:100], rows[-50:]]
    around = set()
    for batch in batches:
        _, used, whole = measure(bench, which, batch)
        around.add(whole - sum(used))
    assert len(around) == 1
