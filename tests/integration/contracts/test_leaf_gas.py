"""What leaves cost: the most expensive call of each family, and a map's whole move by its number of operands."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import prod
from random import Random

from eth_abi import encode

from assay.protocol.arithmetic.scalar import Instruction, Op
from assay.protocol.program.encoding import encode_node
from assay.protocol.program.nodes import Dot, Family, Gather, Map, Max, Node, Operand, Rank, RowExp, ScatterSum, Sum
from assay.protocol.program.nodes import Random as RandomNode
from assay.protocol.program.views import View, contiguous_strides
from assay.protocol.trees.prefix import PrefixTree
from assay.protocol.trees.tensors import TensorSpec, TensorTree
from assay.protocol.types import DType
from tests.harness.contracts import snapshots
from tests.harness.contracts.harness import MAX_MOVE_GAS, Evm, EvmContract, transaction_gas

DIMS, RED = (2,) * 8, (2,) * 8
"""The largest ranks; views over out+red have 16 dimensions."""

MOVE_OVERHEAD = 120_000
"""Execution gas allowed for what the game does around a leaf: checks, storage, an event, and a verdict's settlement."""

WORST: dict[Op, tuple[int, int]] = {
    Op.F32_DIV: (0x00000001, 0x3FFFFFFF),
    Op.F32_SQRT: (0x00000003, 0),
    Op.F32_ADD: (0x7F7FFFFF, 0x80000001),
    Op.F32_MUL: (0x00000003, 0x3F800001),
    Op.F32_RINT: (0x3F800001, 0),
    Op.F32_SCALE2: (0x7F7FFFFF, 1 << 31),
    Op.F32_TO_I64: (0x5EFFFFFF, 0),
    Op.I64_TO_F32: ((1 << 63) - 1, 0),
}
"""Operands on which an operation takes its longest path."""


TWO = (Op.F32_ADD, Op.F32_MUL, Op.F32_DIV)
"""Operations of two operands."""


def _view(rank: int) -> View:
    return View(7, (-3,) * rank, (-1,) * rank, (2,) * rank, 9)


def _operand(rank: int) -> Operand:
    return Operand(3, _view(rank))


def _map(op: Op, m: int = 8) -> Map:
    code = b"".join(Instruction(op, 0, min(1, m - 1)).encode() for _ in range(64))
    return Map(TensorSpec(DType.F32, DIMS), tuple(_operand(8) for _ in range(m)), code)


LARGEST: dict[Family, Callable[[], Node]] = {
    Family.ROWEXP: lambda: RowExp(TensorSpec(DType.I32, DIMS), RED, _operand(16)),
    Family.MAX: lambda: Max(TensorSpec(DType.F32, DIMS), RED, _operand(16)),
    Family.DOT: lambda: Dot(
        TensorSpec(DType.F32, DIMS), RED, 14, 31, _operand(16), _operand(16), _operand(8), _operand(8)
    ),
    Family.SUM: lambda: Sum(TensorSpec(DType.F32, DIMS), RED, _operand(16), _operand(8)),
    Family.GATHER: lambda: Gather(TensorSpec(DType.F32, DIMS), 5, _operand(9), _operand(8)),
    Family.SCATTER_SUM: lambda: ScatterSum(TensorSpec(DType.F32, DIMS), RED, _operand(16), _operand(16), _operand(8)),
    Family.RANK: lambda: Rank(TensorSpec(DType.I32, DIMS), (2,), _operand(9)),
    Family.RANDOM: lambda: RandomNode(TensorSpec(DType.I32, (1 << 34,)), 7, 1, 2),
    Family.MAP: lambda: _map(Op.F32_ADD),
}


def _costs(leaf: EvmContract, node: bytes, element: int = 200) -> dict[str, int]:
    """Execution gas of every function."""
    heads, values, parts = [1] * 8, [0x00000003, 0x7F7FFFFF], [(1 << 61) - 1] * 64
    calls: dict[str, tuple[object, ...]] = {
        "headReads": (element,),
        "start": (element, heads),
        "fold": (heads, parts),
        "combine": (parts,),
        "termReads": (element, 255, heads),
        "term": (element, 255, heads, values),
    }
    costs = {}
    for function, args in calls.items():
        leaf.call(function, node, *args)
        costs[function] = leaf.gas
    return costs


