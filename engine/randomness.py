"""Dropout whose masks are Philox words of the state: what `torch.nn.Dropout` and its kin draw inside a training step.

    with Randomness(key, step):
        loss = module(x)

Inside the block PyTorch's own functions (`dropout`, `dropout1d` to `dropout3d`, `alpha_dropout`, the dropout of
attention, `rand`, `randn`, `bernoulli`, `uniform_`) draw from the key and step instead of the global generator, in
eager PyTorch as well as in capture: element i of a call comes from word i of a stream of its own, numbered in calling
order.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from assay.engine import ops
from assay.protocol.errors import NumericsError

FIRST_STREAM = 1
"""Streams below belong to the drawing of batches."""

_BITS = 24
"""A word's top 24 bits are exact in f32: uniform numbers are multiples of 2^-24."""

_ALPHA = 1.7580993408473766
"""SELU's value at minus infinity, negated: where alpha dropout puts what it drops (Klambauer et al., 2017)."""


class Randomness(TorchFunctionMode):
    """While active, random functions of PyTorch draw Philox words under key i32 [2] and step i32 [2].

    first_stream: of the first call; `stream` is the next free one.
    """

    def __init__(self, key: Tensor, step: Tensor, first_stream: int = FIRST_STREAM) -> None:
        super().__init__()
        self.key, self.step, self.stream = key, step, first_stream

    def uniform(self, shape: tuple[int, ...]) -> Tensor:
        """f32 multiples of 2^-24 in [0, 1) from the next stream."""
        words = ops.random_words(self.key, self.step, self.stream, math.prod(shape))
        self.stream += 1
        return (((words >> (32 - _BITS)) & ((1 << _BITS) - 1)).to(torch.float32) * 2.0**-_BITS).reshape(shape)

    def kept(self, shape: tuple[int, ...], p: float) -> Tensor:
        """bool of a shape, true with probability 1 - p (a multiple of 2^-24)."""
        return self.uniform(shape) >= p

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Replaces what draws at random; passes on all else."""
        replacement = _REPLACED.get(func)
        if replacement is not None:
            return replacement(self, *args, **(kwargs or {}))
        if func in _REFUSED:
            raise NumericsError(
                f"{func.__name__} draws random numbers that no state determines.",
                code="HiddenRandomness",
                remedy="Use torch.rand, torch.bernoulli or dropout, which draw from the state inside a training step.",
            )
        return func(*args, **(kwargs or {}))


def _dropout(
    mode: Randomness, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False, train: Any = None
) -> Tensor:
    return _dropped(mode, input, tuple(input.shape), p, training if train is None else train, inplace)


def _feature_dropout(
    mode: Randomness, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels are dropped: one draw per example and channel."""
    mask = (*input.shape[:2], *(1,) * (input.ndim - 2))
    return _dropped(mode, input, mask, p, training, inplace)


def _dropped(mode: Randomness, x: Tensor, mask: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return x
    scaled = torch.where(mode.kept(mask, p), x * (0.0 if p == 1.0 else 1.0 / (1.0 - p)), 0.0)
    return x.copy_(scaled) if inplace else scaled


def _alpha_dropout(
    mode: Randomness, input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout that keeps mean and variance of SELU's outputs."""
    if not training or p == 0.0:
        return input
    keep = 1.0 - p
    scale = (keep + _ALPHA * _ALPHA * keep * p) ** -0.5
    mixed = torch.where(mode.kept(tuple(input.shape), p), input, -_ALPHA) * scale + scale * _ALPHA * p
    return input.copy_(mixed) if inplace else mixed


def _rand(mode: Randomness, *size: Any, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    shape = tuple(size[0]) if size and isinstance(size[0], tuple | list) else tuple(size)
    return _typed(mode.uniform(shape), dtype, requires_grad)


def _rand_like(mode: Randomness, input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    return _typed(mode.uniform(tuple(input.shape)), dtype or input.dtype, requires_grad)


def _typed(x: Tensor, dtype: Any, requires_grad: bool) -> Tensor:
    if dtype not in (None, torch.float32):
        raise NumericsError(f"Random numbers of {dtype} have no form.", remedy="Draw float32.")
    return x.requires_grad_() if requires_grad else x


def _randn(mode: Randomness, *size: Any, **options: Any) -> Tensor:
    return _normal(_rand(mode, *size, **options), mode)


def _randn_like(mode: Randomness, input: Tensor, **options: Any) -> Tensor:
    return _normal(_rand_like(mode, input, **options), mode)


def _normal(u: Tensor, mode: Randomness) -> Tensor:
    """Normal numbers by Box and Muller (1958) from u and a second stream; at most 5.8 in size."""
    radius = torch.sqrt(torch.log(1.0 - u) * -2.0)
    return radius * torch.cos(mode.uniform(tuple(u.shape)) * (2.0 * math.pi))


def _bernoulli(mode: Randomness, input: Tensor, p: float | None = None, **_: Any) -> Tensor:
    return (mode.uniform(tuple(input.shape)) < (input if p is None else p)).to(input.dtype)


def _bernoulli_in_place(mode: Randomness, input: Tensor, p: float | Tensor = 0.5, **_: Any) -> Tensor:
    return input.copy_(mode.uniform(tuple(input.shape)) < p)


def _uniform_in_place(mode: Randomness, input: Tensor, low: float = 0.0, high: float = 1.0, **_: Any) -> Tensor:
    return input.copy_(mode.uniform(tuple(input.shape)) * (high - low) + low)


def _attention(
    mode: Randomness,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Attention written out where it drops weights; PyTorch's own otherwise."""
    if dropout_p == 0.0:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, 0.0, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    if enable_gqa:
        repeats = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
    scores = (query @ key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    if attn_mask is not None:
        hidden = attn_mask.dtype is torch.bool
        scores = scores.masked_fill(~attn_mask, float("-inf")) if hidden else scores + attn_mask
    weights = _dropout(mode, torch.softmax(scores, -1), dropout_p)
    return weights @ value


_REPLACED: dict[Any, Callable[..., Tensor]] = {
    F.dropout: _dropout,
    torch.dropout: _dropout,
    F.dropout1d: _feature_dropout,
    F.dropout2d: _feature_dropout,
    F.dropout3d: _feature_dropout,
    F.alpha_dropout: _alpha_dropout,
    torch.rand: _rand,
    torch.rand_like: _rand_like,
    torch.randn: _randn,
    torch.randn_like: _randn_like,
    torch.bernoulli: _bernoulli,
    torch.Tensor.bernoulli: _bernoulli,
    torch.Tensor.bernoulli_: _bernoulli_in_place,
    torch.Tensor.uniform_: _uniform_in_place,
    F.scaled_dot_product_attention: _attention,
}

_REFUSED = frozenset(
    {
        *(torch.randint, torch.randint_like, torch.randperm, torch.multinomial, torch.normal, torch.poisson),
        *(F.feature_alpha_dropout, F.rrelu, torch.Tensor.normal_, torch.Tensor.exponential_, torch.Tensor.random_),
    }
)
