"""The total predicate on programs: every rule that a program must obey before anyone takes part (design, section 4).

`violations` never raises, whatever the program; an empty answer means that every node has one meaning, every address
lies inside its source, no exact sum leaves 63 bits, and every leaf of the game has bounded size.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import prod

from . import f32, philox
from .encoding import MalformedError, decode_node, encode_node
from .nodes import (
    Const,
    Dot,
    Family,
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
    operands,
    reads,
)
from .program import MAX_NODES, Program
from .scalar import IllFormedScalarProgramError, ScalarProgram
from .tensors import TensorSpec, tensor_root
from .types import DType
from .views import fill_bits

MAX_SUM_BITS = 62
SUM_PRECISION = 31


class Rule(StrEnum):
    """The names of the rules."""

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


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the program breaks; `node` is None where the program as a whole breaks it."""

    rule: Rule
    node: int | None
    reason: str

    def __str__(self) -> str:
        where = "program" if self.node is None else f"node {self.node}"
        return f"{where}: {self.rule.value}: {self.reason}"


def is_well_formed(program: Program) -> bool:
    """Whether the program breaks no rule."""
    return not violations(program)


def violations(program: Program) -> tuple[Violation, ...]:
    """Every rule that the program breaks, the whole program's first, then by node."""
    whole = tuple(Violation(rule, None, reason) for rule, reason in _program(program))
    if whole:
        return whole
    found: list[Violation] = []
    for k, node in enumerate(program.nodes):
        found.extend(Violation(rule, k, reason) for rule, reason in _node(program, k, node))
    return tuple(found)


Found = Iterator[tuple[Rule, str]]


def _program(program: Program) -> Found:
    """Counts and the sizes of the lists."""
    count = len(program.nodes)
    if count > MAX_NODES:
        yield Rule.NODE_COUNT, f"{count} nodes are above 2^20"
    for name, lists in (("input", program.inputs), ("output", program.outputs)):
        if len(lists) > 255 or any(not 0 <= size <= MAX_NODES for size in lists):
            yield Rule.LISTS, f"{name} lists {lists[:9]} do not fit the header"
    if sum(program.inputs) + sum(program.outputs) > count:
        yield Rule.LISTS, "there are more slots than nodes"


def _node(program: Program, k: int, node: Node) -> Found:
    """One node; later checks assume the earlier ones."""
    try:
        if decode_node(encode_node(node)) != node:
            yield Rule.ENCODING, "the descriptor means another node"
            return
    except (MalformedError, OverflowError, ValueError) as error:
        yield Rule.ENCODING, str(error)
        return
    yield from _layout(program, k, node)
    if any(j >= k for j in reads(node)):
        yield Rule.ORDER, f"reads nodes {sorted({j for j in reads(node) if j >= k})}, which are not earlier"
        return
    for number, (operand, dims) in enumerate(operands(node)):
        for rule, reason in _view(program, operand, dims):
            yield rule, f"operand {number}: {reason}"
    yield from _family(program, node)


def _layout(program: Program, k: int, node: Node) -> Found:
    """Inputs first, outputs last, both in list order, neither elsewhere."""
    first_output = len(program.nodes) - sum(program.outputs)
    if k < sum(program.inputs):
        yield from _place(node, Family.INPUT, k, program.inputs)
    elif k >= first_output:
        yield from _place(node, Family.OUTPUT, k - first_output, program.outputs)
    elif isinstance(node, Input | Output):
        yield Rule.LAYOUT, f"an {node.family.name.lower()} node stands between inputs and outputs"


def _place(node: Node, family: Family, position: int, sizes: tuple[int, ...]) -> Found:
    """The node at this position among the slots of X or Y is the slot's."""
    slot = _slot(position, sizes)
    if not isinstance(node, Input | Output) or node.family is not family or (node.list_index, node.index) != slot:
        yield Rule.LAYOUT, f"the {family.name.lower()} node of slot {slot[1]} of list {slot[0]} belongs here"


def _slot(position: int, sizes: tuple[int, ...]) -> tuple[int, int]:
    """List and index of the slot at a position; position < sum of sizes."""
    number = 0
    while position >= sizes[number]:
        position -= sizes[number]
        number += 1
    return number, position


def _view(program: Program, operand: Operand, dims: tuple[int, ...]) -> Found:
    """Bounds inside the index space, addresses inside the source, a canonical fill."""
    view, source = operand.view, program.specs[operand.node]
    bounds = zip(view.lo, view.hi, dims, strict=True)
    if any(not 0 <= lo <= hi <= size for lo, hi, size in bounds):
        yield Rule.BOUNDS, f"bounds {view.lo} to {view.hi} are no part of {dims}"
        return
    extremes = view.extremes(dims)
    if extremes is not None and not (extremes[0] >= 0 and extremes[1] < source.numel):
        yield Rule.ADDRESS, f"addresses {extremes[0]} to {extremes[1]} leave a source of {source.numel} elements"
    if view.fill != fill_bits(source.dtype, view.fill):
        yield Rule.FILL, f"fill 0x{view.fill:x} is no canonical {source.dtype.name}"


