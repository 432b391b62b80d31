"""Reading and adding at indices: gathers, their gradients, one-hot writes and random words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import torch

from assay.engine import ops
from assay.engine.compiler.ir.strided import Axes, Strided, contiguous, merge_axes, whole
from assay.engine.compiler.ir.value import Axis, ValueRead, full_axis
from assay.engine.compiler.ir.values import Fill, Tensorlike
from assay.engine.compiler.lowering.reductions import check_terms, integer_total, reduce
from assay.engine.compiler.lowering.registry import Context, Unsupported, axis, lowers
from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.types import DType

aten = torch.ops.aten


def _still(axes: Axes) -> tuple[Axis, ...]:
    return tuple(full_axis(a.size, 0) for a in axes)


def _one_axis(ctx: Context, x: Strided, dim: int) -> Strided:
    """The tensor with one full axis for a dimension, copied if need be."""
    group = merge_axes(x.groups[dim])
    if len(group) > 1 or not all(a.is_full for a in group):
        x = ctx.values.copy(x)
        group = merge_axes(x.groups[dim])
    single = group or (full_axis(1, 0),)
    return replace(x, groups=(*x.groups[:dim], single, *x.groups[dim + 1 :]))


def take_rows(ctx: Context, table: Tensorlike, index: Tensorlike, dim: int = 0) -> Strided:
    """table with one dimension replaced by the shape of an index into it: [*before, *index.shape, *after]."""
    source, at = _one_axis(ctx, ctx.strided(table), dim), ctx.strided(ctx.cast(index, _index_type(index)))
    before = tuple(a for g in source.groups[:dim] for a in g)
    after = tuple(a for g in source.groups[dim + 1 :] for a in g)
    picked = source.groups[dim][0]
    axes = (picked, *before, *_still(at.axes), *after)
    read = ValueRead(source.value, axes, source.offset, source.fill)
    read_index = ValueRead(at.value, (*_still(before), *at.axes, *_still(after)), at.offset, at.fill)
    dims = tuple(a.size for a in axes[1:])
    value = ctx.values.add(
        "gather", source.dtype, dims, (), (read, read_index), (picked.size,), sensitive=source.value.sensitive
    )
    return _grouped(value, (*source.groups[:dim], *at.groups, *source.groups[dim + 1 :]))


def _grouped(value: Any, groups: Sequence[Axes]) -> Strided:
    axes = iter(contiguous(value.dims))
    return Strided(value, tuple(tuple(next(axes) for _ in g) for g in groups))


def _index_type(index: Tensorlike) -> DType:
    """Storage types are read as i32 where they are; other types are converted."""
    return index.dtype if index.dtype.is_storage or index.dtype is DType.I32 else DType.I32


def _wrapped(ctx: Context, index: Tensorlike, size: int) -> Tensorlike:
    """Negative indices counted from the end, as PyTorch's indexing does."""
    index = ctx.cast(index, DType.I32)
    return ctx.apply(
        "select", ctx.apply("lt", index, 0, dtype=DType.BOOL), ctx.apply("add", index, size), index, dtype=DType.I32
    )


@lowers(ops.TAKE)
def _take(ctx: Context, table: Tensorlike, index: Tensorlike) -> Tensorlike:
    return take_rows(ctx, table, index)


@lowers(aten.embedding.default)
def _embedding(ctx: Context, weight: Tensorlike, indices: Tensorlike, *_: Any) -> Tensorlike:
    return take_rows(ctx, weight, indices)


@lowers(aten.index_select.default)
def _index_select(ctx: Context, x: Tensorlike, dim: int, index: Tensorlike) -> Tensorlike:
    return take_rows(ctx, x, index, axis(dim, len(x.shape)))


