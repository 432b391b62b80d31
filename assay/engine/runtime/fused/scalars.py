"""Scalar programs as the tile interpreter runs them: functions, slots, and which results are one element for all."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from assay.engine.runtime.fused.functions import KnownFunction, name_of, reads_of
from assay.engine.runtime.fused.functions import found as known_functions
from assay.protocol.arithmetic.scalar import CONSTANTS, Instruction, Op, ScalarProgram, infer_types
from assay.protocol.types import DType

DESTINATION = -1
CELL, TILE = -1, -2


class Extent(IntEnum):
    """Over what a register is one value."""

    CONSTANT = 0
    NODE = 1
    RUN = 2
    TILE = 3


@dataclass(frozen=True, slots=True)
class TileCode:
    """Code for the kernels. steps: (function, out, a, b, c, single); the first `n_first` run once per call.

    slots: per slot CELL, TILE, or the bytes of a constant.
    """

    steps: tuple[tuple[int, int, int, int, int, int], ...]
    n_first: int
    slots: tuple[int | bytes, ...]
    is_wide: bool


_JOINED = {
    (Op.F32_MUL, Op.F32_ADD, 0): "mul_add",
    (Op.F32_MUL, Op.F32_ADD, 1): "mul_add",
    (Op.F32_MUL, Op.F32_SUB, 0): "mul_sub",
    (Op.F32_MUL, Op.F32_SUB, 1): "sub_mul",
    (Op.F32_ADD, Op.F32_MUL, 0): "add_mul",
    (Op.F32_ADD, Op.F32_MUL, 1): "add_mul",
    (Op.F32_SUB, Op.F32_MUL, 0): "dif_mul",
    (Op.F32_SUB, Op.F32_MUL, 1): "dif_mul",
}
"""An instruction whose only reader is the second, as its operand of this number: both in one pass."""

_STORES = {DType.U8: "store_byte", DType.I8: "store_byte", DType.BOOL: "store_bool", DType.U16: "store_u16"}


def _constant(i: Instruction) -> bytes:
    signed = i.imm - (1 << 32) if i.imm >> 31 else i.imm
    if i.op == Op.CONST_BOOL:
        signed = -(i.imm != 0)
    return struct.pack("<q", signed)


@dataclass(slots=True)
class _Assembler:
    functions: Mapping[str, int]
    extents: list[Extent]
    types: list[DType]
    slots: list[int | bytes]
    where: dict[int, int]
    first: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    steps: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    free: list[int] = field(default_factory=list)
    is_wide: bool = False

    def new_slot(self, extent: Extent) -> int:
        if extent is Extent.TILE and self.free:
            return self.free.pop()
        self.slots.append(TILE if extent is Extent.TILE else CELL)
        return len(self.slots) - 1

    def as_tile(self, register: int) -> int:
        """The slot of a register as a tile; one element is spread first."""
        if self.extents[register] is Extent.TILE:
            return self.where[register]
        out = self.new_slot(Extent.TILE)
        name = "spread_i64" if self.types[register] is DType.I64 else "spread"
        self.steps.append((self.functions[name], out, self.where[register], 0, 0, 0))
        return out

    def emit(self, name: str, operands: Sequence[int], extent: Extent, out: int) -> None:
        """A function of registers; its variants are named after which operands are tiles (v) and which not (s)."""
        kinds = ["v" if self.extents[r] is Extent.TILE else "s" for r in operands]
        if extent is not Extent.TILE:
            kinds = ["v"] * len(operands)
        spread: list[int] = []
        slots = [self.where[r] for r in operands]
        if len(operands) == 1 or f"{name}_{''.join(kinds)}" not in self.functions:
            if name not in self.functions:
                kinds = ["v"] * len(operands)
            if extent is Extent.TILE:
                slots = [self.as_tile(r) for r in operands]
                spread = [s for s, r in zip(slots, operands, strict=True) if s != self.where[r]]
        full = name if name in self.functions else f"{name}_{''.join(kinds)}"
        a, b, c = (*slots, 0, 0, 0)[:3]
        step = (self.functions[full], out, a, b, c, int(extent is not Extent.TILE))
        (self.first if extent <= Extent.NODE else self.steps).append(step)
        self.free += spread


def assemble(
    program: ScalarProgram, result: DType, operands: Sequence[Extent], functions: Mapping[str, int]
) -> TileCode:
    """Code for a well-formed program whose operands extend like this; `result` is the node's element type."""
    types = infer_types(program.operands, program.instructions)
    m = len(program.operands)
    body = program.instructions
    extents: list[Extent] = list(operands)
    for i in body:
        inputs = [extents[r] for r in reads_of(i)]
        extents.append(max(inputs, default=Extent.CONSTANT))
    live = _live(body, m)
    uses = _uses(body, m, live)
    # Every operand is read into its slot, also one that the program does not use: i64 needs wide slots all the same.
    wide = any(types[r] is DType.I64 for r in live | set(range(m)))
    known = {} if wide else _known(program, types, extents, live, uses, functions)
    inner = {register: last for last, each in known.items() for register in each.inner}
    joined = {} if wide else _pairs(body, m, extents, live - inner.keys() - known.keys(), uses)
    inner |= {first: second for second, (first, _) in joined.items()}
    slots: list[int | bytes] = [CELL if e < Extent.TILE else TILE for e in operands]
    a = _Assembler(functions, extents, types, slots, {k: k for k in range(m)}, is_wide=wide)
    last_use = _last_uses(body, m, live, inner)
    final = len(types) - 1
    direct = extents[final] is Extent.TILE and final >= m and types[final] is not DType.BOOL and result.size >= 4
    for k, i in enumerate(body):
        register = m + k
        if register not in live or register in inner:
            continue
        if i.op in CONSTANTS:
            a.slots.append(_constant(i))
            a.where[register] = len(a.slots) - 1
            continue
        extent = extents[register]
        reads = list(reads_of(i))
        name = name_of(Op(i.op), types[register])
        if register in known:
            name, reads = known[register].name, list(known[register].reads)
        elif register in joined:
            first, name = joined[register]
            inside = body[first - m]
            reads = [inside.a, inside.b, i.b if i.a == first else i.a]
        if extent is Extent.TILE and not wide:
            for r in {r for r in reads if last_use.get(r) == register and r >= m and extents[r] is Extent.TILE}:
                a.free.append(a.where[r])
        out = DESTINATION if direct and register == final else a.new_slot(max(extent, Extent.NODE))
        # One element is computed in a cell, by the same functions.
        a.emit(name, reads, extent if extent >= Extent.NODE else Extent.NODE, out)
        a.where[register] = out
    if not direct:
        slot = a.as_tile(final)
        copy = "copy_i64" if types[final] is DType.I64 else "copy"
        a.steps.append((functions[_STORES.get(result, copy)], DESTINATION, slot, 0, 0, 0))
    return TileCode((*a.first, *a.steps), len(a.first), tuple(a.slots), wide)


