"""Elements that drawn ones miss: negative rows, no terms, addresses beyond 63 bits; and parts as a liar posts them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from assay.protocol.arithmetic.scalar import Instruction, Op
from assay.protocol.arithmetic.words import Word, from_ints
from assay.protocol.program.encoding import encode_node
from assay.protocol.program.nodes import Dot, Max, Node, Operand, Rank, RowExp, ScatterSum, Sum
from assay.protocol.program.nodes import Map as MapNode
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from tests.harness.contracts.leaf_cases import LeafCase
from tools.node_cases import bits

F32, I32, I64, U8 = DType.F32, DType.I32, DType.I64, DType.U8
NAN, INF, MINUS = 0x7FC00000, 0x7F800000, 1 << 31
TOP = (1 << 63) - 1
MOST, LEAST = (1 << 255) - 1, -(1 << 255)


def _flat(source: int, dims: Sequence[int], strides: Sequence[int] = (), offset: int = 0) -> Operand:
    """Everything inside its bounds, by default row-major."""
    if not strides:
        strides = tuple(_product(dims[d + 1 :]) for d in range(len(dims)))
    return Operand(source, View(offset, tuple(strides), (0,) * len(dims), tuple(dims)))


def _product(sizes: Sequence[int]) -> int:
    product = 1
    for size in sizes:
        product *= size
    return product


def _case(node: Node, element: int, words: Sequence[Word] = (1,)) -> LeafCase:
    """Address i holds word i modulo their number."""
    return LeafCase(node, encode_node(node), element, lambda r: r.fill if r.is_fill else words[r.address % len(words)])


def crafted() -> Iterator[LeafCase]:
    """Elements by hand."""
    rows = ([-1.5, -3.0, -2.0], [-0.0, -0.0, -5.0], [-(2.0**-149), float("-inf"), -1.0], [-0.0, 0.0, -1.0])
    for row in rows:
        words = [bits(x) for x in row]
        for dtype in (F32, I32):
            yield _case(Max(TensorSpec(dtype, ()), (3,), _flat(0, (3,))), 0, words)
    yield _case(Max(TensorSpec(F32, ()), (2,), _flat(0, (2,))), 0, [INF | MINUS, 0xFFC00001])
    for dtype in DType:
        for kind in (Max, RowExp):
            yield _case(kind(TensorSpec(dtype, (2,)), (0,), _flat(0, (2, 0))), 1)
        empty, one = _flat(0, (2, 0)), _flat(1, (2,))
        yield _case(Sum(TensorSpec(dtype, (2,)), (0,), empty, one), 1)
        yield _case(Rank(TensorSpec(dtype, (2,)), (0,), empty), 1)
    copy = Instruction(Op.I64_ADD, 0, 1).encode()
    zero = _flat(0, (3, 3), (0, 0))
    # Addresses about 2^63, 2^64 - 1 and 2^64, which is none again; and below 0.
    for offset, stride in ((TOP, 1), (1, TOP), (-2, TOP), (0, -1), (-1, -TOP)):
        node = MapNode(TensorSpec(I64, (3, 3)), (_flat(0, (3, 3), (stride, 1), offset), zero), copy)
        for element in range(9):
            yield _case(node, element, from_ints(I64, (5, -7, 11)))


@dataclass(frozen=True, slots=True)
class PostedParts:
    """Parts of one element, any int256, posted over the words of its heads."""

    what: str
    node: Node
    heads: tuple[Word, ...]
    parts: tuple[int, ...]


def _max(dtype: DType) -> Node:
    return Max(TensorSpec(dtype, ()), (8,), _flat(0, (8,)))


def posted() -> Iterator[PostedParts]:
    """What posted parts stand for (EL-8, EL-9, EL-17, EL-20)."""
    one, two, low = bits(1.0), bits(2.0), bits(-2.0)
    for what, parts in (
        ("negative", (bits(-1.0), low)),
        ("negative, the larger last", (low, bits(-1.0))),
        ("beyond 32 bits", ((1 << 32) + one, two)),
        ("beyond 32 bits, the larger first", (two, (1 << 200) + one)),
        ("negative integers", (low - (1 << 32), one - (1 << 40), -1 - (1 << 31) + 1 - (1 << 32))),
        ("an integer of -1, a NaN", (one, -1)),
        ("a NaN with a payload alone", (0xFFC00001,)),
        ("a NaN with a payload below a larger integer", (0x7F800001, (1 << 64) + INF)),
        ("zeros", (MINUS, 0)),
        ("zeros, the positive first", (0, MINUS)),
        ("negative zero alone", (MINUS,)),
        ("negative zero beside a negative", (low, MINUS)),
        ("the extremes", (LEAST, MOST)),
        ("none", ()),
    ):
        yield PostedParts(f"max, f32: {what}", _max(F32), (), parts)
    for dtype in (I32, I64, U8, DType.BOOL):
        for what, parts in (
            ("beyond the type", (5, (1 << 64) + 3)),
            ("negative", (-9, -(1 << 70))),
            ("the extremes", (MOST, LEAST)),
            ("none", ()),
        ):
            yield PostedParts(f"max, {dtype.name.lower()}: {what}", _max(dtype), (), parts)
    for dtype in (I32, U8, F32):
        exponents = RowExp(TensorSpec(dtype, ()), (8,), _flat(0, (8,)))
        for numbers in ((3, (1 << 40) + 1), (-149, -150), ()):
            yield PostedParts(f"rowexp, {dtype.name.lower()}", exponents, (), numbers)
    e = _flat(1, ())
    x, row = _flat(0, (8,)), _flat(0, (1, 8))
    sums: tuple[tuple[str, Node, tuple[Word, ...]], ...] = (
        ("dot", Dot(TensorSpec(F32, ()), (8,), 8, 8, x, x, e, e), (1, 2)),
        ("sum", Sum(TensorSpec(F32, ()), (8,), x, e), (30,)),
        ("scatter_sum", ScatterSum(TensorSpec(F32, (1,)), (8,), row, row, _flat(1, (1,))), (30,)),
        ("rank", Rank(TensorSpec(I64, (8,)), (8,), _flat(0, (8, 8), (0, 1))), (one,)),
    )
    for name, node, heads in sums:
        for what, parts in (
            ("a sum that wraps", (MOST, 1)),
            ("a sum that wraps downwards", (LEAST, -1)),
            ("a sum that wraps on its way", (MOST, MOST, 2, 7)),
            ("as large as can be", (MOST,)),
            ("none", ()),
        ):
            yield PostedParts(f"{name}: {what}", node, heads, parts)
