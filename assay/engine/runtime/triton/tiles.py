"""Kernels that compute virtual nodes anew, tile by tile, and reduce or multiply the tiles at once (docs/adr/0051).

One kernel per reader: the products of its chain by digits, the maps between them as text, then the reader's own
arithmetic. Every element is the integer, and the rounding, that the program says, so tiles may be cut anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from torch import Tensor

from assay.engine.runtime.products.dot import groups
from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import arena, backend, scalar_text
from assay.engine.runtime.triton.checks import ProductChecks, weigh
from assay.engine.runtime.triton.elementwise import empty, functions, memory, text_of
from assay.engine.runtime.triton.products import ProductMatrix, SideMatrices
from assay.engine.runtime.triton.reading import LOADED, NARROW, STORED, Span, is_narrow, load_lines
from assay.engine.runtime.triton.routes import LEAST_TERMS, LEAST_TILE, Route
from assay.engine.runtime.triton.virtual import MOST_TERMS, Admits, TileReader, VirtualNodes
from assay.engine.runtime.values.views import is_inside, sub_view
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Dot, Map, Max, Operand, Random, RowExp, Sum
from assay.protocol.program.program import Program

WARPS = 8

_LEAST_SHARED = 160 << 10
"""Bytes for the loads of two steps of a loop: 127,232 for sm_90 and heads of 64; those of three no H200 has."""

_SUMS = "sum0, sum1, sum2, sum3, sum4"

_CHECK = ("due", "weights", "middle", "left")


def tile() -> int:
    """Rows and columns of a tile; the interpreter takes many at once."""
    return 128 if backend.is_interpreted() else 64


def _stages(*widths: int) -> int:
    """Steps of a loop whose loads are under way, by the widths of what a step loads."""
    return 2 if max(widths) <= 64 and backend.shared_memory() >= _LEAST_SHARED else 1


def _width(size: int, most: int, least: int = LEAST_TILE) -> int:
    """A power of two that tensor cores take."""
    return min(max(1 << max(size - 1, 0).bit_length(), least), most)


class VirtualKernels:
    """The kernels of a program's readers of virtual nodes."""

    def __init__(
        self, program: Program, virtual: VirtualNodes, admits: Admits, checks: ProductChecks | None = None
    ) -> None:
        """admits: as the virtual nodes were found with. checks: by what products are checked."""
        self.program, self.virtual, self.admits, self.checks = program, virtual, admits, checks
        self.readers_of: dict[int, list[int]] = {}
        for k, reader in sorted(virtual.readers.items()):
            for v in virtual.chain(program, reader.source):
                self.readers_of.setdefault(v, []).append(k)

    def of(self, k: int) -> Kernel:
        """The kernel of reader k."""
        node, reader = self.program.nodes[k], self.virtual.readers[k]
        if isinstance(node, Dot):
            return _product(self, k, node, reader)
        if isinstance(node, RowExp | Max | Sum):
            return _reduction(self, k, node, reader)
        raise InvariantError(f"Node {k} of family {node.family.name} reads no tiles.")

    def route(self, node: Dot, *, is_turned: bool = False) -> Route:
        """How a product is multiplied. is_turned: its side B is taken for A."""
        pa, pb = node.precision_a, node.precision_b
        found = self.admits(pb, pa) if is_turned else self.admits(pa, pb)
        if found is None:
            raise InvariantError(f"A product of {pa} by {pb} bits has lost its route.")
        return found


