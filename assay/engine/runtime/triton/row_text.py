"""What a kernel of common rows does with a block of them: it is loaded once, and what is passed on stays in registers.

A block is [ROWS, COLS], short values [ROWS, 1]. Every element is the integer, and the rounding, that the program says.
Of causal rows a block has the columns up to the diagonal; what is behind it is one value a row (`tails`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from assay.engine.runtime.triton import scalar_text
from assay.engine.runtime.triton.reading import LOADED, NARROW, STORED, Span, constant_text, is_narrow, load_lines
from assay.engine.runtime.triton.rows import RowGroup, row_dims, whole_operand
from assay.engine.runtime.triton.tails import Tails
from assay.engine.runtime.values.views import is_inside, sub_view
from assay.protocol.program.nodes import Map, Max, Operand, RowExp, Sum
from assay.protocol.program.program import Program
from assay.protocol.types import DType

_ONE = 0x3F800000
"""The word of a finite number."""


@dataclass(frozen=True, slots=True)
class RowBlocks:
    """How rows are taken: so many at once, one block after another, and so many by a program in all.

    widths: columns of causal rows that a program takes, growing, if all behind them is behind its rows' diagonals; of
    fewer columns more rows at once. The last is all of them.
    """

    rows: int
    span: int
    widths: tuple[int, ...] = ()


class RowText:
    """The text of one group's kernel under way, of so many columns, and the nodes that its pointers are of."""

    def __init__(self, program: Program, group: RowGroup, cut: RowBlocks, width: int, tails: Tails | None) -> None:
        self._program, self._group, self._cut, self._width = program, group, cut, width
        self._tails = tails if tails is not None and width < group.columns else None
        self._behind: dict[int, str] = {}
        """Registers of members' tails."""
        self.sources: list[int] = []
        self._loaded: dict[object, str] = {}
        self._values: dict[int, str] = {}
        self._body: list[str] = []
        self._results: list[str] = []
        self._before: list[str] = []
        self._after: list[str] = []
        self._is_narrow = group.numel < NARROW

    @property
    def number(self) -> str:
        """Of the program."""
        return "tl.program_id(0)" if self._is_narrow else "tl.program_id(0).to(tl.int64)"

    @property
    def pointers(self) -> str:
        """Of operands and results."""
        return ", ".join([*(f"p{i}" for i in range(len(self.sources))), *self._results])

    def lines(self) -> list[str]:
        """All that is done with the rows from `start` on."""
        group, cut = self._group, self._cut
        # Where blocks end with the rows, a compiler that knows it drops every mask.
        there = f"row < {group.rows}" if group.rows % cut.span else "tl.full([ROWS, 1], 1, tl.int1)"
        start = ["col = tl.arange(0, COLS)[None, :]", f"within = col < {group.columns}", *self._before]
        lines = [
            "row = (start + first + tl.arange(0, ROWS))[:, None]",
            f"there = {there}",
            "live = there & within",
            f"o = row * {group.columns} + col",
            *([f"end = row * {group.columns} + {group.columns - 1}"] if self._tails else []),
            *self._body,
        ]
        if cut.span > cut.rows:
            lines = [f"for first in range(0, {cut.span}, ROWS):", *(f"    {line}" for line in lines)]
        else:
            lines = ["first = 0", *lines]
        return [*start, *lines, *self._after]

    def column(self, i: int, member: int, together: int) -> None:
        """Keeps the largest magnitude of each column of a whole member, over so many rows, in result i of its kind."""
        self._before.append(f"c{i} = tl.zeros([1, COLS], tl.int32)")
        magnitude = f"tl.where(live, bits_of({self._values[member]}) & 0x7FFFFFFF, 0)"
        self._body.append(f"c{i} = tl.maximum(c{i}, tl.max({magnitude}, 0, keep_dims=True))")
        self._results.append(f"m{i}")
        at = f"m{i} + (start // {together}) * {self._group.columns} + col"
        self._after.append(f"tl.atomic_max({at}, c{i}, mask=within, sem='relaxed')")
        if self._tails:
            self._before.append(f"d{i} = tl.zeros([ROWS, 1], tl.int32)")
            magnitude = f"bits_of({self._behind[member]}) & 0x7FFFFFFF"
            self._body.append(f"d{i} = tl.maximum(d{i}, tl.where(there, {magnitude}, 0))")
            self._after += [
                f"e{i} = tl.max(d{i}, 0, keep_dims=True)",
                # Most often all of them are zeros.
                f"for more in range({self._width}, {self._group.columns}, COLS):",
                f"    is_more = (more + col < {self._group.columns}) & (e{i} > 0)",
                f"    tl.atomic_max({at} + more, tl.where(is_more, e{i}, 0), mask=is_more, sem='relaxed')",
            ]

    def member(self, i: int, k: int, *, is_whole: bool, is_stored: bool) -> None:
        """Computes member number i, node k."""
        node = self._program.nodes[k]
        if isinstance(node, Map):
            registers = [self._read(o, node.spec.dims, is_whole=is_whole) for o in node.operands]
            self._body += scalar_text.map_lines(self._program, node, registers, f"r{i}_")
            result = registers[-1]
        else:
            assert isinstance(node, RowExp | Max | Sum)
            dims = (*node.spec.dims, *node.red)
            x = self._read(node.x, dims, is_whole=True)
            e = self._read(node.exponent, node.spec.dims, is_whole=False) if isinstance(node, Sum) else ""
            behind = (self._tail(node.x, dims, k), self._group.columns - self._width) if self._tails else None
            self._body += _reduced(node, x, e, f"t{i}", f"r{i}_", behind)
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
        if self._tails and is_whole:
            assert isinstance(node, Map)
            self._member_tail(self._tails, i, k, node, is_stored=is_stored)

    def _member_tail(self, tails: Tails, i: int, k: int, node: Map, *, is_stored: bool) -> None:
        """Computes, and stores, what whole member number i is behind the columns of a block."""
        dtype = node.spec.dtype
        if k in tails.words:
            result = constant_text(dtype.value_type, tails.words[k], dtype)
        else:
            registers = [self._tail(o, node.spec.dims, k) for o in node.operands]
            self._body += scalar_text.map_lines(self._program, node, registers, f"w{i}_")
            result = registers[-1]
        self._body.append(f"w{i} = {STORED[dtype].format(f'(tl.where(there, {result}, {result}))')}")
        if is_stored:
            self._body += [
                f"for more in range({self._width}, {self._group.columns}, COLS):",
                f"    is_more = there & (more + col < {self._group.columns})",
                f"    tl.store(q{i} + o + more, tl.where(is_more, w{i}, w{i}), mask=is_more)",
            ]
        self._behind[k] = f"u{i}"
        self._body.append(f"u{i} = {LOADED[dtype].format(f'w{i}')}")

    def _tail(self, operand: Operand, dims: Sequence[int], reader: int) -> str:
        """The register of what an operand is behind the columns of a block, or of what stands for it there."""
        assert self._tails is not None
        if (reader, whole_operand(operand, dims)) in self._tails.free:
            return constant_text(self._type(operand).value_type, 0)
        if operand.node in self._values:
            return self._behind.get(operand.node, self._values[operand.node])
        word = self._tails.words.get(whole_operand(operand, dims))
        dtype = self._type(operand)
        if word is not None:
            return constant_text(dtype.value_type, word, dtype)
        if operand.node in self._tails.finite:
            return constant_text(DType.F32, _ONE)
        if row_dims(operand.view, dims, self._group.columns) is not None:
            return self._read(operand, dims, is_whole=True)
        key = ("end", whole_operand(operand, dims))
        if key not in self._loaded:
            self._loaded[key] = name = f"y{len(self._loaded)}"
            self._read(operand, dims, is_whole=True)
            pointer = f"p{self.sources.index(operand.node)}"
            self._body += load_lines(name, pointer, dtype, operand.view, "there", Span("end", tuple(dims)))
        return self._loaded[key]

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


