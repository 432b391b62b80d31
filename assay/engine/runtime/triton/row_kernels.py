"""One kernel for a group of nodes with common rows: how its rows are cut, and its launches; its text is `row_text`'s.

A kernel of causal rows has a part for each of several widths, and takes the least that its rows' diagonals lie in.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import Any

from torch import Tensor

from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.elementwise import block, empty, functions, memory, text_of
from assay.engine.runtime.triton.row_text import RowBlocks, RowText
from assay.engine.runtime.triton.rows import RowGroup, column_rows
from assay.engine.runtime.triton.tails import Tails
from assay.protocol.program.program import Program

RowKernel = Callable[[list[Tensor]], Sequence[Tensor]]
"""Computes those members that are stored, in order, from the values by node."""

_BLOCK = 1 << 11
"""Elements that a kernel holds at once of each value that it still reads."""

_MOST_ROWS = 64
"""Of a program that takes exponents of columns: the more, the fewer atomic operations, one per column and program."""

LEAST_CAUSAL = 512
"""Columns of a row that is worth a kernel of several widths, each of which is compiled."""

_INFINITE = 0x7F800000

_ENOUGH_PROGRAMS = 4096
"""On an H100 1,536 programs of 64 rows took 3 to 8 % more than 6,144 of 16: its last wave is a larger share."""


def row_blocks(group: RowGroup, together: int, *, is_causal: bool = False) -> RowBlocks:
    """The cut of a group. together: rows whose columns have exponents of their own; a program keeps to those of one.
    is_causal: its rows have tails.
    """
    columns, many = _width(group.columns), 1 << 16 if backend.is_interpreted() else _BLOCK
    rows = min(1 << (group.rows - 1).bit_length(), max(many // columns, 1))
    if is_causal:
        together = gcd(together, group.columns)
    if not together:
        return RowBlocks(rows, rows)
    # A power of two that divides them.
    rows = min(rows, together & -together)
    span = rows
    while span < _MOST_ROWS and together % (2 * span) == 0 and group.rows >= 2 * span * _ENOUGH_PROGRAMS:
        span *= 2
    if not is_causal or columns < LEAST_CAUSAL:
        return RowBlocks(rows, span)
    span = max(span, min(4 * rows, together & -together))
    return RowBlocks(rows, span, (columns // 4, columns // 2, columns))


def _width(columns: int) -> int:
    """Columns of a block that holds whole rows."""
    return 1 << (columns - 1).bit_length()


def row_kernel(
    program: Program,
    group: RowGroup,
    stored: Sequence[int],
    cut: RowBlocks | None = None,
    tails: Tails | None = None,
) -> RowKernel:
    """Runs a group; the values of the members that are stored. Groups that are alike have one text.

    cut: how rows are taken, if it is not for the shape to say. tails: of its rows, where each has one in all members.
    """
    together = [column_rows(program.nodes[k], group.columns) for k in group.by_columns]  # type: ignore[arg-type]
    cut = cut or row_blocks(group, gcd(*together), is_causal=tails is not None)
    taken = {k: together[list(group.by_columns).index(k)] for k in stored if k in group.by_columns}
    text = _text(program, group, stored, taken, cut, tails)
    columns = _width(group.columns)
    kernel = backend.kernel_of(text.text, "kernel", functions() | text.parts)
    grid, given, specs = (-(-group.rows // cut.span),), text.sources, [program.specs[k] for k in stored]
    size = {"ROWS": cut.rows, "COLS": columns, "warps": 8 if cut.rows * columns > 1 << 11 else 4}
    finish, length = _exponents(), block()

    def run(known: list[Tensor]) -> Sequence[Tensor]:
        results = [empty(spec.dims, spec.dtype) for spec in specs]
        magnitudes = [result for k, result in zip(stored, results, strict=True) if k in taken]
        for of_columns in magnitudes:
            of_columns.zero_()
        backend.launch(kernel, grid, *(memory(known[j]) for j in given), *map(memory, results), **size)
        for of_columns in magnitudes:
            count = of_columns.numel()
            backend.launch(finish, (-(-count // length),), of_columns, count, BLOCK=length)
        return results

    return run


def _exponents() -> object:
    """The kernel that makes exponents of the largest magnitudes of columns, in their place."""
    body = [
        "o = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)",
        "magnitude = tl.load(out + o, mask=o < count, other=0)",
        "tl.store(out + o, exponent_of_bits(magnitude), mask=o < count)",
    ]
    return backend.kernel_of(text_of("out, count, BLOCK: tl.constexpr", body), "kernel", functions(), plain=["count"])


@dataclass(frozen=True, slots=True)
class _Text:
    """A kernel, the functions that it calls beside the usual ones, and the nodes that its pointers are of."""

    text: str
    parts: dict[str, Any]
    sources: list[int]


def _text(
    program: Program,
    group: RowGroup,
    stored: Sequence[int],
    by_columns: dict[int, int],
    cut: RowBlocks,
    tails: Tails | None,
) -> _Text:
    """The text of a group's kernel. by_columns: of those that are stored, of how many rows each column is."""

    def lines_of(cut: RowBlocks, width: int) -> RowText:
        made = RowText(program, group, cut, width, tails)
        for i, (k, is_whole) in enumerate(group.is_whole.items()):
            made.member(i, k, is_whole=is_whole, is_stored=k in stored)
        for i, (k, together) in enumerate(by_columns.items()):
            made.column(i, group.by_columns[k], together)
        return made

    if len(cut.widths) < 2:
        whole = lines_of(cut, _width(group.columns))
        body = [f"start = {whole.number} * {cut.span}", *whole.lines()]
        return _Text(text_of(f"{whole.pointers}, ROWS: tl.constexpr, COLS: tl.constexpr", body), {}, whole.sources)
    assert tails is not None
    parts, names = dict[str, Any](), list[str]()
    for width in cut.widths:
        rows = min(cut.rows * (cut.widths[-1] // width), cut.span)
        made = lines_of(replace(cut, rows=rows), width)
        arguments = f"{made.pointers}, start, ROWS: tl.constexpr, COLS: tl.constexpr"
        name = f"rows_{hashlib.sha256(text_of(arguments, made.lines()).encode()).hexdigest()[:16]}"
        text = text_of(arguments, made.lines(), name)
        parts[name] = backend.kernel_of(text, name, functions())
        names.append(f"{name}({made.pointers}, start, {rows}, {width})")
    body = [f"start = {made.number} * {cut.span}", *_reach(group, cut, made, tails)]
    for width, call in zip(cut.widths, names, strict=True):
        body += [f"if reach == {width}:", f"    {call}"]
    return _Text(text_of(f"{made.pointers}, ROWS: tl.constexpr, COLS: tl.constexpr", body), parts, made.sources)


def _reach(group: RowGroup, cut: RowBlocks, made: RowText, tails: Tails) -> list[str]:
    """Lines that find how many columns a program takes: those up to its last row's diagonal, in one of the widths; all
    where what is behind them is not what stands for it: of a product a finite number, of others the row's last.
    """
    size, least = group.columns, cut.widths[0]
    reach = str(cut.widths[-1])
    for width in reversed(cut.widths[:-1]):
        reach = f"tl.where(last < {width}, {width}, {reach})"
    lines = [f"last = start % {size} + {cut.span - 1}", f"reach = {reach}"]
    looked_at = sorted(tails.finite | tails.same)
    if not looked_at:
        return lines
    loop = [f"for at in range(reach, {cut.widths[-1]}, {least}):", f"    is_there = at + col < {size}"]
    before = [
        f"row = (start + tl.arange(0, {cut.span}))[:, None]",
        f"col = tl.arange(0, {least})[None, :]",
        f"most = tl.zeros([{cut.span}, {least}], tl.int32)",
    ]
    for k in looked_at:
        pointer = f"p{made.sources.index(k)}"
        word = f"bits_of(tl.load({pointer} + (row * {size} + at + col), mask=is_there, other=0))"
        if k in tails.finite:
            wrong = f"{word} & 0x7FFFFFFF"
        else:
            before.append(f"end_{pointer} = bits_of(tl.load({pointer} + (row * {size} + {size - 1})))")
            wrong = f"tl.where(is_there & ({word} != end_{pointer}), {_INFINITE}, 0)"
        loop.append(f"    most = tl.maximum(most, {wrong})")
    end = [
        "most = tl.max(tl.max(most, 1), 0)",
        f"reach = tl.where(most >= {_INFINITE}, {cut.widths[-1]}, reach)",
    ]
    return [*lines, *before, *loop, *end]