def joined_index(ctx: Context, shape: Sequence[int], indices: Sequence[Any]) -> tuple[int, int, Tensorlike]:
    """The first of the indexed dimensions, how many they are, and one index into them joined.

    Raises:
        Unsupported: a mask, or tensors that index dimensions that are not neighbours.
    """
    given = [(d, i) for d, i in enumerate(indices) if i is not None]
    if any(i.dtype is DType.BOOL for _, i in given):
        raise Unsupported("indexing by a mask (its result has no fixed size; use torch.where)")
    first = given[0][0]
    if [d for d, _ in given] != list(range(first, first + len(given))):
        raise Unsupported("indexing dimensions that are not neighbours by several tensors at once")
    if prod(shape[d] for d, _ in given) >= 1 << 31:
        raise Unsupported("indexing more than 2^31 rows")
    joined: Tensorlike | None = None
    for d, index in given:
        wrapped = _wrapped(ctx, index, shape[d])
        joined = wrapped if joined is None else ctx.apply("add", ctx.apply("mul", joined, shape[d]), wrapped)
    assert joined is not None
    return first, len(given), joined


def with_joined(x: Tensorlike, first: int, count: int) -> tuple[int, ...]:
    """The shape of x with `count` dimensions from `first` on as one."""
    return (*x.shape[:first], prod(x.shape[first : first + count]), *x.shape[first + count :])


@lowers(aten.index.Tensor, aten._unsafe_index.Tensor)
def _index(ctx: Context, x: Tensorlike, indices: Sequence[Any]) -> Tensorlike:
    first, count, index = joined_index(ctx, x.shape, indices)
    return take_rows(ctx, ctx.values.reshape(x, with_joined(x, first, count)), index, first)


@lowers(aten.gather.default)
def _gather(ctx: Context, x: Tensorlike, dim: int, index: Tensorlike, **_: Any) -> Tensorlike:
    return gathered(ctx, x, axis(dim, len(x.shape)), index)


def gathered(ctx: Context, x: Tensorlike, dim: int, index: Tensorlike) -> Tensorlike:
    """x at indices along one dimension, of the index's shape; other dimensions are read at their own positions."""
    source = _one_axis(ctx, ctx.strided(x), dim)
    at = ctx.strided(ctx.cast(index, _index_type(index)))
    picked = source.groups[dim][0]
    for d, n in enumerate(at.shape):
        if d != dim and n != source.shape[d]:
            cut = source.narrow(d, 0, n) or ctx.values.copy(source).narrow(d, 0, n)
            if cut is None:
                raise Unsupported("a gather along a part of another dimension")
            source = cut
    along = replace(source, groups=(*source.groups[:dim], _still(at.groups[dim]), *source.groups[dim + 1 :]))
    (along, at), spaces = ctx.values.aligned([along, at])
    dims = tuple(a.size for g in spaces for a in g)
    read = ValueRead(along.value, (picked, *along.axes), along.offset, along.fill)
    value = ctx.values.add(
        "gather", source.dtype, dims, (), (read, ValueRead(at.value, at.axes, at.offset, at.fill)), (picked.size,)
    )
    return _grouped(value, spaces)


def add_rows(ctx: Context, x: Tensorlike, index: Tensorlike, size: int, lead: int) -> Strided:
    """Sum of the slices of x with the same index: [size, *rest] from x [*index.shape, *rest]; lead = index rank."""
    source, at = ctx.strided(x), ctx.strided(ctx.cast(index, _index_type(index)))
    joined = Strided(source.value, source.groups[:lead], source.offset, source.fill)
    (joined, at), _ = ctx.values.aligned([joined, at])
    if joined.value is not source.value:
        raise Unsupported("adding at indices from this view")
    rest = tuple(a for g in source.groups[lead:] for a in g)
    return _scatter(ctx, replace(joined, groups=(joined.axes,)), rest, at, size, source.groups[lead:])


def _scatter(
    ctx: Context,
    terms: Strided,
    rest: Axes,
    at: Strided,
    size: int,
    groups: Sequence[Axes],
    at_rest: Axes | None = None,
) -> Strided:
    """The scatter_sum node: out [size, *rest], red the axes of `terms`.

    terms, at: the summands and their rows, over red; at_rest: how rows change along rest, if they do.
    """
    check_terms(prod(a.size for a in terms.axes))
    if at_rest is not None and any(a.stride and a.size > 1 for a in at_rest):
        exponents = _slice_exponents(ctx, terms, rest, at_rest, size)
    else:
        exponents, at_rest = _row_exponents(ctx, terms, rest, at, size), _still(rest)
    return _scatter_node(ctx, terms, rest, at, exponents, groups, at_rest)


