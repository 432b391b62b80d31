"""Functions of `assay/protocol/arithmetic/functions.py` that kernels compute in one pass, and where maps have them.

A tile's pass for each of their thirty instructions would read and write the first cache thirty times. Whatever code a
program has, an instruction sequence that is one of these, operation for operation and constant for constant, has the
bits of it.

    python -m assay.engine.runtime.fused.functions    write native/kernels/functions.h
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from assay.engine.runtime.native import build
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import CONSTANTS, Instruction, Op, ScalarProgram, arity_of, infer_types
from assay.protocol.arithmetic.scalar_builder import COMMUTATIVE, Reg, ScalarBuilder
from assay.protocol.types import DType

HEADER: Final = Path(build.__file__).parent / "kernels" / "functions.h"

MOST_COMPARED: Final = 1_000
"""Values of functions that are compared with those of one map; a map that is one of them takes 112 at most.

Attack: sums of a product and itself, which could be a function's in two orders each: assembling would take longer than
running."""

_MAKERS: Final[dict[str, tuple[int, Callable[..., Reg]]]] = {
    "f32_gelu": (2, functions.gelu),
    "f32_gelu_grad": (2, functions.gelu_grad),
    "f32_erf": (1, functions.erf),
    "f32_tanh": (1, functions.tanh),
    "f32_sigmoid": (1, functions.sigmoid),
    "f32_log": (1, functions.log),
    "f32_sin": (1, functions.sin),
    "f32_cos": (1, functions.cos),
    "f32_gauss": (1, functions.gauss),
    "f32_exp": (1, functions.exp),
}
"""By the name that kernels give them: how many arguments, and what writes them. None is part of one behind it."""

_NAMES: Final = {
    Op.I32_MULHI_U32: "i32_mulhi",
    Op.BITS_F32: "copy",
    Op.BOOL_AND: "i32_and",
    Op.BOOL_OR: "i32_or",
    Op.BOOL_NOT: "i32_not",
}


def name_of(op: Op, result: DType) -> str:
    """What kernels call an operation."""
    if op is Op.SELECT:
        return "select_i64" if result is DType.I64 else "select_word"
    return _NAMES.get(op, op.name.lower())


def reads_of(i: Instruction) -> tuple[int, ...]:
    """The registers that an instruction reads."""
    return () if i.op in CONSTANTS else (i.a, i.b, i.c)[: arity_of(Op(i.op))]


@cache
def known() -> dict[str, ScalarProgram]:
    """All of them, by the name that kernels give them."""
    found = {}
    for name, (arity, make) in _MAKERS.items():
        s = ScalarBuilder([DType.F32] * arity)
        found[name] = s.build(make(s, *(s.operand(k) for k in range(arity))))
    return found


@dataclass(frozen=True, slots=True)
class KnownFunction:
    """A function that instructions amount to. inner: the registers that nothing else reads and nobody computes."""

    name: str
    reads: tuple[int, ...]
    inner: frozenset[int]


def found(
    program: ScalarProgram, types: Sequence[DType], live: set[int], uses: Mapping[int, int], named: Mapping[str, int]
) -> dict[int, KnownFunction]:
    """By the register of their result, those of `named` that the live instructions of a program amount to."""
    m, body = len(program.operands), program.instructions
    at: dict[int, KnownFunction] = {}
    taken: set[int] = set()
    unifier = _Unifier(program, types)
    for name, function in known().items():
        last = function.instructions[-1].op
        if not any(each in named for each in (name, f"{name}_vv")):
            continue
        for register in sorted(live, reverse=True):
            if register < m or body[register - m].op != last or register in taken:
                continue
            match = _match(name, function, program, unifier.bound_at(function, register), register, uses)
            if match is not None and not taken & (match.inner | {register}):
                at[register] = match
                taken |= match.inner | {register}
    return at


def _match(
    name: str,
    function: ScalarProgram,
    program: ScalarProgram,
    bound: Mapping[int, int] | None,
    register: int,
    uses: Mapping[int, int],
) -> KnownFunction | None:
    """What ends at a register, if its values are bound to this function's and nothing else reads what is within."""
    arity, m = len(function.operands), len(program.operands)
    if bound is None:
        return None
    within = {r for t, r in bound.items() if t >= arity and function.instructions[t - arity].op not in CONSTANTS}
    counts: dict[int, int] = {}
    for r in within:
        for read in reads_of(program.instructions[r - m]):
            counts[read] = counts.get(read, 0) + 1
    inner = within - {register}
    reads = tuple(bound[t] for t in range(arity))
    if inner & set(reads) or any(counts[r] != uses[r] for r in inner):
        return None
    return KnownFunction(name, reads, frozenset(inner))


