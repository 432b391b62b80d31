"""Which rows of each value somebody needs, and nodes that compute only these.

A view is affine, so what a box of its index space reads lies between two addresses, and these between two rows of the
source. Going backwards from the rows of the results and from the terms of sums that one rank adds, everything else of
a program falls away: of a stack of micro-batches' gradients, for instance, the micro-batches of other ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod

from assay.protocol.program.nodes import (
    Dot,
    Gather,
    Input,
    Map,
    Max,
    Node,
    Operand,
    Output,
    Random,
    RowExp,
    Sum,
    operands,
    with_operands,
)
from assay.protocol.program.program import Program
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

RowRange = tuple[int, int]
"""First row and the one after the last, of dim 0; a scalar has one row."""

Split = RowExp | Sum | Dot


@dataclass(frozen=True, slots=True)
class TermRange:
    """The terms of a split reduction that one rank adds: indices [first, last) of one dimension of red."""

    axis: int
    first: int
    last: int


def rows_of(spec: TensorSpec) -> RowRange:
    """All rows of a value."""
    return 0, spec.dims[0] if spec.dims else 1


def share(count: int, rank: int, size: int) -> RowRange:
    """The part of 0..count that a rank owns: adjacent, disjoint, as even as it gets, perhaps empty."""
    return count * rank // size, count * (rank + 1) // size


def needed(program: Program, kept: Mapping[int, RowRange], terms: Mapping[int, TermRange]) -> dict[int, RowRange]:
    """The rows of every value that follow from those kept of some nodes; of split reductions all rows, some terms.

    kept: by node, outputs above all; an empty range asks for nothing.
    """
    need: dict[int, RowRange] = {k: rows for k, rows in kept.items() if rows[0] < rows[1]}
    for k in range(len(program.nodes) - 1, -1, -1):
        node, spec = program.nodes[k], program.specs[k]
        if k in terms or (k in need and not _has_rows(node)):
            need[k] = rows_of(spec)
        if spec.numel == 0:
            need.pop(k, None)
        if k not in need:
            continue
        for j, rows in read_rows(program, k, need[k], terms.get(k)).items():
            need[j] = _hull(need.get(j), rows)
    return need


def read_rows(program: Program, k: int, rows: RowRange, terms: TermRange | None) -> dict[int, RowRange]:
    """The rows of other values that node k reads for these rows and terms of its own."""
    node = program.nodes[k]
    if isinstance(node, Random):
        return {j: rows_of(program.specs[j]) for j in (node.key, node.step)}
    if isinstance(node, Output):
        return {node.node: rows}
    found: dict[int, RowRange] = {}
    for operand, view, dims in _boxed(node, rows, terms):
        wanted = _read(view, dims, program.specs[operand.node])
        if wanted is not None:
            found[operand.node] = _hull(found.get(operand.node), wanted)
    return found


def sliced(
    program: Program,
    k: int,
    rows: RowRange,
    terms: TermRange | None,
    place: Callable[[int], tuple[int, RowRange]],
    zero_const: Callable[[DType], int],
) -> Node:
    """Node k for these rows and terms only, its operands read where they stand in another program.

    place: gives the number of a node there and the rows that it holds. zero_const: gives a node of an element type that
    stands for operands of which no element is read.
    """
    node, spec = program.nodes[k], program.specs[k]
    moved = []
    for operand, view, dims in _boxed(node, rows, terms):
        source = program.specs[operand.node]
        if _read(view, dims, source) is None:
            nothing = (0,) * len(dims)
            moved.append(Operand(zero_const(source.dtype), View(0, nothing, nothing, nothing, view.fill)))
            continue
        number, (first, _) = place(operand.node)
        moved.append(Operand(number, replace(view, offset=view.offset - first * prod(source.dims[1:]))))
    cut = TensorSpec(spec.dtype, (rows[1] - rows[0], *spec.dims[1:])) if spec.dims else spec
    match node:
        case Map() | Gather():
            return with_operands(replace(node, spec=cut), moved)
        case RowExp() | Max() | Sum() | Dot():
            return with_operands(replace(node, spec=cut, red=red_of(node.red, terms)), moved)
        case Random():
            return replace(node, key=place(node.key)[0], step=place(node.step)[0])
        case _:
            return with_operands(node, moved)


def red_of(red: tuple[int, ...], terms: TermRange | None) -> tuple[int, ...]:
    """The reduced dims that are left."""
    if terms is None:
        return red
    return (*red[: terms.axis], terms.last - terms.first, *red[terms.axis + 1 :])


def _has_rows(node: Node) -> bool:
    """Whether a node can be computed for some rows alone; scatter_sum and rank never are."""
    if isinstance(node, Map | RowExp | Max | Sum | Dot | Gather):
        return bool(node.spec.dims)
    return isinstance(node, Input | Output)


def _boxed(node: Node, rows: RowRange, terms: TermRange | None) -> list[tuple[Operand, View, tuple[int, ...]]]:
    """Every operand with its view over these rows and terms alone, and the index space that is left."""
    found = []
    rank = len(node.spec.dims)
    for number, (operand, dims) in enumerate(operands(node)):
        view = operand.view
        if rank and _has_rows(node):
            at = 1 if isinstance(node, Gather) and number == 0 else 0
            view, dims = _cut(view, dims, at, *rows)
        if terms is not None and len(dims) > rank:
            view, dims = _cut(view, dims, rank + terms.axis, terms.first, terms.last)
        found.append((operand, view, dims))
    return found


def _cut(view: View, dims: tuple[int, ...], d: int, first: int, last: int) -> tuple[View, tuple[int, ...]]:
    """The view over indices [first, last) of one dimension, counted from first."""
    size = last - first
    low, high = (min(max(bound[d] - first, 0), size) for bound in (view.lo, view.hi))
    bounds = [(*bound[:d], new, *bound[d + 1 :]) for bound, new in ((view.lo, low), (view.hi, high))]
    moved = View(view.offset + first * view.strides[d], view.strides, bounds[0], bounds[1], view.fill)
    return moved, (*dims[:d], size, *dims[d + 1 :])


def _read(view: View, dims: tuple[int, ...], source: TensorSpec) -> RowRange | None:
    """The rows of the source that a view reads."""
    extremes = view.extremes(dims)
    if extremes is None:
        return None
    width = prod(source.dims[1:])
    return extremes[0] // width, extremes[1] // width + 1


def _hull(a: RowRange | None, b: RowRange) -> RowRange:
    return b if a is None else (min(a[0], b[0]), max(a[1], b[1]))
