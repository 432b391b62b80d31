"""What the kernels of nodes must get right before they are used: every operation on the edges of its operands.

A kernel that a compiler or a processor gets wrong would make an honest solver commit to what is false, and lose its
lock. Products prove themselves in `native_selftest`; here is everything else, against stock torch, once per process.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Callable, Sequence
from functools import cache

import torch
from torch import Tensor

from assay.engine.runtime.values.dtypes import canonical
from assay.protocol.arithmetic import functions
from assay.protocol.arithmetic.scalar import CONSTANTS, SIGNATURES, Instruction, Op, ScalarProgram
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Output
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

F32, I32, I64, BOOL, U8 = DType.F32, DType.I32, DType.I64, DType.BOOL, DType.U8

RunTensors = Callable[[Program, Sequence[Sequence[Tensor]]], list[list[Tensor]]]
"""Y of a program for these lists of X."""

_FLOATS = (
    *(0x00000000, 0x00000001, 0x00400000, 0x007FFFFF, 0x00800000, 0x00800001, 0x01000000, 0x33800000, 0x3EFFFFFF),
    *(0x3F000000, 0x3F7FFFFF, 0x3F800000, 0x3F800001, 0x3FC00000, 0x40200000, 0x42B17218, 0x4B000001, 0x4B7FFFFF),
    *(0x4EFFFFFF, 0x4F000000, 0x5F000000, 0x7E800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00001),
)
"""Patterns: zero, subnormals, ties, where integers begin and end, extremes, infinity, a NaN with a payload."""

_INTEGERS = (0, 1, -1, 2**31 - 1, -(2**31), 31, 32, 33, -33, 126, -149, 150, 1 << 24, (1 << 24) + 1, 255, -256)
_LONGS = (0, 1, -1, 2**63 - 1, -(2**63), 2**31, -(2**31) - 1, 2**53 + 1, (1 << 40) + (1 << 16), -(2**54) - 3)
_FUNCTIONS = (
    *(functions.exp, functions.log, functions.sigmoid, functions.tanh, functions.rsqrt),
    *(functions.erf, functions.gelu_tanh, functions.sin),
)

_LARGE = 14
"""The pairs before are of numbers whose rows are quantized by two factors."""

ROWS = COLUMNS = 2 * len(_FLOATS)
"""Every pair of floats: more than one tile, in rows that no vector divides."""


def failure(stock: RunTensors, native: RunTensors) -> str:
    """What the native kernels get wrong here; empty when they agree with stock torch on every bit."""
    program, names = battery()
    inputs = operands()
    for name, wanted, found in zip(names, stock(program, inputs)[0], native(program, inputs)[0], strict=True):
        if not torch.equal(_bits(wanted), _bits(found)):
            return name
    return ""


@cache
def battery() -> tuple[Program, tuple[str, ...]]:
    """One program with an output per operation and kind of reduction, and what each is."""
    shape = (ROWS, COLUMNS)
    types = (F32, F32, I32, I32, I64, I64, BOOL, U8)
    b = ProgramBuilder([[*(TensorSpec(t, shape) for t in types), TensorSpec(I32, (2,))]])
    slots = [b.input(0, k) for k in range(len(types))]
    found = [
        (op.name, b.map(scalar, reads, shape))
        for op in Op
        if op not in CONSTANTS
        for scalar, reads in _operation(op, slots)
    ]
    for function in _FUNCTIONS:
        s = ScalarBuilder([F32])
        found.append((function.__name__, b.map(s.build(function(s, s.operand(0))), [slots[0]], shape)))
    x, key = slots[0], b.input(0, len(types))
    turned = slots[1].permute(1, 0)  # whose columns differ, as the rows of x do
    index = slots[7].select(1, 0)
    others = b.rowexp(x, 1).slice(0, 2, ROWS).pad(0, 0, 2)  # of rows further on
    found += [
        ("ROWEXP", b.rowexp(x, 1)),
        ("ROWEXP of columns", b.rowexp(turned, 1)),
        ("MAX", b.max(x, 1)),
        ("MAX of columns", b.max(turned, 1)),
        ("SUM", b.sum(x, 1)),
        ("SUM of columns", b.sum(turned, 1)),
        ("SUM of large columns", b.sum(turned.slice(0, _LARGE, ROWS), 1)),
        ("SUM by other exponents", b.sum(x, 1, others)),
        ("SUM of columns by other exponents", b.sum(turned, 1, others)),
        ("GATHER", b.gather(x, index.unsqueeze(1), shape)),
        ("SCATTER_SUM", _scattered(b, x, index, b.rowexp(x, 2))),
        ("SCATTER_SUM by row", _scattered(b, x, index, b.rowexp(x, 1).unsqueeze(1))),
        ("RANDOM", b.random(1, key, key, shape)),
        ("a window", b.map(_sum_of_two(), [x, x.slice(1, 1, COLUMNS).pad(1, 0, 1)], shape)),
    ]
    program = b.build([[ref for _, ref in found]])
    assert sum(isinstance(n, Output) for n in program.nodes) == len(found)
    return program, tuple(name for name, _ in found)


def operands() -> list[list[Tensor]]:
    """X of the battery: all pairs of edges of each type."""
    floats = [p | sign for p in _FLOATS for sign in (0, 1 << 31)]
    count = ROWS * COLUMNS
    lists: list[Tensor] = []
    for edges, form, dtype in ((floats, "I", torch.float32), (_INTEGERS, "i", torch.int32), (_LONGS, "q", torch.int64)):
        pairs = list(itertools.islice(itertools.cycle(itertools.product(edges, edges)), count))
        for k in range(2):
            data = bytearray(struct.pack(f"<{count}{form}", *(pair[k] for pair in pairs)))
            lists.append(torch.frombuffer(data, dtype=dtype).reshape(ROWS, COLUMNS))
    at = torch.arange(count).reshape(ROWS, COLUMNS)
    # Rows 0 to 63 are drawn, and some that are outside.
    return [[*lists, at % 3 == 0, (at // COLUMNS * 7 % 64).to(torch.uint8), torch.tensor([7, -9], dtype=torch.int32)]]


def _operation(op: Op, slots: Sequence[Ref]) -> list[tuple[ScalarProgram, list[Ref]]]:
    """The map of one operation on whole tensors, and with its last operand one element for all."""
    first = {F32: 0, I32: 2, I64: 4, BOOL: 6}
    if op is Op.SELECT:
        types: tuple[DType, ...] = (BOOL, F32, F32)
        reads = [slots[6], slots[0], slots[1]]
    else:
        types = SIGNATURES[op][0]
        same = len(types) == 2 and types[0] is types[1] and types[0] is not BOOL
        reads = [slots[first[t] + (same and k)] for k, t in enumerate(types)]
    scalar = ScalarProgram(types, (Instruction(op, *(*range(len(types)), 0, 0, 0)[:3]),))
    single = reads[-1].slice(0, 1, 2).slice(1, 3, 4)
    return [(scalar, reads), (scalar, [*reads[:-1], single])]


def _scattered(b: ProgramBuilder, x: Ref, index: Ref, exponent: Ref) -> Ref:
    """Rows of x added up by their index, under one exponent or one per row."""
    source = x.permute(1, 0).unsqueeze(0)  # [1, columns, rows]
    return b.scatter_sum(source, index.unsqueeze(0).unsqueeze(0), exponent, (ROWS, COLUMNS), (ROWS,))


def _sum_of_two() -> ScalarProgram:
    s = ScalarBuilder([F32, F32])
    return s.build(s.add(s.operand(0), s.operand(1)))


def _bits(t: Tensor) -> Tensor:
    """What is stored: values in memory may hold NaNs of any payload."""
    return canonical(t).view(torch.int32) if t.dtype is torch.float32 else t
