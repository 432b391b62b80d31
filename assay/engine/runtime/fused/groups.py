"""Which nodes run together: chains whose values have common rows, so that a block of rows stays in cache.

A node joins a group when every value that it reads from the group is read row by row: row r of its own value needs row
r of theirs and nothing else. The number of rows is what divides all of these relations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from assay.engine.runtime.fused.spaces import Reading, Space, joined
from assay.protocol.program.nodes import Node, operands
from assay.protocol.program.program import Program
from assay.protocol.program.views import contiguous_strides

MOST_ROW_BYTES = 1 << 18
"""Bytes of a group's values per row above which nothing more joins: a block of them would leave the cache."""


@dataclass
class NodeGroup:
    """Nodes that run one after another on each block of `rows` common rows."""

    nodes: list[int] = field(default_factory=list)
    rows: int = 1
    row_bytes: int = 0


def common_rows(program: Program, node: Node, source: int) -> int:
    """Into how many equal parts both values can be cut so that each part of the node reads its part of the source.

    1 when they have no such parts. Every divisor is such a number, too.
    """
    rows = 0
    out = node.spec.dims
    for operand, dims in operands(node):
        if operand.node != source:
            continue
        reading = Reading(source, program.specs[source].dtype, operand.view)
        rows = gcd(rows, _rows(joined(out, dims[len(out) :], [reading]), program.specs[source].numel))
    return rows


def _rows(space: Space, numel: int) -> int:
    reading = space.readings[0]
    if reading.bounded(space.sizes):
        return 1
    strides, best = reading.view.strides, 1
    for p in range(1, space.out + 1):
        rows = prod(space.sizes[:p])
        size, rest = divmod(numel, rows)
        wanted = tuple(size * s for s in contiguous_strides(space.sizes[:p]))
        if rest or any(s != w for n, s, w in zip(space.sizes, strides, wanted, strict=False) if n > 1):
            continue
        reach = [(n - 1) * s for n, s in zip(space.sizes[p:], strides[p:], strict=True)]
        low = reading.view.offset + sum(r for r in reach if r < 0)
        high = reading.view.offset + sum(r for r in reach if r > 0)
        if low >= 0 and high < size:
            best = rows
    return best


def grouped(program: Program, segment: Sequence[int], units: Mapping[int, int]) -> list[NodeGroup]:
    """The nodes of a segment in groups, in an order in which each group needs earlier ones only.

    units: per node the elements that belong together, so that its rows can be cut at their multiples only.
    """
    groups: list[NodeGroup] = []
    at: dict[int, int] = {}
    for k in segment:
        node = program.nodes[k]
        numel = node.spec.numel
        sources = {o.node for o, _ in operands(node) if o.node in at}
        # Values of earlier groups are there whole; only those of the last one needed can be shared row by row.
        g = max((at[j] for j in sources), default=-1)
        joint = 0
        if g >= 0:
            group = groups[g]
            joint = gcd(group.rows, numel // units[k])
            for j in sources:
                if at[j] == g:
                    joint = gcd(joint, common_rows(program, node, j))
            row_bytes = sum(program.specs[j].nbytes for j in (*group.nodes, k)) // max(joint, 1)
            if joint > 1 and row_bytes <= MOST_ROW_BYTES:
                group.nodes.append(k)
                group.rows, group.row_bytes, at[k] = joint, row_bytes, g
                continue
        at[k] = len(groups)
        groups.append(NodeGroup([k], max(numel // units[k], 1), program.specs[k].nbytes * units[k] // max(numel, 1)))
    return groups
