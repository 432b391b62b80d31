"""Products by digits on tensor cores: a node as matrices, and the launch of its kernel.

Shapes: a batch of at most two dims, M rows of A, N of B, K terms. An operand whose view is no such matrix is copied
through it first. Where many blocks read an operand, its planes of digits are packed before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import torch
from torch import Tensor

from assay.engine.runtime.products.dot import groups
from assay.engine.runtime.stock.reduce import Kernel
from assay.engine.runtime.triton import arena, backend
from assay.engine.runtime.triton.checks import ProductChecks, weigh, weighing
from assay.engine.runtime.triton.elementwise import copy, empty
from assay.engine.runtime.triton.routes import LEAST_TERMS, LEAST_TILE, Carrier, Route
from assay.engine.runtime.triton.triangles import Cut, Gap, Triangles
from assay.engine.runtime.values.views import is_inside, sub_view
from assay.protocol.program.nodes import Dot, Operand
from assay.protocol.program.program import Program
from assay.protocol.program.views import View, contiguous_strides
from assay.protocol.types import DType


@dataclass(frozen=True, slots=True)
class Blocks:
    """How a product is cut: a program's rows, columns, terms of a step; its warps; steps whose loads are under way."""

    rows: int
    columns: int
    terms: int
    warps: int
    stages: int

    @property
    def constants(self) -> dict[str, int]:
        """What the kernel of products is made for."""
        parts = max(1, self.columns // PART)
        return {"BM": self.rows, "BN": self.columns, "BK": self.terms, "PARTS": parts, "GROUP": GROUP}


PART = 32
"""Columns that are rounded at a time: with all of a block's at once, 128 x 128 elements in three places spill."""

GROUP = 8
"""Rows of blocks that are computed together: so many read the same columns while a cache holds them."""

_MOST_STAGES = 4

_TIME = {256: 1.8, 128: 1.0, 64: 0.6}
"""Of a block of so many columns, over that of 128: as read on an H100 for 128 and 64, 256 is a guess."""


def blocks(m: int, n: int, batch: int, terms: int, found: Route, *, packed: bool) -> Blocks:
    """The cut of a product of m by n rows. terms: of K, or as many as accumulators hold if they are fewer.

    Each place of digits has an accumulator: registers hold one of 128 x 256, three of 128 x 128, five of 128 x 64. Wide
    blocks read less: what tensor cores wait for is memory. Where digits are split in the loop, these take registers.
    """
    places = found.digits_a + found.digits_b - 1
    widest = {1: 256, 3: 128} if packed else {1: 128}
    bm, bn = _tile(m, 128), _tile(n, widest.get(places, 64))
    memory, processors = backend.shared_memory(), backend.processors()

    def waves(width: int) -> float:
        count = -(-m // bm) * -(-n // width) * batch
        return -(-count // processors) * _TIME[width]

    bn = min((width for width in _TIME if width <= max(bn, 64)), key=waves) if bn > 64 else bn
    digits = found.digits_a * bm + found.digits_b * bn
    for most in (128, 64, 32):
        step = block_terms(terms, most if packed else min(most, 64))
        each = step * (found.carrier.bytes * digits if packed else 4 * (bm + bn))
        room = memory - (0 if packed else step * found.carrier.bytes * digits)
        if room >= (3 if most > 64 else 2) * each:
            break
    return Blocks(bm, bn, step, 8 if bm * bn > 1 << 12 else 4, max(1, min(_MOST_STAGES, room // each)))


def block_terms(terms: int, most: int) -> int:
    """Terms that one step of the loop multiplies; the interpreter takes many at once."""
    return min(max(1 << max(terms - 1, 0).bit_length(), LEAST_TERMS), 1 << 12 if backend.is_interpreted() else most)


ProductParts = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""A product's dims of both operands, of A alone, of B alone."""

_Strides = tuple[int, int, int, int]
"""Of the batch's two dims, the own rows, the terms."""

MOST_SPLITS = 2
"""How often the loop of products may split an element of an operand, on average; above, planes are packed first.
Counted, not measured: a split takes 12 integer operations, a packing moves 10 bytes and starts a kernel; where a second
has 15 T operations and moves 4.8 TB, packing costs what two to three splits do."""


def by_digits(
    program: Program,
    node: Dot,
    found: Route,
    parts: Sequence[tuple[int, ...]],
    *,
    packed: bool | None = None,
    cut: Blocks | None = None,
    check: tuple[ProductChecks, int] | None = None,
    is_turned: bool = False,
    above: tuple[Triangles, int] | None = None,
) -> Kernel:
    """The node's kernel by a route. parts: its dims of both operands, of A alone, of B alone.

    packed, cut: whether planes are packed first, and how the product is cut, if it is not for the shape to say.
    check: by what the product is checked, and its number in the program. is_turned: A and B have changed places
    (`turned`), and the product is stored as if they had not. above: what is known above diagonals, and the product's
    number, where nothing but the program's own values is read.
    """
    from assay.engine.runtime.triton.kernels.product import product

    batch, rows, columns = parts
    dims = node.spec.dims
    z0, z1 = batch_dims(batch)
    count = tuple(prod(dims[d] for d in which) for which in (z0, z1, rows, columns))
    a = _ProductSide(program, node, node.a, node.exponent_a, (z0, z1, rows))
    b = _ProductSide(program, node, node.b, node.exponent_b, (z0, z1, columns))
    # A product comes out in the order batch, rows, columns; the node's dims may have another.
    order = (*z0, *z1, *columns, *rows) if is_turned else (*z0, *z1, *rows, *columns)
    ordered, back = tuple(dims[d] for d in order), tuple(order.index(d) for d in range(len(dims)))
    outer, m, n, terms = count[:2], count[2], count[3], prod(node.red)
    left_out = _left_out(above, node, parts, (a.x, m), (b.x, n), is_turned=is_turned)
    is_packed = splits(m, n, found) > MOST_SPLITS if packed is None else packed
    steps = (1, m) if is_turned else (n, 1)
    batches = count[0] * count[1]
    held = min(terms, found.terms // 2)
    cut = cut or blocks(m, n, batches, held, found, packed=is_packed)
    step = cut.terms
    chunk = 0 if terms <= found.terms else found.terms // step * step
    grid = (-(-m // cut.rows) * -(-n // cut.columns) * batches,)
    if is_packed:
        a_planes = Planes(a, (*outer, m, terms), step, found, node.precision_a, found.digits_a)
        b_planes = Planes(b, (*outer, n, terms), step, found, node.precision_b, found.digits_b)
        strides, ahead = (*a_planes.strides, *b_planes.strides), (a_planes.ahead, b_planes.ahead)
        width = a_planes.width
    else:
        strides, ahead, width = (*a.x.strides, *b.x.strides), (0, 0), terms

    def run(values: list[Tensor]) -> Tensor:
        out = empty(ordered, DType.F32)
        xa, xb, ea, eb = (side(values) for side in (a.x, b.x, a.e, b.e))
        if is_packed:
            # B first: what is left of A's rows is weighed by what is weighed of B's.
            xb = b_planes(xb, eb, check, along=False)
            xa = a_planes(xa, ea, check, along=True)
        elif check is not None:
            weigh(*check, (xb, eb), (*outer, n, terms), b.strides, precision=node.precision_b, along=False)
            weigh(*check, (xa, ea), (*outer, m, terms), a.strides, precision=node.precision_a, along=True)
        backend.launch(
            product, grid, xa, xb, ea, eb, out, *_checked(check), count[1], m, n, width, *ahead, *steps,
            *strides, *a.e.strides[:3], *b.e.strides[:3],
            PA=node.precision_a, PB=node.precision_b, PACKED=is_packed, CHUNK=chunk,
            NARROW=terms <= found.narrow_terms(node.precision_a, node.precision_b),
            warps=cut.warps, stages=cut.stages, **left_out, **cut.constants, **found.constants,
        )  # fmt: skip
        return out if back == tuple(range(len(dims))) else arena.contiguous(out.permute(back))

    return run


def _left_out(
    above: tuple[Triangles, int] | None, node: Dot, parts: Sequence[tuple[int, ...]],
    a: tuple[ProductMatrix, int], b: tuple[ProductMatrix, int], *, is_turned: bool,
) -> dict[str, int | bool]:  # fmt: skip
    """What the kernel need not compute. a, b: either side's matrix and how many rows it has."""
    gap, cuts = Gap.NONE, [Cut.NONE, Cut.NONE]
    if above is not None:
        triangles, k = above
        last = len(node.spec.dims) - 1
        if tuple(parts[1:]) == (((last,), (last - 1,)) if is_turned else ((last - 1,), (last,))):
            gap = triangles.gap(k)
        cuts = [side.cut(triangles, rows, prod(node.red)) for side, rows in (a, b)]
    # One of both is enough: whatever is left out is zero.
    return {"GAP": int(gap), "TURNED": is_turned, "CUT_A": int(cuts[0]), "CUT_B": 0 if cuts[0] else int(cuts[1])}


def batch_dims(batch: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The dims of both operands as the two of a kernel's batch: more than two are counted together."""
    return (tuple(batch[:1]), tuple(batch[1:])) if len(batch) == 2 else ((), tuple(batch))


def _checked(check: tuple[ProductChecks, int] | None) -> tuple[Tensor | None, Tensor | None, Tensor | None, int]:
    """What the kernel is given to check its product with."""
    if check is None:
        return None, None, None, 0
    checks, node = check
    return checks.due, checks.weights, checks.left, node


def splits(m: int, n: int, found: Route) -> float:
    """How often a product of m by n rows reads an element of its operands, on average."""
    bm, bn = _tile(m, 128), _tile(n, 128 if found.digits_a * found.digits_b == 1 else 64)
    return (m * -(-n // bn) + n * -(-m // bm)) / (m + n)


def turned(node: Dot, parts: ProductParts) -> tuple[Dot, ProductParts]:
    """The product with A and B in each other's place, and its dims so."""
    batch, rows, columns = parts
    other = replace(
        node,
        a=node.b,
        b=node.a,
        exponent_a=node.exponent_b,
        exponent_b=node.exponent_a,
        precision_a=node.precision_b,
        precision_b=node.precision_a,
    )
    return other, (batch, columns, rows)


def is_better_turned(node: Dot, parts: ProductParts, found: Route) -> bool:
    """Whether a product that splits its operands as it goes splits fewer elements with A and B in turned places."""
    m, n = (prod(node.spec.dims[d] for d in part) for part in parts[1:])
    return splits(n, m, found) < splits(m, n, found) <= MOST_SPLITS


class _ProductSide:
    """An operand and its exponents, each as a matrix."""

    def __init__(self, program: Program, node: Dot, x: Operand, e: Operand, parts: Sequence[tuple[int, ...]]) -> None:
        self.x = ProductMatrix(program, node, x, parts)
        self.e = ProductMatrix(program, node, e, parts, own=True)
        self.strides = (*self.x.strides, *self.e.strides[:3])


_PLANE_TYPES = {Carrier.I8: torch.int8, Carrier.F16: torch.float16, Carrier.BF16: torch.bfloat16}


class Planes:
    """The planes of one side's digits, packed with terms innermost: [planes, batch, rows, width], i8 or f16 or bf16."""

    def __init__(
        self, side: _ProductSide, sizes: tuple[int, ...], step: int, route: Route, precision: int, digits: int
    ) -> None:
        """sizes: of the batch's two dims, the rows, the terms; width is a multiple of step."""
        self._sizes, self._side, self._route = sizes, side, route
        z0, z1, rows, terms = sizes
        self.width = -(-terms // step) * step
        self._shape = digits, z0 * z1, rows, self.width
        self._constants = {"P": precision, "COUNT": digits, **route.digits}
        self._block = _tile(rows, 64), min(step, 64) if not backend.is_interpreted() else step
        self.strides: _Strides = (z1 * rows * self.width, rows * self.width, self.width, 1)
        self.ahead = z0 * z1 * rows * self.width

    def __call__(self, x: Tensor, e: Tensor, check: tuple[ProductChecks, int] | None, *, along: bool) -> Tensor:
        """The planes of a run's operand and exponents, as `ProductMatrix` gives them, weighed when the check is due."""
        from assay.engine.runtime.triton.kernels.product import pack

        out = arena.take(self._shape, _PLANE_TYPES[self._route.carrier])
        (br, bk), (z0, z1, rows, terms) = self._block, self._sizes
        grid = (-(-rows // br) * -(-self.width // bk) * z0 * z1,)
        backend.launch(
            pack, grid, x, e, out, *weighing(check, along=along), z1, rows, terms, self.width, *self._side.strides,
            ALONG=along, BR=br, BK=bk, **self._constants,
        )  # fmt: skip
        return out


def _tile(size: int, most: int) -> int:
    """Rows or columns of a block."""
    return min(max(1 << max(size - 1, 0).bit_length(), LEAST_TILE), most)


class ProductMatrix:
    """An operand as a matrix: the pointer's tensor at a run, and its strides over batch, own rows, terms."""

    def __init__(
        self, program: Program, node: Dot, x: Operand, parts: Sequence[tuple[int, ...]], *, own: bool = False
    ) -> None:
        dims, spec = node.spec.dims, program.specs[x.node]
        red = () if own else tuple(range(len(dims), len(dims) + len(node.red)))
        sizes = (*dims, *node.red)
        kept = [d for part in (*parts, red) for d in part]
        view, over = sub_view(x.view, kept), tuple(sizes[d] for d in kept)
        self._node = x.node
        strides = [_stride(x.view, part, sizes) for part in (*parts, red)]
        self._copy, self._offset = None, view.offset
        if not is_inside(view, over) or None in strides or spec.dtype.is_storage:
            # Copied through the view, its elements lie in a row.
            whole = dict(zip(kept, contiguous_strides(over), strict=True))
            self._copy, self._offset = copy(spec.dtype, view, over), 0
            strides = [whole[part[-1]] if part else 0 for part in (*parts, red)]
        z0, z1, rows, terms = (s or 0 for s in strides)
        self.strides: _Strides = (z0, z1, rows, terms)

    def cut(self, triangles: Triangles, rows: int, terms: int) -> Cut:
        """Which terms of its rows are nothing."""
        return Cut.NONE if self._copy else triangles.cut(self._node, self._offset, self.strides, rows, terms)

    def __call__(self, values: list[Tensor]) -> Tensor:
        """The tensor whose first element is the operand's."""
        source = values[self._node]
        return self._copy(source) if self._copy is not None else source.reshape(-1)[self._offset :]


def _stride(view: View, part: Sequence[int], sizes: Sequence[int]) -> int | None:
    """The one stride by which dims that are counted together move; None where there is none."""
    stride: int | None = 0
    span = 1
    for d in reversed(part):
        if sizes[d] == 1:
            continue
        if span == 1:
            stride = view.strides[d]
        elif stride is None or view.strides[d] != stride * span:
            return None
        span *= sizes[d]
    return stride


class SideMatrices:
    """The operands of a product as matrices: x and its exponents of either side; `sizes` of the batch's two dims."""

    def __init__(self, program: Program, node: Dot) -> None:
        parts = groups(node)
        assert parts is not None  # what is no matrix is not virtual, and reads none
        batch, rows, columns = parts
        z0, z1 = batch_dims(batch)
        dims = node.spec.dims
        self.outer = prod(dims[d] for d in z0), prod(dims[d] for d in z1)
        self.own = prod(dims[d] for d in rows), prod(dims[d] for d in columns)
        self._made = program, node, (z0, z1)
        self._parts = rows, columns

    def side(self, which: int) -> tuple[ProductMatrix, ProductMatrix]:
        """The operand and its exponents: 0 for A, 1 for B."""
        program, node, batch = self._made
        x, e = ((node.a, node.exponent_a), (node.b, node.exponent_b))[which]
        parts = (*batch, self._parts[which])
        return ProductMatrix(program, node, x, parts), ProductMatrix(program, node, e, parts, own=True)

    def exponents(self, which: int) -> ProductMatrix:
        """Those of a side that is not stored."""
        program, node, batch = self._made
        e = (node.exponent_a, node.exponent_b)[which]
        return ProductMatrix(program, node, e, (*batch, self._parts[which]), own=True)
