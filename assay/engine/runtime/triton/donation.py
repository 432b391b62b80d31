"""Which slots of Y are written over those of X, and where everything lies that a run asks for.

Time is counted in steps of the run: X is there before step 0, Y to the end. A slot's new value takes the place of the
old one when nothing reads that any more; also in the very step that reads it last, if that is a group of maps in which
each element is loaded before the new one is stored, by the same thread. Else it lies elsewhere, and is copied at the
end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from assay.engine.runtime.fused.memory import Life, placed
from assay.engine.runtime.triton import arena, backend
from assay.engine.runtime.triton.groups import MapGroups
from assay.engine.runtime.triton.rows import is_linear
from assay.engine.runtime.values.dtypes import TORCH
from assay.protocol.program.nodes import Input, Map, Output, reads
from assay.protocol.program.program import Program
from assay.protocol.program.views import Window

RequestShape = tuple[tuple[int, ...], torch.dtype]


@dataclass(frozen=True, slots=True)
class Plan:
    """Offsets in one piece of memory of `size` bytes.

    inputs: of the slots of X. requests: what kernels ask for, in that order. staged: of copies of slots of X that
    other slots of Y are. donated: slots whose new value lies where the old one lay. lives: of everything that has a
    place of its own, by which no two overlap while both are in use; with their offsets, for who checks that.
    """

    inputs: tuple[int, ...]
    requests: tuple[tuple[int, RequestShape], ...]
    staged: Mapping[int, int]
    donated: frozenset[int]
    lives: tuple[tuple[int, Life], ...]
    size: int


def plan_of(program: Program, groups: MapGroups) -> Plan:
    """Where everything lies in a run; found by a pass in which no kernel is launched and no memory allocated."""
    inputs = [k for part in program.input_nodes for k in part]
    requests, made = arena.Requests(), dict[int, int]()

    def after(step: int, values: Sequence[Tensor | None]) -> None:
        for k in groups.members[step]:
            number = None if values[k] is None else requests.number_of(values[k])  # type: ignore[arg-type]
            if number is not None:
                made[k] = number
        requests.step = step + 1

    specs = [program.specs[k] for k in inputs]
    with backend.recorded(), arena.within(requests):
        groups.run([torch.empty(s.dims, dtype=TORCH[s.dtype], device="meta") for s in specs], after)
    lives = _lives(requests, made, groups.dead)
    new = {slot: made[j] for slot, j in enumerate(_sources(program)) if j in made}
    slots = frozenset(slot for slot in donated(program, groups.members) if slot in new)
    shapes, inside = [shape for _, shape in requests.made], {slot: new[slot] for slot in sorted(slots)}
    over = _overwritten(program, groups, {k: n for k, n in made.items() if n not in inside.values()}, lives)
    return _placed(program, lives, inside, over, shapes, len(groups.dead))


def _lives(requests: arena.Requests, made: Mapping[int, int], dead: Sequence[Sequence[int]]) -> list[Life]:
    """How long each request is in use. made: the request that a node's value lies in. dead: nodes, by last step."""
    ends = {k: t for t, nodes in enumerate(dead) for k in nodes}
    last = [step for step, _ in requests.made]
    for k, number in made.items():
        last[number] = max(last[number], ends.get(k, len(dead)))
    return [
        Life(n, prod(dims) * dtype.itemsize, step, last[n]) for n, (step, (dims, dtype)) in enumerate(requests.made)
    ]


def _overwritten(program: Program, groups: MapGroups, made: Mapping[int, int], lives: Sequence[Life]) -> dict[int, int]:
    """Requests that are answered with the place of another, which nothing reads any more: the first in each place.

    A step that stores one value loads all that an element of it is computed from before it stores the element. So it
    may lie where an operand lay that is read element by element there, and then no more. made: requests of nodes.
    """
    count = Counter(made.values())
    found: dict[int, int] = {}
    for step, k in groups.overwriting.items():
        asked = lives[made[k]] if k in made and count[made[k]] == 1 else None
        if asked is None or asked.first != step or asked.size != program.specs[k].nbytes:
            continue
        for j in groups.dead[step]:
            old = made.get(j)
            if j == k or old is None or count[old] > 1:
                continue
            # Elements of other sizes would lie over those that other programs still load.
            is_alike = program.specs[j].dtype.size == program.specs[k].dtype.size and lives[old].size == asked.size
            if lives[old].last == step and is_alike and _is_read_by_elements(program, groups, step, j):
                found[made[k]] = found.get(old, old)
                break
    return found


