"""One kernel for a group of nodes with common rows: what is passed on between them stays in registers.

A kernel holds a block [ROWS, COLS] of whole rows, short values are [ROWS, 1]. Where rows are longer than a block it
passes over them once for each reduction and once for what is stored, and computes whole members anew in each pass.
Every element is the integer, and the rounding, that the program says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod

from torch import Tensor

from assay.engine.runtime.triton import backend, scalar_text
from assay.engine.runtime.triton.elementwise import empty, functions, memory, text_of
from assay.engine.runtime.triton.reading import LOADED, STORED, Span, is_narrow, load_lines
from assay.engine.runtime.triton.rows import LONGEST_HELD, RowGroup, row_dims, whole_operand
from assay.engine.runtime.values.views import is_inside, sub_view
from assay.protocol.arithmetic.scalar import ScalarProgram
from assay.protocol.program.nodes import Map, Max, Operand, RowExp, Sum, reads
from assay.protocol.program.program import Program
from assay.protocol.types import DType

RowKernel = Callable[[list[Tensor]], Sequence[Tensor]]
"""Computes those members that are stored, in order, from the values by node."""


def row_kernel(program: Program, group: RowGroup, stored: Sequence[int]) -> RowKernel:
    """Runs a group; the values of the members that are stored. Groups that are alike have one text."""
    text = _RowText(program, group, stored)
    kernel = backend.kernel_of(text.whole(), "kernel", functions())
    rows, columns, warps = _block(group)
    grid, given, specs = (-(-group.rows // rows),), text.sources, [program.specs[k] for k in stored]

    def run(known: list[Tensor]) -> Sequence[Tensor]:
        results = [empty(spec.dims, spec.dtype) for spec in specs]
        given_there = (*(memory(known[j]) for j in given), *map(memory, results))
        backend.launch(kernel, grid, *given_there, ROWS=rows, COLS=columns, warps=warps)
        return results

    return run


def _block(group: RowGroup) -> tuple[int, int, int]:
    """Rows, columns and warps of a program."""
    if not group.is_held:
        # As many threads as fill a multiprocessor: no more rows are under way at a time than a cache holds.
        return 1, LONGEST_HELD, 32
    columns = 1 << (group.columns - 1).bit_length()
    most = 1 << 16 if backend.is_interpreted() else 1 << 11
    rows = min(1 << (group.rows - 1).bit_length(), max(most // columns, 1))
    return rows, columns, 8 if rows * columns > 1 << 11 else 4


@dataclass
class _Lines:
    """Lines that run one after another, and the registers that they leave: of members, and of what was loaded."""

    prefix: str = ""
    text: list[str] = field(default_factory=list)
    values: dict[int, str] = field(default_factory=dict)
    loaded: dict[object, str] = field(default_factory=dict)


class _RowText:
    """The text of one group's kernel, and the nodes that its pointers are of."""

    def __init__(self, program: Program, group: RowGroup, stored: Sequence[int]) -> None:
        self._program, self._group, self._stored = program, group, stored
        self.sources: list[int] = []
        self._pointers: dict[object, str] = {}
        self._is_narrow = group.numel < 1 << 31
        self._number = {k: i for i, k in enumerate(group.is_whole)}
        self._body = self._held() if group.is_held else self._passed()

    def whole(self) -> str:
        """The kernel."""
        number = "tl.program_id(0)" if self._is_narrow else "tl.program_id(0).to(tl.int64)"
        start = [
            f"row = ({number} * ROWS + tl.arange(0, ROWS))[:, None]",
            f"there = row < {self._group.rows}",
        ]
        pointers = [f"p{i}" for i in range(len(self.sources))] + [f"q{self._number[k]}" for k in self._stored]
        return text_of(", ".join([*pointers, "ROWS: tl.constexpr, COLS: tl.constexpr"]), [*start, *self._body])

    def _held(self) -> list[str]:
        """All members from one block."""
        lines = _Lines(text=["col = tl.arange(0, COLS)[None, :]", *self._columns()])
        for k, is_whole in self._group.is_whole.items():
            self._member(lines, k, is_whole=is_whole)
            self._store(lines, k, is_whole=is_whole)
        return lines.text

    def _passed(self) -> list[str]:
        """Short members in order, a pass for each reduction; at the end a pass for the whole ones that are stored."""
        rows = _Lines()
        for k, is_whole in self._group.is_whole.items():
            node = self._program.nodes[k]
            if is_whole:
                continue
            if isinstance(node, Map):
                self._member(rows, k, is_whole=False)
            else:
                assert isinstance(node, RowExp | Max | Sum)
                e = self._read(rows, node.exponent, node.spec.dims, is_whole=False) if isinstance(node, Sum) else ""
                self._reduce_in_passes(rows, k, node, e)
            self._store(rows, k, is_whole=False)
        whole = [k for k in self._stored if self._group.is_whole[k]]
        if whole:
            lines = self._pass(rows, "z_", whole)
            for k in whole:
                self._store(lines, k, is_whole=True)
            self._loop(rows, lines)
        return rows.text

    def _reduce_in_passes(self, rows: _Lines, k: int, node: RowExp | Max | Sum, e: str) -> None:
        i = self._number[k]
        kind, least, dtype, result = _kind(node, f"t{i}", e)
        member = [node.x.node] if node.x.node in self._group.is_whole else []
        lines = self._pass(rows, f"a{i}_", member)
        x = self._read(lines, node.x, (*node.spec.dims, *node.red), is_whole=True)
        terms = f"tl.where(live, {_terms(node, x, e)}, {least})"
        lines.text.append(f"t{i} = " + (f"t{i} + {terms}" if kind == "sum" else f"tl.maximum(t{i}, {terms})"))
        rows.text.append(f"t{i} = tl.full([ROWS, COLS], {least}, {dtype})")
        self._loop(rows, lines)
        rows.text += [f"t{i} = tl.{kind}(t{i}, 1, keep_dims=True)", f"r{i}_ = {result}"]
        self._keep(rows, k, f"r{i}_", "there")

    def _pass(self, rows: _Lines, prefix: str, wanted: Sequence[int]) -> _Lines:
        """The lines of a pass that computes these whole members, and those that they read."""
        lines, left = _Lines(prefix, values=dict(rows.values)), list(wanted)
        needed = set(left)
        while left:
            new = {j for j in reads(self._program.nodes[left.pop()]) if self._group.is_whole.get(j)} - needed
            needed |= new
            left += sorted(new)
        for k in sorted(needed):
            self._member(lines, k, is_whole=True)
        return lines

    def _loop(self, rows: _Lines, lines: _Lines) -> None:
        """Puts a pass into the lines of whole rows."""
        inner = ["col = first + tl.arange(0, COLS)[None, :]", *self._columns(), *lines.text]
        rows.text += [f"for first in range(0, {self._group.columns}, COLS):", *(f"    {line}" for line in inner)]

    def _columns(self) -> list[str]:
        return [
            f"within = col < {self._group.columns}",
            "live = there & within",
            f"o = row * {self._group.columns} + col",
        ]

    def _member(self, lines: _Lines, k: int, *, is_whole: bool) -> None:
        """Computes a member from what the lines have, or load."""
        node, i = self._program.nodes[k], self._number[k]
        if isinstance(node, Map):
            types = [self._type(o) for o in node.operands]
            registers = [self._read(lines, o, node.spec.dims, is_whole=is_whole) for o in node.operands]
            code = ScalarProgram.decode(node.code, types).instructions
            lines.text += scalar_text.lines(code, registers, f"{lines.prefix}r{i}_")
            result = registers[-1]
        else:
            assert isinstance(node, RowExp | Max | Sum)
            x = self._read(lines, node.x, (*node.spec.dims, *node.red), is_whole=True)
            e = self._read(lines, node.exponent, node.spec.dims, is_whole=False) if isinstance(node, Sum) else ""
            kind, least, _, result = _kind(node, f"t{i}", e)
            terms = f"tl.where(live, {_terms(node, x, e)}, {least})"
            lines.text += [f"t{i} = tl.{kind}({terms}, 1, keep_dims=True)", f"r{i}_ = {result}"]
            result = f"r{i}_"
        self._keep(lines, k, result, "live" if is_whole else "there")

    def _keep(self, lines: _Lines, k: int, result: str, live: str) -> None:
        """A member's value as memory holds it, and as later members read it: a narrow type has lost its high bits."""
        stored, value = (f"{lines.prefix}{letter}{self._number[k]}" for letter in "sv")
        dtype = self._program.nodes[k].spec.dtype
        # A map of constants alone has a value of no block's shape.
        lines.text.append(f"{stored} = {STORED[dtype].format(f'(tl.where({live}, {result}, {result}))')}")
        lines.text.append(f"{value} = {LOADED[dtype].format(stored)}")
        lines.values[k] = value

    def _store(self, lines: _Lines, k: int, *, is_whole: bool) -> None:
        if k in self._stored:
            i, at, live = self._number[k], "o" if is_whole else "row", "live" if is_whole else "there"
            lines.text.append(f"tl.store(q{i} + {at}, {lines.prefix}s{i}, mask={live})")

    def _read(self, lines: _Lines, operand: Operand, dims: Sequence[int], *, is_whole: bool) -> str:
        """The register of an operand: a member's, or loaded, once for all who read it alike."""
        if operand.node in lines.values:
            return lines.values[operand.node]
        key = (is_whole, whole_operand(operand, dims))
        if key not in self._pointers:
            self._pointers[key] = f"p{len(self.sources)}"
            self.sources.append(operand.node)
            self._is_narrow = self._is_narrow and is_narrow(operand.view, dims)
        if key not in lines.loaded:
            lines.loaded[key] = name = f"{lines.prefix}x{len(lines.loaded)}"
            lines.text += self._loads(name, self._pointers[key], operand, tuple(dims), is_whole=is_whole)
        return lines.loaded[key]

    def _loads(self, name: str, pointer: str, x: Operand, dims: tuple[int, ...], *, is_whole: bool) -> list[str]:
        """Lines that load an operand: what depends on the row alone, or on the column alone, so many times only."""
        dtype, view = self._type(x), x.view
        if not is_whole:
            return load_lines(name, pointer, dtype, view, "there", Span("row", dims))
        cut = row_dims(view, dims, self._group.columns)
        if cut is not None:
            return load_lines(name, pointer, dtype, sub_view(view, range(cut)), "there", Span("row", dims[:cut]))
        cut = next((p for p in range(len(dims)) if prod(dims[p:]) == self._group.columns), 0)
        still = all(n == 1 or s == 0 for n, s in zip(dims[:cut], view.strides[:cut], strict=True))
        if cut and still and is_inside(view, dims):
            of_column = sub_view(view, range(cut, len(dims)))
            return load_lines(name, pointer, dtype, of_column, "within", Span("col", dims[cut:]))
        return load_lines(name, pointer, dtype, view, "live", Span("o", dims))

    def _type(self, x: Operand) -> DType:
        return self._program.specs[x.node].dtype


def _terms(node: RowExp | Max | Sum, x: str, e: str) -> str:
    """What elements x of rows are reduced as, in `reductions`' own arithmetic; e: the exponents of a sum."""
    match node:
        case RowExp():
            return f"bits_of({x}) & 0x7FFFFFFF"
        case Max():
            return f"order_of({x})" if node.spec.dtype is DType.F32 else x
        case Sum():
            return f"quantized({x}, {e}, 31).to(tl.int64)"


def _kind(node: RowExp | Max | Sum, total: str, e: str) -> tuple[str, int, str, str]:
    """How terms become one, what none of them come to, in which type, and the node's value of the total."""
    match node:
        case RowExp():
            return "max", 0, "tl.int32", f"exponent_of_bits({total})"
        case Max():
            order = f"from_bits({total} ^ (({total} >> 31) & 0x7FFFFFFF))"
            return "max", -(1 << 31), "tl.int32", order if node.spec.dtype is DType.F32 else total
        case Sum():
            return "sum", 0, "tl.int64", f"finished_or_nan({total}, {e}, 30)"
