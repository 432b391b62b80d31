"""Maps of long rows that are never stored: whoever reads one computes its elements again, from what that is made of.

Rows that a kernel holds whole stay in registers (`rows`). Of longer ones, a vocabulary's, every value is written and
read again by each kernel in turn, which takes longer than a few dozen operations an element. Pure Python.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from math import prod
from typing import Final

from assay.engine.runtime.triton import scalar_text
from assay.engine.runtime.triton.reading import LOADED, STORED
from assay.engine.runtime.triton.rows import LONGEST, is_linear
from assay.protocol.arithmetic.scalar import INSTRUCTION_SIZE
from assay.protocol.program.nodes import Map, Max, Operand, RowExp, Sum, reads
from assay.protocol.program.program import Program

MOST_INSTRUCTIONS = 64
"""Of one map with those that it computes again: an H100 does about 40 operations while it moves the 4 bytes of one."""

LEAST_ELEMENTS = 1 << 22
"""Below, values stay in a cache of a GPU between the kernels that write and read them."""

Inlined = Mapping[int, int]
"""The maps that are not stored, with the instructions that an element of each takes."""

NONE: Final[Inlined] = {}
"""Of a program whose every map is stored."""


def inlined_maps(program: Program, free: Collection[int], least: int = LEAST_ELEMENTS) -> Inlined:
    """The maps of at least so many elements that reductions of long rows take, and maps alone besides.

    free: the nodes that run by kernels of their own or in groups of maps.
    """
    nodes = program.nodes
    readers: dict[int, list[int]] = {}
    for k, node in enumerate(nodes):
        for j in set(reads(node)):
            readers.setdefault(j, []).append(k)
    chosen: set[int] = set()
    for k in reversed(range(len(nodes))):
        node = nodes[k]
        if not isinstance(node, Map) or k not in free or node.spec.numel < least or not node.operands:
            continue
        # What is made of two whole values would have its readers load both in place of one.
        whole = [o for o in node.operands if program.specs[o.node].numel == node.spec.numel]
        by = [nodes[r] for r in readers.get(k, ())]
        is_taken = any(isinstance(r, RowExp | Sum | Max) for r in by) or any(r in chosen for r in readers.get(k, ()))
        if len(whole) < 2 and is_taken and all(r in free and _computes(nodes[r], k) for r in readers[k]):
            chosen.add(k)
    found: dict[int, int] = {}
    for k in sorted(chosen):
        node = nodes[k]
        assert isinstance(node, Map)
        # Attack: a chain of maps without an instruction, each of which reads the one before it several times: its text
        # has no end. So a map counts where it does nothing.
        cost = max(len(node.code) // INSTRUCTION_SIZE, 1) + sum(found.get(o.node, 0) for o in node.operands)
        if cost <= MOST_INSTRUCTIONS:
            found[k] = cost
    return found


def _computes(reader: object, k: int) -> bool:
    """Whether a node reads node k element by element: as a map, or as a reduction of long rows."""
    if isinstance(reader, Map):
        return all(is_linear(o.view, reader.spec.dims) for o in reader.operands if o.node == k)
    if isinstance(reader, RowExp | Max | Sum):
        is_of_rows = prod(reader.red) > LONGEST and is_linear(reader.x.view, (*reader.spec.dims, *reader.red))
        return is_of_rows and not (isinstance(reader, Sum) and reader.exponent.node == k)
    return False


def stored_reads(inlined: Inlined, program: Program, operands: Sequence[int]) -> list[int]:
    """These nodes, and in place of those that are not stored what their elements are computed from."""
    found: list[int] = []
    for j in operands:
        found += stored_reads(inlined, program, reads(program.nodes[j])) if j in inlined else [j]
    return found


Load = Callable[[str, Operand, tuple[int, ...]], list[str]]
"""Lines that put an operand's element, over some dims, into a name."""


def computed(program: Program, inlined: Inlined, k: int, name: str, load: Load) -> list[str]:
    """Lines that put the element of node k into `name`, as memory would have held it."""
    node = program.nodes[k]
    assert isinstance(node, Map)
    body, registers = list[str](), list[str]()
    for i, operand in enumerate(node.operands):
        register = f"{name}_{i}"
        if operand.node in inlined:
            body += computed(program, inlined, operand.node, register, load)
        else:
            body += load(register, operand, node.spec.dims)
        registers.append(register)
    body += scalar_text.map_lines(program, node, registers, f"{name}r")
    stored = STORED[node.spec.dtype].format(f"({registers[-1]})")
    return [*body, f"{name} = {LOADED[node.spec.dtype].format(f'({stored})')}"]
