"""Descriptors of nodes as bytes (docs/protocol.md, section 3): `encode_node` and a decoder safe against hostile bytes.

Decoding accepts exactly the encodings of nodes that obey the rules MAL, which need no other node. No program with a
malformed descriptor is well-formed, so no run has one; the contract gives its elements the value 0.
"""

from __future__ import annotations

from collections.abc import Sequence

from assay.protocol.arithmetic.scalar import INSTRUCTION_SIZE, MAX_INSTRUCTIONS, MAX_OPERANDS
from assay.protocol.program.nodes import (
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
)
from assay.protocol.program.reader import MalformedError as MalformedError
from assay.protocol.program.reader import Reader
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType

VERSION = 1
"""Version of programs, in their header."""

MIN_PRECISION, MAX_PRECISION = 2, 31
MAX_NODES = 1 << 20
MAX_DESCRIPTOR = 1 << 13
"""No descriptor is longer; the longest that is not malformed, a map, takes 2,290 bytes."""


def encode_dims(dims: Sequence[int]) -> bytes:
    """rank u8 ‖ dims u64[rank]."""
    return bytes((len(dims),)) + b"".join(d.to_bytes(8, "big") for d in dims)


def encode_operand(operand: Operand) -> bytes:
    """node u32 ‖ rank u8 ‖ offset i64 ‖ (stride i64 ‖ lo i64 ‖ hi i64)[rank] ‖ fill u64."""
    view = operand.view
    fields = [view.offset]
    for triple in zip(view.strides, view.lo, view.hi, strict=True):
        fields.extend(triple)
    body = b"".join(f.to_bytes(8, "big", signed=True) for f in fields)
    return operand.node.to_bytes(4, "big") + bytes((view.rank,)) + body + view.fill.to_bytes(8, "big")


