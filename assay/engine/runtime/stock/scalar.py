"""The scalar machine on whole torch tensors, bit-equal to `protocol.arithmetic.scalar.evaluate` (rules AR, SM).

Only operations whose rounding is the same on every machine are used: add, sub, mul, div by a tensor, neg, abs, where,
round, floor, comparisons, conversions, integer operations, and f64 square root rounded to f32. Values are f32, i32, i64
and bool tensors. NaNs may carry any payload between operations, as no operation here distinguishes them; where bits are
read (F32_BITS) the one NaN is put in first, and a store does the same (`dtypes.canonical`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from assay.protocol.arithmetic.scalar import CONSTANTS, Instruction, Op, ScalarProgram, arity_of, infer_types
from assay.protocol.types import DType

NAN_BITS = 0x7FC00000
_MASK32 = 0xFFFFFFFF
_INT_MIN = -(1 << 31)

Evaluator = Callable[..., Tensor]
"""Takes the operand tensors (broadcast against each other) and returns the value in the program's result type.

The shape they broadcast to, or a larger one that the caller expands to, may be given as well: it takes long to find.
"""

_TORCH = {DType.F32: torch.float32, DType.I32: torch.int32, DType.I64: torch.int64, DType.BOOL: torch.bool}

CHUNK = 1 << 15
"""Elements per thread that run through the whole program at a time, so that registers stay in the cache."""


def compile_scalar(program: ScalarProgram) -> Evaluator:
    """A function that computes the program elementwise on tensors.

    Raises:
        IllFormedScalarProgramError: the program is ill-formed.
    """
    types = infer_types(program.operands, program.instructions)
    result_type = _TORCH[types[-1]]
    last_use = _last_uses(program)
    known: dict[torch.device, dict[int, Tensor]] = {}

    def evaluate(operands: Sequence[Tensor], shape: torch.Size | None = None) -> Tensor:
        loaded = [t if t.dtype is _TORCH[d] else t.to(_TORCH[d]) for t, d in zip(operands, types, strict=False)]
        if shape is None:
            shape = torch.broadcast_shapes(*(t.shape for t in loaded))
        device = loaded[0].device if loaded else torch.device("cpu")
        if device not in known:
            known[device] = _constants(program.instructions, device)
        constants = known[device]
        chunk = CHUNK * torch.get_num_threads() if device.type == "cpu" else shape.numel()
        if shape.numel() <= chunk:
            return _run(program.instructions, loaded, constants, last_use)
        out = torch.empty(shape, dtype=result_type, device=device)
        for piece, views in _pieces(out, [t.expand(shape) if t.ndim else t for t in loaded], chunk):
            piece.copy_(_run(program.instructions, views, constants, last_use))
        return out

    return evaluate


def _last_uses(program: ScalarProgram) -> dict[int, list[int]]:
    """For each instruction, the registers that nothing reads after it."""
    last: dict[int, int] = {}
    for k, i in enumerate(program.instructions):
        op = Op(i.op)
        for r in (i.a, i.b, i.c)[: 0 if op in CONSTANTS else arity_of(op)]:
            last[r] = k
    dead: dict[int, list[int]] = {}
    for r, k in last.items():
        dead.setdefault(k, []).append(r)
    return dead


def _constants(instructions: Sequence[Instruction], device: torch.device) -> dict[int, Tensor]:
    """0-dimensional tensors of the constants, by instruction: division by a Python scalar is not exact on GPUs."""
    return {k: constant(Op(i.op), i.imm).to(device) for k, i in enumerate(instructions) if i.op in CONSTANTS}


def constant(op: Op, imm: int) -> Tensor:
    """The value of a constant instruction."""
    signed = struct.unpack(">i", imm.to_bytes(4, "big"))[0]
    match op:
        case Op.CONST_F32:
            return torch.tensor(signed, dtype=torch.int32).view(torch.float32)
        case Op.CONST_I32:
            return torch.tensor(signed, dtype=torch.int32)
        case Op.CONST_I64:
            return torch.tensor(signed, dtype=torch.int64)
        case _:
            return torch.tensor(imm != 0)


def _pieces(out: Tensor, operands: list[Tensor], limit: int) -> list[tuple[Tensor, list[Tensor]]]:
    """Cut the output and the operands (of its shape or 0-dimensional) along the first dimensions into small pieces."""
    if out.numel() <= limit or out.ndim == 0:
        return [(out, operands)]
    if all(t.ndim == 0 or t.is_contiguous() for t in operands):
        out, operands = out.view(-1), [t.view(-1) if t.ndim else t for t in operands]
    rows = max(1, limit * out.shape[0] // out.numel())
    found = []
    for start in range(0, out.shape[0], rows):
        count = min(rows, out.shape[0] - start)
        views = [t.narrow(0, start, count) if t.ndim else t for t in operands]
        piece = out.narrow(0, start, count)
        if rows == 1 and piece.numel() > limit:
            found += _pieces(piece[0], [t[0] if t.ndim else t for t in views], limit)
        else:
            found.append((piece, views))
    return found


def _run(
    instructions: Sequence[Instruction],
    operands: Sequence[Tensor],
    constants: dict[int, Tensor],
    dead: dict[int, list[int]],
) -> Tensor:
    """Execute a well-formed program, dropping each register after its last use."""
    registers: list[Tensor | None] = list(operands)
    for k, i in enumerate(instructions):
        if k in constants:
            registers.append(constants[k])
            continue
        a, b, c = (registers[r] if r < len(registers) else None for r in (i.a, i.b, i.c))
        registers.append(_select(a, b, c) if i.op == Op.SELECT else FUNCTIONS[i.op](a, b))  # type: ignore[arg-type]
        a = b = c = None
        for r in dead.get(k, ()):
            registers[r] = None
    result = registers[-1]
    assert result is not None
    return result


def _select(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """x where the condition holds, else y, by masks of bits: `where` waits for a branch per element."""
    if condition.ndim == 0 or x.element_size() != 4 or x.device.type != "cpu":
        return torch.where(condition, x, y)
    mask = condition.to(torch.int32).neg_()
    other = y.view(torch.int32)
    return ((x.view(torch.int32) ^ other) & mask).bitwise_xor(other).view(x.dtype)


def _sqrt(x: Tensor, _: Tensor) -> Tensor:
    """f64 root rounded to f32: the root of 24 bits is never so near a midpoint that the first rounding matters."""
    return x.double().sqrt().float()


def _scale2(x: Tensor, n: Tensor) -> Tensor:
    """x * 2^n, exact in f64 and rounded by the conversion; beyond +-400 every finite result is 0 or infinite anyway."""
    power = ((n.clamp(-400, 400).long() + 1023) << 52).view(torch.float64)
    return (x.double() * power).float()


def _scale(x: Tensor, n: Tensor) -> Tensor:
    """x * 2^n: one binary32 product where every power is a normal binary32 number, which it nearly always is."""
    if n.device.type == "cpu" and n.numel():
        low, high = torch.aminmax(n)
        if int(low) >= -126 and int(high) <= 127:
            return x * ((n + 127) << 23).view(torch.float32)
    return _scale2(x, n)


def _exponent(x: Tensor, _: Tensor) -> Tensor:
    """E(x) from the f64 exponent, in which subnormals are normal; zero falls below -149, NaN and infinity above 129."""
    field = (x.double().view(torch.int64) >> 52) & 0x7FF
    return (field - 1022).clamp(-149, 129).int()


def _to_int(dtype: torch.dtype, low: int, largest: float) -> Callable[[Tensor, Tensor], Tensor]:
    """Saturating conversion toward zero; `largest` is the largest f32 below the first power of two out of range."""
    high = -low - 1

    def convert(x: Tensor, _: Tensor) -> Tensor:
        finite = torch.where(x.isnan(), 0.0, x).clamp(float(low), largest).to(dtype)
        return torch.where(x > largest, high, finite)

    return convert


def _to_i32(x: Tensor, _: Tensor) -> Tensor:
    """Saturating conversion toward zero; binary64 holds both limits."""
    low, high = float(_INT_MIN), float(-_INT_MIN - 1)
    return x.double().nan_to_num(nan=0.0, posinf=high, neginf=low).clamp_(low, high).to(torch.int32)


def _bits(x: Tensor, _: Tensor) -> Tensor:
    """The pattern, with the one NaN for every NaN."""
    return x.view(torch.int32).masked_fill(x.isnan(), NAN_BITS)


def _mulhi(a: Tensor, b: Tensor) -> Tensor:
    """The high half of the unsigned product; the i64 product wraps, its bits 32 to 63 are right."""
    return (((a.long() & _MASK32) * (b.long() & _MASK32)) >> 32).int()


FUNCTIONS: dict[int, Callable[[Tensor, Tensor], Tensor]] = {
    Op.F32_ADD: torch.add,
    Op.F32_SUB: torch.sub,
    Op.F32_MUL: torch.mul,
    Op.F32_DIV: torch.div,
    Op.F32_SQRT: _sqrt,
    Op.F32_NEG: lambda a, _: a.neg(),
    Op.F32_ABS: lambda a, _: a.abs(),
    # a zero of either sign may come out; adding +0 makes it +0
    Op.F32_MIN: lambda a, b: torch.minimum(a, b) + 0.0,
    Op.F32_MAX: lambda a, b: torch.maximum(a, b) + 0.0,
    Op.F32_EQ: torch.eq,
    Op.F32_LT: torch.lt,
    Op.F32_LE: torch.le,
    Op.F32_RINT: lambda a, _: a.round(),
    Op.F32_FLOOR: lambda a, _: a.floor(),
    Op.F32_SCALE2: _scale,
    Op.F32_EXPONENT: _exponent,
    Op.I32_TO_F32: lambda a, _: a.float(),
    Op.F32_TO_I32: _to_i32,
    Op.I64_TO_F32: lambda a, _: a.float(),  # one rounding; by way of f64 there would be two
    Op.F32_TO_I64: _to_int(torch.int64, -(1 << 63), 9223371487098961920.0),
    Op.I64_TO_I32: lambda a, _: a.int(),
    Op.I32_TO_I64: lambda a, _: a.long(),
    Op.BOOL_TO_I32: lambda a, _: a.int(),
    Op.I32_TO_BOOL: lambda a, _: a != 0,
    Op.F32_BITS: _bits,
    Op.BITS_F32: lambda a, _: a.view(torch.float32),
    Op.I32_ADD: torch.add,
    Op.I32_SUB: torch.sub,
    Op.I32_MUL: torch.mul,
    Op.I32_MULHI_U32: _mulhi,
    Op.I32_AND: torch.bitwise_and,
    Op.I32_OR: torch.bitwise_or,
    Op.I32_XOR: torch.bitwise_xor,
    Op.I32_NOT: lambda a, _: a.bitwise_not(),
    Op.I32_SHL: lambda a, b: a << (b & 31),
    Op.I32_SHR_LOGICAL: lambda a, b: ((a.long() & _MASK32) >> (b & 31).long()).int(),
    Op.I32_SHR_ARITH: lambda a, b: a >> (b & 31),
    Op.I32_MIN: torch.minimum,
    Op.I32_MAX: torch.maximum,
    Op.I32_EQ: torch.eq,
    Op.I32_LT: torch.lt,
    Op.I32_LTU: lambda a, b: (a ^ _INT_MIN) < (b ^ _INT_MIN),
    Op.I64_ADD: torch.add,
    Op.I64_SUB: torch.sub,
    Op.I64_MUL: torch.mul,
    Op.I64_EQ: torch.eq,
    Op.I64_LT: torch.lt,
    Op.BOOL_AND: torch.logical_and,
    Op.BOOL_OR: torch.logical_or,
    Op.BOOL_NOT: lambda a, _: a.logical_not(),
}
