"""Program files in each of which one rule of well-formedness is broken, for tests/vectors/rules.json."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from assay.protocol.arithmetic.scalar import Instruction, Op
from assay.protocol.program.builder import ProgramBuilder
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
from assay.protocol.program.programfile import encode_program
from assay.protocol.program.views import View, contiguous_strides
from assay.protocol.trees.tensors import MAX_NUMEL, TensorSpec, tensor_root
from assay.protocol.types import Digest, DType

F32, I32, I64, BOOL, U8, I8, U16 = DType
LIMIT = MAX_NUMEL
VectorCase = tuple[str | None, str, bytes]
"""The rule that is broken (None: valid), what it is, the bytes."""


def view(dims: Sequence[int], **changes: object) -> View:
    """The view that reads a source of these dims as it is, with some fields changed."""
    rank = len(dims)
    return replace(View(0, contiguous_strides(dims), (0,) * rank, tuple(dims)), **changes)  # type: ignore[arg-type]


def flat(dims: Sequence[int], **changes: object) -> View:
    """The view that reads element 0 everywhere."""
    return view(dims, strides=(0,) * len(dims), **changes)


SOURCES = tuple(TensorSpec(d, dims) for d, dims in zip(
    (F32, I32, I64, BOOL, U8, I8, U16, I32, I32), ((4,), (4,), (2,), (2,), (4,), (4,), (4,), (2,), (1, 2)), strict=True,
))  # fmt: skip
"""The inputs of every program here, and the source that each type of operand is read from."""
OF = {F32: 0, I32: 1, I64: 2, BOOL: 3, U8: 4, I8: 5, U16: 6}


def _base() -> Program:
    b = ProgramBuilder([list(SOURCES)])
    return b.build([[b.input(0, 0), b.input(0, 1)]])


def inserted(node: Node, consts: dict[Digest, bytes] | None = None) -> bytes:
    """The file of the base program with a node that no other reads before its outputs."""
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


def programs() -> Iterator[VectorCase]:
    """Programs, one rule of well-formedness broken in each."""
    yield from _layouts()
    yield from _views()
    yield from _codes()
    yield from _types()
    yield from _sizes()
    yield from _constants()


def _layouts() -> Iterator[VectorCase]:
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


def _views() -> Iterator[VectorCase]:
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


def _codes() -> Iterator[VectorCase]:
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


def _types() -> Iterator[VectorCase]:
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


def _sizes() -> Iterator[VectorCase]:
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


def _constants() -> Iterator[VectorCase]:
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
