"""Nodes in groups, a kernel each: what a later one reads of an earlier one stays in a register.

Groups of common rows (`rows`) come first. Of what is left, maps over one index space share a kernel: a map joins a
group that runs earlier when everything else that it reads is there by then: so an optimizer's maps of one parameter
read its gradient once. Values that nothing outside reads are never stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from math import prod

from torch import Tensor

from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import backend, reductions, scalar_text
from assay.engine.runtime.triton.elementwise import block, empty, functions, memory, over, text_of
from assay.engine.runtime.triton.inlined import LEAST_ELEMENTS, Inlined, computed, inlined_maps, stored_reads
from assay.engine.runtime.triton.reading import LOADED, NARROW, STORED, Span, is_narrow, load_lines
from assay.engine.runtime.triton.row_kernels import row_kernel
from assay.engine.runtime.triton.rows import RowGroup, positions, row_groups, running_order
from assay.engine.runtime.triton.tails import CausalRows
from assay.engine.runtime.triton.virtual import NONE, VirtualNodes
from assay.protocol.program.nodes import Const, Input, Map, Max, Operand, Output, RowExp, Sum, reads
from assay.protocol.program.program import Program
from assay.protocol.program.views import Window

SeeGroup = Callable[[int, Sequence[Tensor | None]], None]
"""Shown a step's number and the values by node, those of the past that are still read among them."""

MOST_MAPS = 8
"""Of one group: a thread keeps every register that is still read."""


class MapGroups:
    """A program's whole runs: nodes in order, maps in groups; holds no state between runs.

    `members`: the nodes of each step. `overwriting`: steps that store one value, each element of it after all that its
    kernel loads for it. `dead`: those that no later step reads, of what is no constant, X or Y.
    """

    def __init__(
        self,
        program: Program,
        kernel: Callable[[int], Kernel],
        virtual: VirtualNodes = NONE,
        least: int = LEAST_ELEMENTS,
        causal: CausalRows | None = None,
    ) -> None:
        """kernel: that of a node by itself. virtual: nodes that are not stored, which have no step. least: elements of
        a map that is computed again by those who read it. causal: what is known of rows behind their diagonals.
        """
        self._program = program
        free = set(range(len(program.nodes))) - virtual.spaces.keys() - virtual.readers.keys()
        by_rows = row_groups(program, free)
        self.inlined = inlined_maps(program, free - {k for g in by_rows.values() for k in g.members}, least)
        self.groups = _grouped(program, virtual.spaces.keys() | self.inlined.keys(), by_rows)
        unstored = virtual.spaces.keys() | self.inlined.keys()
        later = {k for maps in self.groups.values() for k in maps[1:]}
        inputs, first_output = sum(program.inputs), len(program.nodes) - sum(program.outputs)
        self._first_output = first_output
        without = later | unstored
        steps = [k for k in running_order(program) if k >= inputs and k not in without]
        kept = _read_outside(program, self.groups)
        self._steps: list[tuple[tuple[int, ...], Callable[[list[Tensor]], Sequence[Tensor]]]] = []
        self.overwriting: dict[int, int] = {}
        for k in steps:
            stored = tuple(j for j in self.groups.get(k, (k,)) if j in kept or k not in self.groups)
            if k in by_rows:
                tails = None if causal is None else causal.tails_of(by_rows[k])
                self._steps.append((stored, row_kernel(program, by_rows[k], stored, tails=tails)))
            elif isinstance(program.nodes[k], Map) and program.specs[k].numel:
                if len(stored) == 1:
                    self.overwriting[len(self._steps)] = stored[0]
                made = _kernel(program, self.groups.get(k, (k,)), stored, self.inlined)
                self._steps.append((stored, made))
            else:
                self._steps.append((stored, _single(self._reduction(k) or kernel(k))))
        self.dead = self._dead(steps, virtual)
        self.members = [self.groups.get(k, (k,)) for k in steps]

    def _computes(self, k: int) -> bool:
        """Whether a node reads what is not stored."""
        return any(j in self.inlined for j in reads(self._program.nodes[k]))

    def _reduction(self, k: int) -> Kernel | None:
        """The kernel of a reduction that computes its terms again; None for other nodes."""
        node = self._program.nodes[k]
        if not isinstance(node, RowExp | Max | Sum) or not self._computes(k):
            return None
        return reductions.of_inlined(self._program, node, self.inlined)

    def _dead(self, steps: Sequence[int], virtual: VirtualNodes) -> list[list[int]]:
        """Per step the nodes that no later one reads, for what it computes again neither; constants and Y stay."""
        program, last = self._program, dict[int, int]()
        for at, k in enumerate(steps):
            for member in self.groups.get(k, (k,)):
                last[member] = max(last.get(member, 0), at)
                for j in stored_reads(self.inlined, program, virtual.reads(program, member)):
                    last[j] = max(last.get(j, 0), at)
        dead: list[list[int]] = [[] for _ in steps]
        for k, at in last.items():
            if not isinstance(program.nodes[k], Const | Output | Input):
                dead[at].append(k)
        return dead

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


