"""Whole programs with every opcode and result type, and with the deepest views, for tests/vectors/nodes.json."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from assay.protocol.arithmetic.scalar import CONSTANTS, SIGNATURES, Instruction, Op, ScalarProgram
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.types import DType
from tests.harness.scalars import word
from tools.node_cases import BOOL, F32, I32, I64, CaseInput, bits, entry, f32s, ints

WORDS = 12
"""Elements of every operand in the programs of all opcodes."""


def _operands_of(op: Op) -> tuple[DType, ...]:
    """Types that an operation takes; a select chooses between two i64."""
    return (BOOL, I64, I64) if op is Op.SELECT else SIGNATURES[op][0]


def opcodes() -> Iterator[dict[str, object]]:
    """One map per opcode."""

    def draws(dtype: DType, seed: int) -> CaseInput:
        source = Random(f"opcodes {dtype.name} {seed}")
        words = [word(source, dtype) for _ in range(WORDS)]
        return f32s((WORDS,), [w & 0xFFFFFFFF for w in words]) if dtype is F32 else ints((WORDS,), words, dtype)

    slots = [(dtype, draws(dtype, n)) for dtype in (F32, I32, I64, BOOL) for n in (0, 1)]

    def make(b: ProgramBuilder, refs: list[Ref]) -> list[Ref]:
        of = {dtype: [r for (d, _), r in zip(slots, refs, strict=True) if d is dtype] for dtype, _ in slots}
        out = []
        for op in Op:
            takes = _operands_of(op)
            picked, used = [], dict.fromkeys(of, 0)
            for dtype in takes:
                picked.append(of[dtype][used[dtype]])
                used[dtype] += 1
            arguments = range(len(takes))
            code = Instruction(op, *arguments, *[0] * (3 - len(takes)), imm=int(op in CONSTANTS))
            program = ScalarProgram(takes, (code,))
            out.append(b.map(program, picked, (WORDS,), program.result_type))
        return out

    yield entry("map: every opcode, results of f32, i32, i64 and bool", [slot for _, slot in slots], make)


def deepest() -> Iterator[dict[str, object]]:
    """Reductions over eight dimensions of eight."""
    dims, red = (1, 2, 1, 2, 1, 1, 3, 1), (2, 1, 1, 3, 1, 2, 1, 1)
    x = [bits((n * 29 % 41 - 20) / 8) for n in range(144)]

    def make(b: ProgramBuilder, r: list[Ref]) -> list[Ref]:
        deep = r[0].split(0, *dims, *red)
        e = b.rowexp(deep, 8)
        return [e, b.max(deep, 8), b.sum(deep, 8, e), b.dot(deep, deep, e, e, dims, red)]

    yield entry("rowexp, max, sum and dot: views of 16 dimensions", [f32s((144,), x)], make)
