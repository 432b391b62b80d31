"""Which outputs may be written over inputs: a training step then holds its state once, not twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from assay.engine.runtime.fused.groups import NodeGroup, common_rows
from assay.engine.runtime.fused.layout import CView, Mode
from assay.engine.runtime.fused.nodes import Compiled
from assay.protocol.program.nodes import Map, Output, reads
from assay.protocol.program.program import Program
from assay.protocol.types import DType


def overwritten(program: Program, groups: Sequence[NodeGroup], compiled: Mapping[int, Compiled]) -> dict[int, int]:
    """Per output node the input that it may be written over: that of the same slot, when it is read no later.

    Only of the same slot: then a slot that is written over is one that the program computes, and what a step before
    computed there belongs to it alone.
    """
    nodes, specs = program.nodes, program.specs
    readers: dict[int, list[int]] = {}
    for r, node in enumerate(nodes):
        for j in reads(node):
            readers.setdefault(j, []).append(r)
    group_of = {k: g for g, group in enumerate(groups) for k in group.nodes}
    found: dict[int, int] = {}
    for k, i in _slots(program):
        is_fit = specs[k] == specs[i] and specs[k].dtype in (DType.F32, DType.I32) and isinstance(nodes[k], Map)
        if not is_fit or k not in compiled or k in found or not _maps_in_place(compiled[k], i):
            continue
        own = groups[group_of[k]]
        here = [r for r in readers[i] if group_of.get(r) == group_of[k]]
        earlier = [r for r in readers[i] if group_of.get(r, len(groups)) < group_of[k]]
        if len(here) + len(earlier) == len(readers[i]) and all(_is_done(program, own, r, k, i) for r in here):
            found[k] = i
    return found


def _slots(program: Program) -> Iterator[tuple[int, int]]:
    """Per slot that is in X and Y the node that computes it, and the input."""
    for node in program.nodes:
        if isinstance(node, Output) and node.list_index < len(program.input_nodes):
            inputs = program.input_nodes[node.list_index]
            if node.index < len(inputs):
                yield node.node, inputs[node.index]


def _maps_in_place(map_: Compiled, i: int) -> bool:
    """Whether a map reads this source, and reads each element only for the result of the same place."""
    views = (CView * map_.op.n_views).from_address(map_.op.views or 0)
    own = [v for v in views if v.node == i]
    return bool(own) and all(v.mode == Mode.DIRECT and v.offset == 0 for v in own)


def _is_done(program: Program, group: NodeGroup, r: int, k: int, i: int) -> bool:
    """Whether a reader of i has read a block of rows, and will read it no more, when the group writes it to k."""
    if r == k:
        return True
    if group.nodes.index(r) > group.nodes.index(k):
        return False
    return group.rows == 1 or common_rows(program, program.nodes[r], i) % group.rows == 0
