"""The nodes of programs: twelve families, each a record of what its descriptor says (docs/protocol.md, section 3).

A node may be ill-formed; `encoding` reads and writes descriptors, `leaf` says what one element of each family is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from enum import IntEnum
from math import prod
from typing import ClassVar

from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest


class Family(IntEnum):
    """The families of nodes; the integers are the codes in descriptors and verdicts."""

    INPUT = 0
    CONST = 1
    MAP = 2
    ROWEXP = 3
    MAX = 4
    DOT = 5
    SUM = 6
    GATHER = 7
    SCATTER_SUM = 8
    RANK = 9
    RANDOM = 10
    OUTPUT = 11


@dataclass(frozen=True, slots=True)
class Operand:
    """An earlier node's value read through a view."""

    node: int
    view: View


@dataclass(frozen=True, slots=True)
class _Node:
    """What all nodes have: type and dims of the one tensor that they compute."""

    family: ClassVar[Family]
    spec: TensorSpec


@dataclass(frozen=True, slots=True)
class Input(_Node):
    """Slot `index` of list `list_index` of the state X."""

    family = Family.INPUT
    list_index: int
    index: int


@dataclass(frozen=True, slots=True)
class Const(_Node):
    """A tensor that travels with the program."""

    family = Family.CONST
    root: Digest


@dataclass(frozen=True, slots=True)
class Map(_Node):
    """The scalar program `code` (8 bytes per instruction) on the values of the operands, each over out."""

    family = Family.MAP
    operands: tuple[Operand, ...]
    code: bytes


@dataclass(frozen=True, slots=True)
class _Reduction(_Node):
    """`red` are the reduced dims; R is their product."""

    red: tuple[int, ...]

    @property
    def terms(self) -> int:
        """R, the number of terms of each element."""
        return prod(self.red)


@dataclass(frozen=True, slots=True)
class RowExp(_Reduction):
    """The largest exponent E(x) over red."""

    family = Family.ROWEXP
    x: Operand


@dataclass(frozen=True, slots=True)
class Max(_Reduction):
    """The largest x over red."""

    family = Family.MAX
    x: Operand


@dataclass(frozen=True, slots=True)
class Dot(_Reduction):
    """finish of the exact sum of q_pA(a, eA) q_pB(b, eB) over red."""

    family = Family.DOT
    precision_a: int
    precision_b: int
    a: Operand
    b: Operand
    exponent_a: Operand
    exponent_b: Operand


@dataclass(frozen=True, slots=True)
class Sum(_Reduction):
    """finish of the exact sum of q_31(x, e) over red."""

    family = Family.SUM
    x: Operand
    exponent: Operand


@dataclass(frozen=True, slots=True)
class Gather(_Node):
    """table[index[o], o] with the table over [size] + out."""

    family = Family.GATHER
    size: int
    table: Operand
    index: Operand


@dataclass(frozen=True, slots=True)
class ScatterSum(_Reduction):
    """finish of the exact sum of q_31(x, e) over those of red whose index equals the first coordinate of o."""

    family = Family.SCATTER_SUM
    x: Operand
    index: Operand
    exponent: Operand


@dataclass(frozen=True, slots=True)
class Rank(_Reduction):
    """How many x over red are ahead of the one at the last coordinate of o."""

    family = Family.RANK
    x: Operand


@dataclass(frozen=True, slots=True)
class Random(_Node):
    """Philox words of a stream under key and step, read from two i32[2] nodes."""

    family = Family.RANDOM
    stream: int
    key: int
    step: int


@dataclass(frozen=True, slots=True)
class Output(_Node):
    """Slot `index` of list `list_index` of the state Y is the value of `node`."""

    family = Family.OUTPUT
    list_index: int
    index: int
    node: int


Node = Input | Const | Map | RowExp | Max | Dot | Sum | Gather | ScatterSum | Rank | Random | Output


def operands(node: Node) -> tuple[tuple[Operand, tuple[int, ...]], ...]:
    """The operands of a node in the order of its descriptor, each with the index space it is read over."""
    out = node.spec.dims
    match node:
        case Map(operands=reads):
            return tuple((r, out) for r in reads)
        case RowExp() | Max() | Rank():
            return ((node.x, out + node.red),)
        case Dot():
            inner = out + node.red
            return ((node.a, inner), (node.b, inner), (node.exponent_a, out), (node.exponent_b, out))
        case Sum():
            return (node.x, out + node.red), (node.exponent, out)
        case Gather():
            return (node.table, (node.size, *out)), (node.index, out)
        case ScatterSum():
            return (node.x, out + node.red), (node.index, out + node.red), (node.exponent, out)
        case _:
            return ()


def reads(node: Node) -> tuple[int, ...]:
    """The nodes that a node reads, in the order of its descriptor, repetitions included."""
    match node:
        case Random(key=key, step=step):
            return key, step
        case Output(node=source):
            return (source,)
        case _:
            return tuple(operand.node for operand, _ in operands(node))


def with_operands(node: Node, moved: Sequence[Operand]) -> Node:
    """The node with these operands in place of its own, in the order of its descriptor."""
    if isinstance(node, Map):
        return replace(node, operands=tuple(moved))
    names = [f.name for f in fields(node) if isinstance(getattr(node, f.name), Operand)]
    return replace(node, **dict(zip(names, moved, strict=True)))  # type: ignore[arg-type]


def renumbered(node: Node, numbers: Mapping[int, int]) -> Node:
    """The node, reading the nodes with these numbers in place of those that it reads."""
    match node:
        case Random():
            return replace(node, key=numbers[node.key], step=numbers[node.step])
        case Output():
            return replace(node, node=numbers[node.node])
        case _:
            return with_operands(node, [Operand(numbers[o.node], o.view) for o, _ in operands(node)])