def _known(
    program: ScalarProgram,
    types: Sequence[DType],
    extents: Sequence[Extent],
    live: set[int],
    uses: Mapping[int, int],
    functions: Mapping[str, int],
) -> dict[int, KnownFunction]:
    """Per register what function it is of others, where all that is within is computed on whole tiles."""
    found = known_functions(program, types, live, uses, functions)
    return {r: f for r, f in found.items() if all(extents[each] is Extent.TILE for each in (r, *f.inner))}


def _live(body: Sequence[Instruction], m: int) -> set[int]:
    """The registers that the last one needs."""
    live = {m + len(body) - 1}
    for k in range(len(body) - 1, -1, -1):
        i = body[k]
        if m + k in live:
            live.update(reads_of(i))
    return live


def _uses(body: Sequence[Instruction], m: int, live: set[int]) -> dict[int, int]:
    uses: dict[int, int] = {}
    for k, i in enumerate(body):
        if m + k in live:
            for r in reads_of(i):
                uses[r] = uses.get(r, 0) + 1
    return uses


def _pairs(
    body: Sequence[Instruction], m: int, extents: Sequence[Extent], live: set[int], uses: Mapping[int, int]
) -> dict[int, tuple[int, str]]:
    """Per instruction that takes in an earlier one: that one's register and the joint function."""
    found: dict[int, tuple[int, str]] = {}
    taken: set[int] = set()
    for k, i in enumerate(body):
        register = m + k
        if register not in live or extents[register] is not Extent.TILE:
            continue
        for place, r in ((0, i.a), (1, i.b)):
            if r not in live or r < m or r in found or r in taken or uses[r] != 1 or extents[r] is not Extent.TILE:
                continue
            name = _JOINED.get((Op(body[r - m].op), Op(i.op), place))
            if name is not None:
                found[register] = (r, name)
                taken.add(r)
                break
    return found


def _last_uses(body: Sequence[Instruction], m: int, live: set[int], inner: Mapping[int, int]) -> dict[int, int]:
    """Per register the instruction (as its register) after which nothing reads it; inner ones read where they end."""
    last: dict[int, int] = {}
    for k, i in enumerate(body):
        register = m + k
        if register in live:
            for r in reads_of(i):
                last[r] = max(last.get(r, 0), inner.get(register, register))
    return last
