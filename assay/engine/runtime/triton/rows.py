"""Which nodes run together because their values have common rows: softmax, norms, and the exponents of what they give.

Pure Python. A group has R rows of C elements. A member is *whole*, a map of R C elements, or *short*, a value of each
row: a reduction over rows, or a map of R elements. Whole members are read element by element, short ones by the
elements of their row; so a kernel that holds a block of whole rows passes everything on in registers. The linear number
of an element is r C + c in every whole node, whatever its dims are called.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from math import prod

from assay.engine.runtime.values.views import is_inside
from assay.protocol.program.nodes import Const, Input, Map, Max, Operand, RowExp, Sum, reads
from assay.protocol.program.program import Program
from assay.protocol.program.views import View, contiguous_strides

LONGEST = 1 << 12
"""Elements of a row that a kernel holds at once, for each value that is still read."""

MOST_MEMBERS = 24
MOST_WHOLE = 10
"""Of one group: whole members and whole operands, each of which takes registers while it is read."""

MOST_BY_COLUMNS = 2
"""Each takes a register for every column that a thread holds."""

LEAST_BY_COLUMNS = 1 << 16
"""Rows of a group that takes exponents of columns: of 8,192, an H100 had too few programs, and lost what it gained."""

RowReduction = RowExp | Max | Sum


WholeOperand = int | tuple[Operand, tuple[int, ...]]
"""What a kernel loads whole from memory: a node as it lies there, or through a view over some dims."""


@dataclass
class RowGroup:
    """Nodes in order, by whether they are whole; columns is 0 until a reduction says where rows end.

    by_columns: exponents of columns, each with the whole member that they are of.
    """

    numel: int
    columns: int = 0
    is_whole: dict[int, bool] = field(default_factory=dict)
    by_columns: dict[int, int] = field(default_factory=dict)
    operands: set[WholeOperand] = field(default_factory=set)

    @property
    def start(self) -> int:
        """The first member, at which the group runs."""
        return next(iter(self.is_whole))

    @property
    def members(self) -> tuple[int, ...]:
        """All nodes that the group computes: those of rows in order, then exponents of columns."""
        return (*self.is_whole, *self.by_columns)

    @property
    def rows(self) -> int:
        """How many."""
        return self.numel // self.columns


def running_order(program: Program) -> list[int]:
    """All nodes in the order in which they run: as in the program, but exponents of what is computed right after it.

    So a group finds those there that it needs of something else.
    """
    found: list[int] = []
    waiting: dict[int, list[int]] = {}
    for k, node in enumerate(program.nodes):
        if isinstance(node, RowExp) and not isinstance(program.nodes[node.x.node], Input | Const):
            waiting.setdefault(node.x.node, []).append(k)
    early = {k for exponents in waiting.values() for k in exponents}
    for k in range(len(program.nodes)):
        if k not in early:
            found += [k, *waiting.get(k, ())]
    return found


def positions(order: Sequence[int]) -> list[int]:
    """Per node how many run before it."""
    found = [0] * len(order)
    for at, k in enumerate(order):
        found[k] = at
    return found


def row_groups(program: Program, stored: Collection[int], least: int = LEAST_BY_COLUMNS) -> dict[int, RowGroup]:
    """The groups that hold a reduction and something besides, by their first member.

    stored: nodes that may join. least: rows of a group that takes exponents of columns.
    """
    order = running_order(program)
    position = positions(order)
    home: dict[int, RowGroup] = {}
    readers: dict[WholeOperand, RowGroup] = {}
    for k in order:
        node = program.nodes[k]
        if k not in stored or not isinstance(node, Map | RowReduction) or not node.spec.numel:
            continue
        if isinstance(node, RowExp) and _is_by_columns(home.get(node.x.node), node, least):
            of = home[node.x.node]
            of.by_columns[k], position[k] = node.x.node, position[of.start]
            continue
        near = [home[j] for j in reads(node) if j in home]
        near += [readers[key] for key in whole_operands(node) if key in readers]
        unique = {id(group): group for group in near}.values()
        group = next(
            (g for g in sorted(unique, key=lambda g: -position[g.start]) if _join(program, g, k, position)), None
        )
        if group is None and (group := _opened(k, node)) is None:
            continue
        home[k], position[k] = group, position[group.start]
        readers.update(dict.fromkeys(group.operands, group))
    kept = {id(g): g for g in home.values() if g.columns and len(g.is_whole) > 1}
    return {g.start: g for g in kept.values()}


def whole_operands(node: Map | RowReduction) -> dict[WholeOperand, Operand]:
    """What a whole map, or a reduction over rows, reads element by element."""
    if isinstance(node, Map):
        return {whole_operand(o, node.spec.dims): o for o in node.operands}
    return {whole_operand(node.x, (*node.spec.dims, *node.red)): node.x}


def whole_operand(operand: Operand, dims: Sequence[int]) -> WholeOperand:
    """An operand over dims: two that read the same elements in the same order are one."""
    return operand.node if is_linear(operand.view, dims) else (operand, tuple(dims))


def _operands(node: Map | RowReduction) -> tuple[Operand, ...]:
    if isinstance(node, Map):
        return node.operands
    return (node.x, node.exponent) if isinstance(node, Sum) else (node.x,)


def _opened(k: int, node: Map | RowReduction) -> RowGroup | None:
    """A group of one node; None for what can be no first member."""
    if isinstance(node, Map):
        group = RowGroup(node.spec.numel) if node.operands else None
    else:
        rows, columns = prod(node.spec.dims), prod(node.red)
        is_row = 1 < columns <= LONGEST and is_linear(node.x.view, (*node.spec.dims, *node.red))
        group = RowGroup(rows * columns, columns) if is_row else None
    if group is not None:
        group.is_whole[k] = isinstance(node, Map)
        group.operands |= whole_operands(node).keys()
    return group


def _join(program: Program, group: RowGroup, k: int, position: Sequence[int]) -> bool:
    """Puts a node into a group if it reads members as a kernel has them, and all else is there when the group runs."""
    node = program.nodes[k]
    assert isinstance(node, Map | RowReduction)
    if len(group.is_whole) == MOST_MEMBERS:
        return False
    if any(o.node not in group.is_whole and position[o.node] >= position[group.start] for o in _operands(node)):
        return False
    is_short_map = isinstance(node, Map) and group.columns > 0 and node.spec.numel == group.rows
    if isinstance(node, Map):
        is_whole = node.spec.numel == group.numel
        fits = is_whole or is_short_map
        fits = fits and all(_is_read(group, o, node.spec.dims, is_whole=is_whole) for o in node.operands)
        # A short map that reads no member would only read again what it reads.
        fits = fits and (is_whole or any(o.node in group.is_whole for o in node.operands))
    else:
        is_whole, fits = False, _is_reduced(group, node)
    new = {} if is_short_map else whole_operands(node)
    read = group.operands | {key for key, o in new.items() if o.node not in group.is_whole}
    if not fits or len(read) + sum(group.is_whole.values()) + is_whole > MOST_WHOLE:
        return False
    if not isinstance(node, Map):
        group.columns = prod(node.red)
    group.is_whole[k], group.operands = is_whole, read
    return True


def _is_by_columns(group: RowGroup | None, node: RowExp, least: int) -> bool:
    """Whether a node takes exponents of a whole member's columns: a kernel keeps them from block to block."""
    if group is None or not group.is_whole[node.x.node] or len(group.by_columns) == MOST_BY_COLUMNS:
        return False
    if group.columns < 2 or group.rows < least:
        return False
    # All rows: a kernel takes every one of them, and has room for the columns of so many batches alone.
    rows, batches = column_rows(node, group.columns), prod(node.spec.dims) // group.columns
    return rows > 0 and rows * batches == group.rows


