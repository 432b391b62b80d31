"""The rules of well-formedness that belong to one family: element types, shapes, numbers of terms, constants."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache
from math import prod

from assay.protocol.arithmetic import f32, philox
from assay.protocol.arithmetic.scalar import IllFormedScalarProgramError, ScalarProgram
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
from assay.protocol.trees import merkle
from assay.protocol.trees.tensors import TensorSpec, leaf_digests
from assay.protocol.types import Digest, DType

MAX_SUM_BITS = 62
SUM_PRECISION = 31

_PIECE = 1 << 16
"""Bytes that are looked at in one go."""


class Rule(StrEnum):
    """The kinds of rules; each rule has a number of its own in docs/protocol/programs.md."""

    NODE_COUNT = "node count"
    LISTS = "lists"
    LAYOUT = "layout"
    ENCODING = "encoding"
    ORDER = "order"
    BOUNDS = "bounds"
    ADDRESS = "address"
    FILL = "fill"
    DTYPE = "dtype"
    TERMS = "terms"
    SCALAR = "scalar"
    SHAPE = "shape"
    CONST = "const"


Violations = Iterator[tuple[Rule, str, str]]
"""Rules broken: kind, number, reason."""


class Constants:
    """The bytes of a program's constants, each hashed and looked through once, however many nodes name them.

    Attack: a megabyte that a million nodes name, so that whoever checks the program hashes a terabyte.
    """

    def __init__(self, program: Program) -> None:
        self._data = program.consts
        self._trees: dict[Digest, Digest] = {}
        self._canonical: dict[Digest, bool] = {}

    def violations(self, node: Const) -> Violations:
        """The bytes travel with the program, have the root, and are canonical."""
        data = self._data.get(node.root)
        if data is None:
            yield Rule.CONST, "WF-24", "its bytes are missing"
        elif len(data) != node.spec.nbytes or node.spec.digest(self._tree(node.root, data)) != node.root:
            yield Rule.CONST, "WF-24", "its bytes have another root"
        elif not self._is_canonical(node, data):
            yield Rule.CONST, "WF-25", "it holds a NaN with a payload or a bool other than 0 and 1"

    def _tree(self, root: Digest, data: bytes) -> Digest:
        if root not in self._trees:
            # Leaves have no type: those of the bytes are those of every tensor that has them.
            self._trees[root] = merkle.root(leaf_digests(TensorSpec(DType.U8, (len(data),)), data))
        return self._trees[root]

    def _is_canonical(self, node: Const, data: bytes) -> bool:
        """Of bytes that have the root, which names the type too."""
        if node.root not in self._canonical:
            self._canonical[node.root] = is_canonical(node.spec.dtype, data)
        return self._canonical[node.root]


def family_violations(program: Program, node: Node, constants: Constants) -> Violations:
    """Element types, shapes and sizes of one family."""
    dtype = node.spec.dtype
    match node:
        case Const():
            yield from constants.violations(node)
        case Map():
            yield from _map(program, node)
        case RowExp():
            yield from _types(program, ("result", dtype, DType.I32), ("x", node.x, DType.F32))
            yield from _positive(node.red)
        case Max():
            yield from _types(program, ("x", node.x, dtype))
            if dtype not in (DType.F32, DType.I32):
                yield Rule.DTYPE, "WF-17", f"a max is f32 or i32, not {dtype.name}"
            yield from _positive(node.red)
        case Dot():
            values = ("A", node.a, DType.F32), ("B", node.b, DType.F32)
            exponents = ("eA", node.exponent_a, DType.I32), ("eB", node.exponent_b, DType.I32)
            yield from _types(program, ("result", dtype, DType.F32), *values, *exponents)
            yield from _bits(node.precision_a + node.precision_b - 2, node.red)
        case Sum():
            exponent = ("e", node.exponent, DType.I32)
            yield from _types(program, ("result", dtype, DType.F32), ("x", node.x, DType.F32), exponent)
            yield from _bits(SUM_PRECISION - 1, node.red)
        case Gather():
            table = program.specs[node.table.node].dtype
            if table is not dtype:
                yield Rule.DTYPE, "WF-17", f"the table is {table.name}, the result {dtype.name}"
            yield from _types(program, ("index", node.index, DType.I32))
        case ScatterSum():
            integers = ("index", node.index, DType.I32), ("e", node.exponent, DType.I32)
            yield from _types(program, ("result", dtype, DType.F32), ("x", node.x, DType.F32), *integers)
            yield from _bits(SUM_PRECISION - 1, node.red)
        case Rank():
            yield from _types(program, ("result", dtype, DType.I32), ("x", node.x, DType.F32))
            if node.spec.dims[-1] != node.red[0]:
                yield Rule.SHAPE, "WF-20", f"{node.red[0]} candidates for {node.spec.dims[-1]} ranks"
        case Random():
            yield from _random(program, node)
        case Output():
            if program.specs[node.node] != node.spec:
                yield Rule.SHAPE, "WF-23", "an output has another type or dims than its node"
        case Input():
            pass


def _types(program: Program, *wanted: tuple[str, Operand | DType, DType]) -> Violations:
    """Each operand (or result) has the type; an i32 operand may be of a storage type, which loads as i32."""
    for name, have, want in wanted:
        found = have if isinstance(have, DType) else program.specs[have.node].dtype.value_type
        if found is not want:
            yield Rule.DTYPE, "WF-17", f"{name} is {found.name}, not {want.name}"


def _positive(red: tuple[int, ...]) -> Violations:
    """A maximum over nothing has no meaning."""
    if prod(red) < 1:
        yield Rule.TERMS, "WF-18", "R is 0"


def _bits(bits: int, red: tuple[int, ...]) -> Violations:
    """The exact sum of R terms of this many bits stays below 2^62."""
    terms = prod(red)
    if bits + max(terms - 1, 0).bit_length() > MAX_SUM_BITS:
        yield Rule.TERMS, "WF-19", f"{terms} terms of {bits} bits are above {MAX_SUM_BITS} bits"


def _map(program: Program, node: Map) -> Violations:
    """The scalar program is well-typed and yields the node's type."""
    types = tuple([program.specs[o.node].dtype for o in node.operands])
    try:
        result = _result_type(bytes(node.code), types)
    except IllFormedScalarProgramError as error:
        yield Rule.SCALAR, error.rule, error.message
        return
    if result is not node.spec.dtype.value_type:
        yield Rule.DTYPE, "WF-10", f"the scalar program yields {result.name}, the node is {node.spec.dtype.name}"