class _TileText:
    """The text of a kernel that makes tiles: lines that leave an element of `source` in `value`, and what they read."""

    def __init__(self, made: VirtualKernels, k: int, source: int) -> None:
        self.made, self.k, self.space = made, k, made.virtual.spaces[source]
        self.names: list[str] = []
        self.given: list[Callable[[list[Tensor]], Any]] = []
        self.plain: list[str] = []
        self.before: list[Callable[[list[Tensor]], None]] = []
        self.tile: list[str] = []
        self._values: dict[int, str] = {}
        self._loaded: dict[tuple[Operand, tuple[int, ...]], str] = {}
        self.narrow, self.widest = self.space.numel < NARROW, 0
        program = made.program
        for i, v in enumerate(made.virtual.chain(program, source)):
            node = program.nodes[v]
            if isinstance(node, Dot):
                self._scores(i, v, node)
            elif isinstance(node, Random):
                self._random(i, node)
            else:
                assert isinstance(node, Map)
                self._map(i, node)
            # What reads it reads what memory would hold: a narrow type has lost its high bits.
            self.tile.append(f"s{i} = {STORED[node.spec.dtype].format(f'({self._result})')}")
            self.tile.append(f"v{i} = {LOADED[node.spec.dtype].format(f's{i}')}")
            self._values[v] = f"v{i}"
        self.value = self._values[source]

    def argument(self, name: str, given: Callable[[list[Tensor]], Any]) -> str:
        """One more argument of the kernel."""
        self.names.append(name)
        self.given.append(given)
        return name

    def node_number(self, name: str, k: int) -> str:
        """A node's number: no kernel of its own is made for it."""
        self.plain.append(name)
        return self.argument(name, lambda _: k)

    def pointer(self, name: str, node: int) -> str:
        """A stored node as an argument."""
        return self.argument(name, lambda values: memory(values[node]))

    def _scores(self, i: int, v: int, node: Dot) -> None:
        sides, found, space = SideMatrices(self.made.program, node), self.made.route(node), self.space
        (a, ea), (b, eb) = sides.side(0), sides.side(1)
        outer, terms = sides.outer, prod(node.red)
        names = [self.argument(f"{name}{i}", m) for name, m in (("a", a), ("b", b), ("ea", ea), ("eb", eb))]
        checks, readers = self.made.checks, self.made.readers_of[v]
        times = [2 * n + 1 for n in range(len(readers))]
        check = "None, None, None, 0"
        if checks is not None:
            check = f"due, weights, left, {self.node_number(f'node{i}', v)}"
            if readers[0] == self.k:
                sizes = (*outer, space.columns, terms), (*outer, space.rows, terms)

                def weighed(values: list[Tensor], checks: ProductChecks = checks) -> None:
                    for (x, e), n, along, p in (
                        ((b, eb), sizes[0], False, node.precision_b),
                        ((a, ea), sizes[1], True, node.precision_a),
                    ):
                        strides, given = (*x.strides, *e.strides[:3]), (x(values), e(values))
                        # Kernels that make the product anew count with weights of their own: no two faults cancel.
                        weigh(checks, v, given, n, strides, precision=p, along=along, times=sum(times) if along else 1)

                self.before.append(weighed)
        numbers = [outer[1], space.rows, space.columns, terms, *a.strides, *b.strides, *ea.strides[:3], *eb.strides[:3]]
        constants = [node.precision_a, node.precision_b, *_digits(found), times[readers.index(self.k)]]
        text = ", ".join(map(str, (*numbers, *constants)))
        self.widest = max(self.widest, block := _width(terms, MOST_TERMS, LEAST_TERMS))
        self.tile.append(f"t{i} = score_tile({', '.join(names)}, {check}, g, m, n, {text}, BM, BN, {block})")
        self._result = f"t{i}"

    def _random(self, i: int, node: Random) -> None:
        for name, source in (("key", node.key), ("step", node.step)):
            pointer = self.pointer(f"{name}{i}", source)
            self.tile += [
                f"{name}{i}_{w} = tl.load({pointer} + {w} + tl.arange(0, 1)).to(tl.uint32, bitcast=True)"
                for w in range(2)
            ]
        stream = (node.stream & 0xFFFFFFFF) - (1 << 32) * (node.stream >> 31 & 1)
        self.tile.append(f"stream{i} = tl.full([1], {stream}, tl.int32).to(tl.uint32, bitcast=True)")
        self._result = f"philox_word(o.to(tl.int64), stream{i}, step{i}_0, step{i}_1, key{i}_0, key{i}_1)"

    def _map(self, i: int, node: Map) -> None:
        program = self.made.program
        registers = [self._values.get(o.node) or self._load(o, node.spec.dims) for o in node.operands]
        self.tile += scalar_text.map_lines(program, node, registers, f"r{i}_")
        self._result = registers[-1]

    def _load(self, x: Operand, dims: tuple[int, ...]) -> str:
        """A stored operand: an element of each row where columns do not count, else of each element of the tile."""
        number, key = len(self._loaded), (x, dims)
        if key not in self._loaded:  # one view over other dims reads other elements
            name, dtype = f"x{number}", self.made.program.specs[x.node].dtype
            pointer = self.pointer(f"p{number}", x.node)
            self.narrow = self.narrow and is_narrow(x.view, dims)
            of_rows = bool(dims) and dims[-1] == self.space.columns and x.view.strides[-1] == 0
            if of_rows and is_inside(sub_view(x.view, [len(dims) - 1]), dims[-1:]):
                view = sub_view(x.view, range(len(dims) - 1))
                self.tile += load_lines(name, pointer, dtype, view, "live_m", Span("row", dims[:-1]))
            else:
                self.tile += load_lines(name, pointer, dtype, x.view, "live", Span("o", dims))
            self._loaded[key] = name
        return self._loaded[key]

    def finish(self, arguments: str, body: Sequence[str]) -> Any:
        """The kernel of these lines, with the arguments that are named so far before its own."""
        checked = "" if self.made.checks is None else "".join(f"{name}, " for name in _CHECK)
        text = text_of("".join(f"{n}, " for n in self.names) + checked + arguments, body)
        return backend.kernel_of(text, "kernel", _functions(), plain=self.plain)

    def arguments(self, values: list[Tensor]) -> list[Any]:
        """What a launch is given for them; what is to be weighed before is weighed."""
        for weighed in self.before:
            weighed(values)
        checks = self.made.checks
        check = [] if checks is None else [getattr(checks, name) for name in _CHECK]
        return [*(f(values) for f in self.given), *check]

    def start(self, own: str, size: str, count: int) -> list[str]:
        """Lines before the tiles: the batch's element, and the numbers of a program's rows or columns, of so many."""
        return [
            f"blocks = tl.cdiv({count}, {size})",
            "g = tl.program_id(0) // blocks",
            f"{own} = tl.program_id(0) % blocks * {size} + tl.arange(0, {size})",
        ]

    def numbers(self) -> list[str]:
        """Lines that number a tile's elements, with m and n at hand."""
        space, wide = self.space, "g" if self.narrow else "g.to(tl.int64)"
        return [
            f"row = ({wide} * {space.rows} + m)[:, None]",
            f"live_m = (m < {space.rows})[:, None]",
            f"o = row * {space.columns} + n[None, :]",
            f"live = live_m & (n < {space.columns})[None, :]",
        ]


