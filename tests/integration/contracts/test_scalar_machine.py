"""The contract's scalar machine, final rounding and generator equal the reference on every word."""

from __future__ import annotations

import random

import pytest

from assay.protocol.arithmetic import philox, rounding, scalar
from assay.protocol.arithmetic.scalar import Op
from tests.harness.contracts.harness import Evm, EvmContract

SEED = 20261120
SPECIAL = (
    *(0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x00800001, 0x3F800000, 0xBF800000),
    *(0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC12345, 0x4B000000, 0x4B000001),
    *(0x4EFFFFFF, 0x4F000000, 0xCF000000, 0xCF000001, 0x5F000000, 0xDF000000, 0x3EFFFFFF, 0x3F000000, 0x3FC00000),
)
OPCODES = (*map(int, Op), 0x00, 0x06, 0x2A, 0x45, 0x53, 0xFF)


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("ScalarHarness")


def _word(source: random.Random) -> int:
    """A word of the kinds that registers hold, and of kinds that they never should."""
    kind = source.random()
    if kind < 0.4:
        return (source.choice(SPECIAL) + source.choice((0, 0, -1, 1))) % 2**32
    if kind < 0.7:
        return source.getrandbits(32)
    if kind < 0.85:
        return (source.getrandbits(64) - 2**63) % 2**256
    return source.getrandbits(256)


def _signed(word: int) -> int:
    return word - 2**256 if word >> 255 else word


@pytest.mark.parametrize("op", OPCODES)
def test_every_operation_equals_the_reference_on_special_and_random_words(harness: EvmContract, op: int) -> None:
    source = random.Random(SEED + op)
    pairs = [[_word(source), _word(source)] for _ in range(250)]
    code = bytes((op, 0, 1, 0, 0, 0, 0, 0))
    expected = [scalar.evaluate(code, [_signed(a), _signed(b)]) % 2**256 for a, b in pairs]
    assert list(harness.call("execute", op, pairs)) == expected


def test_random_code_has_the_value_that_the_reference_gives_it(harness: EvmContract) -> None:
    source = random.Random(SEED)
    for _ in range(150):
        count, length = source.randrange(10), source.randrange(0, 67)
        code = b"".join(
            bytes((source.choice(OPCODES), *(source.randrange(12 + i) for _ in range(3)))) + source.randbytes(4)
            for i in range(length)
        )
        code += source.randbytes(source.choice((0, 0, 0, 3)))
        operands = [_word(source) for _ in range(count)]
        expected = scalar.evaluate(code, [_signed(w) for w in operands]) % 2**256
        assert harness.call("evaluate", code, operands) == expected


def test_finish_rounds_once_like_the_reference(harness: EvmContract) -> None:
    source = random.Random(SEED)
    sums = [source.choice((1, -1)) * source.getrandbits(source.randrange(0, 255)) for _ in range(1500)]
    # Midpoints and their neighbours, where a second rounding would show.
    sums += [(2**25 + 1 << k) + d for k in range(0, 200, 7) for d in (-1, 0, 1)]
    scales = [source.randrange(-420, 320) for _ in sums]
    expected = [rounding.finish(s, n) for s, n in zip(sums, scales, strict=True)]
    assert list(harness.call("finish", sums, scales)) == expected


def test_random_words_equal_the_reference(harness: EvmContract) -> None:
    source = random.Random(SEED)
    for _ in range(60):
        element, stream = source.getrandbits(36), source.getrandbits(32)
        step = (source.getrandbits(32), source.getrandbits(32))
        key = (source.getrandbits(32), source.getrandbits(32))
        expected = philox.random_word(element, stream, step, key)
        assert harness.call("randomWord", element, stream, list(step), list(key)) == expected