def test_every_call_of_the_largest_node_of_a_family_is_far_below_a_move(leaves: dict[Family, EvmContract]) -> None:
    rows = {}
    for family, make in LARGEST.items():
        rows[family.name.lower()] = _costs(leaves[family], encode_node(make()))
    for name, costs in rows.items():
        assert max(costs.values()) < MAX_MOVE_GAS // 3, name
    snapshots.check("leaves", rows)


def test_sixty_four_instructions_on_their_longest_path_are_far_below_a_move(leaves: dict[Family, EvmContract]) -> None:
    for op, (a, b) in WORST.items():
        leaf = leaves[Family.MAP]
        leaf.call("start", encode_node(_map(op, 2)), 0, [a, b])
        assert leaf.gas < MAX_MOVE_GAS // 3, op


@cache
def _tensor(dims: tuple[int, ...]) -> TensorTree:
    """A tensor of floats below 1/8 whose bytes are not zero, the most expensive calldata; one row repeated."""
    rng = Random(len(dims))
    row = b"".join(bytes([rng.randint(1, 255), rng.randint(1, 255), rng.randint(1, 255), 0x3D]) for _ in range(257))
    spec = TensorSpec(DType.F32, dims)
    return TensorTree(spec, (row * (spec.nbytes // len(row) + 1))[: spec.nbytes])


def _element_move(evm: Evm, leaf: EvmContract, m: int, dims: tuple[int, ...], op: Op) -> tuple[int, int, int]:
    """Gas of the move that decides a map element of m operands with 64 instructions, its floor, its calldata size."""
    tree = _tensor(dims)
    prefixes = PrefixTree([tree.root] * m)
    whole = View(0, contiguous_strides(dims), (0,) * len(dims), dims, 0)
    code = b"".join(Instruction(op, max(m - 1, m + i - 1), i % m if op in TWO else 0).encode() for i in range(64))
    node = encode_node(Map(tree.spec, tuple(Operand(j, whole) for j in range(m)), code))
    element = tree.spec.numel - 2
    index = tree.spec.locate(element)[0]
    opening = (DType.F32, dims, tree.leaf(index), tree.path(index))
    heads = [(*opening, prefixes.path(m, j)) for j in range(m)]
    harness = evm.deploy("LeafHarness")
    done, _, _ = harness.call("element", leaf.address, node, element, heads, prefixes.roots[m], m)
    assert done
    types = ["uint256", "uint256", "bytes", "bytes", "(uint8,uint64[],bytes,bytes32[],bytes32[])[]"]
    data = b"\x01\x02\x03\x04" + encode(types, [1, 255, tree.leaf(index), node, heads])
    return transaction_gas(data, harness.gas + MOVE_OVERHEAD), transaction_gas(data, 0), len(data)


def test_the_move_that_decides_a_map_element_stays_below_a_million_gas(
    evm: Evm, leaves: dict[Family, EvmContract]
) -> None:
    small, large, deep = (256, 128), (1 << 10, 1 << 10), (16, 4, 4, 4, 4, 4, 8, 8)
    cases = [(m, small, Op.F32_ADD) for m in range(1, 9)]
    cases += [(8, large, Op.F32_ADD), (8, large, Op.F32_SQRT), (8, deep, Op.F32_SQRT)]
    rows = {}
    for m, dims, op in cases:
        gas, floor, size = _element_move(evm, leaves[Family.MAP], m, dims, op)
        assert gas < MAX_MOVE_GAS
        name = f"{m} of rank {len(dims)} and {prod(dims):,} elements, 64 {op.name}"
        rows[name] = {"gas": gas, "calldata floor": floor, "calldata bytes": size}
    snapshots.check("map-moves", rows)
