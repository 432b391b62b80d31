"""Nodes in groups, a kernel each: what a later one reads of an earlier one stays in a register.

Groups of common rows (`rows`) come first. Of what is left, maps over one index space share a kernel: a map joins a
group that runs earlier when everything else that it reads is there by then: so an optimizer's maps of one parameter
read its gradient once. Values that nothing outside reads are never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod

from torch import Tensor

from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import backend, scalar_text
from assay.engine.runtime.triton.elementwise import block, empty, functions, memory, over, text_of
from assay.engine.runtime.triton.reading import LOADED, STORED, Span, is_narrow, load_lines
from assay.engine.runtime.triton.row_kernels import row_kernel
from assay.engine.runtime.triton.rows import RowGroup, row_groups
from assay.engine.runtime.triton.virtual import NONE, VirtualNodes
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.program.nodes import Const, Input, Map, Operand, Output, reads
from assay.protocol.program.program import Program
from assay.protocol.program.views import Window

SeeGroup = Callable[[int, Sequence[Tensor | None]], None]
"""Shown a step's number and the values by node, those of the past that are still read among them."""

MOST_MAPS = 8
"""Of one group: a thread keeps every register that is still read."""


class MapGroups:
    """A program's whole runs: nodes in order, maps in groups; holds no state between runs.

    `members`: the nodes of each step. `dead`: those that no later step reads, of what is no constant, X or Y.
    """

    def __init__(self, program: Program, kernel: Callable[[int], Kernel], virtual: VirtualNodes = NONE) -> None:
        """kernel: that of a node by itself. virtual: nodes that are not stored, which have no step."""
        self._program = program
        free = set(range(len(program.nodes))) - virtual.spaces.keys() - virtual.readers.keys()
        by_rows = row_groups(program, free)
        self.groups = _grouped(program, virtual, by_rows)
        later = {k for maps in self.groups.values() for k in maps[1:]}
        inputs, first_output = sum(program.inputs), len(program.nodes) - sum(program.outputs)
        self._first_output = first_output
        steps = [k for k in range(inputs, len(program.nodes)) if k not in later and k not in virtual.spaces]
        kept = _read_outside(program, self.groups)
        self._steps: list[tuple[tuple[int, ...], Callable[[list[Tensor]], Sequence[Tensor]]]] = []
        for k in steps:
            if k in self.groups:
                stored = tuple(j for j in self.groups[k] if j in kept)
                made = (
                    row_kernel(program, by_rows[k], stored)
                    if k in by_rows
                    else _kernel(program, self.groups[k], stored)
                )
                self._steps.append((stored, made))
            else:
                self._steps.append(((k,), _single(kernel(k))))
        self.dead = _dead(program, steps, self.groups, virtual)
        self.members = [self.groups.get(k, (k,)) for k in steps]

    def run(self, flat: Sequence[Tensor], see: SeeGroup | None = None) -> list[Tensor]:
        """The slots of Y from those of X, in the order of their nodes. see: shown what is there after each step."""
        values: list[Tensor | None] = [*flat, *[None] * (len(self._program.nodes) - len(flat))]
        for t, ((stored, compute), dead) in enumerate(zip(self._steps, self.dead, strict=True)):
            for k, value in zip(stored, compute(values), strict=True):  # type: ignore[arg-type]
                values[k] = value
            if see is not None:
                see(t, values)
            for k in dead:
                values[k] = None
        return values[self._first_output :]  # type: ignore[return-value]


def _grouped(program: Program, virtual: VirtualNodes, by_rows: Mapping[int, RowGroup]) -> dict[int, tuple[int, ...]]:
    """All groups, by their first member: those of common rows, and those of two stored maps and more besides."""
    nodes = program.nodes
    position = list(range(len(nodes)))
    for k, group in by_rows.items():
        for member in group.is_whole:
            position[member] = k
    taken = {member for group in by_rows.values() for member in group.is_whole} | virtual.spaces.keys()
    open_groups: dict[tuple[int, ...], list[int]] = {}
    found: dict[int, list[int]] = {}
    for k, node in enumerate(nodes):
        if not isinstance(node, Map) or not node.spec.numel or k in taken:
            continue
        maps = open_groups.get(node.spec.dims)
        if maps is not None and len(maps) < MOST_MAPS and _joins(program, node, maps, position):
            maps.append(k)
            position[k] = maps[0]
        else:
            open_groups[node.spec.dims] = found[k] = [k]
    every = {k: tuple(maps) for k, maps in found.items() if len(maps) > 1}
    return every | {k: tuple(group.is_whole) for k, group in by_rows.items()}


