"""The scalar machine of `map` nodes: opcodes, encoding, static types, reference interpreter (rules SM, ADR 2).

A program is a straight line of at most 64 instructions of 8 bytes: op u8, a u8, b u8, c u8, imm u32 big-endian.
Registers 0..m-1 hold the m <= 8 operands, register m+i the result of instruction i; the value is the last register.

The machine is total. A register holds a *word*: f32 its pattern, i32 and i64 the number itself (on chain
uint256(int256(v))), bool 0 or 1. Each operation reduces what it reads to the type it expects: f32 the low 32 bits with
NaN made canonical, i32 the low 32 bits sign-extended, i64 the low 64 bits sign-extended, bool whether the word is not
zero. An unknown opcode gives 0, a register at or after the current one reads 0, and code that is no sequence of at most
64 instructions over at most 8 operands has the value 0. Nothing raises or reverts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from assay.protocol.arithmetic import f32
from assay.protocol.errors import UserError
from assay.protocol.types import DType

MAX_OPERANDS = 8
MAX_INSTRUCTIONS = 64
INSTRUCTION_SIZE = 8

_M32 = 0xFFFFFFFF


class Op(IntEnum):
    """Opcodes; the integers are part of the protocol and equal those in `ScalarMachine.sol`."""

    CONST_F32 = 0x01  # imm
    CONST_I32 = 0x02  # imm
    CONST_I64 = 0x03  # imm, sign-extended
    CONST_BOOL = 0x04  # imm != 0
    SELECT = 0x05  # a is bool: b if a else c

    F32_ADD = 0x10
    F32_SUB = 0x11
    F32_MUL = 0x12
    F32_DIV = 0x13
    F32_SQRT = 0x14
    F32_NEG = 0x15
    F32_ABS = 0x16
    F32_MIN = 0x17  # NaN if any is, a zero result is +0
    F32_MAX = 0x18
    F32_EQ = 0x19  # comparisons with NaN are false
    F32_LT = 0x1A
    F32_LE = 0x1B
    F32_RINT = 0x1C  # ties to even
    F32_FLOOR = 0x1D
    F32_SCALE2 = 0x1E  # f32 a times 2^(i32 b), one rounding
    F32_EXPONENT = 0x1F  # E(a) as i32

    I32_TO_F32 = 0x20
    F32_TO_I32 = 0x21  # toward zero; NaN gives 0, saturates
    I64_TO_F32 = 0x22
    F32_TO_I64 = 0x23
    I64_TO_I32 = 0x24  # low 32 bits
    I32_TO_I64 = 0x25
    BOOL_TO_I32 = 0x26
    I32_TO_BOOL = 0x27  # != 0
    F32_BITS = 0x28  # f32 pattern as i32
    BITS_F32 = 0x29  # i32 as f32 pattern, NaN made canonical

    I32_ADD = 0x30  # wraps, as I32_SUB and I32_MUL
    I32_SUB = 0x31
    I32_MUL = 0x32
    I32_MULHI_U32 = 0x33  # high half of the unsigned product
    I32_AND = 0x34
    I32_OR = 0x35
    I32_XOR = 0x36
    I32_NOT = 0x37
    I32_SHL = 0x38  # counts are masked to 0..31
    I32_SHR_LOGICAL = 0x39
    I32_SHR_ARITH = 0x3A
    I32_MIN = 0x3B
    I32_MAX = 0x3C
    I32_EQ = 0x3D
    I32_LT = 0x3E
    I32_LTU = 0x3F  # as unsigned

    I64_ADD = 0x40  # wraps, as I64_SUB and I64_MUL
    I64_SUB = 0x41
    I64_MUL = 0x42
    I64_EQ = 0x43
    I64_LT = 0x44

    BOOL_AND = 0x50
    BOOL_OR = 0x51
    BOOL_NOT = 0x52


_F, _I, _L, _B = DType.F32, DType.I32, DType.I64, DType.BOOL

SIGNATURES: dict[Op, tuple[tuple[DType, ...], DType]] = {
    Op.CONST_F32: ((), _F),
    Op.CONST_I32: ((), _I),
    Op.CONST_I64: ((), _L),
    Op.CONST_BOOL: ((), _B),
    **dict.fromkeys((Op.F32_ADD, Op.F32_SUB, Op.F32_MUL, Op.F32_DIV, Op.F32_MIN, Op.F32_MAX), ((_F, _F), _F)),
    **dict.fromkeys((Op.F32_SQRT, Op.F32_NEG, Op.F32_ABS, Op.F32_RINT, Op.F32_FLOOR), ((_F,), _F)),
    **dict.fromkeys((Op.F32_EQ, Op.F32_LT, Op.F32_LE), ((_F, _F), _B)),
    Op.F32_SCALE2: ((_F, _I), _F),
    Op.F32_EXPONENT: ((_F,), _I),
    Op.I32_TO_F32: ((_I,), _F),
    Op.F32_TO_I32: ((_F,), _I),
    Op.I64_TO_F32: ((_L,), _F),
    Op.F32_TO_I64: ((_F,), _L),
    Op.I64_TO_I32: ((_L,), _I),
    Op.I32_TO_I64: ((_I,), _L),
    Op.BOOL_TO_I32: ((_B,), _I),
    Op.I32_TO_BOOL: ((_I,), _B),
    Op.F32_BITS: ((_F,), _I),
    Op.BITS_F32: ((_I,), _F),
    **{op: ((_I, _I), _I) for op in Op if Op.I32_ADD <= op <= Op.I32_MAX and op is not Op.I32_NOT},
    Op.I32_NOT: ((_I,), _I),
    **dict.fromkeys((Op.I32_EQ, Op.I32_LT, Op.I32_LTU), ((_I, _I), _B)),
    **dict.fromkeys((Op.I64_ADD, Op.I64_SUB, Op.I64_MUL), ((_L, _L), _L)),
    **dict.fromkeys((Op.I64_EQ, Op.I64_LT), ((_L, _L), _B)),
    **dict.fromkeys((Op.BOOL_AND, Op.BOOL_OR), ((_B, _B), _B)),
    Op.BOOL_NOT: ((_B,), _B),
}
"""Operand types and result type of every operation except SELECT, which takes (bool, T, T) to T."""

CONSTANTS = (Op.CONST_F32, Op.CONST_I32, Op.CONST_I64, Op.CONST_BOOL)


class IllFormedScalarProgramError(UserError):
    """A scalar program breaks a limit, a type rule or the canonical encoding; `rule` is the rule's number."""

    code = "IllFormedScalarProgram"
    remedy = "Build the program with ScalarBuilder, which emits well-formed programs only."

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(message, rule=rule)
        self.rule = rule


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction: opcode, three register numbers and a 32-bit immediate; fields that the opcode ignores are 0."""

    op: int
    a: int = 0
    b: int = 0
    c: int = 0
    imm: int = 0

    def encode(self) -> bytes:
        """The 8 bytes op, a, b, c, imm (big-endian)."""
        return bytes((self.op, self.a, self.b, self.c)) + self.imm.to_bytes(4, "big")


@dataclass(frozen=True, slots=True)
class ScalarProgram:
    """Operand types (storage types allowed) and instructions of one `map` node."""

    operands: tuple[DType, ...]
    instructions: tuple[Instruction, ...]

    def encode(self) -> bytes:
        """The instructions, 8 bytes each; operand types stand in the node's views, not here."""
        return b"".join(i.encode() for i in self.instructions)

    @classmethod
    def decode(cls, code: bytes, operands: Sequence[DType]) -> ScalarProgram:
        """The program with this code.

        Raises:
            IllFormedScalarProgramError: the length is no multiple of 8.
        """
        if len(code) % INSTRUCTION_SIZE:
            raise IllFormedScalarProgramError(
                "MAL-13", f"scalar code of {len(code)} bytes is no multiple of {INSTRUCTION_SIZE}"
            )
        return cls(tuple(operands), tuple(_instructions(code)))

    @property
    def result_type(self) -> DType:
        """The value type of the last register.

        Raises:
            IllFormedScalarProgramError: the program is ill-formed.
        """
        return infer_types(self.operands, self.instructions)[-1]


