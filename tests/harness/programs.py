"""Small programs written by hand, with a state each, for everybody's tests.

`counting` is the toy of the game, `counting_training` the same in the layout of a training state, `every_family` holds
all twelve families with tensors of several leaves, `mlp_step` is a training step with SGD and momentum,
`witnessed_mlp` the same witnessed. All can be repeated: Y has the layout of X.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from assay.protocol.arithmetic.scalar import Op, ScalarProgram
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.arithmetic.words import from_ints, to_bytes
from assay.protocol.digests import ZERO
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Family
from assay.protocol.program.program import Program
from assay.protocol.program.trace import ReferenceTrace, SlotTamper, Tamper
from assay.protocol.program.witness import witness_lists, witnessed_program
from assay.protocol.trees.state import SCALAR_SPECS, ListBytes, RoundScalars, Scalar
from assay.protocol.trees.tensors import TensorSpec, tensor_root
from assay.protocol.types import DType, Round, Seat

F32, I32, U8 = DType.F32, DType.I32, DType.U8


@dataclass(frozen=True)
class Example:
    """A program and a state to start from."""

    name: str
    program: Program
    state: ListBytes

    def trace(
        self, steps: int = 1, tamper: Tamper | None = None, tamper_slot: SlotTamper | None = None
    ) -> ReferenceTrace:
        """The trace of some steps, honest or not."""
        return ReferenceTrace(self.program, self.state, steps, tamper, tamper_slot)

    def nodes_of(self, family: Family) -> tuple[int, ...]:
        """The nodes of a family."""
        return tuple(k for k, node in enumerate(self.program.nodes) if node.family is family)


def f32_bytes(*values: float) -> bytes:
    """Little-endian binary32 of these numbers."""
    return struct.pack(f"<{len(values)}f", *values)


def i32_bytes(*values: int) -> bytes:
    """Little-endian i32 of these integers, taken mod 2^32."""
    return to_bytes(I32, from_ints(I32, values))


def normal(seed: int, count: int, scale: float = 1.0) -> bytes:
    """Normally distributed binary32 numbers from a seed."""
    rng = random.Random(seed)
    return f32_bytes(*(rng.gauss(0.0, scale) for _ in range(count)))


def unary(dtype: DType, function: str, *constants: float) -> ScalarProgram:
    """A map of one operand by a method of ScalarBuilder and f32 constants, such as ("add", 1.0)."""
    b = ScalarBuilder([dtype])
    return b.build(getattr(b, function)(b.operand(0), *(b.f32(c) for c in constants)))


def binary(dtypes: Sequence[DType], function: str) -> ScalarProgram:
    """A map of two operands by a method of ScalarBuilder."""
    b = ScalarBuilder(dtypes)
    return b.build(getattr(b, function)(b.operand(0), b.operand(1)))


@cache
def counting(size: int = 600) -> Example:
    """X = Y = ((i32[size])): every element counts one up each step; three leaves by default."""
    b = ProgramBuilder([[TensorSpec(I32, (size,))]])
    s = ScalarBuilder([I32])
    count = b.map(s.build(s.add(s.operand(0), s.i32(1))), [b.input(0, 0)], (size,))
    return Example("counting", b.build([[count]]), ((i32_bytes(*range(size)),),))


def advance_step(b: ProgramBuilder, step: Ref) -> Ref:
    """The step counter i32[2] (low, high) plus one."""
    place = b.const(TensorSpec(I32, (2,)), i32_bytes(0, 1))
    s = ScalarBuilder([I32, I32, I32])
    at, own, low = s.operand(0), s.operand(1), s.operand(2)
    increased = s.add(low, s.i32(1))
    carry = s.cast(s.eq(increased, s.i32(0)), I32)
    value = s.select(s.eq(at, s.i32(0)), increased, s.add(own, carry))
    return b.map(s.build(value), [place, step, step.slice(0, 0, 1)], (2,))


def training_inputs(
    parameters: Sequence[TensorSpec], optimizer: Sequence[TensorSpec], data: TensorSpec
) -> ProgramBuilder:
    """A builder over the three lists of a training state."""
    return ProgramBuilder([parameters, optimizer, [*(SCALAR_SPECS[s] for s in sorted(SCALAR_SPECS)), data]])


def scalar(b: ProgramBuilder, which: Scalar) -> Ref:
    """A slot of the scalars list."""
    return b.input(2, which)


def next_scalars(b: ProgramBuilder) -> list[Ref]:
    """The scalars list after a step: the step advances, the rest stays."""
    return [advance_step(b, scalar(b, s)) if s is Scalar.STEP else scalar(b, s) for s in Scalar]


def round_scalars(data: bytes, seat: int = 0, round_: int = 0, lr: float = 0.05) -> RoundScalars:
    """The scalars of a round over u8 data of 64 elements or more, two shards."""
    (bits,) = struct.unpack("<I", f32_bytes(lr))
    root = tensor_root(TensorSpec(U8, (len(data),)), data)
    return RoundScalars(ZERO, Seat(seat), Round(round_), 25, 2, len(data) // 2, bits, root)


def scalar_slots(scalars: RoundScalars, data: bytes) -> tuple[bytes, ...]:
    """The bytes of the scalars list."""
    values = scalars.values()
    return (*(values[s] for s in sorted(values)), data)


@cache
def counting_training(size: int = 16) -> Example:
    """The counting program on a training state: parameters f32[size] grow by 1, the optimizer's count by 1."""
    data = bytes(range(64))
    b = training_inputs([TensorSpec(F32, (size,))], [TensorSpec(I32, ())], TensorSpec(U8, (len(data),)))
    s = ScalarBuilder([I32])
    grown = b.map(unary(F32, "add", 1.0), [b.input(0, 0)], (size,))
    counted = b.map(s.build(s.add(s.operand(0), s.i32(1))), [b.input(1, 0)], ())
    program = b.build([[grown], [counted], next_scalars(b)])
    state = ((bytes(4 * size),), (bytes(4),), scalar_slots(round_scalars(data), data))
    return Example("counting_training", program, state)


