"""Write tests/vectors/rules.json: for every rule that refuses bytes, something that breaks it, beside what obeys it.

The file's fields are explained in tests/vectors/README.md. An implementation that accepts everything fails every case
with a `rule`. `--check` compares instead of writing.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from assay.conformance.rules import head_document
from assay.protocol.arithmetic.scalar import Instruction, Op
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.encoding import encode_header, encode_node
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
from assay.protocol.program.programfile import MAGIC, MAX_FILE, encode_program
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from tools import object_vectors, opening_vectors
from tools.program_vectors import LIMIT, VectorCase, programs

PATH = Path(__file__).resolve().parent.parent / "tests" / "vectors" / "rules.json"
F32, I32 = DType.F32, DType.I32


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


def descriptors() -> Iterator[VectorCase]:
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
    for family in ("map", "const"):
        sizes = b"".join(size.to_bytes(8, "big") for size in range(2, 11))
        yield "MAL-4", f"{family}: 9 sizes, 2..10", encode_node(nodes[family])[:2] + b"\x09" + sizes + bytes(40)
    yield "MAL-4", "rank 255, cut short", b"\2\0\xff" + bytes((0, 0, 0, 0, 0, 0, 0, 3))
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


def headers() -> Iterator[VectorCase]:
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


def compute() -> dict[str, list[dict[str, object]]]:
    """The whole document."""

    def plain(cases: Iterator[VectorCase]) -> list[dict[str, object]]:
        return [{"rule": rule, "what": what, "bytes": data.hex()} for rule, what, data in cases]

    found = [
        {"rule": rule, "what": what, "bytes": data.hex()} | ({"cites": cites} if cites else {})
        for rule, what, data, cites in files()
    ]
    found.append(
        {"rule": "FILE-1", "what": "2^28 bytes and one", "bytes": MAGIC.hex(), "zeros": MAX_FILE + 1 - len(MAGIC)}
    )
    return {
        "descriptors": [
            {"rule": rule, "what": what, "bytes": data.hex(), "head": head_document(data)}
            for rule, what, data in descriptors()
        ],
        "headers": plain(headers()),
        "files": found,
        "programs": plain(programs()),
        "openings": list(opening_vectors.cases()),
        "objects": list(object_vectors.cases()),
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
