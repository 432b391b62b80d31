"""Where random patterns seldom come: operands at every distance, tiny subnormals, exact halves, seams of the range."""

from __future__ import annotations

import random

import pytest

from assay.protocol.arithmetic.scalar import Op, evaluate
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.scalars import operation

SIGN = 1 << 31


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("ScalarHarness")


def check(harness: EvmContract, op: Op, rows: list[tuple[int, int]]) -> None:
    """Contract and reference on pairs of patterns."""
    code = operation(op).encode()
    for start in range(0, len(rows), 500):
        batch = [list(row) for row in rows[start : start + 500]]
        computed = list(harness.call("evaluateRows", code, [[w % 2**256 for w in row] for row in batch]))
        expected = [evaluate(code, row) % 2**256 for row in batch]
        wrong = [(row, c, e) for row, c, e in zip(batch, computed, expected, strict=True) if c != e]
        assert not wrong, [tuple(map(hex, (*row, c, e))) for row, c, e in wrong[:3]]


@pytest.mark.parametrize("op", (Op.F32_ADD, Op.F32_SUB), ids=lambda op: op.name)
def test_summands_at_every_distance(op: Op, harness: EvmContract) -> None:
    """The larger one a power of two or all ones, the smaller one at, below and above each half and quarter."""
    rows = []
    for large in (0x40000000, 0x40000001, 0x407FFFFF, 0x00800000, 0x7F7FFFFF):
        for distance in range(40):
            field = max((large >> 23) - distance, 0)
            for mantissa in (0, 1, 0x400000, 0x7FFFFF):
                small = field << 23 | mantissa
                rows += [(large, small), (large, small | SIGN), (small | SIGN, large)]
    check(harness, op, rows)


@pytest.mark.parametrize("op", (Op.F32_ADD, Op.F32_SUB, Op.F32_MUL, Op.F32_DIV), ids=lambda op: op.name)
def test_tiny_subnormals_against_everything(op: Op, harness: EvmContract) -> None:
    """The quotient of a subnormal has few bits, and only its remainder tells a tie from what lies beside it."""
    source = random.Random(149)
    tiny = [source.randrange(1, 1 << source.randrange(1, 24)) for _ in range(700)]
    other = [source.randrange(0x7F800000) | source.getrandbits(1) << 31 for _ in tiny]
    low = [source.randrange(0x34000000) for _ in tiny]
    rows = [*zip(tiny, other, strict=True), *zip(other, tiny, strict=True), *zip(tiny, low, strict=True)]
    check(harness, op, rows)


def test_square_roots_of_squares_their_neighbours_and_subnormals(harness: EvmContract) -> None:
    squares = [((k * k) << 9, 0) for k in range(1, 128)]
    exact = [(0x3F800000 + (k << 12), 0) for k in range(-200, 200)]
    near = [(x + d, 0) for x, _ in exact[::10] for d in (-1, 1)]
    check(harness, Op.F32_SQRT, squares + exact + near + [(k, 0) for k in range(1, 70)])


def test_scaling_across_the_subnormal_seam_and_the_overflow_edge(harness: EvmContract) -> None:
    patterns = (1, 3, 0x7FFFFF, 0x800000, 0x800001, 0xFFFFFF, 0x3FFFFFFF, 0x3F800000, 0x7F7FFFFF, 0x80000005)
    shifts = (*range(-30, 31), *range(-280, -100, 7), *range(100, 280, 7), 2**31 - 1, -(2**31))
    check(harness, Op.F32_SCALE2, [(x, n) for x in patterns for n in shifts])


def test_halves_round_to_even_and_floors_go_down(harness: EvmContract) -> None:
    halves = [
        0x3F000000,
        0x3FC00000,
        0x40200000,
        0x4AFFFFFF,
        0x4B000001,
        0x4A800001,
        0x4A7FFFFF,
        0x3EFFFFFF,
        0x3F7FFFFF,
    ]
    rows = [((x + d) | s, 0) for x in halves for d in (-1, 0, 1) for s in (0, SIGN)]
    check(harness, Op.F32_RINT, rows)
    check(harness, Op.F32_FLOOR, rows)