def draw_rows(b: ProgramBuilder, rows: int, context: int) -> Ref:
    """i32[rows]: where each row of the batch starts, shard_start + mulhi_u32(word, shard_length - context)."""
    words = b.random(1, scalar(b, Scalar.KEY), scalar(b, Scalar.STEP), (rows,))
    s = ScalarBuilder([I32, I32, I32])
    span = s.sub(s.operand(2), s.i32(context))
    start = s.add(s.operand(1), s.apply(Op.I32_MULHI_U32, s.operand(0), span))
    return b.map(s.build(start), [words, scalar(b, Scalar.SHARD_START), scalar(b, Scalar.SHARD_LENGTH)], (rows,))


@cache
def every_family() -> Example:
    """All twelve families: a lookup table trained on bytes; tensors of one to four leaves, reductions of 5 to 300."""
    rows, vocabulary, width, out = 5, 16, 60, 7
    rng = random.Random(7)
    data = bytes(rng.randrange(vocabulary) for _ in range(200))
    b = training_inputs(
        [TensorSpec(F32, (vocabulary, width)), TensorSpec(F32, (out, width))],
        [TensorSpec(I32, (rows, out))],
        TensorSpec(U8, (len(data),)),
    )
    table, weight = b.input(0, 0), b.input(0, 1)
    tokens = b.gather(scalar(b, Scalar.DATA), draw_rows(b, rows, 1), (rows,))  # u8[rows]
    x = b.gather(table, tokens.unsqueeze(1), (rows, width))
    y = b.matmul(x, weight)  # f32[rows, out]
    shifted = b.map(binary((F32, F32), "sub"), [y, b.max(y, 1).unsqueeze(1)], (rows, out))
    order = b.rank(shifted)
    total = b.sum(shifted, 1)
    # Each row of the table takes a step along the rows that used it.
    source = b.map(binary((F32, F32), "mul"), [x, total.unsqueeze(1)], (rows, width))
    exponent = b.rowexp(source, 2)
    gradient = b.scatter_sum(
        source.unsqueeze(0).permute(0, 2, 1), tokens.unsqueeze(0).unsqueeze(0), exponent, (vocabulary, width), (rows,)
    )
    s = ScalarBuilder([F32, F32, F32])
    step = s.build(s.sub(s.operand(0), s.mul(s.operand(1), s.operand(2))))
    rate = scalar(b, Scalar.LR)
    table_after = b.map(step, [table, gradient, rate], (vocabulary, width))
    # A window with a fill: the weight moves one place along its rows.
    moved = b.map(step, [weight, weight.slice(1, 1, width).pad(1, 0, 1), rate], (out, width))
    program = b.build([[table_after, moved], [order], next_scalars(b)])
    state = (
        (normal(1, vocabulary * width), normal(2, out * width)),
        (bytes(4 * rows * out),),
        scalar_slots(round_scalars(data), data),
    )
    return Example("every_family", program, state)