def _scatter_node(
    ctx: Context, terms: Strided, rest: Axes, at: Strided, exponents: ValueRead, groups: Sequence[Axes], at_rest: Axes
) -> Strided:
    """The node itself, f32 [size, *rest]; exponents are read over out, whose first axis is that of the rows."""
    first, red = full_axis(exponents.axes[0].size, 0), terms.axes
    read = ValueRead(terms.value, (first, *rest, *red), terms.offset, terms.fill)
    read_index = ValueRead(at.value, (first, *at_rest, *at.axes), at.offset, at.fill)
    dims = (first.size, *(a.size for a in rest))
    value = ctx.values.add("scatter_sum", DType.F32, dims, tuple(a.size for a in red), (read, read_index, exponents))
    return _grouped(value, ((full_axis(first.size, 0),), *groups))


def _slice_exponents(ctx: Context, terms: Strided, rest: Axes, at_rest: Axes, size: int) -> ValueRead:
    """One exponent per slice of rest along which the index changes: each is a scatter of its own.

    Read over [size, *rest], constant along all axes but those of the slices.
    """
    own = [d for d, a in enumerate(at_rest) if a.stride and a.size > 1]
    out, red = tuple(rest[d] for d in own), (*(a for d, a in enumerate(rest) if d not in own), *terms.axes)
    dims = tuple(a.size for a in out)
    read = ValueRead(terms.value, (*out, *red), terms.offset, terms.fill)
    value = ctx.values.add("rowexp", DType.I32, dims, tuple(a.size for a in red), (read,))
    laid = dict(zip(own, contiguous(dims), strict=True))
    return ValueRead(value, (full_axis(size, 0), *(laid.get(d, still) for d, still in enumerate(_still(rest)))))


_EXACT_POSITIONS = 1 << 24
"""Positions below are exact in binary32."""


def placed(ctx: Context, ranks: Strided, count: int, dim: int) -> Tensorlike:
    """The positions whose ranks along a dimension are 0 .. count - 1, in that order, as i32.

    ranks: i32, each number once along the dimension. One exact sum by index: position i is added where its rank says.
    """
    size = ranks.shape[dim]
    if size > _EXACT_POSITIONS:
        raise Unsupported(f"an order of {size} (at most 2^24)")
    others = [d for d in range(len(ranks.shape)) if d != dim]
    at = Strided(ranks.value, (ranks.groups[dim],), ranks.offset, ranks.fill)
    at_rest = tuple(a for d in others for a in ranks.groups[d])
    column = ctx.values.const(DType.F32, (size,), to_bytes(torch.arange(size, dtype=torch.float32)))
    # The exponent of the largest position: each is quantized to itself.
    bits = torch.tensor((size - 1).bit_length() if size > 1 else -149, dtype=torch.int32)
    scale = ctx.values.const(DType.I32, (), to_bytes(bits))
    exponents = ValueRead(scale.value, (full_axis(count, 0), *_still(at_rest)))
    groups = [ranks.groups[d] for d in others]
    found = _scatter_node(ctx, column, _still(at_rest), at, exponents, groups, at_rest)
    back = (*range(1, dim + 1), 0, *range(dim + 1, len(ranks.shape)))
    return ctx.cast(found.permute(back), DType.I32)


_WINDOW = 31
"""Powers of two whose exact sum one scatter_sum holds: q_31 keeps 2^-30 .. 1."""

_STARTS = (*range(-148, 129, _WINDOW), 129)
"""The least exponent of each window; the last one is that of NaN and infinity alone."""


