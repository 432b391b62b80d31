"""The program that a claim of an answer is about: the forward program, and a token drawn from its logits.

(parameters, (tokens i32 [1, W], length i32 [1]), (rates i64 [2], draw i32 [4])) to ((bool [1])): whether `token` is
the one that the model says. `draw` is (limit, token, upper and lower word of the random bits). It follows from the
forward program alone, node by node, so whoever knows the one has the other.

Integers wider than 32 bits are i64 where additions and products do, and pairs of words where bits are shifted; sums
over the vocabulary are of bits so few that binary32 holds them. Source: docs/adr/0067-bonded-gateways.md,
docs/inference.md. Shapes: V vocabulary, L parts of a weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from assay.inference.sampling import powers_of_two
from assay.protocol.arithmetic.scalar import Op, ScalarProgram
from assay.protocol.arithmetic.scalar_builder import Reg, ScalarBuilder
from assay.protocol.arithmetic.words import from_ints, to_bytes
from assay.protocol.errors import UserError
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Input, renumbered
from assay.protocol.program.program import Program
from assay.protocol.program.views import Window
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

POINT: Final = 20
"""Logits count in units of 2^-20."""

BOUND: Final = 30
"""Logits beyond 2^30 count as it."""

MOST_VOCABULARY: Final = 1 << 20
"""Beyond it a weight has more parts than a map has operands."""

_WEIGHT_BITS: Final = 32
_EXACT_BITS: Final = 24

F32, I32, I64 = DType.F32, DType.I32, DType.I64


def answer_program(forward: Program) -> Program:
    """The answer program of a forward program. Raises UserError (VocabularyTooLarge)."""
    first = sum(forward.inputs)
    specs = [[forward.specs[k] for k in nodes] for nodes in forward.input_nodes]
    b = ProgramBuilder([*specs, [TensorSpec(I64, (2,)), TensorSpec(I32, (4,))]])
    numbers = {k: k for k in range(first)}
    outputs = {k for nodes in forward.output_nodes for k in nodes}
    for k, node in enumerate(forward.nodes):
        if k not in outputs and not isinstance(node, Input):
            numbers[k] = b.add(renumbered(node, numbers)).node
    b.consts |= forward.consts
    (found,) = forward.output_nodes[0]
    source = numbers[forward.nodes[found].node]  # type: ignore[union-attr]
    spec = forward.specs[found]
    logits = Ref(source, spec, Window.whole(spec.dims)).select(0, 0)
    return b.build([[_is_drawn(b, logits, len(specs))]])


def _is_drawn(b: ProgramBuilder, logits: Ref, given: int) -> Ref:
    """Whether the token of list `given` is the one that these logits [V] give; bool [1]."""
    (V,) = logits.dims
    if V > MOST_VOCABULARY:
        raise UserError(
            f"The model has {V} tokens; of more than {MOST_VOCABULARY} an answer is no claim.",
            code="VocabularyTooLarge",
            remedy="Serve it without a bond.",
        )
    rates, draw = b.input(given, 0), b.input(given, 1)
    limit, token, upper, lower = (draw.slice(0, k, k + 1) for k in range(4))
    powers = b.map(_powers(), [logits, b.max(logits.unsqueeze(0), 1), rates.slice(0, 0, 1), rates.slice(0, 1, 2)], (V,))
    tables = [_const(b, table.tolist()) for table in powers_of_two()]
    places = [b.map(_bits_of(shift), [powers], (V,)) for shift in (POINT // 2, 0)]
    factors = [b.gather(table, place, (V,)) for table, place in zip(tables, places, strict=True)]
    weights = b.map(_weight(), [*factors, powers, b.rank(logits), limit], (V,))
    # Attack: a sum that is rounded. Parts have so few bits that all V of them stay below 2^24.
    bits = _EXACT_BITS - max(1, (V - 1).bit_length())
    shifts = list(range(0, _WEIGHT_BITS, bits))
    ends = b.map(_ends(V), [token, _const(b, [0, 1, 2])], (3,))
    numbers, by = _const(b, list(range(V))), _const(b, shifts)
    read = [weights, by.unsqueeze(1), numbers, ends.unsqueeze(1).unsqueeze(2)]
    sums = b.sum(b.map(_part(bits), read, (3, len(shifts), V)), 1)  # f32 [3, L]: below the token, up to it, all
    parts = [sums.slice(1, k, k + 1) for k in range(len(shifts))]
    sums = b.map(_horner(len(shifts), bits), parts, (3, 1)).select(1, 0)
    below, up_to, total = (sums.slice(0, k, k + 1) for k in range(3))
    return b.map(_holds(), [below, up_to, total, upper, lower], (1,))


def _const(b: ProgramBuilder, values: Sequence[int]) -> Ref:
    return b.const(TensorSpec(I32, (len(values),)), to_bytes(I32, from_ints(I32, values)))


# --- scalar programs


def _scalar(operands: Sequence[DType], function: Callable[..., Reg]) -> ScalarProgram:
    s = ScalarBuilder(operands)
    return s.build(function(s, *(s.operand(k) for k in range(len(operands)))))


def _unit(s: ScalarBuilder, x: Reg) -> Reg:
    """The units of a logit, i64."""
    bound = s.f32(float(1 << BOUND))
    cut = s.minimum(s.maximum(x, s.neg(bound)), bound)
    return s.cast(s.apply(Op.F32_RINT, s.scale2(cut, s.i32(POINT))), I64)


def _upper_word(s: ScalarBuilder, x: Reg) -> tuple[Reg, Reg]:
    """(x - l) / 2^32 and l, the i32 in the low bits of an i64 x of at most 2^56, which binary32 holds then."""
    low = s.cast(x, I32)
    rest = s.cast(s.sub(x, s.cast(low, I64)), F32)
    return s.cast(s.scale2(rest, s.i32(-32)), I32), low


def _powers() -> ScalarProgram:
    """z: by how many units of 2^-20 of a power of two a logit lies below the largest, i32."""

    def function(s: ScalarBuilder, x: Reg, largest: Reg, rate: Reg, most: Reg) -> Reg:
        below = s.sub(_unit(s, largest), _unit(s, x))
        high, low = _upper_word(s, s.mul(s.select(s.lt(below, most), below, most), rate))
        # Floor of a product in units of 2^-50 by 2^30; the lower word counts as negative where its top bit is set.
        return s.add(s.apply(Op.I32_SHL, high, s.i32(2)), s.apply(Op.I32_SHR_ARITH, low, s.i32(30)))

    return _scalar([F32, F32, I64, I64], function)


def _bits_of(shift: int) -> ScalarProgram:
    """Ten bits of z."""
    mask = (1 << POINT // 2) - 1
    return _scalar([I32], lambda s, z: s.apply(Op.I32_AND, s.apply(Op.I32_SHR_LOGICAL, z, s.i32(shift)), s.i32(mask)))


def _weight() -> ScalarProgram:
    """What a token weighs, a u32; 0 from the limit on."""

    def function(s: ScalarBuilder, p: Reg, q: Reg, z: Reg, rank: Reg, limit: Reg) -> Reg:
        high = s.apply(Op.I32_MULHI_U32, p, q)
        exact = s.apply(
            Op.I32_OR, s.apply(Op.I32_SHL, high, s.i32(1)), s.apply(Op.I32_SHR_LOGICAL, s.mul(p, q), s.i32(31))
        )
        octave = s.apply(Op.I32_SHR_LOGICAL, z, s.i32(POINT))
        # Shift counts are taken mod 32.
        kept = s.select(s.lt(octave, s.i32(32)), s.apply(Op.I32_SHR_LOGICAL, exact, octave), s.i32(0))
        return s.select(s.lt(rank, limit), kept, s.i32(0))

    return _scalar([I32] * 5, function)


def _ends(vocabulary: int) -> ScalarProgram:
    """Of the three sums the first number that is left out: the token, the next one, none."""

    def function(s: ScalarBuilder, token: Reg, row: Reg) -> Reg:
        return s.select(s.eq(row, s.i32(2)), s.i32(vocabulary), s.add(token, row))

    return _scalar([I32, I32], function)


def _part(bits: int) -> ScalarProgram:
    """Some bits of a weight as f32, 0 from the end on."""

    def function(s: ScalarBuilder, weight: Reg, shift: Reg, number: Reg, end: Reg) -> Reg:
        part = s.apply(Op.I32_AND, s.apply(Op.I32_SHR_LOGICAL, weight, shift), s.i32((1 << bits) - 1))
        return s.select(s.lt(number, end), s.cast(part, F32), s.f32(0.0))

    return _scalar([I32] * 4, function)


def _horner(count: int, bits: int) -> ScalarProgram:
    """Parts, lowest first, as one number."""

    def function(s: ScalarBuilder, *parts: Reg) -> Reg:
        found = s.cast(parts[-1], I64)
        for part in reversed(parts[:-1]):
            found = s.add(s.mul(found, s.i64(1 << bits)), s.cast(part, I64))
        return found

    return _scalar([F32] * count, function)


def _holds() -> ScalarProgram:
    """Whether below <= floor(R S / 2^64) < up to it, R being 64 random bits and S the sum of all weights."""

    def function(s: ScalarBuilder, below: Reg, up_to: Reg, total: Reg, r1: Reg, r0: Reg) -> Reg:
        def wide(x: Reg) -> Reg:
            """An unsigned word."""
            high = s.select(s.lt(x, s.i32(0)), s.i64(1 << 32), s.i64(0))
            return s.add(s.cast(x, I64), high)

        def product(x: Reg, y: Reg) -> tuple[Reg, Reg]:
            return s.apply(Op.I32_MULHI_U32, x, y), s.mul(x, y)

        high, s0 = _upper_word(s, total)
        s1 = s.add(high, s.apply(Op.I32_SHR_ARITH, s0, s.i32(31)))
        (a1, a0), (b1, b0), (c1, _) = product(r1, s0), product(r0, s1), product(r0, s0)
        once = s.add(a0, b0)
        twice = s.add(once, c1)
        carry = s.add(s.cast(s.apply(Op.I32_LTU, once, a0), I32), s.cast(s.apply(Op.I32_LTU, twice, c1), I32))
        small = s.cast(s.add(b1, carry), I64)
        target = s.add(s.add(s.mul(wide(r1), s.cast(s1, I64)), wide(a1)), small)
        return s.apply(Op.BOOL_AND, s.le(below, target), s.lt(target, up_to))

    return _scalar([I64, I64, I64, I32, I32], function)