def column_rows(node: RowExp, columns: int) -> int:
    """Of how many whole rows, one after another, each element takes a column; 0 where it takes something else."""
    dims, rows, sizes = node.spec.dims, prod(node.red), (*node.spec.dims, *node.red)
    cut = next((c for c in range(len(dims)) if prod(dims[c:]) == columns), None)
    if cut is None or node.x.view.offset or not is_inside(node.x.view, sizes):
        return 0
    parts = range(cut), range(cut, len(dims)), range(len(dims), len(sizes))
    strides = rows * columns, 1, columns
    return rows if all(walks(node.x.view, p, sizes, s) for p, s in zip(parts, strides, strict=True)) else 0


def walks(view: View, part: Sequence[int], sizes: Sequence[int], stride: int) -> bool:
    """Whether these dims, counted together row-major, move by this stride."""
    for d in reversed(part):
        if sizes[d] > 1 and view.strides[d] != stride:
            return False
        stride *= sizes[d]
    return True


def _is_reduced(group: RowGroup, node: RowReduction) -> bool:
    """Whether a reduction is over the group's rows, or over rows that the group may have."""
    rows, columns = prod(node.spec.dims), prod(node.red)
    if not 1 < columns <= LONGEST or rows * columns != group.numel or group.columns not in (0, columns):
        return False
    if not is_linear(node.x.view, (*node.spec.dims, *node.red)) or group.is_whole.get(node.x.node, True) is False:
        return False
    exponent = node.exponent if isinstance(node, Sum) else None
    return exponent is None or _is_read(group, exponent, node.spec.dims, is_whole=False)


def _is_read(group: RowGroup, operand: Operand, dims: Sequence[int], *, is_whole: bool) -> bool:
    """Whether a node reads an operand as a kernel has it: from memory in any way, from a member by its own row."""
    of_whole = group.is_whole.get(operand.node)
    if of_whole is None:
        return True
    if of_whole == is_whole:
        return is_linear(operand.view, dims)
    return is_whole and row_dims(operand.view, dims, group.columns) is not None


def is_linear(view: View, dims: Sequence[int]) -> bool:
    """Whether element i of the index space is element i of the source."""
    same = all(n == 1 or s == c for n, s, c in zip(dims, view.strides, contiguous_strides(dims), strict=True))
    return same and view.offset == 0 and is_inside(view, dims)


def row_dims(view: View, dims: Sequence[int], columns: int) -> int | None:
    """How many of the dims count rows, if all elements of row r read element r of the source; else None."""
    for cut in range(len(dims) + 1):
        if prod(dims[cut:]) == columns:
            head = View(view.offset, view.strides[:cut], view.lo[:cut], view.hi[:cut], view.fill)
            still = all(n == 1 or s == 0 for n, s in zip(dims[cut:], view.strides[cut:], strict=True))
            if still and is_inside(view, dims) and is_linear(head, dims[:cut]):
                return cut
    return None
