"""One kernel for a group of nodes with common rows: a block of whole rows is loaded once, and what is passed on stays.

A block is [ROWS, COLS], short values [ROWS, 1]. Every element is the integer, and the rounding, that the program says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd, prod

from torch import Tensor

from assay.engine.runtime.triton import backend, scalar_text
from assay.engine.runtime.triton.elementwise import block, empty, functions, memory, text_of
from assay.engine.runtime.triton.reading import LOADED, STORED, Span, is_narrow, load_lines
from assay.engine.runtime.triton.rows import RowGroup, column_rows, row_dims, whole_operand
from assay.engine.runtime.values.views import is_inside, sub_view
from assay.protocol.program.nodes import Map, Max, Operand, RowExp, Sum
from assay.protocol.program.program import Program
from assay.protocol.types import DType

RowKernel = Callable[[list[Tensor]], Sequence[Tensor]]
"""Computes those members that are stored, in order, from the values by node."""

_BLOCK = 1 << 11
"""Elements that a kernel holds at once of each value that it still reads."""

_MOST_ROWS = 64
"""Of a program that takes exponents of columns: the more, the fewer atomic operations, one per column and program."""

_ENOUGH_PROGRAMS = 4096
"""On an H100 1,536 programs of 64 rows took 3 to 8 % more than 6,144 of 16: its last wave is a larger share."""


@dataclass(frozen=True, slots=True)
class RowBlocks:
    """How rows are taken: so many at once, one block after another, and so many by a program in all."""

    rows: int
    span: int


def row_blocks(group: RowGroup, together: int) -> RowBlocks:
    """The cut of a group. together: rows whose columns have exponents of their own; a program keeps to those of one."""
    columns, many = 1 << (group.columns - 1).bit_length(), 1 << 16 if backend.is_interpreted() else _BLOCK
    rows = min(1 << (group.rows - 1).bit_length(), max(many // columns, 1))
    if not together:
        return RowBlocks(rows, rows)
    # A power of two that divides them.
    rows = min(rows, together & -together)
    span = rows
    while span < _MOST_ROWS and together % (2 * span) == 0 and group.rows >= 2 * span * _ENOUGH_PROGRAMS:
        span *= 2
    return RowBlocks(rows, span)


def row_kernel(program: Program, group: RowGroup, stored: Sequence[int], cut: RowBlocks | None = None) -> RowKernel:
    """Runs a group; the values of the members that are stored. Groups that are alike have one text.

    cut: how rows are taken, if it is not for the shape to say.
    """
    together = [column_rows(program.nodes[k], group.columns) for k in group.by_columns]  # type: ignore[arg-type]
    cut = cut or row_blocks(group, gcd(*together))
    text = _RowText(program, group, cut)
    for i, (k, is_whole) in enumerate(group.is_whole.items()):
        text.member(i, k, is_whole=is_whole, is_stored=k in stored)
    by_columns = [k for k in stored if k in group.by_columns]
    for i, k in enumerate(by_columns):
        text.column(i, group.by_columns[k], together[list(group.by_columns).index(k)])
    columns = 1 << (group.columns - 1).bit_length()
    kernel = backend.kernel_of(text.whole(), "kernel", functions())
    grid, given, specs = (-(-group.rows // cut.span),), text.sources, [program.specs[k] for k in stored]
    size = {"ROWS": cut.rows, "COLS": columns, "warps": 8 if cut.rows * columns > 1 << 11 else 4}
    finish, length = _exponents(), block()

    def run(known: list[Tensor]) -> Sequence[Tensor]:
        results = [empty(spec.dims, spec.dtype) for spec in specs]
        taken = [result for k, result in zip(stored, results, strict=True) if k in by_columns]
        for magnitudes in taken:
            magnitudes.zero_()
        backend.launch(kernel, grid, *(memory(known[j]) for j in given), *map(memory, results), **size)
        for magnitudes in taken:
            count = magnitudes.numel()
            backend.launch(finish, (-(-count // length),), magnitudes, count, BLOCK=length)
        return results

    return run


def _exponents() -> object:
    """The kernel that makes exponents of the largest magnitudes of columns, in their place."""
    body = [
        "o = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "magnitude = tl.load(out + o, mask=o < count, other=0)",
        "tl.store(out + o, exponent_of_bits(magnitude), mask=o < count)",
    ]
    return backend.kernel_of(text_of("out, count, BLOCK: tl.constexpr", body), "kernel", functions(), plain=["count"])


class _RowText:
    """The text of one group's kernel under way, and the nodes that its pointers are of."""

    def __init__(self, program: Program, group: RowGroup, cut: RowBlocks) -> None:
        self._program, self._group, self._cut = program, group, cut
        self.sources: list[int] = []
        self._loaded: dict[object, str] = {}
        self._values: dict[int, str] = {}
        self._body: list[str] = []
        self._results: list[str] = []
        self._before: list[str] = []
        self._after: list[str] = []
        self._is_narrow = group.numel < 1 << 31

    def whole(self) -> str:
        """The kernel."""
        group, cut = self._group, self._cut
        number = "tl.program_id(0)" if self._is_narrow else "tl.program_id(0).to(tl.int64)"
        # Where blocks end with the rows, a compiler that knows it drops every mask.
        there = f"row < {group.rows}" if group.rows % cut.span else "tl.full([ROWS, 1], 1, tl.int1)"
        start = ["col = tl.arange(0, COLS)[None, :]", f"within = col < {group.columns}", *self._before]
        lines = [
            "row = (start + first + tl.arange(0, ROWS))[:, None]",
            f"there = {there}",
            "live = there & within",
            f"o = row * {group.columns} + col",
            *self._body,
        ]
        start.append(f"start = {number} * {cut.span}")
        if cut.span > cut.rows:
            lines = [f"for first in range(0, {cut.span}, ROWS):", *(f"    {line}" for line in lines)]
        else:
            lines = ["first = 0", *lines]
        pointers = [*(f"p{i}" for i in range(len(self.sources))), *self._results]
        arguments = ", ".join([*pointers, "ROWS: tl.constexpr, COLS: tl.constexpr"])
        return text_of(arguments, [*start, *lines, *self._after])

    def column(self, i: int, member: int, together: int) -> None:
        """Keeps the largest magnitude of each column of a whole member, over so many rows, in result i of its kind."""
        self._before.append(f"c{i} = tl.zeros([1, COLS], tl.int32)")
        magnitude = f"tl.where(live, bits_of({self._values[member]}) & 0x7FFFFFFF, 0)"
        self._body.append(f"c{i} = tl.maximum(c{i}, tl.max({magnitude}, 0, keep_dims=True))")
        self._results.append(f"m{i}")
        at = f"m{i} + (start // {together}) * {self._group.columns} + col"
        self._after.append(f"tl.atomic_max({at}, c{i}, mask=within, sem='relaxed')")

    def member(self, i: int, k: int, *, is_whole: bool, is_stored: bool) -> None:
        """Computes member number i, node k."""
        node = self._program.nodes[k]
        if isinstance(node, Map):
            registers = [self._read(o, node.spec.dims, is_whole=is_whole) for o in node.operands]
            self._body += scalar_text.map_lines(self._program, node, registers, f"r{i}_")
            result = registers[-1]
        else:
            assert isinstance(node, RowExp | Max | Sum)
            x = self._read(node.x, (*node.spec.dims, *node.red), is_whole=True)
            e = self._read(node.exponent, node.spec.dims, is_whole=False) if isinstance(node, Sum) else ""
            self._body += _reduced(node, x, e, f"t{i}", f"r{i}_")
            result = f"r{i}_"
        live, dtype = ("live" if is_whole else "there"), node.spec.dtype
        # A map of constants alone has a value of no block's shape.
        self._body.append(f"s{i} = {STORED[dtype].format(f'(tl.where({live}, {result}, {result}))')}")
        if is_stored:
            self._results.append(f"q{i}")
            self._body.append(f"tl.store(q{i} + {'o' if is_whole else 'row'}, s{i}, mask={live})")
        # Later members read what memory would hold: a narrow type has lost its high bits.
        self._values[k] = f"v{i}"
        self._body.append(f"v{i} = {LOADED[dtype].format(f's{i}')}")

    def _read(self, operand: Operand, dims: Sequence[int], *, is_whole: bool) -> str:
        """The register of an operand: a member's, or loaded, once for all who read it alike."""
        if operand.node in self._values:
            return self._values[operand.node]
        key = (is_whole, whole_operand(operand, dims))
        if key not in self._loaded:
            name, pointer = f"x{len(self._loaded)}", f"p{len(self.sources)}"
            self._loaded[key] = name
            self.sources.append(operand.node)
            self._is_narrow = self._is_narrow and is_narrow(operand.view, dims)
            self._body += self._loads(name, pointer, operand, tuple(dims), is_whole=is_whole)
        return self._loaded[key]

    def _loads(self, name: str, pointer: str, x: Operand, dims: tuple[int, ...], *, is_whole: bool) -> list[str]:
        """Lines that load an operand: what depends on the row alone, or on the column alone, so many times only."""
        dtype, view = self._type(x), x.view
        if not is_whole:
            return load_lines(name, pointer, dtype, view, "there", Span("row", dims))
        cut = row_dims(view, dims, self._group.columns)
        if cut is not None:
            return load_lines(name, pointer, dtype, sub_view(view, range(cut)), "there", Span("row", dims[:cut]))
        cut = next((p for p in range(len(dims)) if prod(dims[p:]) == self._group.columns), 0)
        if (
            cut
            and is_inside(view, dims)
            and all(n == 1 or s == 0 for n, s in zip(dims[:cut], view.strides[:cut], strict=True))
        ):
            return load_lines(
                name, pointer, dtype, sub_view(view, range(cut, len(dims))), "within", Span("col", dims[cut:])
            )
        return load_lines(name, pointer, dtype, view, "live", Span("o", dims))

    def _type(self, x: Operand) -> DType:
        return self._program.specs[x.node].dtype


def _reduced(node: RowExp | Max | Sum, x: str, e: str, total: str, result: str) -> list[str]:
    """Lines that reduce a block of whole rows x, in `reductions`' own arithmetic; e: the exponents of a sum."""
    match node:
        case RowExp():
            kind, terms, least, last = "max", f"bits_of({x}) & 0x7FFFFFFF", 0, f"exponent_of_bits({total})"
        case Max() if node.spec.dtype is DType.F32:
            kind, terms, least = "max", f"order_of({x})", -(1 << 31)
            last = f"from_bits({total} ^ (({total} >> 31) & 0x7FFFFFFF))"
        case Max():
            kind, terms, least, last = "max", x, -(1 << 31), total
        case Sum():
            kind, terms, least, last = (
                "sum",
                f"quantized({x}, {e}, 31).to(tl.int64)",
                0,
                f"finished_or_nan({total}, {e}, 30)",
            )
    return [f"{total} = tl.{kind}(tl.where(live, {terms}, {least}), 1, keep_dims=True)", f"{result} = {last}"]
