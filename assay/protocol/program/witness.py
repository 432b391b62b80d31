"""The witnessed step: a second program that also samples its own products (rules WT).

It has two lists more, a key and an accumulator. Every step reads every product at eight places that Philox draws under
the key, and mixes what it read into the accumulator: who replays every step knows it in the end, and nobody else. It is
an ordinary program, derived from the plain one alone, so whoever is given both derives the second again.

Attack: an auditor signs as committed without computing, copies another's attestation, or buys states of the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from assay.protocol.arithmetic.scalar import Instruction, Op, ScalarProgram
from assay.protocol.arithmetic.words import from_ints, to_bytes
from assay.protocol.errors import RejectedError
from assay.protocol.program.builder import ProgramBuilder, Ref
from assay.protocol.program.nodes import Input, Output, reads, renumbered
from assay.protocol.program.program import MAX_NODES, Program
from assay.protocol.program.views import Window
from assay.protocol.program.wellformed import violations
from assay.protocol.program.witness_rows import LANES, NoWitness, WitnessRow, witness_rows
from assay.protocol.trees.state import ListBytes, Scalar, TrainingList
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

F32, I32 = DType.F32, DType.I32

STREAM: Final = 0x7769746E
"""The stream of Philox from which positions are drawn."""

BYTE_EXPONENT: Final = 8
"""An exponent of every byte: sums of bytes lose nothing (AR-9, AR-10)."""

KEY: Final = TensorSpec(I32, (2,))
ACCUMULATOR: Final = TensorSpec(I32, (LANES,))

_GROUP = 7
_JOINED = 8


class WrongWitness(RejectedError):
    """A program is not the witnessed one that follows from a step program."""

    remedy = "Stake nothing in the run: its sponsor may predict what auditors have to find."


def witnessed_program(plain: Program) -> Program:
    """The witnessed program of a well-formed step program: X and Y are the plain one's, then (key), (accumulator).

    Of a witnessed program it is one with a second key and a second accumulator, each as it would be alone: an auditor
    of an audit replays once for both.

    Raises:
        NoWitness: none follows.
    """
    rows = witness_rows(plain)
    lists = [[plain.specs[k] for k in part] for part in plain.input_nodes]
    b = ProgramBuilder([*lists, [KEY], [ACCUMULATOR]])
    b.consts.update(plain.consts)
    key, before = b.input(len(lists), 0), b.input(len(lists) + 1, 0)
    words = b.random(STREAM, key, b.input(TrainingList.SCALARS, Scalar.STEP), (len(rows), LANES))
    numbers, samples = _sampling(b, plain, rows, _positions(b, rows, words))
    after = _accumulated(b, before, _total(b, _hashed(b, samples, words)))
    sources = [[numbers[j] for k in part for j in reads(plain.nodes[k])] for part in plain.output_nodes]
    outputs = [*([_whole(b, k) for k in part] for part in sources), [key], [after]]
    if len(b.nodes) + sum(map(len, outputs)) > MAX_NODES:
        raise NoWitness("WT-3", f"The witnessed program has {len(b.nodes)} nodes and its outputs, above {MAX_NODES}.")
    return b.build(outputs)


def check_witness(plain: Program, witnessed: Program) -> None:
    """Whether the second program is what follows from the first; checked before anything is staked (WT-10).

    Attack: a sponsor's witness samples nothing, or what it alone can predict.

    Raises:
        NoWitness: the first is ill-formed, or nothing follows from it. WrongWitness: something else does.
    """
    if violations(plain):
        raise NoWitness("WT-1", "The program is ill-formed.")
    kept: dict[str, Any] = vars(plain)
    if kept.get("_witness") == witnessed.root:  # it was compared before
        return
    expected = witnessed_program(plain)
    kept["_witness"] = expected.root
    if expected.root == witnessed.root:
        return
    pairs = enumerate(zip(expected.descriptors, witnessed.descriptors, strict=False))
    first = next((k for k, (a, b) in pairs if a != b), min(len(expected.nodes), len(witnessed.nodes)))
    raise WrongWitness(
        f"The witnessed program of 0x{plain.root.hex()} is 0x{expected.root.hex()}, not 0x{witnessed.root.hex()};"
        f" they part at node {first}.",
        node=first,
    )


def witness_lists(key: Sequence[int]) -> ListBytes:
    """The lists (key), (accumulator) before the first step; key: two u32 words."""
    return (_i32s(*key),), (bytes(ACCUMULATOR.nbytes),)


def _positions(b: ProgramBuilder, rows: Sequence[WitnessRow], words: Ref) -> Ref:
    """i32[R, LANES]: where each row is read, from 0 to below its size (WT-5)."""
    sizes = b.const(TensorSpec(I32, (len(rows),)), _i32s(*(row.size for row in rows)))
    code = _Code(I32, I32)
    code(Op.I32_MULHI_U32, 0, 1)
    return b.map(code.program, [words, sizes.unsqueeze(1)], words.dims)


def _sampling(
    b: ProgramBuilder, plain: Program, rows: Sequence[WitnessRow], positions: Ref
) -> tuple[dict[int, int], list[Ref]]:
    """The plain nodes in their order, each product with its samples f32[LANES] behind it (WT-6).

    There, so that no product is kept for longer. Returns where the plain nodes stand, and the samples.
    """
    numbers = {k: k for k in range(sum(plain.inputs))}
    samples: list[Ref] = []
    for k, node in enumerate(plain.nodes):
        if isinstance(node, Input | Output):
            continue
        numbers[k] = b.add(renumbered(node, numbers)).node
        flat = Ref(numbers[k], node.spec, Window.whole((node.spec.numel,)))
        while len(samples) < len(rows) and rows[len(samples)].node == k:
            row = rows[len(samples)]
            table = flat.slice(0, row.start, row.start + row.size)
            samples.append(b.gather(table, positions.select(0, len(samples)), (LANES,)))
    return numbers, samples


def _hashed(b: ProgramBuilder, samples: Sequence[Ref], words: Ref) -> Ref:
    """i32[R, LANES]: each sample's bits with its word, mixed, which another value never gives (WT-7)."""
    parts = []
    for first in range(0, len(samples), _GROUP):
        group = _stacked([sample.unsqueeze(0) for sample in samples[first : first + _GROUP]])
        code = _Code(*[F32] * len(group), I32)
        bits = [code(Op.F32_BITS, k) for k in range(len(group))]
        x = len(group)
        for k in bits:
            x = code(Op.I32_XOR, x, k)
        code.mix(x)
        own = words.slice(0, first, first + len(group))
        parts.append(b.map(code.program, [*group, own], own.dims))
    while len(parts) > 1:
        parts = [_joined(b, parts[k : k + _JOINED]) for k in range(0, len(parts), _JOINED)]
    return parts[0]


