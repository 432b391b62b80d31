"""Matrix products: exact dots with one exponent per row of either operand."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import torch

from assay.engine.compiler.ir.strided import Axes, Strided, common_axes, contiguous, merge_axes
from assay.engine.compiler.ir.value import Axis, Value, ValueRead, full_axis
from assay.engine.compiler.ir.values import MAX_RANK, Fill, Tensorlike
from assay.engine.compiler.lowering import outliers
from assay.engine.compiler.lowering.reductions import reduce
from assay.engine.compiler.lowering.registry import Context, Product, Treatment, Unsupported, lowers
from assay.protocol.types import DType

aten = torch.ops.aten

_MAX_BITS = 62


def contract(ctx: Context, a: Tensorlike, b: Tensorlike, *, bits_b: int | None = None, plain: bool = False) -> Strided:
    """a [..., M, K] times b [..., K, N] with the same leading dimensions, to [..., M, N]; zeros where K is 0.

    Where a is a softmax output and K its axis, the sum runs over time or over slots of memory: there one exponent per
    column of b would let later tokens change what earlier ones get. So each row of b is normalized by its own exponent,
    which is folded into a, and the products have the exponent 0 on b's side.

    bits_b: precision of b where it is not b's own. plain: never fold.
    """
    left, right = ctx.strided(a), ctx.strided(b)
    if left.shape[-1] == 0:
        return _zeros(ctx, left, right)
    if not plain and _sums_over_softmax(left):
        return _contract_folded(ctx, left, right)
    if not plain and _sums_over_softmax(_transposed(right)):
        return _transposed(_contract_folded(ctx, _transposed(right), _transposed(left)))
    left, right = _aligned(ctx, left, right)
    return _dot(ctx, left, right, ctx.bits_of(left), ctx.bits_of(right) if bits_b is None else bits_b, plain=plain)


def product(ctx: Context, a: Tensorlike, b: Tensorlike) -> Strided:
    """As `contract`, [..., M, K] by [..., K, N], never folded: for sums over space and channels."""
    left, right = ctx.strided(a), ctx.strided(b)
    if left.shape[-1] == 0:
        return _zeros(ctx, left, right)
    left, right = _aligned(ctx, left, right)
    return _dot(ctx, left, right, ctx.bits_of(left), ctx.bits_of(right), plain=False)


def _zeros(ctx: Context, a: Strided, b: Strided) -> Strided:
    """The product [..., M, N] over nothing. No node says it: a row without elements has no exponent (WF-18)."""
    return ctx.strided(Fill(DType.F32, (*a.shape[:-1], b.shape[-1]), 0))


def _contract_folded(ctx: Context, p: Strided, v: Strided) -> Strided:
    """Softmax weights p [..., M, K] times v [..., K, N], exponents per row of v folded into p."""
    rank = len(v.groups)
    exponents = reduce(ctx, "rowexp", v, (rank - 1,), keepdim=True)
    folded = ctx.apply("fold_exponent", p, _transposed(exponents), dtype=DType.F32)
    normal = ctx.apply("remove_exponent", v, exponents, dtype=DType.F32)
    return contract(ctx, folded, normal, bits_b=ctx.bits_of(v), plain=True)


def _dot(ctx: Context, a: Strided, b: Strided, bits_a: int, bits_b: int, *, plain: bool) -> Strided:
    """The product [..., M, N] of aligned operands as calibration wants it.

    plain: b is normalized and its exponent 0.
    """
    if a.dtype is not DType.F32:
        raise Unsupported(f"a product of {a.dtype.name} (convert to float32 first)")
    number = len(ctx.products)
    wanted = ctx.treatments.get(number, Treatment())
    sizes = tuple(x.size for x in a.groups[-1])
    cuttable = () if plain or wanted.columns else outliers.cuttable_axes(a, b)
    sensitive = a.value.sensitive or b.value.sensitive
    small: Strided | None = None
    if wanted.columns:
        a, b, thin_a, thin_b = outliers.divided(ctx, a, b, wanted)
        (a, b), (thin_a, thin_b) = _aligned(ctx, a, b), _aligned(ctx, thin_a, thin_b)
        small = _node(ctx, thin_a, thin_b, outliers.BITS, outliers.BITS, plain=False)
    bits = _within_room(a, (bits_a, bits_b), (wanted.bits_a, wanted.bits_b))
    made = _node(ctx, a, b, *bits, plain=plain)
    ctx.products.append((made.value, Product(number, sizes, cuttable, sensitive)))
    return made if small is None else ctx.strided(ctx.apply("add", made, small))


def _within_room(a: Strided, tier: tuple[int, int], wanted: tuple[int, int]) -> tuple[int, int]:
    """Bits of both operands: as wanted above the tier's, where so long a sum has room for them."""
    terms = prod(x.size for x in a.groups[-1])
    bits_a, bits_b = (max(pair) for pair in zip(tier, wanted, strict=True))
    room = _MAX_BITS + 2 - max(terms - 1, 0).bit_length() - bits_a - bits_b
    if room < 0:
        # Bits that calibration added are given back first: what an operand then loses stays in the report.
        back = min(-room, bits_a - tier[0])
        bits_a, room = bits_a - back, room + back
        back = min(-room, bits_b - tier[1])
        bits_b, room = bits_b - back, room + back
    if room < 0:
        raise Unsupported(
            f"a product over {terms} terms at {bits_a} and {bits_b} bits, of which 62 are exact "
            "(divide the batch into micro-batches, or take a lower tier)"
        )
    return bits_a, bits_b