def _is_read_by_elements(program: Program, groups: MapGroups, step: int, j: int) -> bool:
    """Whether a step of maps reads node j at the very elements that it stores."""
    maps, at = list(groups.members[step]), 0
    while at < len(maps):
        maps += [i for i in reads(program.nodes[maps[at]]) if i in groups.inlined]
        at += 1
    nodes = [node for k in maps if isinstance(node := program.nodes[k], Map)]
    return all(is_linear(o.view, node.spec.dims) for node in nodes for o in node.operands if o.node == j)


def _placed(
    program: Program, asked: Sequence[Life], inside: Mapping[int, int], over: Mapping[int, int],
    shapes: Sequence[RequestShape], end: int,
) -> Plan:  # fmt: skip
    """The plan. inside: per donated slot the request whose place is the slot's; over: requests that lie where others
    did. end: the moment after the last step.
    """
    sizes = [program.specs[k].nbytes for part in program.input_nodes for k in part]
    count, merged = len(asked), {*inside.values(), *over}
    ends = {life.key: life.last for life in asked}
    for new, old in over.items():
        ends[old] = max(ends[old], ends[new])
    lives = [replace(life, last=ends[life.key]) for life in asked if life.key not in merged]
    lives += [Life(count + k, size, 0, end) for k, size in enumerate(sizes)]
    staged = _staged(program)
    lives += [Life(count + len(sizes) + k, sizes[k], end, end) for k in staged]
    offsets, size = placed(lives)
    offsets |= {number: offsets[count + slot] for slot, number in inside.items()}
    offsets |= {new: offsets[old] for new, old in over.items()}
    return Plan(
        tuple(offsets[count + k] for k in range(len(sizes))),
        tuple((offsets[n], shape) for n, shape in enumerate(shapes)),
        {k: offsets[count + len(sizes) + k] for k in staged},
        frozenset(inside),
        tuple((offsets[life.key], life) for life in lives),
        size,
    )


def donated(program: Program, members: Sequence[Sequence[int]]) -> frozenset[int]:
    """The slots whose new value may be written where the old one lies. members: the nodes of every step, in order."""
    if not program.is_iterable():
        return frozenset()
    step = {k: t for t, nodes in enumerate(members) for k in nodes}
    last, readers = dict[int, int](), dict[int, list[int]]()
    for k, node in enumerate(program.nodes):
        for j in reads(node):
            last[j] = max(last.get(j, -1), step.get(k, len(members)))
            readers.setdefault(j, []).append(k)
    found, taken = set(), set[int]()
    for slot, value in enumerate(_sources(program)):
        # Two slots of one value: the second is a copy of the first.
        if value not in step or value in taken or isinstance(program.nodes[value], Input):
            continue
        end = last.get(slot, -1)
        if end < step[value] or (end == step[value] and _is_loaded_before(program, slot, value, members[end])):
            found.add(slot)
            taken.add(value)
    return frozenset(found)


def _is_loaded_before(program: Program, slot: int, value: int, nodes: Sequence[int]) -> bool:
    """Whether the step's nodes read a slot element by element, first in the map of its new value or before that."""
    if not all(isinstance(program.nodes[k], Map) for k in nodes):
        return False  # rows are loaded by other threads than those that store them
    whole = Window.whole(program.specs[slot].dims).view
    reading = [k for k in nodes if slot in reads(program.nodes[k])]
    for k in reading:
        node = program.nodes[k]
        if not isinstance(node, Map) or any(o.node == slot and o.view != whole for o in node.operands):
            return False
    return nodes.index(min(reading, key=nodes.index)) <= nodes.index(value)


def _sources(program: Program) -> list[int]:
    """The node that each slot of Y is the value of."""
    outputs = [program.nodes[k] for part in program.output_nodes for k in part]
    return [node.node for node in outputs if isinstance(node, Output)]


def _staged(program: Program) -> list[int]:
    """The inputs that become other slots' values: copied first, since those may be copied over them."""
    if not program.is_iterable():
        return []
    sources = _sources(program)
    return sorted({j for slot, j in enumerate(sources) if j < len(sources) and j != slot})
