"""The scalar machine as lines of Triton: one line per instruction, bit-equal to `scalar.evaluate` (rules AR, SM).

Division and square root are the correctly rounded ones. NaNs may have any payload between operations, as in stock
torch's executor; where bits are read the one NaN is put in.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.engine.runtime.triton.ranges import EXPONENTS, Range, ranges
from assay.engine.runtime.triton.reading import constant_text
from assay.engine.runtime.values.views import is_inside
from assay.protocol.arithmetic.scalar import CONSTANTS, Op, ScalarProgram
from assay.protocol.program.nodes import Map, RowExp
from assay.protocol.program.program import Program
from assay.protocol.types import DType

_CONSTANT_TYPES = {
    Op.CONST_F32: DType.F32,
    Op.CONST_I32: DType.I32,
    Op.CONST_I64: DType.I64,
    Op.CONST_BOOL: DType.BOOL,
}
_UNSIGNED = "{}.to(tl.uint32, bitcast=True)"
_A, _B = _UNSIGNED.format("{a}"), _UNSIGNED.format("{b}")

_TEXT: dict[Op, str] = {
    Op.SELECT: "tl.where({a}, {b}, {c})",
    Op.F32_ADD: "{a} + {b}",
    Op.F32_SUB: "{a} - {b}",
    Op.F32_MUL: "{a} * {b}",
    Op.F32_DIV: "tl.div_rn({a}, {b})",
    Op.F32_SQRT: "tl.sqrt_rn({a})",
    Op.F32_NEG: "from_bits(bits_of({a}) ^ -0x80000000)",
    Op.F32_ABS: "from_bits(bits_of({a}) & 0x7FFFFFFF)",
    Op.F32_MIN: "smaller({a}, {b})",
    Op.F32_MAX: "larger({a}, {b})",
    Op.F32_EQ: "{a} == {b}",
    Op.F32_LT: "{a} < {b}",
    Op.F32_LE: "{a} <= {b}",
    Op.F32_RINT: "nearest({a})",
    Op.F32_FLOOR: "below({a})",
    Op.F32_SCALE2: "scale2({a}, {b})",
    Op.F32_EXPONENT: "exponent_of_bits(bits_of({a}) & 0x7FFFFFFF)",
    Op.I32_TO_F32: "{a}.to(tl.float32)",
    Op.F32_TO_I32: "to_i32({a})",
    Op.I64_TO_F32: "{a}.to(tl.float32)",
    Op.F32_TO_I64: "to_i64({a})",
    Op.I64_TO_I32: "{a}.to(tl.int32)",
    Op.I32_TO_I64: "{a}.to(tl.int64)",
    Op.BOOL_TO_I32: "tl.where({a}, 1, 0)",
    Op.I32_TO_BOOL: "{a} != 0",
    Op.F32_BITS: "bits_of(canonical({a}))",
    Op.BITS_F32: "from_bits({a})",
    Op.I32_ADD: "{a} + {b}",
    Op.I32_SUB: "{a} - {b}",
    Op.I32_MUL: "{a} * {b}",
    Op.I32_MULHI_U32: f"tl.umulhi({_A}, {_B}).to(tl.int32, bitcast=True)",
    Op.I32_AND: "{a} & {b}",
    Op.I32_OR: "{a} | {b}",
    Op.I32_XOR: "{a} ^ {b}",
    Op.I32_NOT: "{a} ^ -1",
    Op.I32_SHL: "{a} << ({b} & 31)",
    Op.I32_SHR_LOGICAL: f"({_A} >> ({_B} & 31)).to(tl.int32, bitcast=True)",
    Op.I32_SHR_ARITH: "{a} >> ({b} & 31)",
    Op.I32_MIN: "tl.minimum({a}, {b})",
    Op.I32_MAX: "tl.maximum({a}, {b})",
    Op.I32_EQ: "{a} == {b}",
    Op.I32_LT: "{a} < {b}",
    Op.I32_LTU: f"{_A} < {_B}",
    Op.I64_ADD: "{a} + {b}",
    Op.I64_SUB: "{a} - {b}",
    Op.I64_MUL: "{a} * {b}",
    Op.I64_EQ: "{a} == {b}",
    Op.I64_LT: "{a} < {b}",
    Op.BOOL_AND: "{a} & {b}",
    Op.BOOL_OR: "{a} | {b}",
    Op.BOOL_NOT: "{a} == 0",
}


_SMALL: dict[Op, tuple[int, Range, str]] = {
    Op.F32_RINT: (0, (-(2.0**22), 2.0**22), "nearest_small({a})"),
    Op.F32_TO_I32: (0, (-(2.0**31) + 1, 2.0**31 - 1), "to_i32_small({a})"),
    Op.F32_SCALE2: (1, (-252, 254), "scale2_near({a}, {b})"),
}
"""Shorter texts: of which operand the values must lie within what."""

_WHOLE = (Op.F32_RINT, Op.F32_FLOOR)


def map_lines(program: Program, node: Map, registers: list[str], prefix: str) -> list[str]:
    """`lines` of a map, given what is known of its operands."""
    types = [program.specs[o.node].dtype for o in node.operands]
    known = [
        EXPONENTS if isinstance(program.nodes[o.node], RowExp) and is_inside(o.view, node.spec.dims) else None
        for o in node.operands
    ]
    return lines(ScalarProgram.decode(node.code, types), registers, prefix, known)


def lines(
    program: ScalarProgram, registers: list[str], prefix: str, given: Sequence[Range | None] | None = None
) -> list[str]:
    """A line per instruction of a well-formed program; `registers` holds the operands' names and gets the results'.

    given: the ranges of operands, None for any.
    """
    found, known = [], ranges(program.instructions, program.operands, given)
    for k, i in enumerate(program.instructions):
        op, name = Op(i.op), f"{prefix}{k}"
        if op in CONSTANTS:
            text = constant_text(_CONSTANT_TYPES[op], i.imm)
            if op is Op.CONST_I64:  # the immediate has 32 bits and a sign
                text = constant_text(DType.I32, i.imm) + ".to(tl.int64)"
        else:
            numbers = (i.a, i.b, i.c)
            a, b, c = (registers[r] if r < len(registers) else "" for r in numbers)
            of = i.a - len(program.operands)
            is_whole = 0 <= of < k and program.instructions[of].op in _WHOLE
            text = (_small(op, [known[r] for r in numbers], is_whole=is_whole) or _TEXT[op]).format(a=a, b=b, c=c)
        found.append(f"{name} = {text}")
        registers.append(name)
    return found


def _small(op: Op, operands: Sequence[Range | None], *, is_whole: bool) -> str:
    """The shorter text where the operand that it hangs on is small; empty elsewhere. is_whole: it has no fraction."""
    if op not in _SMALL:
        return ""
    if op is Op.F32_TO_I32 and is_whole and (own := operands[0]) is not None and max(-own[0], own[1]) <= 1 << 21:
        return "to_i32_whole({a})"
    which, (low, high), text = _SMALL[op]
    known = operands[which]
    return text if known is not None and low <= known[0] and known[1] <= high else ""
