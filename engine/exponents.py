"""Row exponents, powers of two, quantization and the one final rounding, on whole tensors in binary64.

Every power of two here is applied in binary64, where it is exact: in binary32 the factor 2^(p-1-e) overflows for rows
whose largest element is below 2^-113 (docs/protocol.md, section 1).
"""

from __future__ import annotations

import torch
from torch import Tensor

E_ZERO = -149
E_NONFINITE = 129

_EXACT = 53
"""Integers of at most 2^53 are exact in binary64."""


def exponent_of_magnitude(magnitude: Tensor) -> Tensor:
    """E of f32 values whose sign does not matter: i32, -149 for zero, 129 for NaN and infinity."""
    biased = (magnitude.double().view(torch.int64) >> 52) & 0x7FF
    return (biased - 1022).clamp_(E_ZERO, E_NONFINITE).to(torch.int32)


def power_of_two(n: Tensor) -> Tensor:
    """2^n in f64 for integers n, clamped to [-1000, 1000]."""
    return ((n.to(torch.int64).clamp(-1000, 1000) + 1023) << 52).view(torch.float64)


def _tables() -> tuple[Tensor, Tensor]:
    e = torch.arange(E_ZERO, E_NONFINITE + 1)
    down = power_of_two(-e)
    up = power_of_two(e)
    down[-1], up[-1] = 0.0, float("nan")
    return down, up


_DOWN, _UP = _tables()


def row_scales(e: Tensor, p: int) -> tuple[Tensor, Tensor]:
    """For exponents in [-149, 129]: the factors 2^(p-1-e) for quantizing and 2^(e-(p-1)) for finishing, f64.

    A non-finite row (129) is quantized by 0 and finished by NaN.
    """
    at = (e - E_ZERO).flatten()
    shape = e.shape
    quantum = 2.0 ** (p - 1)
    return _DOWN.index_select(0, at).mul_(quantum).view(shape), _UP.index_select(0, at).mul_(1 / quantum).view(shape)


def quantize_row(x: Tensor, scale: Tensor, p: int) -> Tensor:
    """q_p as f64 where e is at least E(x) for every element, so that only p = 8 needs a clamp.

    Elements of non-finite rows come out as anything: their results are NaN whatever they are.
    """
    q = x.to(torch.float64)
    if q is x:
        q = x.clone()
    q.mul_(scale).round_()
    return q.clamp_(-127.0, 127.0) if p == 8 else q


def quantize(x: Tensor, e: Tensor, p: int) -> Tensor:
    """q_p(x, e) as f64 for any exponents; e broadcasts against x. Non-finite x gives 0."""
    limit = 127.0 if p == 8 else 2.0 ** (p - 1)
    # Beyond 2^+-500 every f32 is clamped or rounded to zero alike.
    scale = power_of_two((p - 1 - e.to(torch.int64)).clamp(-500, 500))
    wide = x.to(torch.float64)
    q = (wide * scale).round_().clamp_(-limit, limit)
    return torch.where(wide.isfinite(), q, 0.0)


def finish(total: Tensor, n: Tensor) -> Tensor:
    """The f32 nearest to total * 2^n, ties to even, one rounding; total: exact integers, f64 up to 2^53 or int64."""
    if total.dtype is torch.int64:
        total, n = _fold(total, n)
    # Adding +0 makes a sum of negative zeros +0 and leaves everything else.
    return (total + 0.0).mul_(power_of_two(n.to(torch.int64).clamp(-700, 700))).to(torch.float32)


def finish_nan(result: Tensor, *exponents: Tensor) -> Tensor:
    """The result with NaN where any exponent is 129 or more."""
    for e in exponents:
        result = torch.where(e >= E_NONFINITE, float("nan"), result)
    return result


def _fold(total: Tensor, n: Tensor) -> tuple[Tensor, Tensor]:
    """An int64 total and its power as an f64 of at most 53 bits that rounds to the same f32.

    Above 2^53 the lost low bits are OR-ed into the lowest kept one (round to odd), so that the later rounding to 24
    bits is the only one that counts. int64.double() alone would round twice.
    """
    magnitude = total.abs()
    wide = magnitude >> _EXACT
    shift = torch.zeros_like(total)
    for bit in range(10):
        shift += (wide >> bit) > 0
    kept = magnitude >> shift
    lost = (kept << shift) != magnitude
    kept = kept | lost.to(torch.int64)
    return torch.where(total < 0, -kept, kept).to(torch.float64), n.to(torch.int64) + shift