def _reduced(
    node: RowExp | Max | Sum, x: str, e: str, total: str, result: str, behind: tuple[str, int] | None
) -> list[str]:
    """Lines that reduce a block of whole rows x, in `reductions`' own arithmetic; e: the exponents of a sum.

    behind: what each of so many further elements of a row is.
    """

    def terms(of: str) -> str:
        match node:
            case RowExp():
                return f"bits_of({of}) & 0x7FFFFFFF"
            case Max():
                return f"order_of({of})" if node.spec.dtype is DType.F32 else of
            case Sum():
                return f"quantized({of}, {e}, 31).to(tl.int64)"

    match node:
        case RowExp():
            kind, least, last = "max", 0, f"exponent_of_bits({total})"
        case Max():
            kind, least = "max", -(1 << 31)
            last = f"from_bits({total} ^ (({total} >> 31) & 0x7FFFFFFF))" if node.spec.dtype is DType.F32 else total
        case Sum():
            kind, least, last = "sum", 0, f"finished_or_nan({total}, {e}, 30)"
    lines = [f"{total} = tl.{kind}(tl.where(live, {terms(x)}, {least}), 1, keep_dims=True)"]
    if behind is not None:
        value, count = behind
        further = terms(value)
        lines.append(
            f"{total} += {further} * {count}" if kind == "sum" else f"{total} = tl.maximum({total}, {further})"
        )
    return [*lines, f"{result} = {last}"]