def _family(program: Program, node: Node) -> Found:
    """Element types, shapes and sizes of one family."""
    dtype = node.spec.dtype
    match node:
        case Const():
            yield from _const(program, node)
        case Map():
            yield from _map(program, node)
        case RowExp():
            yield from _types(program, ("result", dtype, DType.I32), ("x", node.x, DType.F32))
            yield from _positive(node.red)
        case Max():
            yield from _types(program, ("x", node.x, dtype))
            if dtype not in (DType.F32, DType.I32):
                yield Rule.DTYPE, f"a max is f32 or i32, not {dtype.name}"
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
                yield Rule.DTYPE, f"the table is {table.name}, the result {dtype.name}"
            yield from _types(program, ("index", node.index, DType.I32))
        case ScatterSum():
            integers = ("index", node.index, DType.I32), ("e", node.exponent, DType.I32)
            yield from _types(program, ("result", dtype, DType.F32), ("x", node.x, DType.F32), *integers)
            yield from _bits(SUM_PRECISION - 1, node.red)
        case Rank():
            yield from _types(program, ("result", dtype, DType.I32), ("x", node.x, DType.F32))
            if node.spec.dims[-1] != node.red[0]:
                yield Rule.SHAPE, f"{node.red[0]} candidates for {node.spec.dims[-1]} ranks"
        case Random():
            yield from _random(program, node)
        case Output():
            if program.specs[node.node] != node.spec:
                yield Rule.SHAPE, "an output has another type or dims than its node"
        case Input():
            pass


def _types(program: Program, *wanted: tuple[str, Operand | DType, DType]) -> Found:
    """Each operand (or result) has the type; an i32 operand may be of a storage type, which loads as i32."""
    for name, have, want in wanted:
        found = have if isinstance(have, DType) else program.specs[have.node].dtype.value_type
        if found is not want:
            yield Rule.DTYPE, f"{name} is {found.name}, not {want.name}"


def _positive(red: tuple[int, ...]) -> Found:
    """A maximum over nothing has no meaning."""
    if prod(red) < 1:
        yield Rule.TERMS, "R is 0"


def _bits(bits: int, red: tuple[int, ...]) -> Found:
    """The exact sum of R terms of this many bits stays below 2^62."""
    terms = prod(red)
    if bits + max(terms - 1, 0).bit_length() > MAX_SUM_BITS:
        yield Rule.TERMS, f"{terms} terms of {bits} bits are above {MAX_SUM_BITS} bits"


def _map(program: Program, node: Map) -> Found:
    """The scalar program is well-typed and yields the node's type."""
    types = [program.specs[o.node].dtype for o in node.operands]
    try:
        result = ScalarProgram.decode(node.code, types).result_type
    except IllFormedScalarProgramError as error:
        yield Rule.SCALAR, error.message
        return
    if result is not node.spec.dtype.value_type:
        yield Rule.DTYPE, f"the scalar program yields {result.name}, the node is {node.spec.dtype.name}"


def _const(program: Program, node: Const) -> Found:
    """The bytes travel with the program, have the root, and are canonical."""
    data = program.consts.get(node.root)
    if data is None:
        yield Rule.CONST, "its bytes are missing"
    elif len(data) != node.spec.nbytes or tensor_root(node.spec, data) != node.root:
        yield Rule.CONST, "its bytes have another root"
    elif not is_canonical(node.spec.dtype, data):
        yield Rule.CONST, "it holds a NaN with a payload or a bool other than 0 and 1"


def is_canonical(dtype: DType, data: bytes) -> bool:
    """Whether these elements are what a store may write."""
    match dtype:
        case DType.F32:
            patterns = struct.unpack(f"<{len(data) // 4}I", data)
            return all(w == f32.NAN for w in patterns if w & 0x7FFFFFFF > f32.INF)
        case DType.BOOL:
            return not data.strip(b"\x00\x01")
        case _:
            return True


def _random(program: Program, node: Random) -> Found:
    """Key and step are i32[2], and the counter does not wrap."""
    pair = TensorSpec(DType.I32, (2,))
    if node.spec.dtype is not DType.I32:
        yield Rule.DTYPE, f"a random node is i32, not {node.spec.dtype.name}"
    for name, j in (("key", node.key), ("step", node.step)):
        if program.specs[j] != pair:
            yield Rule.SHAPE, f"{name} is not i32[2]"
    if node.spec.numel > philox.COUNTER_LIMIT:
        yield Rule.SHAPE, f"{node.spec.numel} random words are above 2^34"
