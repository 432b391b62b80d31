"""Well-formed programs whose views read little or nothing: where nothing is read, addresses may be any 64-bit number.

    python -m tests.harness.engine.hostile_views LEVEL ...

runs all of them by the kernels of these instruction sets, in a process of its own, which one of them may end.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from assay.protocol.arithmetic.scalar import Op
from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.nodes import Dot, Gather, Input, Map, Max, Node, Operand, Output, RowExp, ScatterSum, Sum
from assay.protocol.program.program import Program
from assay.protocol.program.views import View, contiguous_strides
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

F32, I32, I64, BOOL, U8, U16 = DType.F32, DType.I32, DType.I64, DType.BOOL, DType.U8, DType.U16

FAR = ((1 << 62) + 5, -(1 << 63), (1 << 63) - 1, 1 << 40, -7)
"""Offsets that lead nowhere."""

STEPS = (0, 1, -1, 3, 1 << 61, -(1 << 63), (1 << 63) - 1)
"""Strides of a dimension that is never walked."""

ONE = 0x3F800000


@dataclass(frozen=True, slots=True)
class Hostile:
    """A program of three to six nodes, and its X."""

    name: str
    program: Program
    state: tuple[tuple[bytes, ...], ...]


def programs() -> Iterator[Hostile]:
    """Every family and element type over views that are empty, in part or wholly."""
    for dtype in (F32, I32, I64, BOOL, U8, U16):
        for offset, step in zip((*FAR, *FAR), (*STEPS, *STEPS), strict=False):
            for dims, view in (
                ((5,), _nothing(offset, (step,))),
                ((600,), _nothing(offset, (0,))),
                ((3, 7), _nothing(offset, (step, 0))),
                ((3, 700), _nothing(offset, (step, 1))),
                ((2, 3, 5), _nothing(offset, (1, step, 0), which=1)),
            ):
                yield _map(f"map of {dtype.name} {dims} at {offset} by {step}", dtype, dims, view)
        yield from _partial(dtype)
    yield from _reductions()
    yield from _moves()
    yield from _dots()
    yield from _single_rows()
    yield from _empty_sources()
    yield from huge_tables()


def _nothing(offset: int, strides: tuple[int, ...], which: int = 0, fill: int = 0) -> View:
    """A view that reads the fill everywhere: dimension `which` has no index inside."""
    hi = tuple(0 if d == which else 1 for d in range(len(strides)))
    return View(offset, strides, (0,) * len(strides), hi, fill)


def _single(dim: int, at: int, step: int, dims: tuple[int, ...], strides: tuple[int, ...]) -> View:
    """A view of which one index of a dimension is inside; its stride is any, the offset makes up for it."""
    lo = tuple(at if d == dim else 0 for d in range(len(dims)))
    hi = tuple(at + 1 if d == dim else n for d, n in enumerate(dims))
    return View(-at * step, tuple(step if d == dim else s for d, s in enumerate(strides)), lo, hi, 0)


def _partial(dtype: DType) -> Iterator[Hostile]:
    """Rows outside the bounds lie at addresses of their own, far from the source."""
    for inner in (1, 5, 20, 700):
        for step in (1 << 40, -(1 << 40), 1 << 61):
            dims = (3, inner)
            for strides in ((0, 0), (0, 1)):
                view = _single(0, 0, step, dims, strides)
                yield _map(f"rows of {dtype.name} {dims} {step} apart, {strides[1]}", dtype, dims, view)
            if abs(step) < 1 << 60:
                view = _single(0, 2, step, dims, (0, 1))
                yield _map(f"last row of {dtype.name} {dims} {step} apart", dtype, dims, view)
    for lo, hi in ((0, 0), (3, 3), (0, 2), (4, 5), (5, 5)):
        yield _map(f"{dtype.name} [{lo}, {hi}) of 5", dtype, (2, 5), View(0, (1, 0), (0, lo), (2, hi), 0))


def _program(inputs: list[TensorSpec], nodes: list[Node]) -> Program:
    """Inputs, nodes, and an output per node."""
    slots = [Input(s, 0, k) for k, s in enumerate(inputs)]
    first = len(slots)
    ends = [Output(n.spec, 0, k, first + k) for k, n in enumerate(nodes)]
    return Program((*slots, *nodes, *ends), (len(slots),), (len(ends),))


def _state(specs: list[TensorSpec]) -> tuple[tuple[bytes, ...], ...]:
    """Values that tell elements apart: 1, 2, 3 ..., bools 1."""
    return (tuple(_values(s) for s in specs),)


def _values(spec: TensorSpec) -> bytes:
    form = {F32: "f", I32: "i", I64: "q", BOOL: "B", U8: "B", U16: "H"}[spec.dtype]
    return struct.pack(f"<{spec.numel}{form}", *(1 if spec.dtype is BOOL else 1 + k % 100 for k in range(spec.numel)))


def _hostile(name: str, inputs: list[TensorSpec], nodes: list[Node]) -> Hostile:
    return Hostile(name, _program(inputs, nodes), _state(inputs))


def _map(name: str, dtype: DType, dims: tuple[int, ...], view: View, count: int = 4000) -> Hostile:
    """One map that reads its operand through the view; as little code as its type can have."""
    s = ScalarBuilder([dtype])
    x = s.operand(0)
    op = {F32: Op.F32_NEG, I64: Op.I64_TO_F32, BOOL: Op.BOOL_TO_I32}.get(dtype, Op.I32_NOT)
    code = s.build(s.apply(op, x))
    source = TensorSpec(dtype, (count,))
    node = Map(TensorSpec(code.result_type, dims), (Operand(0, view),), code.encode())
    return _hostile(name, [source], [node])


def _reductions() -> Iterator[Hostile]:
    source, e = TensorSpec(F32, (4000,)), TensorSpec(I32, (9,))
    views = [
        ("nothing", _nothing(offset, (step, other), which, ONE))
        for offset, step, other, which in (
            (FAR[0], 0, 0, 0),
            (FAR[1], 1 << 61, 1, 1),
            (FAR[2], -1, 0, 1),
            (FAR[3], 1, 1, 0),
        )
    ]
    views += [("a row", _single(0, 0, 1 << 61, (9, 20), (0, 1))), ("a column", _single(1, 0, 1 << 61, (9, 20), (1, 0)))]
    for name, view in views:
        for dims, red in (((9,), (20,)), ((20,), (100,)), ((9,), (700,))):
            over = (*dims, *red)
            if view.hi[0] > 1 or view.hi[1] > 1:
                view = View(
                    view.offset,
                    view.strides,
                    view.lo,
                    tuple(min(h, 1) if h < 9 else n for h, n in zip(view.hi, over, strict=True)),
                    view.fill,
                )
            x = Operand(0, view)
            far = Operand(1, _nothing(FAR[0], (0,), 0, 3))
            nodes: list[Node] = [
                RowExp(TensorSpec(I32, dims), red, x),
                Max(TensorSpec(F32, dims), red, x),
                Sum(TensorSpec(F32, dims), red, x, far),
                Sum(TensorSpec(F32, dims), red, x, Operand(1, View(0, (0,), (0,), dims, 0))),
                Max(TensorSpec(I32, dims), red, Operand(1, _nothing(FAR[1], (0, 1 << 61), 0, 7))),
            ]
            yield _hostile(f"reductions of {name}: {view} over {over}", [source, e], nodes)


def _moves() -> Iterator[Hostile]:
    """Gathers and scattered sums whose indices are all outside, or whose table has no entries."""
    table, index = TensorSpec(F32, (6, 5)), TensorSpec(I32, (8,))
    whole = View(0, (1, 0), (0, 0), (8, 5), 0)
    for offset in (1 << 20, -(1 << 31)):
        far = struct.pack("<8i", *(offset + k for k in range(8)))
        nodes: list[Node] = [
            Gather(
                TensorSpec(F32, (8, 5)), 6, Operand(0, View(0, (5, 0, 1), (0, 0, 0), (6, 8, 5), 0)), Operand(1, whole)
            ),
            ScatterSum(
                TensorSpec(F32, (6, 5)),
                (8,),
                Operand(0, View(0, (0, 1, 0), (0, 0, 0), (6, 5, 8), 0)),
                Operand(1, View(0, (0, 0, 1), (0, 0, 0), (6, 5, 8), 0)),
                Operand(1, View(0, (0, 1), (0, 0), (6, 5), 0)),
            ),
        ]
        program = _program([table, index], nodes)
        yield Hostile(f"indices from {offset}", program, ((_values(table), far),))
    for offset, step in zip(FAR, STEPS, strict=False):
        empty = Operand(0, View(offset, (step, 0, 1), (0, 0, 0), (0, 8, 5), 0))
        nowhere = Operand(1, View(offset, (step, 0), (0, 0), (0, 5), 0))
        missing = Operand(0, View(offset, (step, 0, 1), (0, 0, 0), (6, 0, 5), 0))
        nodes = [
            Gather(TensorSpec(F32, (8, 5)), 0, empty, Operand(1, whole)),
            Gather(TensorSpec(F32, (8, 5)), 6, missing, Operand(1, whole)),
            Gather(TensorSpec(F32, (8, 5)), 6, missing, nowhere),
            ScatterSum(
                TensorSpec(F32, (6, 5)),
                (8,),
                Operand(0, View(offset, (0, step, 0), (0, 0, 0), (6, 0, 8), 0)),
                Operand(1, View(offset, (0, 0, step), (0, 0, 0), (6, 5, 0), 2)),
                Operand(1, View(offset, (step, 0), (0, 0), (0, 5), 0)),
            ),
        ]
        yield _hostile(f"moves at {offset} by {step}", [table, index], nodes)


def _dots() -> Iterator[Hostile]:
    """Products that read the fill, with exponents that do, too."""
    a, e = TensorSpec(F32, (6, 40)), TensorSpec(I32, (7,))
    dims, red, over = (6, 7), (40,), (6, 7, 40)
    inside = Operand(0, View(0, (40, 0, 1), (0, 0, 0), over, 0))
    for offset, step in zip((*FAR, *FAR), STEPS, strict=False):
        for which in range(3):
            hi = tuple(0 if d == which else n for d, n in enumerate(over))
            rows = Operand(0, View(offset, (step, 0, 1), (0, 0, 0), hi if which != 1 else (6, 7, 0), ONE))
            columns = Operand(0, View(offset, (0, step, 1), (0, 0, 0), hi if which != 0 else (6, 7, 0), ONE))
            wide = Operand(1, View(0, (1, 0), (0, 0), dims, 0)), Operand(1, View(0, (0, 1), (0, 0), dims, 0))
            far = (
                Operand(1, View(offset, (step, 0), (0, 0), (0, 7), 3)),
                Operand(1, View(offset, (0, step), (0, 0), (6, 0), 3)),
            )
            nodes: list[Node] = [
                Dot(TensorSpec(F32, dims), red, p, p, x, y, *exponents)
                for p in (8, 14, 22)
                for x, y in ((rows, columns), (inside, columns))
                for exponents in (wide, far)
            ]
            yield _hostile(f"dots at {offset} by {step}, dimension {which}", [a, e], nodes)


def _single_rows() -> Iterator[Hostile]:
    """Products of which one row, column or term is inside, in a block of its own: its stride may be any."""
    x, e = TensorSpec(F32, (17 * 33,)), TensorSpec(I32, (17,))
    dims, red, over = (17, 17), (33,), (17, 17, 33)
    exponents = Operand(1, View(0, (1, 0), (0, 0), dims, 0)), Operand(1, View(0, (0, 1), (0, 0), dims, 0))
    for d, inner in ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)):
        for step in (1 << 40, -(1 << 40), 1 << 57, -(1 << 57)):
            operands = []
            for own in (0, 1):
                strides = [33 if i == own else 1 if i == 2 else 0 for i in range(3)]
                if inner:
                    strides = [1 if i == own else 17 if i == 2 else 0 for i in range(3)]
                lo, hi, offset = [0, 0, 0], list(over), 0
                if d in (own, 2):
                    lo[d], offset, strides[d] = over[d] - 1, -step * (over[d] - 1), step
                operands.append(Operand(0, View(offset, tuple(strides), tuple(lo), tuple(hi), ONE)))
            nodes: list[Node] = [Dot(TensorSpec(F32, dims), red, p, p, *operands, *exponents) for p in (8, 14, 22)]
            yield _hostile(f"products of one index of dimension {d}, {step} apart, {inner}", [x, e], nodes)


def huge_tables() -> Iterator[Hostile]:
    """Gathers from tables of more entries than an index or 63 bits can count; all but the first six read the fill."""
    table, index = TensorSpec(F32, (6, 5)), TensorSpec(I32, (8,))
    at = struct.pack("<8i", 0, 5, 6, -1, (1 << 31) - 1, -(1 << 31), 1 << 30, 3)
    for size in ((1 << 31) - 1, 1 << 31, (1 << 31) + 1, (1 << 63) - 1, 1 << 63, (1 << 63) + 6, (1 << 64) - 1):
        rows = Operand(0, View(0, (5, 0, 1), (0, 0, 0), (6, 8, 5), ONE))
        node = Gather(TensorSpec(F32, (8, 5)), size, rows, Operand(1, View(0, (1, 0), (0, 0), (8, 5), 0)))
        yield Hostile(f"table of {size}", _program([table, index], [node]), ((_values(table), at),))
        one = Operand(0, View(7, (0, 0, 0), (0, 0, 0), (min(size, (1 << 63) - 1), 8, 5), ONE))
        node = Gather(TensorSpec(F32, (8, 5)), size, one, Operand(1, View(0, (1, 0), (0, 0), (8, 5), 0)))
        yield Hostile(f"table of {size} times one element", _program([table, index], [node]), ((_values(table), at),))


def _empty_sources() -> Iterator[Hostile]:
    """Tensors without elements, read where every index reads the fill; their dims may be large beside the zero."""
    for dims in ((0,), (0, 1 << 20), (1 << 20, 0), (0, 1 << 40), (3, 0, 7)):
        for offset in (0, FAR[0], FAR[4]):
            source, e = TensorSpec(F32, dims), TensorSpec(I32, (0,))
            x = Operand(0, _nothing(offset, (0, 0), 1, ONE))
            y = Operand(1, _nothing(offset, (0,), 0, 3))
            s = ScalarBuilder([F32])
            code = s.build(s.neg(s.operand(0)))
            nodes: list[Node] = [
                Map(TensorSpec(F32, (5, 30)), (x,), code.encode()),
                Map(
                    TensorSpec(F32, dims),
                    (Operand(0, View(0, contiguous_strides(dims), (0,) * len(dims), dims, 0)),),
                    code.encode(),
                ),
                RowExp(TensorSpec(I32, (5,)), (30,), x),
                Sum(TensorSpec(F32, (5,)), (30,), x, y),
                Sum(TensorSpec(F32, (5,)), (0,), Operand(0, _nothing(offset, (0, 0), 1)), y),
                Gather(
                    TensorSpec(F32, (5,)), 0, Operand(0, _nothing(offset, (1, 0))), Operand(1, _nothing(offset, (0,)))
                ),
            ]
            yield _hostile(f"nothing in {dims} at {offset}", [source, e], nodes)


def differing(instruction_sets: list[str], every: int = 1) -> list[str]:
    """The programs, each or every so many, that give other bits than stock torch.

    Which one is run is said on standard error.
    """
    from assay.engine.runtime.executor import Executor, KernelVariant
    from assay.engine.runtime.values.dtypes import to_bytes
    from assay.protocol.program.wellformed import violations
    from tests.harness.engine.fused_instruction_sets import at_instruction_set
    from tests.harness.engine.helpers import tensors_of

    found = []
    for case in islice(programs(), 0, None, every):
        assert not violations(case.program), case.name
        inputs = tensors_of(case.program, case.state)
        stock = [to_bytes(t) for part in Executor(case.program, variant=KernelVariant.STOCK).run(inputs) for t in part]
        for instruction_set in instruction_sets:
            sys.stderr.write(f"{instruction_set}: {case.name}\n")
            sys.stderr.flush()
            with at_instruction_set(instruction_set):
                fused = Executor(case.program, variant=KernelVariant.FUSED)
                for hook in (None, lambda _, value: value):
                    ours = [to_bytes(t) for part in fused.run(inputs, hook) for t in part]
                    if ours != stock:
                        wrong = [k for k, (a, b) in enumerate(zip(ours, stock, strict=True)) if a != b]
                        found.append(f"{instruction_set}: {case.name}: outputs {wrong}")
    return found


if __name__ == "__main__":
    for line in differing(sys.argv[1:]):
        print(line)
    print(f"ran {sum(1 for _ in programs()) * len(sys.argv[1:])}")