def _instructions(code: bytes) -> list[Instruction]:
    """Split code into instructions; its length is a multiple of 8."""
    return [
        Instruction(code[k], code[k + 1], code[k + 2], code[k + 3], int.from_bytes(code[k + 4 : k + 8], "big"))
        for k in range(0, len(code), INSTRUCTION_SIZE)
    ]


def infer_types(operands: Sequence[DType], instructions: Sequence[Instruction]) -> list[DType]:
    """The value type of every register, operands first: the static rule that well-formed programs obey.

    Raises:
        IllFormedScalarProgramError: too many operands or instructions, no register at all, an unknown opcode, a
            register that is not yet computed, an operand of the wrong type, a constant that is not canonical, or a
            non-zero field that the opcode ignores.
    """
    if len(operands) > MAX_OPERANDS:
        raise IllFormedScalarProgramError("MAL-9", f"{len(operands)} operands; a map has at most {MAX_OPERANDS}")
    if len(instructions) > MAX_INSTRUCTIONS:
        raise IllFormedScalarProgramError(
            "MAL-10", f"{len(instructions)} instructions; a map has at most {MAX_INSTRUCTIONS}"
        )
    types = [d.value_type for d in operands]
    for index, instruction in enumerate(instructions):
        types.append(_result_type(index, instruction, types))
    if not types:
        raise IllFormedScalarProgramError("WF-11", "a map without operands and instructions has no value")
    return types


