"""A witnessed step over ranks: each adds the samples of the products that it computes anyway.

The samples of all products meet in one exact sum (rule WT-8). Not divided, it would have every rank compute every
micro-batch; so its terms are cut where the products change hands.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from assay.engine.runtime.parallel.layout import Division
from assay.engine.runtime.parallel.rows import RowRange, needed, rows_of
from assay.protocol.program.nodes import Gather, Map, Sum, operands, reads
from assay.protocol.program.program import Program
from assay.protocol.trees.state import TrainingList


def with_witness(layout: Division, program: Program, size: int) -> Division:
    """The division for `size` ranks, the sum of each witness divided too; of a program without one, as it is."""
    sums = witness_sums(program)
    if not sums:
        return layout
    accumulators = {k for lists in program.output_nodes[len(TrainingList) + 1 :: 2] for k in lists}
    held = []
    for rank in range(size):
        kept = {k: rows for k, rows in layout.kept(program, rank, size).items() if k not in accumulators}
        held.append(needed(program, kept, layout.terms(program, rank, size)))
    cuts = {k: _cuts(program, sampled_by(program, k), held) for k in sums}
    return replace(layout, splits=layout.splits | frozenset(sums), cuts={**layout.cuts, **cuts})


def witness_sums(program: Program) -> list[int]:
    """The sums of hashed samples that the accumulators of a program read; none if it is no witnessed one."""
    found = []
    for lists in program.output_nodes[len(TrainingList) + 1 :: 2]:
        for k in lists:
            end = program.nodes[reads(program.nodes[k])[0]]
            sources = reads(end)[1:2] if isinstance(end, Map) else ()
            found += [j for j in sources if isinstance(program.nodes[j], Sum) and sampled_by(program, j)]
    return found


def sampled_by(program: Program, k: int) -> list[int]:
    """The nodes that the terms of a witness's sum sample, term by term; empty for any other sum."""
    node = program.nodes[k]
    assert isinstance(node, Sum)
    found = list(_rows(program, node.x.node, set()))
    return found if len(found) == node.terms else []


def _rows(program: Program, k: int, seen: set[int]) -> Iterator[int]:
    """The tables of the gathers below a tree of maps, from left to right."""
    node = program.nodes[k]
    if isinstance(node, Gather):
        yield node.table.node
    elif isinstance(node, Map) and k not in seen:
        seen.add(k)
        for operand, _ in operands(node):
            yield from _rows(program, operand.node, seen)


def _cuts(program: Program, products: Sequence[int], held: Sequence[dict[int, RowRange]]) -> tuple[RowRange, ...]:
    """Per rank adjacent terms, of products that it holds whole as far as the order allows.

    What every rank holds goes to the rank that has the terms before it.
    """
    firsts, rank = [0], 0
    for t, k in enumerate(products):
        whole = rows_of(program.specs[k])
        if held[rank].get(k) != whole:
            later = (r for r in range(rank + 1, len(held)) if held[r].get(k) == whole)
            firsts += [t] * ((after := next(later, rank)) - rank)
            rank = after
    firsts += [len(products)] * (len(held) + 1 - len(firsts))
    return tuple(pairwise(firsts))
