"""Build scalar programs from expressions: hash-consing, constant sharing, inlining and dead-code removal.

The builder keeps a graph, not a program: `build` emits only what its result needs, in the order of creation, so equal
expressions give equal code. It is what capture fuses maps with; `functions` writes exp, tanh and the like into it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.scalar import (
    CONSTANTS,
    MAX_INSTRUCTIONS,
    MAX_OPERANDS,
    SIGNATURES,
    IllFormedScalarProgramError,
    Instruction,
    Op,
    ScalarProgram,
    arity_of,
    evaluate,
    infer_types,
)
from assay.protocol.types import DType


@dataclass(frozen=True, slots=True)
class Reg:
    """A handle of a value in one builder; `dtype` is the register's value type."""

    index: int
    dtype: DType


@dataclass(frozen=True, slots=True)
class _Value:
    """A node of the expression graph: an operand (op None, imm its number) or an operation on earlier values."""

    op: Op | None
    args: tuple[int, ...]
    imm: int
    dtype: DType


COMMUTATIVE = frozenset(
    op for op in Op if op.name.endswith(("_ADD", "_MUL", "_MULHI_U32", "_MIN", "_MAX", "_EQ", "_AND", "_OR", "_XOR"))
)
"""Operations whose arguments are put in order, so that x + y and y + x are one value."""