@lru_cache(maxsize=1 << 10)
def _result_type(code: bytes, operands: tuple[DType, ...]) -> DType:
    """The value type of a map's last register: maps of layers and of steps of loops that are alike are read once."""
    return ScalarProgram.decode(code, operands).result_type


def is_canonical(dtype: DType, data: bytes) -> bool:
    """Whether these elements are what a store may write."""
    match dtype:
        case DType.F32:
            # In pieces: as numbers of Python the largest constant takes ten times its bytes.
            pieces = (data[at : at + _PIECE] for at in range(0, len(data), _PIECE))
            return all(map(_is_canonical_f32, pieces))
        case DType.BOOL:
            return not data.strip(b"\x00\x01")
        case _:
            return True


def _is_canonical_f32(data: bytes) -> bool:
    patterns = struct.unpack(f"<{len(data) // 4}I", data)
    return all(w == f32.NAN for w in patterns if w & 0x7FFFFFFF > f32.INF)


def _random(program: Program, node: Random) -> Violations:
    """Key and step are i32[2], and the counter does not wrap."""
    pair = TensorSpec(DType.I32, (2,))
    if node.spec.dtype is not DType.I32:
        yield Rule.DTYPE, "WF-17", f"a random node is i32, not {node.spec.dtype.name}"
    for name, j in (("key", node.key), ("step", node.step)):
        if program.specs[j] != pair:
            yield Rule.SHAPE, "WF-22", f"{name} is not i32[2]"
    if node.spec.numel > philox.COUNTER_LIMIT:
        yield Rule.SHAPE, "WF-21", f"{node.spec.numel} random words are above 2^34"