def _row_exponents(ctx: Context, terms: Strided, rest: Axes, at: Strided, size: int) -> ValueRead:
    """One exponent per row of out, at least that of each of its terms, by nodes that there are (ADR 0020).

    Powers of two are added by index, window by window of exponents; where a window's sum is not zero, its own exponent
    is a bound on the largest one: exact for one term, at most log2 of the number of terms above it.
    """
    red = terms.axes
    read = ValueRead(terms.value, (*red, *rest), terms.offset, terms.fill)
    # largest: [*red]; powers: [*red, window]; sums, found: [size, window]; bound: [size].
    largest = ctx.values.add("rowexp", DType.I32, tuple(a.size for a in red), tuple(a.size for a in rest), (read,))
    starts = ctx.values.const(DType.I32, (len(_STARTS),), to_bytes(torch.tensor(_STARTS, dtype=torch.int32)))
    powers = ctx.strided(
        ctx.apply("exponent_power", Strided(largest, (contiguous(largest.dims), ())), starts, dtype=DType.F32)
    )
    column = powers.groups[1]
    one, index = ctx.values.aligned([replace(powers, groups=powers.groups[:1]), replace(at, groups=(at.axes,))])[0]
    zero = ctx.values.const(DType.I32, (), bytes(4)).value
    unit = ValueRead(zero, (full_axis(size, 0), *_still(column)))
    sums = _scatter_node(ctx, one, column, index, unit, (column,), _still(column))
    found = ctx.strided(ctx.apply("exponent_of_powers", sums, starts, dtype=DType.I32))
    bound = reduce(ctx, "max", found, (1,), keepdim=False)
    rows = bound.axes or (full_axis(size, 0),)  # a single row has no axis
    return ValueRead(bound.value, (*rows, *_still(rest)), bound.offset)


@lowers(aten.embedding_dense_backward.default)
def _embedding_backward(
    ctx: Context, gradient: Tensorlike, indices: Tensorlike, count: int, padding: int, by_frequency: bool
) -> Tensorlike:
    if by_frequency:
        raise Unsupported("scale_grad_by_freq")
    if padding >= 0:
        hit = ctx.apply("eq", ctx.cast(indices, DType.I32), padding, dtype=DType.BOOL)
        indices = ctx.apply(
            "select", hit, Fill(DType.I32, (), -1 & 0xFFFFFFFF), ctx.cast(indices, DType.I32), dtype=DType.I32
        )
    return add_rows(ctx, gradient, indices, count, len(indices.shape))


def _onto(ctx: Context, base: Tensorlike, added: Tensorlike) -> Tensorlike:
    """base + added, without the addition where base is zero."""
    if isinstance(base, Fill) and base.word == 0:
        return added
    return ctx.apply("add", ctx.cast(base, added.dtype), added)


@lowers(aten.index_add.default)
def _index_add(
    ctx: Context, base: Tensorlike, dim: int, index: Tensorlike, x: Tensorlike, *, alpha: float = 1
) -> Tensorlike:
    x = x if alpha == 1 else ctx.apply("mul", x, alpha)
    return add_along(ctx, base, axis(dim, len(base.shape)), index, x, 1)


def add_along(ctx: Context, base: Tensorlike, dim: int, index: Tensorlike, x: Tensorlike, lead: int) -> Tensorlike:
    """base [*before, size, *after] plus x [*before, *index.shape, *after] added at an index of rank `lead`."""
    order = (*range(dim, dim + lead), *range(dim), *range(dim + lead, len(x.shape)))
    back = (*range(1, dim + 1), 0, *range(dim + 1, len(base.shape)))

    def add(terms: Tensorlike) -> Tensorlike:
        return add_rows(ctx, ctx.strided(terms).permute(order), index, base.shape[dim], lead).permute(back)

    return _onto(ctx, base, _summed(ctx, x, prod(index.shape), add))


def _summed(ctx: Context, x: Tensorlike, count: int, add: Callable[[Tensorlike], Tensorlike]) -> Tensorlike:
    """What `add` makes of f32, for f32 and for integers; count: of terms at most in a sum."""
    return add(x) if x.dtype is DType.F32 else integer_total(ctx, x, count, add)