def _node(ctx: Context, a: Strided, b: Strided, bits_a: int, bits_b: int, *, plain: bool) -> Strided:
    """The dot node of aligned operands: out [*batch, *rows, *columns], red the axes of K.

    Exponents of a are per batch and row, those of b per batch and column.
    """
    batch = tuple(axis for group in a.groups[:-2] for axis in group)
    batch_b = tuple(axis for group in b.groups[:-2] for axis in group)
    rows, columns = a.groups[-2], b.groups[-1]
    inner_a, inner_b = a.groups[-1], b.groups[-2]
    still_rows, still_columns = _still(rows), _still(columns)
    dims = tuple(x.size for x in (*batch, *rows, *columns))
    red = tuple(x.size for x in inner_a)
    read_a = ValueRead(a.value, (*batch, *rows, *still_columns, *inner_a), a.offset, a.fill)
    read_b = ValueRead(b.value, (*batch_b, *still_rows, *columns, *inner_b), b.offset, b.fill)
    exponents_a = _row_exponents(ctx, a, (*batch, *rows), inner_a)
    own_a = contiguous(exponents_a.dims)
    read_ea = ValueRead(exponents_a, (*own_a, *still_columns))
    if plain:
        zero = ctx.values.const(DType.I32, (), bytes(4)).value
        read_eb = ValueRead(zero, _still((*batch, *rows, *columns)))
    else:
        exponents_b = _row_exponents(ctx, b, (*batch_b, *columns), inner_b)
        own_b = contiguous(exponents_b.dims)
        cut = len(batch)
        read_eb = ValueRead(exponents_b, (*own_b[:cut], *still_rows, *own_b[cut:]))
    value = ctx.values.add("dot", DType.F32, dims, red, (read_a, read_b, read_ea, read_eb), (bits_a, bits_b))
    axes = iter(contiguous(dims))
    groups = [tuple(next(axes) for _ in g) for g in (*a.groups[:-2], rows, columns)]
    return Strided(value, tuple(groups))


def _row_exponents(ctx: Context, x: Strided, out: Axes, red: Axes) -> Value:
    """The rowexp node of x: i32 [*out], over red."""
    dims, inner = tuple(a.size for a in out), tuple(a.size for a in red)
    return ctx.values.add("rowexp", DType.I32, dims, inner, (ValueRead(x.value, (*out, *red), x.offset, x.fill),))


def _aligned(ctx: Context, a: Strided, b: Strided) -> tuple[Strided, Strided]:
    """Both operands with leading dimensions and K split alike, M and N in as few axes as possible."""
    groups_a, groups_b = list(a.groups), list(b.groups)
    pairs = [(d, d) for d in range(len(groups_a) - 2)] + [(len(groups_a) - 1, len(groups_b) - 2)]
    for d, e in pairs:
        common = common_axes([groups_a[d], groups_b[e]])
        if common is None:
            return _aligned(ctx, ctx.values.copy(a), ctx.values.copy(b))
        groups_a[d], groups_b[e] = common
    groups_a[-2], groups_b[-1] = merge_axes(groups_a[-2]), merge_axes(groups_b[-1])
    if sum(map(len, groups_a)) + len(groups_b[-1]) > MAX_RANK:
        return _aligned(ctx, *_with_fewer_axes(ctx, a, b))
    return replace(a, groups=tuple(groups_a)), replace(b, groups=tuple(groups_b))


def _with_fewer_axes(ctx: Context, a: Strided, b: Strided) -> tuple[Strided, Strided]:
    """One operand in memory of its own, the smaller one if that helps (patches of a convolution are the larger one).

    Where no dimension needs more than one axis, but some have more, these are joined.
    """
    by_size = sorted((a, b), key=lambda x: prod(x.shape))
    for x in by_size:
        if any(len(merge_axes(g)) > 1 for g in x.groups):
            copied = ctx.values.copy(x)
            return (copied, b) if x is a else (a, copied)
    joined = [replace(x, groups=tuple(merge_axes(g) for g in x.groups)) for x in (a, b)]
    if joined == [a, b]:
        raise Unsupported(f"a product over more than {MAX_RANK} dimensions")
    return joined[0], joined[1]


def _sums_over_softmax(a: Strided) -> bool:
    """Whether the last dimension runs along the axis of the softmax that made the value."""
    value = a.value
    if not value.normalized:
        return False
    if prod(x.size for x in a.groups[-1]) == 1:
        return -1 in value.normalized
    strides = {stride.stride: d for d, stride in enumerate(contiguous(value.dims)) if value.dims[d] > 1}
    return any(
        x.is_full and strides.get(x.stride) in value.normalized and value.dims[strides[x.stride]] == x.size
        for x in a.groups[-1]
        if x.size > 1
    )


def _still(axes: Axes) -> tuple[Axis, ...]:
    """Axes of the same sizes along which nothing changes."""
    return tuple(full_axis(a.size, 0) for a in axes)


def _transposed(x: Strided) -> Strided:
    """The last two dimensions exchanged."""
    rank = len(x.groups)
    return x.permute((*range(rank - 2), rank - 1, rank - 2))


@lowers(aten.mm.default, aten.bmm.default)
def _mm(ctx: Context, a: Tensorlike, b: Tensorlike) -> Tensorlike:
    return contract(ctx, a, b)


@lowers(aten.addmm.default, aten.baddbmm.default)
def _addmm(
    ctx: Context, bias: Tensorlike, a: Tensorlike, b: Tensorlike, *, beta: float = 1, alpha: float = 1
) -> Tensorlike:
    product: Tensorlike = contract(ctx, a, b)
    if alpha != 1:
        product = ctx.apply("mul", product, float(alpha))
    if beta == 0:
        return product
    return ctx.apply("add", product, bias if beta == 1 else ctx.apply("mul", bias, float(beta)))
