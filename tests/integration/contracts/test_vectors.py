"""Every scalar operation on floats: contract = reference = an independent oracle, on the same vectors.

The oracle is Berkeley SoftFloat (softfloatpy) for what IEEE 754 defines, and Python's exact integers and binary64 for
the rest. `make vectors` takes 100,000 vectors per operation, the gate a fixed subset.
"""

import math
import random
import struct
from collections.abc import Callable, Iterator

import pytest
import softfloatpy as soft
from softfloatpy import Float32, Float64, Float128, Int32, Int64, RoundingMode

from assay.protocol.arithmetic import scalar
from assay.protocol.arithmetic.scalar import Op
from tests.harness.contracts.harness import Evm, EvmContract

SEED = 754
BATCH = 250
NAN = 0x7FC00000
EDGES = (
    *(0x00000000, 0x00000001, 0x00000002, 0x007FFFFF, 0x00800000, 0x00800001, 0x00FFFFFF, 0x01000000),
    *(0x33800000, 0x3EFFFFFF, 0x3F000000, 0x3F000001, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40000000),
    *(0x4AFFFFFF, 0x4B000000, 0x4B7FFFFF, 0x4B800000, 0x4EFFFFFF, 0x4F000000, 0x5EFFFFFF, 0x5F000000),
    *(0x7EFFFFFF, 0x7F000000, 0x7F7FFFFF, 0x7F800000, 0x7F800001, 0x7FC00000, 0x7FFFFFFF),
)


def _f32(bits: int) -> Float32:
    return Float32.from_bytes(bits.to_bytes(4, "big"))


def _bits(value: Float32) -> int:
    """The canonical pattern: softfloat keeps NaN payloads, we have one NaN."""
    return NAN if value.is_nan() else int.from_bytes(value.to_bytes(), "big")


def _float(bits: int) -> float:
    return struct.unpack(">f", bits.to_bytes(4, "big"))[0]  # type: ignore[no-any-return]


def _smaller(x: int, y: int, sign: int) -> int:
    a, b = _float(x), _float(y)
    if math.isnan(a) or math.isnan(b):
        return NAN
    chosen = x if sign * a < sign * b else y
    return 0 if _float(chosen) == 0 else chosen


def _scaled(x: int, n: int) -> int:
    """x * 2^n with one rounding: exact in binary128, whose exponent range holds every product that matters."""
    n = max(-400, min(400, n))
    power = Float128.from_bytes(((n + 16383) << 112).to_bytes(16, "big"))
    return _bits(soft.f128_to_f32(soft.f128_mul(soft.f32_to_f128(_f32(x)), power)))


def _exponent(x: int) -> int:
    value = _float(x)
    if not math.isfinite(value):
        return 129
    return math.frexp(value)[1] if value else -149


def _integer(x: int, bits: int) -> int:
    value = _float(x)
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if math.isnan(value):
        return 0
    return (high if value > 0 else low) if math.isinf(value) else max(low, min(high, int(value)))


def _signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


NEAR, DOWN = RoundingMode.NEAR_EVEN, RoundingMode.MIN
ORACLES: dict[Op, Callable[[int, int], int]] = {
    Op.F32_ADD: lambda x, y: _bits(soft.f32_add(_f32(x), _f32(y))),
    Op.F32_SUB: lambda x, y: _bits(soft.f32_sub(_f32(x), _f32(y))),
    Op.F32_MUL: lambda x, y: _bits(soft.f32_mul(_f32(x), _f32(y))),
    Op.F32_DIV: lambda x, y: _bits(soft.f32_div(_f32(x), _f32(y))),
    Op.F32_SQRT: lambda x, y: _bits(soft.f32_sqrt(_f32(x))),
    Op.F32_NEG: lambda x, y: _bits(soft.f32_neg(_f32(x))),
    Op.F32_ABS: lambda x, y: _bits(_f32(x & 0x7FFFFFFF)),
    Op.F32_MIN: lambda x, y: _smaller(x, y, 1),
    Op.F32_MAX: lambda x, y: _smaller(x, y, -1),
    Op.F32_EQ: lambda x, y: int(soft.f32_eq(_f32(x), _f32(y))),
    Op.F32_LT: lambda x, y: int(soft.f32_lt_quiet(_f32(x), _f32(y))),
    Op.F32_LE: lambda x, y: int(soft.f32_le_quiet(_f32(x), _f32(y))),
    Op.F32_RINT: lambda x, y: _bits(soft.f32_round_to_int(_f32(x), NEAR)),
    Op.F32_FLOOR: lambda x, y: _bits(soft.f32_round_to_int(_f32(x), DOWN)),
    Op.F32_SCALE2: lambda x, y: _scaled(x, _signed(y, 32)),
    Op.F32_EXPONENT: lambda x, y: _exponent(x),
    Op.I32_TO_F32: lambda x, y: _bits(soft.i32_to_f32(Int32.from_int(_signed(x, 32)))),
    Op.F32_TO_I32: lambda x, y: _integer(x, 32),
    Op.I64_TO_F32: lambda x, y: _bits(soft.i64_to_f32(Int64.from_int(_signed(x, 64)))),
    Op.F32_TO_I64: lambda x, y: _integer(x, 64),
}
NEARBY = {Op.F32_ADD, Op.F32_SUB, Op.F32_EQ, Op.F32_LT, Op.F32_LE, Op.F32_MIN, Op.F32_MAX}


