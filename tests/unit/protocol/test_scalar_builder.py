"""The builder emits what was meant, once, and nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.arithmetic.scalar import CONSTANTS, IllFormedScalarProgramError, Op, ScalarProgram, evaluate
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.types import DType

F32, I32, I64, BOOL = DType.F32, DType.I32, DType.I64, DType.BOOL


def ops(program: ScalarProgram) -> list[Op]:
    return [Op(i.op) for i in program.instructions]


def value(program: ScalarProgram, *operands: int) -> int:
    return evaluate(program.encode(), operands)


def test_equal_expressions_are_one_value_also_with_arguments_exchanged() -> None:
    b = ScalarBuilder((F32, F32))
    x, y = b.operand(0), b.operand(1)
    assert b.add(x, y) == b.add(y, x)
    assert b.sub(x, y) != b.sub(y, x)
    assert ops(b.build(b.mul(b.add(x, y), b.add(y, x)))) == [Op.F32_ADD, Op.F32_MUL]


def test_what_the_result_does_not_need_is_left_out() -> None:
    b = ScalarBuilder((F32,))
    x = b.operand(0)
    b.div(x, b.f32(3.0))
    result = b.add(x, b.f32(1.0))
    assert ops(b.build(result)) == [Op.CONST_F32, Op.F32_ADD]
    assert b.size(result) == 2


def test_operations_on_constants_are_folded_to_the_same_bits() -> None:
    b = ScalarBuilder()
    third = b.div(b.f32(1.0), b.f32(3.0))
    program = b.build(third)
    assert ops(program) == [Op.CONST_F32]
    assert value(program) == 0x3EAAAAAB


def test_an_operand_that_nothing_reads_still_counts_unless_the_program_is_compacted() -> None:
    b = ScalarBuilder((I32, F32, F32))
    result = b.neg(b.operand(2))
    assert b.build(result).operands == (I32, F32, F32)
    program, used = b.build_compact(result)
    assert (program.operands, used) == ((F32,), [2])


def test_a_bare_operand_is_a_program_when_it_is_the_last() -> None:
    b = ScalarBuilder((I32, F32))
    assert b.build(b.operand(1)).instructions == ()
    with pytest.raises(IllFormedScalarProgramError):
        b.build(b.operand(0))
    assert b.build_compact(b.operand(0)) == (ScalarProgram((I32,), ()), [0])


def test_too_long_programs_are_refused_at_build() -> None:
    b = ScalarBuilder((F32,))
    x = b.operand(0)
    for k in range(33):
        x = b.add(x, b.f32(float(k)))
    assert b.size(x) == 66
    with pytest.raises(IllFormedScalarProgramError, match="66"):
        b.build(x)


def test_types_are_checked_at_once() -> None:
    b = ScalarBuilder((F32, I32))
    with pytest.raises(IllFormedScalarProgramError, match="F32_ADD cannot be applied"):
        b.add(b.operand(0), b.operand(1))
    with pytest.raises(IllFormedScalarProgramError):
        b.apply(Op.F32_ADD, b.operand(0))


def test_an_inlined_program_means_what_it_meant() -> None:
    inner = ScalarBuilder((F32, DType.U8))
    program = inner.build(inner.mul(inner.operand(0), inner.cast(inner.operand(1), F32)))
    b = ScalarBuilder((F32, I32))
    x = b.operand(0)
    outer = b.build(b.add(x, b.inline(program, [x, b.operand(1)])))
    assert value(outer, 0x40000000, 3) == 0x41000000  # 2 + 2 * 3
    with pytest.raises(IllFormedScalarProgramError):
        b.inline(program, [x, x])


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_i64_constant_can_be_made(number: int) -> None:
    b = ScalarBuilder()
    assert value(b.build(b.i64(number))) == number


@given(st.floats(width=64))
def test_a_float_constant_is_the_nearest_binary32(number: float) -> None:
    import numpy as np

    b = ScalarBuilder()
    with np.errstate(over="ignore"):
        expected = int(np.float32(number).view(np.uint32))
    assert value(b.build(b.f32(number))) == (0x7FC00000 if number != number else expected)


@pytest.mark.parametrize("source", (F32, I32, I64, BOOL))
@pytest.mark.parametrize("target", (F32, I32, I64, BOOL))
def test_every_type_can_be_cast_to_every_other(source: DType, target: DType) -> None:
    b = ScalarBuilder((source,))
    result = b.cast(b.operand(0), target)
    assert result.dtype is target
    one = {F32: 0x3F800000}
    assert value(b.build(result), one.get(source, 1)) == one.get(target, 1)


@given(st.data())
def test_random_graphs_evaluate_like_their_unoptimized_form(data: st.DataObject) -> None:
    """Values are computed along with building, one operation at a time; the built program must give the last one."""
    binary = (Op.I32_ADD, Op.I32_SUB, Op.I32_MUL, Op.I32_XOR, Op.I32_SHL, Op.I32_MIN, Op.I32_MULHI_U32)
    operands = [data.draw(st.integers(-(2**31), 2**31 - 1)) for _ in range(3)]
    b = ScalarBuilder((I32,) * 3)
    known: list[tuple[Reg, int]] = [(b.operand(k), w) for k, w in enumerate(operands)]
    known.append((b.i32(5), 5))
    for _ in range(data.draw(st.integers(1, 12))):
        op = data.draw(st.sampled_from(binary))
        (x, u), (y, v) = (known[data.draw(st.integers(0, len(known) - 1))] for _ in range(2))
        step = ScalarBuilder((I32, I32))
        word = value(step.build(step.apply(op, step.operand(0), step.operand(1))), u, v)
        known.append((b.apply(op, x, y), word))
    result, expected = known[-1]
    program = b.build(result)
    assert value(program, *operands) == expected
    assert len({(i.op, i.a, i.b, i.c, i.imm) for i in program.instructions}) == len(program.instructions)
    assert all(i.op in CONSTANTS or i.a < 64 for i in program.instructions)
