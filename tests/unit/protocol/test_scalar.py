"""The scalar machine: its encoding, its types, and that it is total."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assay.protocol.arithmetic.scalar import (
    CONSTANTS,
    SIGNATURES,
    IllFormedScalarProgramError,
    Instruction,
    Op,
    ScalarProgram,
    arity_of,
    canonical_word,
    evaluate,
    infer_types,
    load,
    store,
)
from assay.protocol.types import DType

F32, I32, I64, BOOL = DType.F32, DType.I32, DType.I64, DType.BOOL
WORDS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.integers(0, 2**32 - 1), st.sampled_from((0, 1, -1)))
CODE = st.lists(
    st.builds(
        Instruction,
        st.one_of(st.sampled_from(list(Op)), st.integers(0, 255)),
        st.integers(0, 20),
        st.integers(0, 255),
        st.integers(0, 20),
        st.integers(0, 2**32 - 1),
    ),
    max_size=66,
)


def run(op: Op, *words: int, imm: int = 0) -> int:
    a, b, c = (*range(len(words)), 0, 0, 0)[:3]
    return evaluate(Instruction(op, a, b, c, imm).encode(), words)


def test_opcodes_are_those_of_the_protocol() -> None:
    """Renumbering an opcode changes the meaning of every program that is already committed."""
    published = {
        0x01: "CONST_F32", 0x02: "CONST_I32", 0x03: "CONST_I64", 0x04: "CONST_BOOL", 0x05: "SELECT",
        0x10: "F32_ADD", 0x11: "F32_SUB", 0x12: "F32_MUL", 0x13: "F32_DIV", 0x14: "F32_SQRT", 0x15: "F32_NEG",
        0x16: "F32_ABS", 0x17: "F32_MIN", 0x18: "F32_MAX", 0x19: "F32_EQ", 0x1A: "F32_LT", 0x1B: "F32_LE",
        0x1C: "F32_RINT", 0x1D: "F32_FLOOR", 0x1E: "F32_SCALE2", 0x1F: "F32_EXPONENT",
        0x20: "I32_TO_F32", 0x21: "F32_TO_I32", 0x22: "I64_TO_F32", 0x23: "F32_TO_I64", 0x24: "I64_TO_I32",
        0x25: "I32_TO_I64", 0x26: "BOOL_TO_I32", 0x27: "I32_TO_BOOL", 0x28: "F32_BITS", 0x29: "BITS_F32",
        0x30: "I32_ADD", 0x31: "I32_SUB", 0x32: "I32_MUL", 0x33: "I32_MULHI_U32", 0x34: "I32_AND", 0x35: "I32_OR",
        0x36: "I32_XOR", 0x37: "I32_NOT", 0x38: "I32_SHL", 0x39: "I32_SHR_LOGICAL", 0x3A: "I32_SHR_ARITH",
        0x3B: "I32_MIN", 0x3C: "I32_MAX", 0x3D: "I32_EQ", 0x3E: "I32_LT", 0x3F: "I32_LTU",
        0x40: "I64_ADD", 0x41: "I64_SUB", 0x42: "I64_MUL", 0x43: "I64_EQ", 0x44: "I64_LT",
        0x50: "BOOL_AND", 0x51: "BOOL_OR", 0x52: "BOOL_NOT",
    }  # fmt: skip
    assert {int(op): op.name for op in Op} == published
    assert set(SIGNATURES) | {Op.SELECT} == set(Op)


def test_an_instruction_is_eight_bytes_big_endian() -> None:
    assert Instruction(Op.SELECT, 1, 2, 3).encode() == bytes.fromhex("0501020300000000")
    assert Instruction(Op.CONST_F32, imm=0x3F800001).encode() == bytes.fromhex("010000003f800001")


@given(CODE)
def test_decoding_returns_what_was_encoded(code: list[Instruction]) -> None:
    program = ScalarProgram((F32,), tuple(code))
    assert ScalarProgram.decode(program.encode(), (F32,)) == program


@given(CODE, st.lists(WORDS, max_size=9))
def test_every_code_has_a_value(code: list[Instruction], operands: list[int]) -> None:
    word = evaluate(b"".join(i.encode() for i in code), operands)
    assert -(2**63) <= word < 2**63
    if len(code) > 64 or len(operands) > 8:
        assert word == 0


def test_code_of_a_wrong_length_and_no_register_at_all_have_the_value_zero() -> None:
    assert evaluate(b"\x02\0\0\0\0\0\0", [5]) == 0
    assert evaluate(b"", []) == 0
    assert evaluate(b"", [5, 6]) == 6


@pytest.mark.parametrize("op", (0x00, 0x06, 0x0F, 0x2A, 0x2F, 0x45, 0x53, 0xFF))
def test_an_unknown_opcode_gives_zero(op: int) -> None:
    assert evaluate(Instruction(op, 0, 0).encode(), [7]) == 0


def test_a_register_at_or_after_the_current_one_reads_zero() -> None:
    assert evaluate(Instruction(Op.I32_ADD, 0, 1).encode(), [7]) == 7
    assert evaluate(Instruction(Op.I32_ADD, 0, 255).encode(), [7]) == 7


def test_operations_reduce_what_they_read_to_the_type_they_expect() -> None:
    assert run(Op.F32_ADD, 0x1_3F800000, 0x3F800000) == 0x40000000
    assert run(Op.F32_NEG, 0xFFC00001) == 0x7FC00000
    assert run(Op.I32_ADD, 0x1_00000001, 0xFFFFFFFF) == 0
    assert run(Op.I32_TO_I64, 0xFFFFFFFF) == -1
    assert run(Op.I64_ADD, 2**63 - 1, 1) == -(2**63)
    assert run(Op.BOOL_AND, 1 << 32, -5) == 1
    assert run(Op.I32_TO_BOOL, 1 << 32) == 0
    assert run(Op.SELECT, 1 << 40, 3, 4) == 3


def test_integer_operations_wrap_and_mask_shift_counts() -> None:
    low = -(2**31)
    assert run(Op.I32_MUL, 0x7FFFFFFF, 3) == 0x7FFFFFFD
    assert run(Op.I32_SUB, low, 1) == 2**31 - 1
    assert run(Op.I32_MULHI_U32, -1, -1) == -2
    assert run(Op.I32_MULHI_U32, low, 10) == 5
    assert run(Op.I32_SHL, 1, 33) == 2
    assert run(Op.I32_SHR_LOGICAL, low, 31) == 1
    assert run(Op.I32_SHR_ARITH, low, 31) == -1
    assert run(Op.I32_SHR_ARITH, low, 32) == low
    assert (run(Op.I32_LT, -1, 0), run(Op.I32_LTU, -1, 0)) == (1, 0)
    assert run(Op.I64_MUL, 2**62, 4) == 0
    assert run(Op.CONST_I64, imm=0xFFFFFFFE) == -2


def test_storage_types_load_as_i32_and_store_their_low_bits() -> None:
    assert [load(d, 0xFF) for d in (DType.U8, DType.I8, DType.U16)] == [255, -1, 255]
    assert load(I32, 0xFFFFFFFF) == -1
    assert [store(d, -2) for d in (DType.U8, DType.I8, DType.U16, I32)] == [0xFE, 0xFE, 0xFFFE, 0xFFFFFFFE]
    assert store(I64, -2) == 2**64 - 2


def test_loads_and_stores_know_one_nan_and_two_truth_values() -> None:
    assert load(F32, 0xFF800001) == store(F32, 0x7FFFFFFF) == 0x7FC00000
    assert load(BOOL, 0x80) == store(BOOL, 0x100) == 1


@given(st.sampled_from(list(DType)), st.integers(-(2**64), 2**64))
def test_a_canonical_word_survives_a_store_and_a_load(dtype: DType, word: int) -> None:
    assert load(dtype, store(dtype, word)) == canonical_word(dtype, word)


def test_types_follow_from_the_operands() -> None:
    code = (
        Instruction(Op.F32_LT, 0, 1),
        Instruction(Op.SELECT, 3, 0, 1),
        Instruction(Op.F32_TO_I64, 4),
        Instruction(Op.I32_TO_F32, 2),
    )
    assert infer_types((F32, F32, DType.U8), code) == [F32, F32, I32, BOOL, F32, I64, F32]


@pytest.mark.parametrize(
    ("operands", "code", "reason"),
    (
        ((F32,) * 9, (), "9 operands"),
        ((F32,), (Instruction(Op.F32_NEG),) * 65, "65 instructions"),
        ((), (), "no value"),
        ((F32,), (Instruction(0x77),), "unknown opcode 0x77"),
        ((F32,), (Instruction(Op.F32_ADD, 0, 1),), "reads register 1"),
        ((F32, I32), (Instruction(Op.F32_ADD, 0, 1),), "takes .F32, F32., not .F32, I32."),
        ((F32, I32, BOOL), (Instruction(Op.SELECT, 2, 0, 1),), "SELECT takes"),
        ((F32, F32), (Instruction(Op.SELECT, 0, 0, 1),), "SELECT takes"),
        ((F32,), (Instruction(Op.F32_NEG, 0, 1),), "field that it ignores"),
        ((F32,), (Instruction(Op.F32_NEG, 0, imm=1),), "field that it ignores"),
        ((), (Instruction(Op.CONST_F32, imm=0xFFC00000),), "not canonical"),
        ((), (Instruction(Op.CONST_BOOL, imm=2),), "not canonical"),
    ),
)
def test_ill_formed_programs_are_refused_with_the_reason(
    operands: tuple[DType, ...], code: tuple[Instruction, ...], reason: str
) -> None:
    with pytest.raises(IllFormedScalarProgramError, match=reason):
        infer_types(operands, code)


def test_every_operation_is_refused_with_any_other_operand_type() -> None:
    for op, (expected, _) in SIGNATURES.items():
        for position in range(len(expected)):
            for other in {F32, I32, I64, BOOL} - {expected[position]}:
                types = tuple(other if k == position else d for k, d in enumerate(expected))
                a, b, c = (*range(len(types)), 0, 0, 0)[:3]
                with pytest.raises(IllFormedScalarProgramError):
                    infer_types(types, (Instruction(op, a, b, c),))


@given(st.sampled_from([op for op in Op if op not in CONSTANTS]), st.lists(WORDS, min_size=3, max_size=3))
def test_results_are_canonical_words_of_their_type(op: Op, words: list[int]) -> None:
    if op is Op.SELECT:
        return
    operands, result = SIGNATURES[op]
    word = run(op, *(canonical_word(d, w) for d, w in zip(operands, words, strict=False)))
    assert word == canonical_word(result, word)
    assert arity_of(op) == len(operands)