@cache
def mlp_step(rows: int = 4, context: int = 8, hidden: int = 16, precision: int = 14) -> Example:
    """One SGD step with momentum 0.9 of relu(x W1' + b1) w2 + b2 on the next byte, squared error; bytes over 256."""
    data = bytes(random.Random(3).randrange(256) for _ in range(512))
    parameters = [
        TensorSpec(F32, (hidden, context)),
        TensorSpec(F32, (hidden,)),
        TensorSpec(F32, (1, hidden)),
        TensorSpec(F32, (1,)),
    ]
    b = training_inputs(parameters, parameters, TensorSpec(U8, (len(data),)))
    w1, b1, w2, b2 = (b.input(0, i) for i in range(4))
    windows = _windows(b, rows, context + 1)  # f32[rows, context + 1]
    x, target = windows.slice(1, 0, context), windows.slice(1, context, context + 1)

    before = b.map(binary((F32, F32), "add"), [b.matmul(x, w1, precision, precision), b1], (rows, hidden))
    h = b.map(unary(F32, "maximum", 0.0), [before], (rows, hidden))
    y = b.map(binary((F32, F32), "add"), [b.matmul(h, w2, precision, precision), b2], (rows, 1))
    # Gradients of the mean of (y - target)^2 / 2.
    s = ScalarBuilder([F32, F32])
    error = s.mul(s.sub(s.operand(0), s.operand(1)), s.f32(1 / rows))
    dy = b.map(s.build(error), [y, target], (rows, 1))
    s = ScalarBuilder([F32, F32])
    gate = s.select(s.lt(s.f32(0.0), s.operand(1)), s.operand(0), s.f32(0.0))
    dh = b.map(s.build(gate), [b.matmul(dy, w2.permute(1, 0), 22, precision), before], (rows, hidden))
    gradients = [
        b.matmul(dh.permute(1, 0), x.permute(1, 0), 22, precision),
        b.sum(dh.permute(1, 0), 1),
        b.matmul(dy.permute(1, 0), h.permute(1, 0), 22, precision),
        b.sum(dy.permute(1, 0), 1),
    ]
    s = ScalarBuilder([F32, F32])
    momentum = s.build(s.add(s.mul(s.operand(0), s.f32(0.9)), s.operand(1)))
    s = ScalarBuilder([F32, F32, F32])
    descent = s.build(s.sub(s.operand(0), s.mul(s.operand(1), s.operand(2))))
    moments = [b.map(momentum, [b.input(1, i), g], parameters[i].dims) for i, g in enumerate(gradients)]
    rate = scalar(b, Scalar.LR)
    after = [b.map(descent, [b.input(0, i), m, rate], parameters[i].dims) for i, m in enumerate(moments)]
    program = b.build([after, moments, next_scalars(b)])
    weights = tuple(normal(10 + i, spec.numel, 0.3) for i, spec in enumerate(parameters))
    state = (weights, tuple(spec.zeros() for spec in parameters), scalar_slots(round_scalars(data), data))
    return Example("mlp_step", program, state)


def _windows(b: ProgramBuilder, rows: int, length: int) -> Ref:
    """f32[rows, length]: rows of bytes of the data over 256, drawn from the shard."""
    positions = b.const(TensorSpec(I32, (length,)), i32_bytes(*range(length)))
    starts = draw_rows(b, rows, length).unsqueeze(1)
    index = b.map(binary((I32, I32), "add"), [starts, positions], (rows, length))
    tokens = b.gather(scalar(b, Scalar.DATA), index, (rows, length))
    s = ScalarBuilder([U8])
    value: Reg = s.mul(s.cast(s.operand(0), F32), s.f32(1 / 256))
    return b.map(s.build(value), [tokens], (rows, length))


def all_examples() -> tuple[Example, ...]:
    """One of each."""
    return counting(), counting_training(), every_family(), mlp_step()


WITNESS_KEY = (0x12345678, 0x9ABCDEF0)


@cache
def witnessed_mlp() -> Example:
    """The witnessed step of `mlp_step` under a key: five products in ten rows."""
    plain = mlp_step()
    return Example("witnessed_mlp", witnessed_program(plain.program), (*plain.state, *witness_lists(WITNESS_KEY)))