@lowers(aten.scatter_add.default)
def _scatter_add(ctx: Context, base: Tensorlike, dim: int, index: Tensorlike, x: Tensorlike) -> Tensorlike:
    dim = axis(dim, len(base.shape))
    if any(n != base.shape[d] for d, n in enumerate(index.shape) if d != dim) or x.shape != index.shape:
        raise Unsupported("a scatter_add onto a part of a dimension")
    ranks = ranks_of(ctx, index, dim)
    if ranks is not None:
        zeros = Fill(base.dtype, base.shape, 0)
        return _onto(ctx, base, written(ctx, zeros, dim, ranks, index.shape[dim], x))
    others = [d for d in range(len(base.shape)) if d != dim]
    back = (*range(1, dim + 1), 0, *range(dim + 1, len(base.shape)))

    def add(given: Tensorlike) -> Tensorlike:
        at = ctx.strided(ctx.cast(index, _index_type(index)))
        (source, at), _ = ctx.values.aligned([ctx.strided(given), at])
        rest = tuple(a for d in others for a in source.groups[d])
        at_rest = tuple(a for d in others for a in at.groups[d])
        terms = replace(source, groups=(source.groups[dim],))
        positions = replace(at, groups=(at.groups[dim],))
        groups = [source.groups[d] for d in others]
        return _scatter(ctx, terms, rest, positions, base.shape[dim], groups, at_rest).permute(back)

    return _onto(ctx, base, _summed(ctx, x, index.shape[dim], add))


def ranks_of(ctx: Context, index: Tensorlike, dim: int) -> Strided | None:
    """The ranks that an index was made from, where it holds the positions that a sort or topk returned."""
    if not isinstance(index, Strided) or index.value.number not in ctx.placed:
        return None
    along, ranks = ctx.placed[index.value.number]
    is_whole = index.shape == whole(index.value).shape and merge_axes(index.axes) == merge_axes(whole(index.value).axes)
    return ranks if is_whole and along == dim else None


def written(ctx: Context, base: Tensorlike, dim: int, ranks: Strided, count: int, source: Tensorlike) -> Tensorlike:
    """base with the k-th element of `source` along a dimension where the rank is k < count: read, not added.

    base, ranks: one shape; source: the same but for `count` along the dimension.
    """
    found = gathered(ctx, source, dim, ranks)
    if count == ranks.shape[dim]:
        return found
    hit = ctx.apply("lt", ranks, count, dtype=DType.BOOL)
    return ctx.apply("select", hit, found, base, dtype=base.dtype)


@lowers(ops.RANK)
def _rank(ctx: Context, x: Tensorlike) -> Tensorlike:
    """Ranks i32 of x [*rows, candidates] within its rows: a node whose red are the row's candidates again."""
    source = _one_axis(ctx, ctx.strided(x), len(x.shape) - 1)
    rows = tuple(a for g in source.groups[:-1] for a in g)
    candidates = source.groups[-1]
    read = ValueRead(source.value, (*rows, *_still(candidates), *candidates), source.offset, source.fill)
    dims = tuple(a.size for a in (*rows, *candidates))
    value = ctx.values.add("rank", DType.I32, dims, (candidates[0].size,), (read,))
    return _grouped(value, source.groups)


@lowers(ops.RANDOM_WORDS)
def _random_words(ctx: Context, key: Tensorlike, step: Tensorlike, stream: int, count: int) -> Tensorlike:
    key, step = _two_words(ctx, key), _two_words(ctx, step)
    for t in (key, step):
        if t.value.dims != (2,) or t.offset or t.axes != contiguous((2,)):
            raise Unsupported("random words under a key or step that is no whole tensor of two words")
    value = ctx.values.add("random", DType.I32, (count,), (), (), (stream, key.value.number, step.value.number))
    return Strided(value, (contiguous((count,)),))


def _two_words(ctx: Context, x: Tensorlike) -> Strided:
    """A key or step as a tensor that a value backs: a constant of two equal words is a fill, behind which none lies."""
    if not isinstance(x, Fill) or x.shape != (2,):
        return ctx.strided(x)
    return ctx.values.const(x.dtype, x.shape, x.word.to_bytes(4, "little") * 2)