def _joined(b: ProgramBuilder, parts: Sequence[Ref]) -> Ref:
    """Rows below rows, as one value."""
    if len(parts) == 1:
        return parts[0]
    code = _Code(*[I32] * len(parts))
    x = 0
    for k in range(1, len(parts)):
        x = code(Op.I32_XOR, x, k)
    stack = _stacked(parts)
    return b.map(code.program, stack, stack[0].dims)


def _total(b: ProgramBuilder, hashed: Ref) -> Ref:
    """f32[4, LANES]: the sums of every byte over the rows, lowest byte first; exact in any order (WT-8)."""
    rows = hashed.dims[0]
    shifts = b.const(TensorSpec(I32, (4,)), _i32s(0, 8, 16, 24))
    code = _Code(I32, I32)
    code(Op.I32_TO_F32, code(Op.I32_AND, code(Op.I32_SHR_LOGICAL, 0, 1), code.const(255)))
    parts = b.map(code.program, [hashed.unsqueeze(1), shifts.unsqueeze(1)], (rows, 4, LANES))
    exponent = b.const(TensorSpec(I32, ()), _i32s(BYTE_EXPONENT))
    return b.sum(parts.permute(1, 2, 0), 1, exponent)


def _accumulated(b: ProgramBuilder, before: Ref, total: Ref) -> Ref:
    """The accumulator after a step: mix of it plus the sum of the hashed samples, modulo 2^32 (WT-9)."""
    code = _Code(I32, *[F32] * 4)
    numbers = [code(Op.F32_TO_I32, 1 + k) for k in range(4)]
    eight = code.const(8)
    x = numbers[3]
    for k in reversed(numbers[:3]):
        x = code(Op.I32_ADD, code(Op.I32_SHL, x, eight), k)
    code.mix(code(Op.I32_ADD, x, 0))
    return b.map(code.program, [before, *(total.select(0, k) for k in range(4))], (LANES,))


def _stacked(parts: Sequence[Ref]) -> list[Ref]:
    """Each part over the rows of all, reading zeros outside its own."""
    total, first, found = sum(part.dims[0] for part in parts), 0, []
    for part in parts:
        found.append(part.pad(0, first, total - first - part.dims[0]))
        first += part.dims[0]
    return found


def _whole(b: ProgramBuilder, k: int) -> Ref:
    spec = b.nodes[k].spec
    return Ref(k, spec, Window.whole(spec.dims))


def _i32s(*values: int) -> bytes:
    return to_bytes(I32, from_ints(I32, values))


class _Code:
    """A scalar program written instruction by instruction: its bytes are part of the protocol."""

    def __init__(self, *operands: DType) -> None:
        self._operands = operands
        self._lines: list[Instruction] = []

    def __call__(self, op: Op, a: int = 0, b: int = 0, imm: int = 0) -> int:
        """One instruction; returns its register."""
        self._lines.append(Instruction(op, a, b, 0, imm))
        return len(self._operands) + len(self._lines) - 1

    def const(self, value: int) -> int:
        """An i32."""
        return self(Op.CONST_I32, imm=value)

    def mix(self, x: int) -> int:
        """A permutation of words in which each bit moves about half of the others (lowbias32 of hash-prospector)."""
        sixteen = self.const(16)
        x = self(Op.I32_XOR, x, self(Op.I32_SHR_LOGICAL, x, sixteen))
        x = self(Op.I32_MUL, x, self.const(0x7FEB352D))
        x = self(Op.I32_XOR, x, self(Op.I32_SHR_LOGICAL, x, self.const(15)))
        x = self(Op.I32_MUL, x, self.const(0x846CA68B))
        return self(Op.I32_XOR, x, self(Op.I32_SHR_LOGICAL, x, sixteen))

    @property
    def program(self) -> ScalarProgram:
        """What was written."""
        return ScalarProgram(self._operands, tuple(self._lines))