def _functions() -> dict[str, Any]:
    from assay.engine.runtime.triton.kernels import product, tile

    found = functions()
    found |= {name: getattr(tile, name) for name in ("score_tile", "side_tile", "multiplied")}
    return found | {name: getattr(product, name) for name in ("nothing", "joined", "rounded_product")}


def _digits(found: Route) -> tuple[int, int, int, int]:
    return found.digits_a, found.digits_b, found.bits, int(found.carrier)


_TERMS = {
    RowExp: ("max", "int32", 0, "bits_of(x) & 0x7FFFFFFF"),
    Sum: ("sum", "int64", 0, "quantized(x, e, 31).to(tl.int64)"),
}
"""How tiles are reduced: by what, in which integers, what nothing is, and the integer of a term."""


def _reduction(made: VirtualKernels, k: int, node: RowExp | Max | Sum, reader: TileReader) -> Kernel:
    """Rows of tiles, or columns, to one integer each, as `reductions` takes terms; then the one rounding."""
    text = _TileText(made, k, reader.source)
    space, dims = text.space, node.spec.dims
    own, other = ("n", "m") if reader.turned else ("m", "n")
    count, terms = (space.columns, space.rows) if reader.turned else (space.rows, space.columns)
    bm, bn = _width(space.rows, tile()), _width(space.columns, tile())
    size, step, axis = ("BN", "BM", 0) if reader.turned else ("BM", "BN", 1)
    is_float = node.spec.dtype.name == "F32"
    how, kind, least, term = (
        ("max", "int32", -(1 << 31), "order_of(x)" if is_float else "x")
        if isinstance(node, Max)
        else _TERMS[type(node)]
    )
    before, after = [], {
        RowExp: "result = exponent_of_bits(total)",
        Max: f"result = {'from_bits(total ^ ((total >> 31) & 0x7FFFFFFF))' if is_float else 'total'}",
        Sum: "result = finished_or_nan(total, e_own, 30)",
    }[type(node)]  # fmt: skip
    if isinstance(node, Sum):
        e = node.exponent
        before = load_lines(
            "e_own", text.pointer("pe", e.node), made.program.specs[e.node].dtype, e.view, "live_own", Span("at", dims)
        )
        before.append(f"e = e_own[{'None, :' if reader.turned else ':, None'}]")
    combine = f"tl.maximum(total, tl.max(term, {axis}))" if how == "max" else f"total + tl.sum(term, {axis})"
    loop = [
        f"{other} = first + tl.arange(0, {step})",
        *text.numbers(),
        *text.tile,
        f"x = {text.value}",
        f"term = tl.where(live, {term}, {least})",
        f"total = {combine}",
    ]
    kernel = text.finish(
        "out, BM: tl.constexpr, BN: tl.constexpr",
        [
            *text.start(own, size, count),
            f"at = g.to(tl.int64) * {count} + {own}",
            f"live_own = {own} < {count}",
            *before,
            f"total = tl.full([{size}], {least}, tl.{kind})",
            f"for first in range(0, {terms}, {step}):",
            *(f"    {line}" for line in loop),
            after,
            "tl.store(out + at, result, mask=live_own)",
        ],
    )
    grid, stages = (-(-count // (bn if reader.turned else bm)) * space.batch,), _stages(text.widest)

    def run(values: list[Tensor]) -> Tensor:
        out = empty(dims, node.spec.dtype)
        backend.launch(kernel, grid, *text.arguments(values), memory(out), BM=bm, BN=bn, warps=WARPS, stages=stages)
        return out

    return run


def _product(made: VirtualKernels, k: int, node: Dot, reader: TileReader) -> Kernel:
    """Blocks of the stored side by tiles: it is taken for A, the virtual one for B, whichever they are."""
    program, text = made.program, _TileText(made, k, reader.source)
    space, sides, found = text.space, SideMatrices(program, node), made.route(node, is_turned=not reader.is_b)
    mine, theirs = (1, 0) if reader.is_b else (0, 1)
    e, (y, f) = sides.exponents(mine), sides.side(theirs)
    count, columns, terms = sides.own[mine], sides.own[theirs], prod(node.red)
    precisions = node.precision_a, node.precision_b
    p, py, outer = precisions[mine], precisions[theirs], sides.outer
    names = [text.argument(name, m) for name, m in (("e", e), ("y", y), ("f", f))]
    # A tile's rows or columns are the terms of the product.
    bm, bn, bc = *(_width(n, tile(), LEAST_TERMS) for n in (space.rows, space.columns)), _width(columns, 1 << 30)
    size, step = ("BN", "BM") if reader.turned else ("BM", "BN")
    own, other = ("n", "m") if reader.turned else ("m", "n")
    z0, z1 = f"(g // {outer[1]}).to(tl.int64)", f"(g % {outer[1]}).to(tl.int64)"
    digits = ", ".join(map(str, _digits(found)))
    number = "" if made.checks is None else text.node_number("number", k)
    value = f"tl.where(live, quantized({text.value}, e_own[{'None, :' if reader.turned else ':, None'}], {p}), 0)"
    loop = [
        f"{other} = first + tl.arange(0, {step})",
        *text.numbers(),
        *text.tile,
        # The right factor, which tensor cores read from shared memory: for a left one Triton has every thread make its
        # registers' elements, most of them many times over, and spills thousands.
        f"q = {value if reader.turned else f'tl.trans({value})'}",
        f"w = side_tile({names[1]}, e_column, g, {other}, column, {terms}, {columns}, {outer[1]}, "
        f"{_numbers(y.strides)}, {py})",
        f"{_SUMS} = multiplied({_SUMS}, w, q, {digits})",
    ]
    if number:
        loop += [
            "if is_due:",
            f"    weighed = tl.load(middle + g.to(tl.int64) * {terms} + {other}, mask={other} < {terms}, other=0)",
            "    rest += tl.sum(q.to(tl.int64) * weighed[:, None], 0)",
        ]
    last = [
        f"total = joined({_SUMS}, {_numbers(_digits(found)[:3])})",
        f"result = rounded_product(total, e_column, e_own, {py}, {p})",
    ]
    if number:
        last += [
            "if is_due:",
            f"    weight = tl.load(weights + column, mask=column < {columns}, other=0)",
            "    left_over = tl.sum(total * weight[:, None], 0) - rest",
            f"    to = left + g.to(tl.int64) * {count} + {own}",
            f"    tl.atomic_add(to, left_over, mask={own} < {count}, sem='relaxed')",
        ]
    to = (
        f"(g.to(tl.int64) * {columns} + column)[:, None] * {count} + {own}[None, :]"
        if reader.is_b
        else f"(g.to(tl.int64) * {count} + {own})[None, :] * {columns} + column[:, None]"
    )
    kernel = text.finish(
        "out, BM: tl.constexpr, BN: tl.constexpr, BC: tl.constexpr",
        [
            *text.start(own, size, count),
            "column = tl.arange(0, BC)",
            *_exponent_lines("e_own", names[0], e, z0, z1, own, count),
            *_exponent_lines("e_column", names[2], f, z0, z1, "column", columns),
            *(f"sum{i} = nothing(BC, {size}, {int(found.carrier)})" for i in range(5)),
            *((f"is_due = tl.load(due) == {number}", f"rest = tl.zeros([{size}], tl.int64)") if number else ()),
            f"for first in range(0, {terms}, {step}):",
            *(f"    {line}" for line in loop),
            *last,
            f"tl.store(out + {to}, result, mask=(column < {columns})[:, None] & ({own} < {count})[None, :])",
        ],
    )
    grid = (-(-count // (bn if reader.turned else bm)) * space.batch,)
    parts = groups(node)
    assert parts is not None
    dims, order = node.spec.dims, tuple(d for part in parts for d in part)
    ordered, back = tuple(dims[d] for d in order), tuple(order.index(d) for d in range(len(dims)))
    strides, stages = (*y.strides, *f.strides[:3]), _stages(text.widest, bc)

    def run(values: list[Tensor]) -> Tensor:
        out = empty(ordered, node.spec.dtype)
        if made.checks is not None:
            given = y(values), f(values)
            weigh(made.checks, k, given, (*outer, columns, terms), strides, precision=py, along=False)
        cut = {"BM": bm, "BN": bn, "BC": bc}
        backend.launch(kernel, grid, *text.arguments(values), out, **cut, warps=WARPS, stages=stages)
        return out if back == tuple(range(len(dims))) else arena.contiguous(out.permute(back))

    return run


def _numbers(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _exponent_lines(
    name: str, pointer: str, e: ProductMatrix, z0: str, z1: str, own: str, count: int
) -> list[str]:  # fmt: skip
    """A side's exponents, those of a program's rows."""
    s0, s1, row, _ = e.strides
    return [
        f"{name} = tl.load({pointer} + {z0} * {s0} + {z1} * {s1} + {own}.to(tl.int64) * {row}, "
        f"mask={own} < {count}, other=0)"
    ]
