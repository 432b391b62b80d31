"""The total predicate on programs: every rule that a program must obey before a run uses it (rules WF).

`violations` never raises, whatever the program; an empty answer means that every node has one meaning, every address
lies inside its source, no exact sum leaves 63 bits, and every leaf of the game has bounded size.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.protocol.program.encoding import MalformedError, decode_node, encode_node
from assay.protocol.program.families import Constants, Violations, family_violations
from assay.protocol.program.families import Rule as Rule
from assay.protocol.program.families import is_canonical as is_canonical
from assay.protocol.program.nodes import Family, Input, Node, Operand, Output, operands, reads
from assay.protocol.program.program import MAX_NODES, Program
from assay.protocol.program.views import fill_bits


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that the program breaks, by kind and number; `node` is None where the program as a whole breaks it."""

    rule: Rule
    node: int | None
    reason: str
    number: str

    def __str__(self) -> str:
        where = "program" if self.node is None else f"node {self.node}"
        return f"{where}: {self.rule.value}: {self.reason} ({self.number})"


def is_well_formed(program: Program) -> bool:
    """Whether the program breaks no rule."""
    return not violations(program)


def violations(program: Program) -> tuple[Violation, ...]:
    """Every rule that the program breaks, the whole program's first, then by node; found once, and kept with it."""
    kept: dict[str, Any] = vars(program)
    if "_violations" not in kept:
        kept["_violations"] = _violations(program)
    found: tuple[Violation, ...] = kept["_violations"]
    return found


def _violations(program: Program) -> tuple[Violation, ...]:
    whole = tuple(Violation(rule, None, reason, number) for rule, number, reason in _program(program))
    if whole:
        return whole
    found, constants = list[Violation](), Constants(program)
    for k, node in enumerate(program.nodes):
        broken = _node(program, k, node, constants)
        found.extend(Violation(rule, k, reason, number) for rule, number, reason in broken)
    return tuple(found)


def _program(program: Program) -> Violations:
    """Counts and the sizes of the lists."""
    count = len(program.nodes)
    if not 1 <= count <= MAX_NODES:
        yield Rule.NODE_COUNT, "WF-1", f"{count} nodes are not in 1..2^20"
    for name, lists in (("input", program.inputs), ("output", program.outputs)):
        if len(lists) > 255 or any(not 0 <= size <= MAX_NODES for size in lists):
            yield Rule.LISTS, "WF-1", f"{name} lists {lists[:9]} do not fit the header"
    if sum(program.inputs) + sum(program.outputs) > count:
        yield Rule.LISTS, "WF-1", "there are more slots than nodes"


def _node(program: Program, k: int, node: Node, constants: Constants) -> Violations:
    """One node; later checks assume the earlier ones."""
    try:
        if decode_node(encode_node(node)) != node:
            yield Rule.ENCODING, "WF-5", "the descriptor means another node"
            return
    except (MalformedError, OverflowError, ValueError) as error:
        yield Rule.ENCODING, "WF-5", str(error)
        return
    yield from _layout(program, k, node)
    if any(j >= k for j in reads(node)):
        yield Rule.ORDER, "WF-6", f"reads nodes {sorted({j for j in reads(node) if j >= k})}, which are not earlier"
        return
    for number, (operand, dims) in enumerate(operands(node)):
        for kind, rule, reason in _view(program, operand, dims):
            yield kind, rule, f"operand {number}: {reason}"
    yield from family_violations(program, node, constants)


def _layout(program: Program, k: int, node: Node) -> Violations:
    """Inputs first, outputs last, both in list order, neither elsewhere."""
    first_output = len(program.nodes) - sum(program.outputs)
    if k < sum(program.inputs):
        yield from _place(node, Family.INPUT, "WF-2", k, program.inputs)
    elif k >= first_output:
        yield from _place(node, Family.OUTPUT, "WF-3", k - first_output, program.outputs)
    elif isinstance(node, Input | Output):
        yield Rule.LAYOUT, "WF-4", f"an {node.family.name.lower()} node stands between inputs and outputs"


def _place(node: Node, family: Family, rule: str, position: int, sizes: tuple[int, ...]) -> Violations:
    """The node at this position among the slots of X or Y is the slot's."""
    slot = _slot(position, sizes)
    if not isinstance(node, Input | Output) or node.family is not family or (node.list_index, node.index) != slot:
        yield Rule.LAYOUT, rule, f"the {family.name.lower()} node of slot {slot[1]} of list {slot[0]} belongs here"


def _slot(position: int, sizes: tuple[int, ...]) -> tuple[int, int]:
    """List and index of the slot at a position; position < sum of sizes."""
    number = 0
    while position >= sizes[number]:
        position -= sizes[number]
        number += 1
    return number, position


def _view(program: Program, operand: Operand, dims: tuple[int, ...]) -> Violations:
    """Bounds inside the index space, addresses inside the source, a canonical fill."""
    view, source = operand.view, program.specs[operand.node]
    bounds = zip(view.lo, view.hi, dims, strict=True)
    if any(not 0 <= lo <= hi <= size for lo, hi, size in bounds):
        yield Rule.BOUNDS, "WF-7", f"bounds {view.lo} to {view.hi} are no part of {dims}"
        return
    extremes = view.extremes(dims)
    if extremes is not None and not (extremes[0] >= 0 and extremes[1] < source.numel):
        yield (
            Rule.ADDRESS,
            "WF-8",
            f"addresses {extremes[0]} to {extremes[1]} leave a source of {source.numel} elements",
        )
    if view.fill != fill_bits(source.dtype, view.fill):
        yield Rule.FILL, "WF-9", f"fill 0x{view.fill:x} is no canonical {source.dtype.name}"