class ScalarBuilder:
    """A scalar expression under construction over operands of the given types.

    The same operation on the same values is one value; an operation on constants alone is folded by the reference
    interpreter (which changes no bit). Sizes are checked at `build`; `size` tells beforehand.
    """

    def __init__(self, operands: Sequence[DType] = ()) -> None:
        self._operands: list[DType] = []
        self._values: list[_Value] = []
        self._known: dict[tuple[Op | None, tuple[int, ...], int], int] = {}
        for dtype in operands:
            self.add_operand(dtype)

    # --- leaves

    def add_operand(self, dtype: DType) -> Reg:
        """Append an operand of this type (storage types load as i32) and return it."""
        self._operands.append(dtype)
        return self._value(None, (), len(self._operands) - 1, dtype.value_type)

    def operand(self, number: int) -> Reg:
        """The operand with this number."""
        return Reg(self._known[(None, (), number)], self._operands[number].value_type)

    def f32(self, value: float) -> Reg:
        """A binary32 constant; the nearest one to the given double."""
        return self.f32_bits(_nearest_f32(value))

    def f32_bits(self, bits: int) -> Reg:
        """A binary32 constant by its pattern; a NaN becomes the one NaN."""
        return self._value(Op.CONST_F32, (), f32.canonical(bits), DType.F32)

    def i32(self, value: int) -> Reg:
        """An i32 constant, given signed or as 32 unsigned bits."""
        if not -(1 << 31) <= value < 1 << 32:
            raise IllFormedScalarProgramError("SM-1", f"{value} is no 32-bit constant")
        return self._value(Op.CONST_I32, (), value & 0xFFFFFFFF, DType.I32)

    def i64(self, value: int) -> Reg:
        """An i64 constant; outside the range of i32 it takes more than one instruction."""
        if not -(1 << 63) <= value < 1 << 63:
            raise IllFormedScalarProgramError("SM-1", f"{value} is no i64 constant")
        if -(1 << 31) <= value < 1 << 31:
            return self._value(Op.CONST_I64, (), value & 0xFFFFFFFF, DType.I64)
        # high * 2^32 + low with both halves in the range of the sign-extended immediate
        low = ((value + (1 << 31)) & 0xFFFFFFFF) - (1 << 31)
        high = ((value - low) >> 32) & 0xFFFFFFFF
        high -= (high >> 31) << 32
        half = self.apply(Op.I64_MUL, self.i64(1 << 16), self.i64(1 << 16))
        return self.apply(Op.I64_ADD, self.apply(Op.I64_MUL, self.i64(high), half), self.i64(low))

    def boolean(self, value: bool) -> Reg:
        """A bool constant."""
        return self._value(Op.CONST_BOOL, (), int(value), DType.BOOL)

    # --- operations

    def apply(self, op: Op, *args: Reg) -> Reg:
        """The value of one operation.

        Raises:
            IllFormedScalarProgramError: wrong number or types of arguments.
        """
        found = tuple(a.dtype for a in args)
        if op in CONSTANTS or len(args) != arity_of(op):
            raise IllFormedScalarProgramError("WF-15", f"{op.name} cannot be applied to {len(args)} values")
        wanted = (DType.BOOL, found[1], found[1]) if op is Op.SELECT else SIGNATURES[op][0]
        if found != wanted:
            raise IllFormedScalarProgramError(
                "WF-15", f"{op.name} cannot be applied to ({', '.join(t.name for t in found)})"
            )
        indices = tuple(a.index for a in args)
        if op in COMMUTATIVE:
            indices = tuple(sorted(indices))
        dtype = found[1] if op is Op.SELECT else SIGNATURES[op][1]
        return self._folded(op, args, dtype) or self._value(op, indices, 0, dtype)

    def add(self, x: Reg, y: Reg) -> Reg:
        """x + y in f32, i32 or i64."""
        return self.apply({DType.F32: Op.F32_ADD, DType.I32: Op.I32_ADD, DType.I64: Op.I64_ADD}[x.dtype], x, y)

    def sub(self, x: Reg, y: Reg) -> Reg:
        """x - y in f32, i32 or i64."""
        return self.apply({DType.F32: Op.F32_SUB, DType.I32: Op.I32_SUB, DType.I64: Op.I64_SUB}[x.dtype], x, y)

    def mul(self, x: Reg, y: Reg) -> Reg:
        """x * y in f32, i32 or i64."""
        return self.apply({DType.F32: Op.F32_MUL, DType.I32: Op.I32_MUL, DType.I64: Op.I64_MUL}[x.dtype], x, y)

    def div(self, x: Reg, y: Reg) -> Reg:
        """x / y in f32."""
        return self.apply(Op.F32_DIV, x, y)

    def sqrt(self, x: Reg) -> Reg:
        """The f32 square root."""
        return self.apply(Op.F32_SQRT, x)

    def neg(self, x: Reg) -> Reg:
        """-x in f32."""
        return self.apply(Op.F32_NEG, x)

    def abs(self, x: Reg) -> Reg:
        """|x| in f32."""
        return self.apply(Op.F32_ABS, x)

    def minimum(self, x: Reg, y: Reg) -> Reg:
        """The smaller in f32 (NaN if any is, zero is +0) or i32."""
        return self.apply({DType.F32: Op.F32_MIN, DType.I32: Op.I32_MIN}[x.dtype], x, y)

    def maximum(self, x: Reg, y: Reg) -> Reg:
        """The larger in f32 (NaN if any is, zero is +0) or i32."""
        return self.apply({DType.F32: Op.F32_MAX, DType.I32: Op.I32_MAX}[x.dtype], x, y)

    def eq(self, x: Reg, y: Reg) -> Reg:
        """x == y as bool, in f32, i32 or i64."""
        return self.apply({DType.F32: Op.F32_EQ, DType.I32: Op.I32_EQ, DType.I64: Op.I64_EQ}[x.dtype], x, y)

    def lt(self, x: Reg, y: Reg) -> Reg:
        """x < y as bool, in f32, i32 or i64."""
        return self.apply({DType.F32: Op.F32_LT, DType.I32: Op.I32_LT, DType.I64: Op.I64_LT}[x.dtype], x, y)

    def le(self, x: Reg, y: Reg) -> Reg:
        """x <= y as bool, in f32, i32 or i64 (false with a NaN)."""
        if x.dtype is DType.F32:
            return self.apply(Op.F32_LE, x, y)
        return self.logical_not(self.lt(y, x))

    def logical_not(self, x: Reg) -> Reg:
        """not x in bool."""
        return self.apply(Op.BOOL_NOT, x)

    def select(self, condition: Reg, x: Reg, y: Reg) -> Reg:
        """x where the bool condition holds, else y."""
        return x if x == y else self.apply(Op.SELECT, condition, x, y)

    def scale2(self, x: Reg, n: Reg) -> Reg:
        """f32 x times 2 to the i32 n, rounded once."""
        return self.apply(Op.F32_SCALE2, x, n)

    def cast(self, x: Reg, dtype: DType) -> Reg:
        """x converted to a value type, by way of i32 where no single operation does it; to bool is x != 0."""
        direct = {
            (DType.I32, DType.F32): Op.I32_TO_F32,
            (DType.F32, DType.I32): Op.F32_TO_I32,
            (DType.I64, DType.F32): Op.I64_TO_F32,
            (DType.F32, DType.I64): Op.F32_TO_I64,
            (DType.I64, DType.I32): Op.I64_TO_I32,
            (DType.I32, DType.I64): Op.I32_TO_I64,
            (DType.BOOL, DType.I32): Op.BOOL_TO_I32,
            (DType.I32, DType.BOOL): Op.I32_TO_BOOL,
        }
        target = dtype.value_type
        if x.dtype is target:
            return x
        if (x.dtype, target) in direct:
            return self.apply(direct[(x.dtype, target)], x)
        if x.dtype is DType.BOOL:
            return self.cast(self.cast(x, DType.I32), target)
        zero = self.f32(0.0) if x.dtype is DType.F32 else self.i64(0)
        return self.logical_not(self.eq(x, zero))

    # --- composition

    def inline(self, program: ScalarProgram, args: Sequence[Reg]) -> Reg:
        """The value of another program on these values.

        Raises:
            IllFormedScalarProgramError: the program is ill-formed or the types differ from its operands' value types.
        """
        infer_types(program.operands, program.instructions)
        if [a.dtype for a in args] != [d.value_type for d in program.operands]:
            raise IllFormedScalarProgramError(
                "WF-15", "the arguments of an inlined program differ in type from its operands"
            )
        registers = list(args)
        for instruction in program.instructions:
            op = Op(instruction.op)
            if op in CONSTANTS:
                registers.append(self._value(op, (), instruction.imm, SIGNATURES[op][1]))
            else:
                used = (instruction.a, instruction.b, instruction.c)[: arity_of(op)]
                registers.append(self.apply(op, *(registers[r] for r in used)))
        return registers[-1]

    def size(self, *results: Reg) -> int:
        """How many instructions these values take together."""
        return sum(self._values[i].op is not None for i in self._live(results))

    def used_operands(self, *results: Reg) -> list[int]:
        """The numbers of the operands that these values read, ascending."""
        return [v.imm for v in (self._values[i] for i in self._live(results)) if v.op is None]

    def build(self, result: Reg) -> ScalarProgram:
        """The program whose value is `result`, over all operands of the builder, dead code removed.

        Raises:
            IllFormedScalarProgramError: more than 64 instructions or 8 operands are needed, or the value is an operand
                other than the last (use `build_compact`).
        """
        return self._emit(result, list(range(len(self._operands))))

    def build_compact(self, result: Reg) -> tuple[ScalarProgram, list[int]]:
        """The program over only the operands that `result` reads, and the numbers of those operands."""
        used = self.used_operands(result)
        return self._emit(result, used), used

    # --- internals

    def _emit(self, result: Reg, operands: list[int]) -> ScalarProgram:
        """Number the live values and write them out."""
        live = [i for i in self._live([result]) if self._values[i].op is not None]
        if len(operands) > MAX_OPERANDS or len(live) > MAX_INSTRUCTIONS:
            raise IllFormedScalarProgramError(
                "MAL-10",
                f"a map holds {MAX_OPERANDS} operands and {MAX_INSTRUCTIONS} instructions; "
                f"this one needs {len(operands)} and {len(live)}",
            )
        number = {self._known[(None, (), o)]: k for k, o in enumerate(operands)}
        if not live and (not operands or number.get(result.index) != len(operands) - 1):
            raise IllFormedScalarProgramError("SM-2", "a map without instructions yields its last operand only")
        code: list[Instruction] = []
        for index in live:
            value = self._values[index]
            a, b, c = [*(number[x] for x in value.args), 0, 0, 0][:3]
            code.append(Instruction(value.op or 0, a, b, c, value.imm))
            number[index] = len(operands) + len(code) - 1
        program = ScalarProgram(tuple(self._operands[o] for o in operands), tuple(code))
        infer_types(program.operands, program.instructions)
        return program

    def _live(self, results: Sequence[Reg]) -> list[int]:
        """The values that these depend on, themselves included, ascending (a value follows its arguments)."""
        seen: set[int] = set()
        stack = [r.index for r in results]
        while stack:
            index = stack.pop()
            if index not in seen:
                seen.add(index)
                stack.extend(self._values[index].args)
        return sorted(seen)

    def _value(self, op: Op | None, args: tuple[int, ...], imm: int, dtype: DType) -> Reg:
        """The one value with this definition."""
        key = (op, args, imm)
        if key not in self._known:
            self._known[key] = len(self._values)
            self._values.append(_Value(op, args, imm, dtype))
        return Reg(self._known[key], dtype)

    def _folded(self, op: Op, args: tuple[Reg, ...], dtype: DType) -> Reg | None:
        """The constant that an operation on constants is, where one instruction can hold it."""
        values = [self._values[a.index] for a in args]
        if not values or any(v.op not in CONSTANTS for v in values):
            return None
        code = b"".join(Instruction(v.op or 0, imm=v.imm).encode() for v in values)
        registers = list(range(len(values))) + [0] * (3 - len(values))
        word = evaluate(code + Instruction(op, *registers).encode(), ())
        match dtype:
            case DType.F32:
                return self.f32_bits(word)
            case DType.I32:
                return self.i32(word)
            case DType.BOOL:
                return self.boolean(bool(word))
            case _:
                return self.i64(word) if -(1 << 31) <= word < 1 << 31 else None


def _nearest_f32(value: float) -> int:
    """The binary32 pattern nearest to a double, rounded by integers so that overflow gives infinity."""
    if value != value:
        return f32.NAN
    sign = int.from_bytes(struct.pack(">d", value), "big") >> 63
    if value in (float("inf"), float("-inf")):
        return sign << 31 | f32.INF
    numerator, denominator = abs(value).as_integer_ratio()
    return f32.round_pack(sign, numerator, 1 - denominator.bit_length())