class _Unifier:
    """Which of a program's values are a function's, in whichever order sums and products have their terms."""

    def __init__(self, program: ScalarProgram, types: Sequence[DType]) -> None:
        self._program, self._types = program, types
        self._left = MOST_COMPARED

    def bound_at(self, function: ScalarProgram, register: int) -> dict[int, int] | None:
        """Per value of a function the program's register, its result being this one; None where it is another."""
        self._function, self._bound = function, dict[int, int]()
        last = len(function.operands) + len(function.instructions) - 1
        return self._bound if self._same(last, register) else None

    def _same(self, value: int, register: int) -> bool:
        if self._left == 0:
            return False
        self._left -= 1
        if value in self._bound:
            return self._bound[value] == register
        arity, m = len(self._function.operands), len(self._program.operands)
        if value < arity:
            same = self._types[register] is DType.F32
        elif register < m:
            return False
        else:
            wanted, here = self._function.instructions[value - arity], self._program.instructions[register - m]
            same = wanted.op == here.op and self._same_reads(wanted, here)
        if same:
            self._bound[value] = register
        return same

    def _same_reads(self, wanted: Instruction, here: Instruction) -> bool:
        if wanted.op in CONSTANTS:
            return wanted.imm == here.imm
        reads = reads_of(here)
        for order in (reads, reads[::-1]) if wanted.op in COMMUTATIVE else (reads,):
            before = dict(self._bound)
            if all(self._same(v, r) for v, r in zip(reads_of(wanted), order, strict=True)):
                return True
            self._bound = before
        return False


def text() -> str:
    """What `functions.h` says."""
    parts = [_HEAD]
    for name, program in known().items():
        arity = len(program.operands)
        types = infer_types(program.operands, program.instructions)
        lines = ["    " + " ".join(f"ARGUMENT(r{k}, {'ab'[k]})" for k in range(arity))]
        constants = {arity + k: i.imm for k, i in enumerate(program.instructions) if i.op in CONSTANTS}
        for k, i in enumerate(program.instructions, arity):
            if k not in constants:
                reads = (f"WORD(0x{constants[r]:08x})" if r in constants else f"r{r}[u]" for r in reads_of(i))
                lines.append(f"    EACH(r{k}, {name_of(Op(i.op), types[k])}_of({', '.join(reads)}))")
        lines.append(f"    RESULT(r{arity + len(program.instructions) - 1})")
        parts.append("\n".join([f"FUNCTION_{arity}({name}) {{", *lines, "}", ""]))
    return "\n".join([*parts, _FOOT])


_HEAD: Final = """\
/* Functions of `assay/protocol/arithmetic/functions.py`, by the operations of `scalar.h`.
 * Written by `python -m assay.engine.runtime.fused.functions`; a test compares. */
#ifndef ASSAY_FUNCTIONS_H
#define ASSAY_FUNCTIONS_H

#include "abreast.h"

/* clang-format off */"""

_FOOT: Final = """\
/* clang-format on */

#endif
"""


if __name__ == "__main__":
    HEADER.write_text(text(), encoding="utf-8")