def _float_pattern(source: random.Random) -> int:
    if source.random() < 0.2:
        return source.choice(EDGES) | source.getrandbits(1) << 31
    return source.getrandbits(32)


def vectors(op: Op, count: int) -> Iterator[tuple[int, int]]:
    """Operand words of the types that `op` takes: edges, neighbours, near-midpoints and random patterns."""
    source = random.Random(SEED + op)
    for _ in range(count):
        x, y = _float_pattern(source), _float_pattern(source)
        if op in NEARBY and source.random() < 0.5:
            y = (x + source.randrange(-3, 4)) & 0xFFFFFFFF ^ source.getrandbits(1) << 31
        if op is Op.F32_SCALE2:
            y = source.choice((source.randrange(-320, 320), source.randrange(-30, 30), _signed(y, 32)))
        if op is Op.I32_TO_F32:
            x = _signed(source.getrandbits(32), 32) >> source.randrange(32)
        if op is Op.I64_TO_F32:
            # 25 bits ending in a one are a midpoint; one beside it is where rounding through binary64 first goes wrong.
            midpoint = ((1 << 25 | source.getrandbits(24) << 1 | 1) << source.randrange(8, 38)) + source.choice(
                (-1, 0, 1)
            )
            x = source.choice((_signed(source.getrandbits(64), 64) >> source.randrange(64), midpoint, -midpoint))
        yield x, y


@pytest.fixture(scope="module")
def harness() -> EvmContract:
    return Evm().deploy("ScalarHarness")


@pytest.mark.vectors
@pytest.mark.parametrize("op", ORACLES, ids=lambda op: op.name)
def test_contract_reference_and_oracle_agree(op: Op, harness: EvmContract, vector_count: int) -> None:
    code = bytes((op, 0, 1, 0, 0, 0, 0, 0))
    pairs = list(vectors(op, vector_count))
    for start in range(0, len(pairs), BATCH):
        batch = pairs[start : start + BATCH]
        words = [[x % 2**256, y % 2**256] for x, y in batch]
        computed = harness.call("execute", int(op), words)
        for (x, y), word in zip(batch, computed, strict=True):
            expected = ORACLES[op](x, y)
            assert scalar.evaluate(code, [x, y]) == expected, f"reference: {op.name} {x:#x} {y:#x}"
            assert word == expected % 2**256, f"contract: {op.name} {x:#x} {y:#x}"


def test_every_float_operation_has_an_oracle() -> None:
    own = {op for op in Op if "F32" in op.name} - {Op.CONST_F32, Op.F32_BITS, Op.BITS_F32}
    assert own == set(ORACLES)


def test_the_oracle_rounds_once_where_two_roundings_differ() -> None:
    """(2^24 + 1) 2^38 + 1 is just above a midpoint; through binary64 it would fall on it and round to even, down."""
    value = ((1 << 24) + 1 << 38) + 1
    through_f64 = _bits(soft.f64_to_f32(Float64.from_float(float(value))))
    assert ORACLES[Op.I64_TO_F32](value, 0) == through_f64 + 1
