"""How a program is divided: which sums are split over ranks, which lists of the state are stored in shards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod

from assay.engine.runtime.parallel.rows import RowRange, TermRange, needed, read_rows, rows_of, share
from assay.protocol.program.nodes import Dot, Map, Operand, RowExp, Sum, reads
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec


@dataclass(frozen=True, slots=True)
class Division:
    """A division of one program; any is right, since exact sums do not know who added what.

    splits: rowexp, sum and dot nodes each rank computes from its own terms. sharded: lists of X, and of Y where there
    are as many, of which a rank holds its rows only. cuts: by split node of one reduced dimension the terms of each
    rank, where they are not as even as it gets.
    """

    splits: frozenset[int] = frozenset()
    sharded: frozenset[int] = frozenset()
    cuts: Mapping[int, tuple[RowRange, ...]] = field(default_factory=dict, hash=False)

    def terms(self, program: Program, rank: int, size: int) -> dict[int, TermRange]:
        """The terms that a rank adds, by split node: a part of the first dimension of red that is long enough."""
        found = {}
        for k in sorted(self.splits):
            node = program.nodes[k]
            assert isinstance(node, RowExp | Sum | Dot)
            # The first one, because neighbouring rows are what a rank holds.
            axis = max(range(len(node.red)), key=lambda d: min(node.red[d], size))
            found[k] = TermRange(axis, *(self.cuts[k][rank] if k in self.cuts else share(node.red[axis], rank, size)))
        return found

    def rows(self, spec: TensorSpec, in_list: int, rank: int, size: int) -> RowRange:
        """The rows of a slot that a rank holds."""
        if in_list not in self.sharded or not spec.dims:
            return rows_of(spec)
        return share(spec.dims[0], rank, size)

    def kept(self, program: Program, rank: int, size: int) -> dict[int, RowRange]:
        """A rank's rows of every result."""
        return {
            k: self.rows(program.specs[k], number, rank, size)
            for number, part in enumerate(program.output_nodes)
            for k in part
        }

    def needs(self, program: Program, rank: int, size: int) -> dict[int, RowRange]:
        """The rows of every value that a rank needs for its terms and its rows of the results."""
        return needed(program, self.kept(program, rank, size), self.terms(program, rank, size))


def micro_batch_sums(program: Program) -> frozenset[int]:
    """The sums over micro-batches with their exponents: each term is another node's value, stacked."""
    found = set()
    for k, node in enumerate(program.nodes):
        if isinstance(node, Sum) and len(node.red) == 1 and node.red[0] > 1 and _is_stacked(program, k, node.x):
            found.add(k)
            if _is_split_with(program, node.exponent, node):
                found.add(node.exponent.node)
    return frozenset(found)


def norm_sums(program: Program, splits: frozenset[int]) -> frozenset[int]:
    """The sums to one number, with their exponents, behind these splits: the gradients' norm, row by row."""
    behind: set[int] = set()
    found = set()
    for k, node in enumerate(program.nodes):
        if k in splits or not behind.isdisjoint(reads(node)):
            behind.add(k)
        if k in behind and k not in splits and isinstance(node, Sum | RowExp) and node.red and not node.spec.dims:
            found.add(k)
    return frozenset(found)


def long_dots(program: Program, terms: int) -> frozenset[int]:
    """The dots of at least so many terms, with their exponents: what ranks share that split products along K."""
    found = set()
    for k, node in enumerate(program.nodes):
        if isinstance(node, Dot) and prod(node.red) >= max(terms, 1):
            found |= {k, *(e.node for e in (node.exponent_a, node.exponent_b) if _is_split_with(program, e, node))}
    return frozenset(found)


def _is_split_with(program: Program, exponent: Operand, node: Sum | Dot) -> bool:
    """Whether the exponent is a maximum over as many terms, which the same ranks hold."""
    source = program.nodes[exponent.node]
    return isinstance(source, RowExp) and source.red == node.red


def _is_stacked(program: Program, k: int, x: Operand) -> bool:
    """Whether each term of sum k reads other operands of the map that they come from."""
    source, node = program.nodes[x.node], program.nodes[k]
    if not isinstance(source, Map) or not isinstance(node, Sum) or len(source.operands) < 2:
        return False
    seen: set[int] = set()
    for t in range(node.red[0]):
        rows = read_rows(program, k, rows_of(node.spec), TermRange(0, t, t + 1)).get(x.node)
        own = _origins(program, x.node, rows) if rows else set()
        if not own or own & seen:
            return False
        seen |= own
    return True


def _origins(program: Program, k: int, rows: RowRange) -> set[int]:
    """The nodes that these rows of a map come from; maps that only choose between their operands are looked through."""
    found = read_rows(program, k, rows, None)
    if len(found) == 1:
        ((j, own),) = found.items()
        if isinstance(program.nodes[j], Map) and len(read_rows(program, j, own, None)) < len(
            set(reads(program.nodes[j]))
        ):
            return _origins(program, j, own)
    return set(found)