def _result_type(index: int, instruction: Instruction, types: list[DType]) -> DType:
    """The type of one instruction's result, given the registers before it."""
    where = f"instruction {index}"
    if instruction.op not in Op._value2member_map_:
        raise IllFormedScalarProgramError("WF-12", f"{where}: unknown opcode 0x{instruction.op:02x}")
    op = Op(instruction.op)
    registers = (instruction.a, instruction.b, instruction.c)
    arity = arity_of(op)
    if any(registers[arity:]) or (instruction.imm and op not in CONSTANTS):
        raise IllFormedScalarProgramError("WF-13", f"{where}: {op.name} has a non-zero field that it ignores")
    for r in registers[:arity]:
        if r >= len(types):
            raise IllFormedScalarProgramError("WF-14", f"{where}: {op.name} reads register {r} before it is computed")
    actual = tuple(types[r] for r in registers[:arity])
    expected, result = ((_B, actual[1], actual[1]), actual[1]) if op is Op.SELECT else SIGNATURES[op]
    if actual != expected:
        found, wanted = (", ".join(t.name for t in ts) for ts in (actual, expected))
        raise IllFormedScalarProgramError("WF-15", f"{where}: {op.name} takes ({wanted}), not ({found})")
    imm = instruction.imm
    if (op is Op.CONST_BOOL and imm > 1) or (op is Op.CONST_F32 and f32.canonical(imm) != imm):
        raise IllFormedScalarProgramError("WF-16", f"{where}: the immediate 0x{imm:08x} of {op.name} is not canonical")
    return result


def arity_of(op: Op) -> int:
    """How many registers the operation reads."""
    return 3 if op is Op.SELECT else len(SIGNATURES[op][0])


def canonical_word(dtype: DType, word: int) -> int:
    """The word of the element that a node of this type has when its computation ends in `word`."""
    match dtype:
        case DType.F32:
            return f32.canonical(word & _M32)
        case DType.BOOL:
            return int(word != 0)
        case DType.I32 | DType.I64 | DType.I8:
            return _signed(word, 8 * dtype.size)
        case _:
            return word & ((1 << 8 * dtype.size) - 1)


def load(dtype: DType, raw: int) -> int:
    """The word of a stored element, given as the unsigned integer of its little-endian bytes."""
    return canonical_word(dtype, raw)


def store(dtype: DType, word: int) -> int:
    """The unsigned integer of the little-endian bytes that an element with this word has in a leaf."""
    return canonical_word(dtype, word) & ((1 << 8 * dtype.size) - 1)


def evaluate(code: bytes, operands: Sequence[int]) -> int:
    """The word that the scalar machine computes from operand words; defined for every code."""
    if len(code) % INSTRUCTION_SIZE or len(code) > MAX_INSTRUCTIONS * INSTRUCTION_SIZE or len(operands) > MAX_OPERANDS:
        return 0
    registers = list(operands)
    for instruction in _instructions(code):
        registers.append(_execute(instruction, registers))
    return registers[-1] if registers else 0


def _execute(instruction: Instruction, registers: list[int]) -> int:
    """The word that one instruction computes."""

    def read(r: int) -> int:
        return registers[r] if r < len(registers) else 0

    op, imm = instruction.op, instruction.imm
    if op == Op.CONST_F32:
        return f32.canonical(imm)
    if op in (Op.CONST_I32, Op.CONST_I64):
        return _signed(imm, 32)
    if op == Op.CONST_BOOL:
        return int(imm != 0)
    if op == Op.SELECT:
        return read(instruction.b) if read(instruction.a) else read(instruction.c)
    function = _FUNCTIONS.get(op)
    return function(read(instruction.a), read(instruction.b)) if function else 0


def _signed(word: int, bits: int) -> int:
    """The two's complement number in the low bits of a word."""
    word &= (1 << bits) - 1
    return word - (1 << bits) if word >> (bits - 1) else word


_Binary = Callable[[int, int], int]


