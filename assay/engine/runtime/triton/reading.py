"""Views as text: the address and the bounds of what a kernel reads, from linear numbers of elements.

A kernel's text is made for one node: sizes, strides and fills are numbers in it, so a compiler turns divisions into
multiplications and drops what is never outside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from assay.protocol.arithmetic.words import as_f32
from assay.protocol.program.views import View
from assay.protocol.types import DType

NARROW = (1 << 31) - (1 << 16)
"""Numbers of elements and addresses below this are counted in i32: a loop's last step ends by a block at most past it,
and must not wrap there to where it began.
"""


@dataclass(frozen=True, slots=True)
class Reach:
    """Where an element is read: its address and the condition for being inside, as text; None for always inside.

    address is None where no index of the space is inside: then nothing but the fill is read.
    """

    address: str | None
    inside: str | None


@dataclass(frozen=True, slots=True)
class Span:
    """Dimensions of an index space that one linear number counts, row-major: `name` is its text."""

    name: str
    dims: tuple[int, ...]


def place(view: View, *spans: Span) -> Reach:
    """Where the view over all dims of the spans, in order, reads the element with these linear numbers."""
    terms, conditions = [str(view.offset)] if view.offset else [], []
    start = 0
    for span in spans:
        stop = start + len(span.dims)
        strides, lo, hi = view.strides[start:stop], view.lo[start:stop], view.hi[start:stop]
        for size, stride, suffix, bounds in _steps(span.dims, strides, lo, hi):
            number = _coordinate(span, size, suffix)
            first, last = bounds
            if first >= last:
                return Reach(None, None)
            if first > 0:
                conditions.append(f"({number} >= {first})")
            if last < size:
                conditions.append(f"({number} < {last})")
            if stride and size > 1:
                terms.append(f"{number} * {stride}" if stride != 1 else number)
        start = stop
    # Addresses have the shape of the spans together, also where they do not depend on one.
    return Reach(" + ".join([*terms, *(f"{span.name} * 0" for span in spans)]), " & ".join(conditions) or None)


def _steps(
    dims: Sequence[int], strides: Sequence[int], lo: Sequence[int], hi: Sequence[int]
) -> list[tuple[int, int, int, tuple[int, int]]]:
    """Size, stride, elements below, and bounds of each dimension; neighbours that step evenly are one."""
    found: list[tuple[int, int, int, tuple[int, int]]] = []
    for d, size in enumerate(dims):
        suffix, bounds = prod(dims[d + 1 :]), (max(lo[d], 0), min(hi[d], size))
        is_free = bounds == (0, size)
        if found and is_free and found[-1][3] == (0, found[-1][0]) and found[-1][1] == strides[d] * size:
            found[-1] = found[-1][0] * size, strides[d], suffix, (0, found[-1][0] * size)
        else:
            found.append((size, strides[d], suffix, bounds))
    return found


def _coordinate(span: Span, size: int, suffix: int) -> str:
    """A coordinate of some size with so many elements below each of its steps."""
    text = f"({span.name} // {suffix})" if suffix > 1 else span.name
    return f"({text} % {size})" if size * suffix < prod(span.dims) else text


def is_narrow(view: View, dims: Sequence[int]) -> bool:
    """Whether i32 holds all linear numbers and addresses, and everything on the way to one."""
    reach = abs(view.offset) + sum(abs(s) * n for s, n in zip(view.strides, dims, strict=True))
    return max(prod(dims), reach) < NARROW


def fill_text(dtype: DType, fill: int) -> str:
    """The value that a view reads outside its bounds: of the register that holds such an element."""
    return constant_text(dtype.value_type, fill if dtype is not DType.BOOL else int(fill != 0), dtype)


def constant_text(dtype: DType, word: int, stored: DType | None = None) -> str:
    """An expression with this word: an f32 by its pattern, so that a zero keeps its sign and nothing is computed."""
    bits = 8 * (stored or dtype).size
    word &= (1 << bits) - 1
    if dtype is DType.BOOL:
        return f"tl.full([1], {int(word != 0)}, tl.int1)"
    if dtype is DType.F32:
        return f"tl.full([1], {_signed(as_f32(word), 32)}, tl.int32).to(tl.float32, bitcast=True)"
    if stored in (DType.U8, DType.U16):
        return f"tl.full([1], {word}, tl.int32)"
    return f"tl.full([1], {_signed(word, bits)}, tl.{'int64' if dtype is DType.I64 else 'int32'})"


def _signed(word: int, bits: int) -> int:
    return word - (1 << bits) if word >> (bits - 1) else word


LOADED = {
    DType.F32: "{}",
    DType.I32: "{}",
    DType.I64: "{}",
    DType.BOOL: "({} != 0)",
    DType.U8: "{}.to(tl.int32)",
    DType.I8: "{}.to(tl.int32)",
    DType.U16: "({}.to(tl.int32) & 65535)",
}
"""How a register holds an element that memory holds as f32, i32, i64, u8, u8, i8, i16."""

STORED = {
    DType.F32: "{}",
    DType.I32: "{}",
    DType.I64: "{}",
    DType.BOOL: "{}.to(tl.uint8)",
    DType.U8: "{}.to(tl.uint8)",
    DType.I8: "{}.to(tl.int8)",
    DType.U16: "{}.to(tl.int16)",
}
"""How memory holds a register's low bits."""


def load_lines(name: str, pointer: str, dtype: DType, view: View, live: str, *spans: Span) -> list[str]:
    """Lines that put an operand's element into `name`, 0 or the fill where `live` is false."""
    at = place(view, *spans)
    if at.address is None:
        return [f"{name} = {fill_text(dtype, view.fill)}"]
    mask = live if at.inside is None else f"{live} & {at.inside}"
    lines = [f"{name} = {LOADED[dtype].format(f'tl.load({pointer} + ({at.address}), mask={mask}, other=0)')}"]
    if at.inside is not None:
        lines.append(f"{name} = tl.where({at.inside}, {name}, {fill_text(dtype, view.fill)})")
    return lines