def encode_node(node: Node) -> bytes:
    """The descriptor of a node. Raises OverflowError or ValueError for a field that does not fit its width."""
    head = bytes((node.family, node.spec.dtype)) + encode_dims(node.spec.dims)
    match node:
        case Input():
            body = bytes((node.list_index,)) + node.index.to_bytes(4, "big")
        case Const():
            body = node.root
        case Map():
            reads = b"".join(encode_operand(o) for o in node.operands)
            body = bytes((len(node.operands),)) + reads + bytes((len(node.code) // INSTRUCTION_SIZE,)) + node.code
        case RowExp() | Max() | Rank():
            body = encode_dims(node.red) + encode_operand(node.x)
        case Dot():
            reads = b"".join(encode_operand(o) for o in (node.a, node.b, node.exponent_a, node.exponent_b))
            body = bytes((node.precision_a, node.precision_b)) + encode_dims(node.red) + reads
        case Sum():
            body = encode_dims(node.red) + encode_operand(node.x) + encode_operand(node.exponent)
        case Gather():
            body = node.size.to_bytes(8, "big") + encode_operand(node.table) + encode_operand(node.index)
        case ScatterSum():
            reads = b"".join(encode_operand(o) for o in (node.x, node.index, node.exponent))
            body = encode_dims(node.red) + reads
        case Random():
            body = b"".join(f.to_bytes(4, "big") for f in (node.stream, node.key, node.step))
        case Output():
            body = bytes((node.list_index,)) + b"".join(f.to_bytes(4, "big") for f in (node.index, node.node))
    return head + body


def decode_node(data: bytes) -> Node:
    """The node with this descriptor; the only one, and `encode_node` of it gives the same bytes.

    Raises:
        MalformedError: the bytes are no descriptor, or break a local bound.
    """
    if len(data) > MAX_DESCRIPTOR:
        raise MalformedError("MAL-1", f"A descriptor of {len(data)} bytes is above {MAX_DESCRIPTOR}.")
    reader = Reader(bytes(data))
    family, dtype = reader.uint(1), reader.uint(1)
    if family not in Family._value2member_map_:
        raise MalformedError("MAL-2", f"Family {family} is unknown.")
    if dtype not in DType._value2member_map_:
        raise MalformedError("MAL-3", f"Element type {dtype} is unknown.")
    spec = TensorSpec(DType(dtype), reader.dims())
    node = _body(Family(family), spec, reader)
    reader.end()
    return node


def _body(family: Family, spec: TensorSpec, reader: Reader) -> Node:
    """The rest of a descriptor."""
    out = len(spec.dims)
    match family:
        case Family.INPUT:
            return Input(spec, reader.uint(1), reader.uint(4))
        case Family.CONST:
            return Const(spec, Digest(reader.take(32)))
        case Family.MAP:
            operands = tuple(
                reader.operand(out) for _ in range(_limited(reader.uint(1), MAX_OPERANDS, "operands", "MAL-9"))
            )
            count = _limited(reader.uint(1), MAX_INSTRUCTIONS, "instructions", "MAL-10")
            return Map(spec, operands, reader.take(count * INSTRUCTION_SIZE))
        case Family.ROWEXP | Family.MAX:
            red = reader.dims()
            kind = RowExp if family is Family.ROWEXP else Max
            return kind(spec, red, reader.operand(out + len(red)))
        case Family.DOT:
            precisions = reader.uint(1), reader.uint(1)
            if not all(MIN_PRECISION <= p <= MAX_PRECISION for p in precisions):
                raise MalformedError("MAL-8", f"Precisions {precisions} are not in {MIN_PRECISION}..{MAX_PRECISION}.")
            red = reader.dims()
            ranks = (out + len(red), out + len(red), out, out)
            return Dot(spec, red, *precisions, *(reader.operand(r) for r in ranks))
        case Family.SUM:
            red = reader.dims()
            return Sum(spec, red, reader.operand(out + len(red)), reader.operand(out))
        case Family.GATHER:
            return Gather(spec, reader.uint(8), reader.operand(out + 1), reader.operand(out))
        case Family.SCATTER_SUM:
            red = reader.dims()
            if out == 0:
                raise MalformedError("MAL-11", "A scatter_sum has no first dimension.")
            inner = out + len(red)
            return ScatterSum(spec, red, reader.operand(inner), reader.operand(inner), reader.operand(out))
        case Family.RANK:
            red = reader.dims()
            if out == 0 or len(red) != 1:
                raise MalformedError("MAL-12", "A rank needs a last dimension and exactly one reduced dimension.")
            return Rank(spec, red, reader.operand(out + 1))
        case Family.RANDOM:
            return Random(spec, reader.uint(4), reader.uint(4), reader.uint(4))
        case Family.OUTPUT:
            return Output(spec, reader.uint(1), reader.uint(4), reader.uint(4))


def _limited(count: int, limit: int, what: str, rule: str) -> int:
    """A count that is at most `limit`."""
    if count > limit:
        raise MalformedError(rule, f"{count} {what} are above {limit}.")
    return count


def encode_header(nodes: int, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> bytes:
    """The header of a program with these counts; at most 255 lists of each."""

    def sizes(lists: tuple[int, ...]) -> bytes:
        return bytes((len(lists),)) + b"".join(size.to_bytes(4, "big") for size in lists)

    return VERSION.to_bytes(2, "big") + nodes.to_bytes(4, "big") + sizes(inputs) + sizes(outputs)


def decode_header(data: bytes) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """Number of nodes and sizes of the input and output lists.

    Raises:
        MalformedError: the bytes are no header of version 1.
    """
    reader = Reader(bytes(data), "HDR-4", "HDR-4")
    decoded = read_header(reader)
    reader.end()
    return decoded


def read_header(reader: Reader) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """The header at the cursor; raises MalformedError where it breaks a rule HDR."""
    version = reader.uint(2)
    if version != VERSION:
        raise MalformedError("HDR-1", f"Program version {version} is unknown; this is version {VERSION}.")
    nodes = reader.uint(4)
    inputs = tuple(reader.uint(4) for _ in range(reader.uint(1)))
    outputs = tuple(reader.uint(4) for _ in range(reader.uint(1)))
    if not 1 <= nodes <= MAX_NODES:
        raise MalformedError("HDR-2", f"{nodes} nodes are not in 1..2^20.")
    if sum(inputs) + sum(outputs) > nodes:
        raise MalformedError("HDR-3", f"There are more slots than {nodes} nodes.")
    return nodes, inputs, outputs