def _f(function: _Binary) -> _Binary:
    """Lift a binary function of patterns to words."""
    return lambda a, b: int(function(a & _M32, b & _M32))


def _f1(function: Callable[[int], int]) -> _Binary:
    """Lift a unary function of patterns to words."""
    return lambda a, b: function(a & _M32)


def _i(function: _Binary) -> _Binary:
    """Lift a function of signed i32 to words, wrapping its result."""
    return lambda a, b: _signed(function(_signed(a, 32), _signed(b, 32)), 32)


def _u(function: _Binary) -> _Binary:
    """Lift a function of unsigned 32-bit numbers to words, wrapping its result."""
    return lambda a, b: _signed(function(a & _M32, b & _M32), 32)


def _l(function: _Binary) -> _Binary:
    """Lift a function of signed i64 to words, wrapping its result."""
    return lambda a, b: _signed(function(_signed(a, 64), _signed(b, 64)), 64)


def _b(function: Callable[[bool, bool], bool]) -> _Binary:
    """Lift a function of truth values to words."""
    return lambda a, b: int(function(a != 0, b != 0))


_FUNCTIONS: dict[int, _Binary] = {
    Op.F32_ADD: _f(f32.add),
    Op.F32_SUB: _f(f32.sub),
    Op.F32_MUL: _f(f32.mul),
    Op.F32_DIV: _f(f32.div),
    Op.F32_SQRT: _f1(f32.sqrt),
    Op.F32_NEG: _f1(f32.neg),
    Op.F32_ABS: _f1(f32.absolute),
    Op.F32_MIN: _f(f32.minimum),
    Op.F32_MAX: _f(f32.maximum),
    Op.F32_EQ: _f(f32.eq),
    Op.F32_LT: _f(f32.lt),
    Op.F32_LE: _f(f32.le),
    Op.F32_RINT: _f1(f32.rint),
    Op.F32_FLOOR: _f1(f32.floor),
    Op.F32_SCALE2: lambda a, b: f32.scale2(a & _M32, _signed(b, 32)),
    Op.F32_EXPONENT: _f1(f32.exponent),
    Op.I32_TO_F32: lambda a, b: f32.from_int(_signed(a, 32)),
    Op.F32_TO_I32: _f1(lambda x: f32.to_int(x, 32)),
    Op.I64_TO_F32: lambda a, b: f32.from_int(_signed(a, 64)),
    Op.F32_TO_I64: _f1(lambda x: f32.to_int(x, 64)),
    Op.I64_TO_I32: _i(lambda a, b: a),
    Op.I32_TO_I64: _i(lambda a, b: a),
    Op.BOOL_TO_I32: _b(lambda a, b: a),
    Op.I32_TO_BOOL: _i(lambda a, b: int(a != 0)),
    Op.F32_BITS: lambda a, b: _signed(f32.canonical(a & _M32), 32),
    Op.BITS_F32: _f1(f32.canonical),
    Op.I32_ADD: _i(lambda a, b: a + b),
    Op.I32_SUB: _i(lambda a, b: a - b),
    Op.I32_MUL: _i(lambda a, b: a * b),
    Op.I32_MULHI_U32: _u(lambda a, b: a * b >> 32),
    Op.I32_AND: _i(lambda a, b: a & b),
    Op.I32_OR: _i(lambda a, b: a | b),
    Op.I32_XOR: _i(lambda a, b: a ^ b),
    Op.I32_NOT: _i(lambda a, b: ~a),
    Op.I32_SHL: _u(lambda a, b: a << (b & 31)),
    Op.I32_SHR_LOGICAL: _u(lambda a, b: a >> (b & 31)),
    Op.I32_SHR_ARITH: _i(lambda a, b: a >> (b & 31)),
    Op.I32_MIN: _i(min),
    Op.I32_MAX: _i(max),
    Op.I32_EQ: _i(lambda a, b: int(a == b)),
    Op.I32_LT: _i(lambda a, b: int(a < b)),
    Op.I32_LTU: _u(lambda a, b: int(a < b)),
    Op.I64_ADD: _l(lambda a, b: a + b),
    Op.I64_SUB: _l(lambda a, b: a - b),
    Op.I64_MUL: _l(lambda a, b: a * b),
    Op.I64_EQ: _l(lambda a, b: int(a == b)),
    Op.I64_LT: _l(lambda a, b: int(a < b)),
    Op.BOOL_AND: _b(lambda a, b: a and b),
    Op.BOOL_OR: _b(lambda a, b: a or b),
    Op.BOOL_NOT: _b(lambda a, b: not a),
}
