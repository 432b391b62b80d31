"""Every scalar operation that is no float arithmetic: contract = reference = numpy's fixed-width integers."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import pytest

from assay.protocol.arithmetic.scalar import CONSTANTS, SIGNATURES, Op, evaluate
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.scalars import BOOL, F32, I32, I64, operation, word

BATCH = 400
OTHER = {F32: np.uint32, I32: np.int32, I64: np.int64, BOOL: np.bool_}
Columns = list[np.ndarray]


def _u(x: np.ndarray) -> np.ndarray:
    return x.view(np.uint32)


def _canonical(x: np.ndarray) -> np.ndarray:
    return np.where((x & 0x7FFFFFFF) > 0x7F800000, np.uint32(0x7FC00000), x)


ORACLES: dict[Op, Callable[..., np.ndarray]] = {
    Op.SELECT: lambda c, a, b: np.where(c, a, b),
    Op.I64_TO_I32: lambda a: a.astype(np.int32),
    Op.I32_TO_I64: lambda a: a.astype(np.int64),
    Op.BOOL_TO_I32: lambda a: a.astype(np.int32),
    Op.I32_TO_BOOL: lambda a: a != 0,
    Op.F32_BITS: lambda a: _canonical(a).view(np.int32),
    Op.BITS_F32: lambda a: _canonical(_u(a)),
    Op.I32_ADD: lambda a, b: a + b,
    Op.I32_SUB: lambda a, b: a - b,
    Op.I32_MUL: lambda a, b: a * b,
    Op.I32_MULHI_U32: lambda a, b: (_u(a).astype(np.uint64) * _u(b) >> np.uint64(32)).astype(np.uint32).view(np.int32),
    Op.I32_AND: lambda a, b: a & b,
    Op.I32_OR: lambda a, b: a | b,
    Op.I32_XOR: lambda a, b: a ^ b,
    Op.I32_NOT: lambda a: ~a,
    Op.I32_SHL: lambda a, b: a << (b & 31),
    Op.I32_SHR_LOGICAL: lambda a, b: (_u(a) >> (_u(b) & 31)).view(np.int32),
    Op.I32_SHR_ARITH: lambda a, b: a >> (b & 31),
    Op.I32_MIN: np.minimum,
    Op.I32_MAX: np.maximum,
    Op.I32_EQ: np.equal,
    Op.I32_LT: np.less,
    Op.I32_LTU: lambda a, b: _u(a) < _u(b),
    Op.I64_ADD: lambda a, b: a + b,
    Op.I64_SUB: lambda a, b: a - b,
    Op.I64_MUL: lambda a, b: a * b,
    Op.I64_EQ: np.equal,
    Op.I64_LT: np.less,
    Op.BOOL_AND: np.logical_and,
    Op.BOOL_OR: np.logical_or,
    Op.BOOL_NOT: np.logical_not,
}


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("ScalarHarness")


@pytest.mark.vectors
@pytest.mark.parametrize("op", ORACLES, ids=lambda op: op.name)
def test_contract_reference_and_oracle_agree(op: Op, harness: EvmContract, vector_count: int) -> None:
    source = random.Random(f"integers {op.name}")
    types = (BOOL, I64, I64) if op is Op.SELECT else SIGNATURES[op][0]
    columns = [[word(source, t) for _ in range(vector_count)] for t in types]
    with np.errstate(over="ignore"):
        computed = ORACLES[op](*(np.array(c, dtype=OTHER[t]) for c, t in zip(columns, types, strict=True)))
    expected, code = [int(v) for v in computed], operation(op, types).encode()
    rows = [list(row) for row in zip(*columns, strict=True)]
    assert [evaluate(code, row) for row in rows] == expected
    for start in range(0, len(rows), BATCH):
        words = [[w % 2**256 for w in row] for row in rows[start : start + BATCH]]
        assert list(harness.call("evaluateRows", code, words)) == [e % 2**256 for e in expected[start : start + BATCH]]


def test_every_operation_has_an_oracle_here_or_among_the_floats() -> None:
    assert {op for op in Op if op not in CONSTANTS and "F32" not in op.name} <= set(ORACLES)
