"""Write tests/vectors/rules.json: for every rule that refuses bytes, something that breaks it, beside what obeys it.

The file's fields are explained in tests/vectors/README.md. An implementation that accepts everything fails every case
with a `rule`. `--check` compares instead of writing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from assay.protocol.builder import ProgramBuilder
from assay.protocol.encoding import encode_header, encode_node
from assay.protocol.nodes import (
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
from assay.protocol.program import Program
from assay.protocol.programfile import MAGIC, MAX_FILE, encode_program
from assay.protocol.scalar import Instruction, Op
from assay.protocol.tensors import TensorSpec, tensor_root
from assay.protocol.types import Digest, DType
from assay.protocol.views import View, contiguous_strides
from tools import opening_vectors

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "rules.json"
F32, I32, I64, BOOL, U8, I8, U16 = DType
LIMIT = 1 << 40
Case = tuple[str | None, str, bytes]
"""The rule that is broken (None: valid), what it is, the bytes."""


def view(dims: Sequence[int], **changes: object) -> View:
    """The view that reads a source of these dims as it is, with some fields changed."""
    rank = len(dims)
    return replace(View(0, contiguous_strides(dims), (0,) * rank, tuple(dims)), **changes)  # type: ignore[arg-type]


def flat(dims: Sequence[int], **changes: object) -> View:
    """The view that reads element 0 everywhere."""
    return view(dims, strides=(0,) * len(dims), **changes)


def _operand(rank: int, node: int = 0) -> Operand:
    return Operand(node, View(0, (0,) * rank, (0,) * rank, (0,) * rank))


def _nodes() -> Iterator[tuple[str, Node]]:
    """One node per family over dims [2] and red [3]."""
    out, red, one, two = TensorSpec(F32, (2,)), (3,), _operand(1), _operand(2)
    yield "input", Input(out, 255, (1 << 32) - 1)
    yield "const", Const(out, Digest(bytes(range(32))))
    yield "map", Map(out, (one, one), Instruction(Op.F32_ADD, 0, 1).encode())
    yield "rowexp", RowExp(TensorSpec(I32, (2,)), red, two)
    yield "max", Max(out, red, two)
    yield "dot", Dot(out, red, 2, 31, two, two, one, one)
    yield "sum", Sum(out, red, two, one)
    yield "gather", Gather(out, (1 << 64) - 1, two, one)
    yield "scatter_sum", ScatterSum(out, red, two, two, one)
    yield "rank", Rank(TensorSpec(I32, (2,)), (2,), two)
    yield "random", Random(TensorSpec(I32, (2,)), (1 << 32) - 1, 7, 8)
    yield "output", Output(out, 1, 2, 3)


def _with_dims(node: Sum, dims: tuple[int, ...], red: tuple[int, ...]) -> bytes:
    """A sum over other dims."""
    inner = _operand(len(dims) + len(red))
    return encode_node(replace(node, spec=TensorSpec(F32, dims), red=red, x=inner, exponent=_operand(len(dims))))


def descriptors() -> Iterator[Case]:
    """Descriptors at and beyond every limit."""
    nodes = dict(_nodes())
    total = nodes["sum"]
    assert isinstance(total, Sum)
    for name, node in nodes.items():
        data = encode_node(node)
        yield None, name, data
        yield "MAL-13", f"{name}: the last byte is missing", data[:-1]
        yield "MAL-14", f"{name}: a byte is left over", data + b"\0"
    yield "MAL-13", "nothing", b""
    yield "MAL-13", "a family alone", b"\2"
    yield "MAL-13", "dims cut short", b"\0\0\2" + bytes(15)
    rank8, wide = (1,) * 8, Map(TensorSpec(F32, (1,) * 8), (_operand(8),) * 8, bytes(8 * 64))
    yield None, "the longest: rank 8, 8 operands, 64 instructions", encode_node(wide)
    yield "MAL-1", "8,193 bytes", encode_node(wide).ljust(8193, b"\0")
    yield "MAL-2", "family 12", b"\x0c" + encode_node(nodes["random"])[1:]
    yield "MAL-2", "family 255", b"\xff" + encode_node(nodes["random"])[1:]
    yield "MAL-3", "type 7", b"\x00\x07" + encode_node(nodes["input"])[2:]
    yield None, "type 6", b"\x00\x06" + encode_node(nodes["input"])[2:]
    yield None, "rank 8 and 8 reduced", _with_dims(total, rank8, rank8)
    yield "MAL-4", "rank 9", encode_node(Input(TensorSpec(F32, (1,) * 9), 0, 0))
    yield "MAL-4", "9 reduced", _with_dims(total, (), (1,) * 9)
    for name, dims in (("2^40", (LIMIT,)), ("0 and 2^40", (0, LIMIT)), ("2^20 x 2^20", (1 << 20, 1 << 20))):
        yield None, f"dims {name}", _with_dims(total, dims, ())
        yield None, f"red {name}", _with_dims(total, (), dims)
    large = (("2^40+1", (LIMIT + 1,)), ("0 and 2^40+1", (0, LIMIT + 1)), ("2^64-1 and 0", ((1 << 64) - 1, 0)))
    for name, dims in large:
        yield "MAL-5", f"dims {name}", _with_dims(total, dims, ())
        yield "MAL-5", f"red {name}", _with_dims(total, (), dims)
    for name, dims in (
        ("2^20 x 2^21", (1 << 20, 1 << 21)),
        ("2^40 x 2", (LIMIT, 2)),
        ("2^40 eight times", (LIMIT,) * 8),
    ):
        yield "MAL-6", f"dims {name}", _with_dims(total, dims, ())
        yield "MAL-6", f"red {name}", _with_dims(total, (), dims)
    yield "MAL-7", "a view of rank 1 over 2", encode_node(replace(total, x=_operand(1)))
    yield "MAL-7", "a view of rank 3 over 2", encode_node(replace(total, x=_operand(3)))
    yield "MAL-7", "an exponent of rank 2 over 1", encode_node(replace(total, exponent=_operand(2)))
    gather = nodes["gather"]
    assert isinstance(gather, Gather)
    yield "MAL-7", "a table of rank 1 over N and [2]", encode_node(replace(gather, table=_operand(1)))
    dot = nodes["dot"]
    assert isinstance(dot, Dot)
    for p in (0, 1, 32, 255):
        yield "MAL-8", f"pA = {p}", encode_node(replace(dot, precision_a=p))
        yield "MAL-8", f"pB = {p}", encode_node(replace(dot, precision_b=p))
    yield "MAL-9", "9 operands", encode_node(replace(wide, operands=(_operand(8),) * 9))
    yield "MAL-10", "65 instructions", encode_node(replace(wide, code=bytes(8 * 65)))
    scatter, rank = nodes["scatter_sum"], nodes["rank"]
    assert isinstance(scatter, ScatterSum) and isinstance(rank, Rank)
    one, none = _operand(1), _operand(0)
    scalar = TensorSpec(F32, ())
    yield "MAL-11", "a scatter_sum of rank 0", encode_node(ScatterSum(scalar, (3,), one, one, none))
    yield "MAL-12", "a rank of rank 0", encode_node(Rank(TensorSpec(I32, ()), (3,), one))
    yield "MAL-12", "a rank with nothing reduced", encode_node(replace(rank, red=(), x=one))
    yield "MAL-12", "a rank with two dimensions reduced", encode_node(replace(rank, red=(2, 1), x=_operand(3)))


def headers() -> Iterator[Case]:
    """Headers at and beyond every limit."""
    yield None, "one node", encode_header(1, (), ())
    yield None, "2^20 nodes, as many slots", encode_header(1 << 20, (1 << 19,), (0, 1 << 19))
    yield None, "255 empty lists of each", encode_header(1, (0,) * 255, (0,) * 255)
    good = encode_header(5, (2,), (3,))
    yield "HDR-1", "version 2", b"\0\2" + good[2:]
    yield "HDR-1", "version 0", bytes(2) + good[2:]
    yield "HDR-2", "no nodes", encode_header(0, (), ())
    yield "HDR-2", "2^20+1 nodes", encode_header((1 << 20) + 1, (), ())
    yield "HDR-3", "a slot more than nodes", encode_header(5, (2,), (4,))
    yield "HDR-3", "slots that wrap 32 bits", encode_header(5, ((1 << 32) - 1,), (6,))
    yield "HDR-4", "a byte is missing", good[:-1]
    yield "HDR-4", "a byte is left over", good + b"\0"
    yield "HDR-4", "nothing", b""


def files() -> Iterator[tuple[str | None, str, bytes, str | None]]:
    """Files; the last entry is the rule that the error cites where it is the header's or a descriptor's."""
    b = ProgramBuilder([[TensorSpec(F32, (2,))]])
    const = b.const(TensorSpec(F32, (3,)), bytes(range(12)))
    program = b.build([[b.input(0, 0), const]])
    good = encode_program(program)
    start = len(MAGIC)
    yield None, "a program with a constant", good, None
    yield "FILE-2", "another magic", b"assay-program-2\n" + good[start:], None
    yield "FILE-2", "nothing", b"", None
    yield "FILE-3", "another version", good[:start] + b"\0\2" + good[start + 2 :], "HDR-1"
    yield "FILE-3", "more slots than nodes", good[:start] + good[start:].replace(b"\0\0\0\4", b"\0\0\0\2", 1), "HDR-3"
    at = start + len(program.header)
    first = program.descriptors[0]
    yield "FILE-4", "an unknown family", good[: at + 2] + b"\x0c" + good[at + 3 :], "MAL-2"
    longer = (len(first) + 1).to_bytes(2, "big") + first + b"\0"
    yield "FILE-4", "a descriptor with a byte left over", good[:at] + longer + good[at + 2 + len(first) :], "MAL-14"
    yield "FILE-5", "another constant", good[:-1] + b"\xff", None
    yield "FILE-6", "a byte of a constant is missing", good[:-1], None
    yield "FILE-6", "a byte is left over", good + b"\0", None
    yield "FILE-6", "the header is cut short", good[: start + 5], None
    huge = encode_node(Const(TensorSpec(F32, (LIMIT,)), Digest(bytes(32))))
    promise = MAGIC + encode_header(1, (), ()) + len(huge).to_bytes(2, "big") + huge
    yield "FILE-6", "a constant of 2^42 bytes that is not there", promise, None


SOURCES = tuple(TensorSpec(d, dims) for d, dims in zip(
    (F32, I32, I64, BOOL, U8, I8, U16, I32, I32), ((4,), (4,), (2,), (2,), (4,), (4,), (4,), (2,), (1, 2)), strict=True,
))  # fmt: skip
"""The inputs of every program here, and the source that each type of operand is read from."""
OF = {F32: 0, I32: 1, I64: 2, BOOL: 3, U8: 4, I8: 5, U16: 6}


def _base() -> Program:
    b = ProgramBuilder([list(SOURCES)])
    return b.build([[b.input(0, 0), b.input(0, 1)]])


def inserted(node: Node, consts: dict[Digest, bytes] | None = None) -> bytes:
    """The file of the base program with a node that nobody reads before its outputs."""
    base = _base()
    k = len(base.nodes) - 2
    return encode_program(Program((*base.nodes[:k], node, *base.nodes[k:]), base.inputs, base.outputs, consts or {}))


def _whole(dtype: DType, **changes: object) -> Operand:
    return Operand(OF[dtype], view(SOURCES[OF[dtype]].dims, **changes))


def _code(*instructions: Instruction) -> bytes:
    return b"".join(i.encode() for i in instructions)


def _map(result: DType, sources: Sequence[DType], *instructions: Instruction) -> bytes:
    """A map over [2] of sources read from their start."""
    operands = tuple(Operand(OF[s], view((2,))) for s in sources)
    return inserted(Map(TensorSpec(result, (2,)), operands, _code(*instructions)))


def _read(dtype: DType, **changes: object) -> bytes:
    """A map that gives one source as it is, through a changed view."""
    operand = _whole(dtype, **changes)
    return inserted(Map(TensorSpec(dtype, SOURCES[OF[dtype]].dims), (operand,), b""))


def programs() -> Iterator[Case]:
    """Programs, one rule of well-formedness broken in each."""
    yield from _layouts()
    yield from _views()
    yield from _codes()
    yield from _types()
    yield from _sizes()
    yield from _constants()


def _layouts() -> Iterator[Case]:
    base = _base()
    nodes, size = base.nodes, len(base.nodes)

    def changed(k: int, node: Node) -> bytes:
        return encode_program(replace(base, nodes=(*nodes[:k], node, *nodes[k + 1 :])))

    yield None, "inputs and outputs alone", encode_program(base)
    yield "WF-2", "an input node of another slot", changed(0, replace(nodes[0], index=1))  # type: ignore[call-arg]
    yield "WF-2", "an input node of another list", changed(0, replace(nodes[0], list_index=1))  # type: ignore[call-arg]
    yield "WF-3", "an output node of another slot", changed(size - 1, Output(SOURCES[1], 0, 0, 1))
    yield "WF-3", "an output node of another list", changed(size - 1, Output(SOURCES[1], 1, 1, 1))
    yield "WF-4", "an input node in the middle", inserted(Input(SOURCES[0], 0, 0))
    yield "WF-4", "an output node in the middle", inserted(Output(SOURCES[0], 0, 0, 0))
    k = size - 2
    own = Operand(k, view((2,)))
    yield "WF-6", "a map of itself", inserted(Map(TensorSpec(F32, (2,)), (own,), b""))
    yield (
        "WF-6",
        "a map of the last u32",
        inserted(Map(TensorSpec(F32, (2,)), (replace(own, node=(1 << 32) - 1),), b"")),
    )
    yield "WF-6", "a random under its own key", inserted(Random(TensorSpec(I32, (2,)), 0, k, 7))
    yield "WF-6", "an output of itself", changed(size - 1, Output(SOURCES[1], 0, 1, size - 1))
    yield "WF-23", "an output of other dims", changed(size - 1, Output(TensorSpec(I32, (2, 2)), 0, 1, 1))
    yield "WF-23", "an output of another type", changed(size - 1, Output(TensorSpec(F32, (4,)), 0, 1, 1))


def _views() -> Iterator[Case]:
    yield None, "a source as it is", _read(F32)
    yield None, "a padded source", _read(F32, lo=(1,), hi=(3,), offset=-1, fill=0x3F800000)
    yield None, "no index inside the bounds, any address", _read(F32, lo=(2,), hi=(2,), offset=1 << 62)
    yield None, "the last element backwards", _read(F32, offset=3, strides=(-1,))
    yield "WF-7", "lo below 0", _read(F32, lo=(-1,))
    yield "WF-7", "hi above the size", _read(F32, hi=(5,))
    yield "WF-7", "lo above hi", _read(F32, lo=(3,), hi=(2,))
    yield "WF-8", "an address of -1", _read(F32, offset=-1)
    yield "WF-8", "an address of numel", _read(F32, offset=1)
    yield "WF-8", "an address beyond both ends", _read(F32, strides=(-(1 << 63),))
    for dtype, good, bad in (
        (F32, 0xFF800000, 0x7FC00001),
        (F32, 0x7FC00000, 1 << 32),
        (I32, (1 << 64) - 1, (1 << 32) - 1),
        (I64, 1 << 63, None),
        (BOOL, 1, 2),
        (U8, 255, 256),
        (I8, (1 << 64) - 128, 128),
        (U16, 65535, 65536),
    ):
        yield None, f"a fill of {dtype.name}", _read(dtype, fill=good)
        if bad is not None:
            yield "WF-9", f"a fill of {dtype.name} that is not canonical", _read(dtype, fill=bad)


def _codes() -> Iterator[Case]:
    i, add = Instruction, Instruction(Op.F32_ADD, 0, 1)
    yield None, "a sum", _map(F32, (F32, F32), add)
    yield None, "a storage type stores an i32", _map(U8, (I8, U16), i(Op.I32_ADD, 0, 1))
    yield None, "a select of i64", _map(I64, (BOOL, I64, I64), i(Op.SELECT, 0, 1, 2))
    yield "WF-10", "f32 in an i32 node", _map(I32, (F32, F32), add)
    yield "WF-10", "i32 in an i64 node", _map(I64, (I32,), i(Op.I32_NOT, 0))
    yield "WF-10", "bool in a u8 node", _map(U8, (BOOL,), i(Op.BOOL_NOT, 0))
    yield "WF-11", "no register", _map(F32, ())
    yield None, "a constant alone", _map(F32, (), i(Op.CONST_F32, imm=0x7FC00000))
    for op in (0x00, 0x06, 0x0F, 0x2A, 0x45, 0x53, 0xFF):
        yield "WF-12", f"opcode {op:02x}", _map(F32, (F32,), i(op))
    yield "WF-13", "an immediate of an addition", _map(F32, (F32, F32), replace(add, imm=1))
    yield "WF-13", "a third register of an addition", _map(F32, (F32, F32), replace(add, c=1))
    yield "WF-13", "a second register of a negation", _map(F32, (F32, F32), i(Op.F32_NEG, 0, 1))
    yield "WF-13", "a register of a constant", _map(F32, (F32, F32), i(Op.CONST_F32, 1))
    yield "WF-14", "its own register", _map(F32, (F32,), i(Op.F32_NEG, 1))
    yield "WF-14", "register 255", _map(F32, (F32,), i(Op.F32_ADD, 0, 255))
    yield "WF-15", "an addition of i32", _map(F32, (F32, I32), add)
    yield "WF-15", "a select by an i32", _map(F32, (I32, F32, F32), i(Op.SELECT, 0, 1, 2))
    yield "WF-15", "a select of two types", _map(F32, (BOOL, F32, I32), i(Op.SELECT, 0, 1, 2))
    yield "WF-15", "a bool as i32", _map(I32, (BOOL, I32), i(Op.I32_ADD, 0, 1))
    yield "WF-16", "a NaN with a payload", _map(F32, (), i(Op.CONST_F32, imm=0x7FC00001))
    yield "WF-16", "a NaN with a sign", _map(F32, (), i(Op.CONST_F32, imm=0xFFC00000))
    yield "WF-16", "a bool of 2", _map(BOOL, (), i(Op.CONST_BOOL, imm=2))


def _types() -> Iterator[Case]:
    out = TensorSpec(F32, (2,))
    f, e = Operand(OF[F32], flat((2, 2))), Operand(OF[I32], flat((2,)))
    wide = Operand(OF[I32], flat((2, 2)))
    small, long = Operand(OF[U8], flat((2,))), Operand(OF[I64], flat((2,)))
    ints = TensorSpec(I32, (2,))
    dot, total = Dot(out, (2,), 14, 14, f, f, e, e), Sum(out, (2,), f, e)
    scatter, rank = ScatterSum(out, (2,), f, wide, e), Rank(ints, (2,), f)
    rowexp, largest, gather = RowExp(ints, (2,), f), Max(out, (2,), f), Gather(out, 2, f, e)
    for name, node in (("dot", replace(dot, exponent_a=small)), ("sum", replace(total, exponent=small)),
                       ("scatter_sum", scatter), ("rank", rank), ("rowexp", rowexp), ("max", largest),
                       ("gather", replace(gather, index=small)), ("max of u8", Max(ints, (2,), replace(wide, node=4))),
                       ("random", Random(ints, 0, 7, 7))):  # fmt: skip
        yield None, f"{name}: types as they must be", inserted(node)
    for name, node in (
        ("dot: result i32", replace(dot, spec=ints)),
        ("dot: A i32", replace(dot, a=wide)),
        ("dot: B i32", replace(dot, b=wide)),
        ("dot: eA f32", replace(dot, exponent_a=replace(e, node=0))),
        ("dot: eB i64", replace(dot, exponent_b=long)),
        ("sum: result u8", replace(total, spec=TensorSpec(U8, (2,)))),
        ("sum: X i32", replace(total, x=wide)),
        ("sum: e bool", replace(total, exponent=replace(e, node=OF[BOOL]))),
        ("scatter_sum: index f32", replace(scatter, index=f)),
        ("scatter_sum: e i64", replace(scatter, exponent=long)),
        ("scatter_sum: X u16", replace(scatter, x=replace(f, node=OF[U16]))),
        ("rank: result f32", replace(rank, spec=out)),
        ("rank: X i32", replace(rank, x=wide)),
        ("rowexp: result f32", replace(rowexp, spec=out)),
        ("rowexp: X i32", replace(rowexp, x=wide)),
        ("max: result u8", Max(TensorSpec(U8, (2,)), (2,), replace(f, node=OF[U8]))),
        ("max: result i64", Max(TensorSpec(I64, (2,)), (2,), replace(f, node=OF[I64]))),
        ("max: X i32 for f32", replace(largest, x=wide)),
        ("max: X bool for i32", Max(ints, (2,), replace(f, node=OF[BOOL]))),
        ("gather: a table of another type", replace(gather, table=wide)),
        ("gather: a table of a storage type for i32", Gather(ints, 2, replace(f, node=OF[U8]), e)),
        ("gather: index i64", replace(gather, index=long)),
        ("random: result f32", Random(out, 0, 7, 7)),
    ):
        yield "WF-17", name, inserted(node)


def _sizes() -> Iterator[Case]:
    ints, out = TensorSpec(I32, (2,)), TensorSpec(F32, (2,))
    empty = Operand(OF[F32], flat((2, 0)))
    yield "WF-18", "rowexp of nothing", inserted(RowExp(ints, (0,), empty))
    yield "WF-18", "max of nothing", inserted(Max(out, (0,), empty))
    e = Operand(OF[I32], flat((2,)))
    yield None, "sum of nothing", inserted(Sum(out, (0,), empty, e))
    for p, r, rule in ((31, 4, None), (31, 5, "WF-19"), (2, LIMIT, None), (12, LIMIT, None), (13, LIMIT, "WF-19")):
        x = Operand(OF[F32], flat((2, r)))
        yield rule, f"dot of {r} terms at {p} bits", inserted(Dot(out, (r,), p, p, x, x, e, e))
    for r, rule in ((1 << 32, None), ((1 << 32) + 1, "WF-19")):
        x, i = Operand(OF[F32], flat((2, r))), Operand(OF[I32], flat((2, r)))
        yield rule, f"sum of {r} terms", inserted(Sum(out, (r,), x, e))
        yield rule, f"scatter_sum of {r} terms", inserted(ScatterSum(out, (r,), x, i, e))
    yield "WF-20", "rank of 2 among 3", inserted(Rank(ints, (3,), Operand(OF[F32], flat((2, 3)))))
    yield None, "2^34 random words", inserted(Random(TensorSpec(I32, (1 << 17, 1 << 17)), 0, 7, 7))
    yield "WF-21", "2^34+1 random words", inserted(Random(TensorSpec(I32, ((1 << 34) + 1,)), 0, 7, 7))
    for name, j in (("i32[4]", 1), ("f32[4]", 0), ("i64[2]", 2), ("i32[1, 2]", 8)):
        yield "WF-22", f"a key of {name}", inserted(Random(ints, 0, j, 7))
        yield "WF-22", f"a step of {name}", inserted(Random(ints, 0, 7, j))


def _constants() -> Iterator[Case]:
    def const(dtype: DType, data: bytes) -> bytes:
        spec = TensorSpec(dtype, (len(data) // dtype.size,))
        root = tensor_root(spec, data)
        return inserted(Const(spec, root), {root: data})

    yield None, "infinity and the one NaN", const(F32, bytes.fromhex("0000807f 0000c07f"))
    yield "WF-25", "a NaN with a payload", const(F32, bytes.fromhex("0000803f 0100c07f"))
    yield "WF-25", "a NaN with a sign", const(F32, bytes.fromhex("0000c0ff"))
    yield "WF-25", "a bool of 2", const(BOOL, b"\0\1\2")
    data = bytes(16)
    spec = TensorSpec(F32, (4,))
    root = tensor_root(spec, data)
    base = _base()
    k = len(base.nodes) - 2
    for name, other in (
        ("dims", TensorSpec(F32, (2, 2))),
        ("length", TensorSpec(F32, (3,))),
        ("type", TensorSpec(I32, (4,))),
    ):
        nodes = (*base.nodes[:k], Const(spec, root), Const(other, root), *base.nodes[k:])
        yield (
            "WF-24",
            f"a root named under another {name}",
            encode_program(replace(base, nodes=nodes, consts={root: data})),
        )


def compute() -> dict[str, list[dict[str, object]]]:
    """The whole document."""

    def plain(cases: Iterator[Case]) -> list[dict[str, object]]:
        return [{"rule": rule, "what": what, "bytes": data.hex()} for rule, what, data in cases]

    found = [
        {"rule": rule, "what": what, "bytes": data.hex()} | ({"cites": cites} if cites else {})
        for rule, what, data, cites in files()
    ]
    found.append(
        {"rule": "FILE-1", "what": "2^28 bytes and one", "bytes": MAGIC.hex(), "zeros": MAX_FILE + 1 - len(MAGIC)}
    )
    return {
        "descriptors": plain(descriptors()),
        "headers": plain(headers()),
        "files": found,
        "programs": plain(programs()),
        "openings": list(opening_vectors.cases()),
    }


def text() -> str:
    """The document as it stands in the file: one line per case."""
    groups = (f'"{k}": [\n' + ",\n".join(json.dumps(case) for case in cases) + "\n]" for k, cases in compute().items())
    return "{" + ",\n".join(groups) + "}\n"


def main() -> None:
    """Write the file, or with --check exit 1 when it is stale."""
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PATH.read_text() == text() else f"{PATH.name} is stale: run `python -m tools.rule_vectors`")
    PATH.write_text(text())
    print(f"wrote {PATH.name}")


if __name__ == "__main__":
    main()