def _grouped(
    program: Program, unstored: AbstractSet[int], by_rows: Mapping[int, RowGroup]
) -> dict[int, tuple[int, ...]]:
    """All groups, by their first member: those of common rows, and those of two stored maps and more besides."""
    nodes = program.nodes
    order = running_order(program)
    position = positions(order)
    for k, group in by_rows.items():
        for member in group.members:
            position[member] = position[k]
    taken = {member for group in by_rows.values() for member in group.members} | unstored
    open_groups: dict[tuple[int, ...], list[int]] = {}
    found: dict[int, list[int]] = {}
    for k in order:
        node = nodes[k]
        if not isinstance(node, Map) or not node.spec.numel or k in taken:
            continue
        maps = open_groups.get(node.spec.dims)
        if maps is not None and len(maps) < MOST_MAPS and _joins(program, node, maps, position):
            maps.append(k)
            position[k] = position[maps[0]]
        else:
            open_groups[node.spec.dims] = found[k] = [k]
    every = {k: tuple(maps) for k, maps in found.items() if len(maps) > 1}
    return every | {k: group.members for k, group in by_rows.items()}


def _joins(program: Program, node: Map, group: Sequence[int], position: Sequence[int]) -> bool:
    """Whether a map reads members of the group element by element only, and nothing else that is not there yet."""
    return all(
        _is_element(program, o) if o.node in group else position[o.node] < position[group[0]] for o in node.operands
    )


def _is_element(program: Program, operand: Operand) -> bool:
    """Whether a node is read as it is."""
    return operand.view == Window.whole(program.specs[operand.node].dims).view


def _read_outside(program: Program, groups: Mapping[int, Sequence[int]]) -> set[int]:
    """The nodes that something outside their own group reads."""
    home = {k: first for first, maps in groups.items() for k in maps}
    return {j for k, node in enumerate(program.nodes) for j in reads(node) if j not in home or home[j] != home.get(k)}


def _single(kernel: Kernel) -> Callable[[list[Tensor]], Sequence[Tensor]]:
    return lambda values: (kernel(values),)


def _kernel(
    program: Program, maps: Sequence[int], stored: Sequence[int], inlined: Inlined
) -> Callable[[list[Tensor]], Sequence[Tensor]]:
    """Runs the maps of one group; the values of those that are stored. Groups that are alike have one text."""
    dims = program.nodes[maps[0]].spec.dims
    sources: dict[Operand, str] = {}
    values: dict[int, str] = {}
    body: list[str] = []
    given: list[int] = []
    narrow = prod(dims) < NARROW

    def load(name: str, x: Operand, dims: tuple[int, ...]) -> list[str]:
        nonlocal narrow
        narrow = narrow and is_narrow(x.view, dims)
        given.append(x.node)
        return load_lines(name, f"p{len(given) - 1}", program.specs[x.node].dtype, x.view, "live", Span("o", dims))

    for i, k in enumerate(maps):
        node = program.nodes[k]
        assert isinstance(node, Map)
        for operand in node.operands:
            if operand.node in values or operand in sources:
                continue
            sources[operand] = name = f"x{len(sources)}"
            if operand.node in inlined:
                body += computed(program, inlined, operand.node, name, load)
            else:
                body += load(name, operand, dims)
        registers = [values.get(o.node) or sources[o] for o in node.operands]
        body += scalar_text.map_lines(program, node, registers, f"r{i}_")
        body.append(f"s{i} = {STORED[node.spec.dtype].format(f'({registers[-1]})')}")
        if k in stored:
            body.append(f"tl.store(q{i} + o, s{i}, mask=live)")
        # Later maps read what memory would hold: a narrow type has lost its high bits.
        values[k] = f"v{i}"
        body.append(f"v{i} = {LOADED[node.spec.dtype].format(f's{i}')}")
    pointers = [f"p{i}" for i in range(len(given))] + [f"q{i}" for i, k in enumerate(maps) if k in stored]
    text = text_of(", ".join([*pointers, "BLOCK: tl.constexpr"]), [*over("o", dims, narrow), *body])
    kernel, size = backend.kernel_of(text, "kernel", functions()), block()
    grid = (-(-prod(dims) // size),)

    def run(known: list[Tensor]) -> Sequence[Tensor]:
        results = [empty(dims, program.specs[k].dtype) for k in stored]
        backend.launch(kernel, grid, *(memory(known[j]) for j in given), *map(memory, results), BLOCK=size)
        return results

    return run