def _joins(program: Program, node: Map, group: Sequence[int], position: Sequence[int]) -> bool:
    """Whether a map reads members of the group element by element only, and nothing else that is not there yet."""
    return all(_is_element(program, o) if o.node in group else position[o.node] < group[0] for o in node.operands)


def _is_element(program: Program, operand: Operand) -> bool:
    """Whether a node is read as it is."""
    return operand.view == Window.whole(program.specs[operand.node].dims).view


def _read_outside(program: Program, groups: Mapping[int, Sequence[int]]) -> set[int]:
    """The nodes that something outside their own group reads."""
    home = {k: first for first, maps in groups.items() for k in maps}
    return {j for k, node in enumerate(program.nodes) for j in reads(node) if j not in home or home[j] != home.get(k)}


def _dead(
    program: Program, steps: Sequence[int], groups: Mapping[int, Sequence[int]], virtual: VirtualNodes
) -> list[list[int]]:
    """Per step the nodes that no later one reads, for tiles neither; constants and Y stay."""
    last: dict[int, int] = {}
    for at, k in enumerate(steps):
        for member in groups.get(k, (k,)):
            last[member] = max(last.get(member, 0), at)
            for j in virtual.reads(program, member):
                last[j] = max(last.get(j, 0), at)
    dead: list[list[int]] = [[] for _ in steps]
    for k, at in last.items():
        if not isinstance(program.nodes[k], Const | Output | Input):
            dead[at].append(k)
    return dead


def _single(kernel: Kernel) -> Callable[[list[Tensor]], Sequence[Tensor]]:
    return lambda values: (kernel(values),)


def _kernel(program: Program, maps: Sequence[int], stored: Sequence[int]) -> Callable[[list[Tensor]], Sequence[Tensor]]:
    """Runs the maps of one group; the values of those that are stored. Groups that are alike have one text."""
    dims = program.nodes[maps[0]].spec.dims
    sources: dict[Operand, str] = {}
    values: dict[int, str] = {}
    body: list[str] = []
    for i, k in enumerate(maps):
        node = program.nodes[k]
        assert isinstance(node, Map)
        types = [program.specs[o.node].dtype for o in node.operands]
        for operand, dtype in zip(node.operands, types, strict=True):
            if operand.node not in values and operand not in sources:
                name, pointer = f"x{len(sources)}", f"p{len(sources)}"
                sources[operand] = name
                body += load_lines(name, pointer, dtype, operand.view, "live", Span("o", dims))
        registers = [values.get(o.node) or sources[o] for o in node.operands]
        body += scalar_text.lines(ScalarProgram.decode(node.code, types).instructions, registers, f"r{i}_")
        body.append(f"s{i} = {STORED[node.spec.dtype].format(f'({registers[-1]})')}")
        if k in stored:
            body.append(f"tl.store(q{i} + o, s{i}, mask=live)")
        # Later maps read what memory would hold: a narrow type has lost its high bits.
        values[k] = f"v{i}"
        body.append(f"v{i} = {LOADED[node.spec.dtype].format(f's{i}')}")
    narrow = all(is_narrow(o.view, dims) for o in sources)
    pointers = [f"p{i}" for i in range(len(sources))] + [f"q{i}" for i, k in enumerate(maps) if k in stored]
    text = text_of(", ".join([*pointers, "BLOCK: tl.constexpr"]), [*over("o", dims, narrow), *body])
    kernel, given, size = backend.kernel_of(text, "kernel", functions()), [o.node for o in sources], block()
    grid = (-(-prod(dims) // size),)

    def run(known: list[Tensor]) -> Sequence[Tensor]:
        results = [empty(dims, program.specs[k].dtype) for k in stored]
        backend.launch(kernel, grid, *(memory(known[j]) for j in given), *map(memory, results), BLOCK=size)
        return results

    return run
