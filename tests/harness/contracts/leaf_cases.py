"""Random nodes, and the words that they read, for tests that compare a leaf contract with `protocol.program.leaf`.

A case is drawn from a seeded generator: small dims, views with strides of both signs, bounds that cut the index space,
fills, and words that lie where arithmetic is delicate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from assay.protocol.arithmetic.scalar import Instruction, Op
from assay.protocol.arithmetic.words import MASK_64, canonical
from assay.protocol.program import leaf
from assay.protocol.program.encoding import encode_node
from assay.protocol.program.nodes import Dot, Family, Gather, Map, Max, Node, Operand, Rank, RowExp, ScatterSum, Sum
from assay.protocol.program.nodes import Random as RandomNode
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType
from assay_ledger.deployment.places import FAMILY_CODES, LEAVES
from tests.harness.contracts.harness import Evm, EvmContract

CONTRACTS = dict(zip(FAMILY_CODES, LEAVES.values(), strict=True))
"""The leaf contract of each family that has one."""

NO_LEAF = "0x" + "00" * 20

# Sources of a case, by what their elements are.
FLOATS, EXPONENTS, INDICES, ANY = 0, 1, 2, 3

SPECIALS = (
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007FFFFF, 0x00800000, 0x00800001, 0x7F7FFFFF, 0xFF7FFFFF,
    0x3F800000, 0xBF800000, 0x3EFFFFFF, 0x3F000000, 0x3F000001,
)  # fmt: skip
NON_FINITE = (0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001, 0x7F800001)


@dataclass(frozen=True, slots=True)
class LeafCase:
    """A node, its descriptor, one of its elements, and the word behind each read."""

    node: Node
    descriptor: bytes
    element: int
    value_of: leaf.ReadValue


def draw(family: Family, rng: Random) -> LeafCase:
    """A random case of a family; the element exists."""
    node = _NODES[family](rng)
    if rng.random() < 0.15:
        # Ill-formed in its type alone: every word is stored in the node's type all the same.
        node = replace(node, spec=TensorSpec(rng.choice(list(DType)), node.spec.dims))
    seed, moody = rng.getrandbits(64), rng.random() < 0.2

    def value_of(read: leaf.Read) -> int:
        if read.is_fill:
            return read.fill
        own = Random(f"{seed} {read.node} {read.address}")
        return _word(own, read.node, moody)

    return LeafCase(node, encode_node(node), rng.randrange(max(node.spec.numel, 1)), value_of)


def check(contract: EvmContract, case: LeafCase) -> tuple[int, int]:
    """Compare every function of the leaf with the reference; returns the element's word and the number of terms."""
    node, element = case.node, case.element
    reads = leaf.head_reads(node, element)
    assert _reads(contract.call("headReads", case.descriptor, element)) == reads
    heads = [case.value_of(r) for r in reads]
    begun = leaf.start(node, element, heads)
    got = contract.call("start", case.descriptor, element, heads)
    assert got == (begun.done, begun.value, begun.terms)
    if begun.done:
        assert leaf.element(node, element, case.value_of) == begun.value
        return begun.value, 0
    parts = []
    for k in range(begun.terms):
        reads = leaf.term_reads(node, element, k, heads)
        assert _reads(contract.call("termReads", case.descriptor, element, k, heads)) == reads
        values = [case.value_of(r) for r in reads]
        part = leaf.term(node, element, k, heads, values)
        assert contract.call("term", case.descriptor, element, k, heads, values) == part
        parts.append(part)
    half = -(-len(parts) // 2)
    coarse = [leaf.combine(node, p) for p in (parts[:half], parts[half:]) if p]
    assert contract.call("combine", case.descriptor, parts[:half]) == coarse[0]
    value = leaf.element(node, element, case.value_of)
    assert contract.call("fold", case.descriptor, heads, parts) == value
    assert contract.call("fold", case.descriptor, heads, coarse) == value
    return value, begun.terms


def deploy_leaves(chain: Evm) -> dict[Family, EvmContract]:
    """Every leaf contract on a chain."""
    return {family: chain.deploy(name) for family, name in CONTRACTS.items()}


def _reads(returned: Sequence[Any]) -> tuple[leaf.Read, ...]:
    """What a contract returned as reads."""
    return tuple(leaf.Read(node, address, is_fill, fill) for node, address, is_fill, fill in returned)


def _word(rng: Random, source: int, moody: bool) -> int:
    """The word of an element of a source; `moody` cases hold non-finite values and hostile exponents."""
    if source == FLOATS:
        return float_word(rng, moody)
    if source == EXPONENTS:
        edges = (-149, -148, -126, -1, 0, 1, 127, 128) + (
            (129, 130, 1 << 30, -(1 << 31), (1 << 31) - 1) if moody else ()
        )
        return canonical(DType.I32, rng.choice(edges) if rng.random() < 0.5 else rng.randint(-6, 6))
    if source == INDICES:
        return canonical(DType.I32, rng.randint(-1, 5) if rng.random() < 0.95 else rng.choice((-(1 << 31), 1 << 20)))
    return canonical(rng.choice(list(DType)), rng.getrandbits(64))


def float_word(rng: Random, moody: bool = True) -> int:
    """A binary32 pattern: mostly moderate, often an edge, non-finite only in moody cases."""
    kind = rng.random()
    if moody and kind < 0.1:
        return rng.choice(NON_FINITE)
    if kind < 0.4:
        return rng.choice(SPECIALS)
    if kind < 0.7:
        return (rng.randint(0, 1) << 31) | (rng.randint(120, 133) << 23) | rng.choice((0, rng.getrandbits(23), 1 << 22))
    pattern = rng.getrandbits(32)
    return pattern if moody or pattern & 0x7F800000 != 0x7F800000 else pattern ^ 0x40000000


def _dims(rng: Random, ranks: range, sizes: tuple[int, ...] = (1, 2, 3, 4, 5)) -> tuple[int, ...]:
    return tuple(rng.choice(sizes) for _ in range(rng.choice(ranks)))


def _red(rng: Random) -> tuple[int, ...]:
    """Reduced dims: none, one term, none at all, an odd number, two dimensions."""
    return rng.choice(((), (1,), (0,), (3,), (7,), (2, 3), (4,), (2, 1, 2), (64,), (65,)))


def view(rng: Random, dims: Sequence[int]) -> View:
    """A view over an index space: strides of both signs, bounds that may cut it, any fill."""
    strides = tuple(rng.choice((0, 1, -1, 3, -7, 100)) for _ in dims)
    lo, hi = [], []
    for size in dims:
        cut = rng.random() < 0.15
        lo.append(rng.randint(-2, max(size, 1)) if cut else 0)
        hi.append(rng.randint(0, size + 2) if cut else size)
    offset = rng.choice((0, 5, 2000, -1))
    if rng.random() < 0.05:
        offset = rng.choice((-(1 << 63), (1 << 63) - 1))
    fill = rng.choice((0, MASK_64, 0x7FC00000, 0xFFFFFFFF, 1 << 63, rng.getrandbits(64)))
    return View(offset, strides, tuple(lo), tuple(hi), fill)


def _operand(rng: Random, source: int, dims: Sequence[int]) -> Operand:
    return Operand(source, view(rng, dims))


def _map(rng: Random) -> Node:
    dims = _dims(rng, range(4))
    operands = tuple(_operand(rng, rng.choice((FLOATS, ANY)), dims) for _ in range(rng.randint(0, 8)))
    code = b""
    for i in range(rng.choice((0, 1, 2, 5, 20, 64))):
        registers = [rng.randint(0, max(len(operands) + i - 1, 0)) for _ in range(3)]
        if rng.random() < 0.05:
            registers = [rng.getrandbits(8) for _ in range(3)]
        op = rng.choice(list(Op)) if rng.random() < 0.97 else rng.getrandbits(8)
        code += Instruction(op, *registers, rng.choice((0, float_word(rng), rng.getrandbits(32)))).encode()
    return Map(TensorSpec(rng.choice(list(DType)), dims), operands, code)


def _row(kind: Callable[..., Node], dtype: DType | None = None) -> Callable[[Random], Node]:
    def make(rng: Random) -> Node:
        dims, red = _dims(rng, range(3)), _red(rng)
        chosen = dtype if dtype is not None else rng.choice((DType.F32, DType.I32))
        source = FLOATS if kind is RowExp or chosen is DType.F32 else EXPONENTS
        return kind(TensorSpec(chosen, dims), red, _operand(rng, source, dims + red))

    return make


def _dot(rng: Random) -> Node:
    dims, red = _dims(rng, range(3)), _red(rng)
    a, b = (_operand(rng, FLOATS, dims + red) for _ in range(2))
    e_a, e_b = (_operand(rng, EXPONENTS, dims) for _ in range(2))
    p_a, p_b = (rng.choice((2, 8, 14, 15, 22, 31)) for _ in range(2))
    return Dot(TensorSpec(DType.F32, dims), red, p_a, p_b, a, b, e_a, e_b)


def _sum(rng: Random) -> Node:
    dims, red = _dims(rng, range(3)), _red(rng)
    x, e = _operand(rng, FLOATS, dims + red), _operand(rng, EXPONENTS, dims)
    return Sum(TensorSpec(DType.F32, dims), red, x, e)


def _scatter_sum(rng: Random) -> Node:
    dims, red = _dims(rng, range(1, 3)), _red(rng)
    x, index = _operand(rng, FLOATS, dims + red), _operand(rng, INDICES, dims + red)
    return ScatterSum(TensorSpec(DType.F32, dims), red, x, index, _operand(rng, EXPONENTS, dims))


def _gather(rng: Random) -> Node:
    dims, size = _dims(rng, range(4)), rng.choice((0, 1, 3, 5))
    dtype = rng.choice(list(DType))
    table = _operand(rng, FLOATS if dtype is DType.F32 else ANY, (size, *dims))
    return Gather(TensorSpec(dtype, dims), size, table, _operand(rng, INDICES, dims))


def _rank(rng: Random) -> Node:
    batch, size = _dims(rng, range(2)), rng.choice((1, 2, 5, 9))
    dims = (*batch, size)
    inner = View(rng.choice((0, 10)), (*(rng.choice((0, 9)) for _ in batch), 0, rng.choice((1, -1, 0))),
                 (0,) * (len(dims) + 1), (*dims, size))  # fmt: skip
    return Rank(TensorSpec(DType.I32, dims), (size,), Operand(FLOATS, inner))


def _random(rng: Random) -> Node:
    dims = rng.choice(((), (5,), (3, 7), (0, 3), (1 << 20, 1 << 14)))
    return RandomNode(TensorSpec(DType.I32, dims), rng.getrandbits(32), ANY, ANY)


_NODES: dict[Family, Callable[[Random], Node]] = {
    Family.MAP: _map,
    Family.ROWEXP: _row(RowExp, DType.I32),
    Family.MAX: _row(Max),
    Family.DOT: _dot,
    Family.SUM: _sum,
    Family.GATHER: _gather,
    Family.SCATTER_SUM: _scatter_sum,
    Family.RANK: _rank,
    Family.RANDOM: _random,
}
