"""Softmax, log-softmax and layer norm, their gradients, and the marks that raise the precision of what uses them."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from assay.engine.compiler.ir.strided import Strided, contiguous
from assay.engine.compiler.ir.values import Tensorlike
from assay.engine.compiler.lowering.reductions import reduce, total
from assay.engine.compiler.lowering.registry import Context, axis, lowers

aten = torch.ops.aten


LONE = frozenset({-1})
"""The mark of a softmax over one element, whose dimension has no axis."""


def _sensitive(x: Tensorlike) -> Tensorlike:
    """Mark a tensor: products that read it take the high precision."""
    if isinstance(x, Strided):
        x.value.sensitive = True
    return x


def _shifted(ctx: Context, x: Tensorlike, dim: int) -> Tensorlike:
    """x minus its largest element along a dimension, in x's shape."""
    source = ctx.strided(x)
    return ctx.apply("sub", source, reduce(ctx, "max", source, (dim,), keepdim=True))


@lowers(aten._softmax.default)
def _softmax(ctx: Context, x: Tensorlike, dim: int, _: bool) -> Tensorlike:
    dim = axis(dim, len(x.shape))
    powers = ctx.apply("exp", _shifted(ctx, x, dim))
    result = ctx.strided(ctx.apply("div", powers, total(ctx, powers, (dim,), keepdim=True)))
    places = {a.stride: d for d, a in enumerate(contiguous(result.value.dims)) if a.size > 1}
    result.value.sensitive = True
    result.value.normalized = frozenset(places[a.stride] for a in result.groups[dim] if a.size > 1) or LONE
    return result


@lowers(aten._log_softmax.default)
def _log_softmax(ctx: Context, x: Tensorlike, dim: int, _: bool) -> Tensorlike:
    dim = axis(dim, len(x.shape))
    shifted = _shifted(ctx, x, dim)
    sums = total(ctx, ctx.apply("exp", shifted), (dim,), keepdim=True)
    return ctx.apply("sub", shifted, ctx.apply("log", sums))


@lowers(aten._softmax_backward_data.default)
def _softmax_backward(ctx: Context, gradient: Tensorlike, output: Tensorlike, dim: int, _: Any) -> Tensorlike:
    dim = axis(dim, len(output.shape))
    weighted = ctx.apply("mul", gradient, output)
    mean = total(ctx, weighted, (dim,), keepdim=True)
    return _sensitive(ctx.apply("sub", weighted, ctx.apply("mul", output, mean)))


@lowers(aten._log_softmax_backward_data.default)
def _log_softmax_backward(ctx: Context, gradient: Tensorlike, output: Tensorlike, dim: int, _: Any) -> Tensorlike:
    dim = axis(dim, len(output.shape))
    sums = total(ctx, gradient, (dim,), keepdim=True)
    return _sensitive(ctx.apply("sub", gradient, ctx.apply("mul", ctx.apply("exp", output), sums)))


@lowers(aten.native_layer_norm.default)
def _layer_norm(
    ctx: Context,
    x: Tensorlike,
    shape: Sequence[int],
    weight: Tensorlike | None,
    bias: Tensorlike | None,
    epsilon: float,
) -> tuple[Tensorlike, Tensorlike, Tensorlike]:
    """x [*lead, *shape] normalized over its last dimensions; mean and rate are [*lead, 1, ...]."""
    rank = len(x.shape)
    dims = tuple(range(rank - len(shape), rank))
    count = float(prod(shape))
    mean = ctx.apply("div", total(ctx, x, dims, keepdim=True), count)
    centered = ctx.apply("sub", x, mean)
    variance = ctx.apply("div", total(ctx, ctx.apply("mul", centered, centered), dims, keepdim=True), count)
    rate = ctx.apply("rsqrt", ctx.apply("add", variance, epsilon))
    result = ctx.apply("mul", centered, rate)
    if weight is not None:
        result = ctx.apply("mul", result, weight)
    if bias is not None:
        result = ctx.apply("add", result, bias)
    return result, mean, rate
