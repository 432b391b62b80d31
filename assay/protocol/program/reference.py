"""The reference executor: whole programs by Python integers, on small inputs.

Element for element it computes what `leaf` defines (a test compares them); it differs in order only, reading each row
once and quantizing each value once. Values are bytes between nodes, as a trace holds them, and canonical words inside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import mul

from assay.protocol.arithmetic import f32, scalar
from assay.protocol.arithmetic.rounding import finish
from assay.protocol.arithmetic.words import MASK_64, Word, as_f32, as_i32, canonical, to_bytes
from assay.protocol.errors import InvariantError
from assay.protocol.program import leaf
from assay.protocol.program.nodes import (
    Const,
    Dot,
    Gather,
    Input,
    Map,
    Max,
    Node,
    Operand,
    Output,
    Random,
    Rank,
    RowExp,
    ScatterSum,
    Sum,
)
from assay.protocol.program.program import Program
from assay.protocol.program.rows import QuantizedRows, Rows, addresses, at, read_all
from assay.protocol.program.rows import load as load
from assay.protocol.trees.tensors import TensorSizeError, TensorSpec
from assay.protocol.types import DType

Alter = Callable[[int, bytes], bytes]
"""(node, bytes) to the bytes that stand in its place; everything after reads the altered ones."""

_evaluated = lru_cache(maxsize=1 << 16)(scalar.evaluate)
_exponent = lru_cache(maxsize=1 << 16)(f32.exponent)


class ReferenceExecutor:
    """Runs one well-formed program; stateless between runs."""

    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, inputs: Sequence[Sequence[bytes]], alter: Alter | None = None) -> tuple[bytes, ...]:
        """The bytes of every node's value, from the bytes of every slot of X per list.

        Raises:
            TensorSizeError: a slot or an altered value has another size than its node.
            InvariantError: the number of lists or slots is not the program's.
        """
        program = self.program
        if tuple(len(slots) for slots in inputs) != program.inputs:
            raise InvariantError("The state has other lists than the program's inputs.", code="StateLayout")
        values: list[bytes] = []
        words: list[list[Word]] = []
        for k, node in enumerate(program.nodes):
            data = self._bytes(node, inputs, values, words)
            if alter is not None:
                data = alter(k, data)
            if len(data) != node.spec.nbytes:
                raise TensorSizeError(f"Node {k} has {node.spec.nbytes} bytes, not {len(data)}.")
            values.append(data)
            words.append(load(node.spec.dtype, data))
        return tuple(values)

    def _bytes(
        self, node: Node, inputs: Sequence[Sequence[bytes]], values: Sequence[bytes], words: Sequence[list[Word]]
    ) -> bytes:
        """The bytes of one node from those of earlier ones."""
        match node:
            case Input():
                return bytes(inputs[node.list_index][node.index])
            case Const():
                return bytes(self.program.consts[node.root])
            case Output():
                return values[node.node]
            case _:
                return to_bytes(node.spec.dtype, compute(node, words))


def compute(node: Node, words: Sequence[list[Word]]) -> list[Word]:
    """The canonical words of a node from those of the earlier nodes; input, const and output are no computation."""
    spec = node.spec
    if spec.numel == 0:
        return []
    match node:
        case Map():
            return _map(node, words)
        case Random():
            heads = [words[j][i] for j in (node.key, node.step) for i in (0, 1)]
            return [leaf.start(node, o, heads).value for o in range(spec.numel)]
        case Gather():
            return _gather(node, words)
        case RowExp():
            rows = Rows(node.x, spec, node.red, words)
            per_row = rows.each(lambda row: max(_exponent(as_f32(w)) for w in row))
            return [canonical(spec.dtype, e) for e in per_row]
        case Max():
            rows = Rows(node.x, spec, node.red, words)
            return list(rows.each(lambda row: canonical(spec.dtype, leaf.combine(node, [_part(spec, w) for w in row]))))
        case Rank():
            return _rank(node, words)
        case Dot():
            return _dot(node, words)
        case Sum():
            return _sum(node, words)
        case ScatterSum():
            return _scatter_sum(node, words)
        case _:
            raise InvariantError(f"A node of family {node.family.name} is not computed.")


def _map(node: Map, words: Sequence[list[Word]]) -> list[Word]:
    columns = [read_all(o, node.spec.dims, words) for o in node.operands]
    rows = zip(*columns, strict=True) if columns else [()] * node.spec.numel
    dtype = node.spec.dtype
    return [canonical(dtype, _evaluated(node.code, tuple(w & MASK_64 for w in row))) for row in rows]


def _gather(node: Gather, words: Sequence[list[Word]]) -> list[Word]:
    spec, view, source = node.spec, node.table.view, words[node.table.node]
    missing = f32.NAN if spec.dtype is DType.F32 else 0
    picked = [as_i32(w) for w in read_all(node.index, spec.dims, words)]
    result = []
    for base, row in zip(addresses(view, spec.dims, 1), picked, strict=True):
        if not 0 <= row < node.size:
            result.append(missing)
        elif base is None or not view.lo[0] <= row < view.hi[0]:
            result.append(canonical(spec.dtype, view.fill))
        else:
            result.append(canonical(spec.dtype, at(source, base + row * view.strides[0])))
    return result


def _part(spec: TensorSpec, word: Word) -> int:
    return as_f32(word) if spec.dtype is DType.F32 else as_i32(word)


def _exponents(operand: Operand, spec: TensorSpec, words: Sequence[list[Word]]) -> list[int]:
    return [as_i32(w) for w in read_all(operand, spec.dims, words)]


def _dot(node: Dot, words: Sequence[list[Word]]) -> list[Word]:
    spec = node.spec
    a = QuantizedRows(Rows(node.a, spec, node.red, words), node.precision_a)
    b = QuantizedRows(Rows(node.b, spec, node.red, words), node.precision_b)
    shift = node.precision_a + node.precision_b - 2
    result = []
    pairs = zip(_exponents(node.exponent_a, spec, words), _exponents(node.exponent_b, spec, words), strict=True)
    for o, (e_a, e_b) in enumerate(pairs):
        if max(e_a, e_b) >= f32.E_NONFINITE:
            result.append(f32.NAN)
        else:
            result.append(finish(sum(map(mul, a.row(o, e_a), b.row(o, e_b))), e_a + e_b - shift))
    return result


def _sum(node: Sum, words: Sequence[list[Word]]) -> list[Word]:
    rows = QuantizedRows(Rows(node.x, node.spec, node.red, words), leaf.SUM_PRECISION)
    return [
        f32.NAN if e >= f32.E_NONFINITE else finish(sum(rows.row(o, e)), e - leaf.SUM_PRECISION + 1)
        for o, e in enumerate(_exponents(node.exponent, node.spec, words))
    ]


def _scatter_sum(node: ScatterSum, words: Sequence[list[Word]]) -> list[Word]:
    spec = node.spec
    rows = QuantizedRows(Rows(node.x, spec, node.red, words), leaf.SUM_PRECISION)
    indices = Rows(node.index, spec, node.red, words)
    inner = spec.numel // spec.dims[0]
    places: dict[int | None, dict[int, list[int]]] = {}
    result = []
    for o, e in enumerate(_exponents(node.exponent, spec, words)):
        if e >= f32.E_NONFINITE:
            result.append(f32.NAN)
            continue
        base = indices.bases[o]
        if base not in places:
            places[base] = {}
            for k, w in enumerate(indices.row(o)):
                places[base].setdefault(as_i32(w), []).append(k)
        row = rows.row(o, e)
        total = sum(row[k] for k in places[base].get(o // inner, ()))
        result.append(finish(total, e - leaf.SUM_PRECISION + 1))
    return result


def _rank(node: Rank, words: Sequence[list[Word]]) -> list[Word]:
    spec = node.spec
    n = spec.dims[-1]
    rows = Rows(node.x, spec, node.red, words)
    result = []
    for o in range(spec.numel):
        row, own = rows.row(o), o % n
        result.append(sum(leaf.term(node, o, k, (row[own],), (w,)) for k, w in enumerate(row)))
    return result
