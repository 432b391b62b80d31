"""Row exponents, powers of two, quantization and the one final rounding, on whole tensors in binary64.

Every power of two here is applied in binary64, where it is exact: in binary32 the factor 2^(p-1-e) overflows for rows
whose largest element is below 2^-113 (docs/protocol.md, section 1).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

E_ZERO = -149
E_NONFINITE = 129

_EXACT = 53
"""Integers of at most 2^53 are exact in binary64."""


def exponent_of_magnitude(magnitude: Tensor) -> Tensor:
    """E of f32 values whose sign does not matter: i32, -149 for zero, 129 for NaN and infinity."""
    bits = magnitude.view(torch.int32).bitwise_and(0x7FFFFFFF)
    return exponent_of_bits(bits)


def exponent_of_bits(bits: Tensor) -> Tensor:
    """E of the f32 values with these i32 patterns, none with a sign; in binary64 every one of them is normal."""
    biased = bits.view(torch.float32).to(torch.float64).view(torch.int64) >> 52
    return biased.sub_(1022).clamp_(E_ZERO, E_NONFINITE).to(torch.int32)


def power_of_two(n: Tensor) -> Tensor:
    """2^n in f64 for integers n, clamped to [-1000, 1000]."""
    return ((n.to(torch.int64).clamp(-1000, 1000) + 1023) << 52).view(torch.float64)


def _tables() -> tuple[Tensor, Tensor]:
    e = torch.arange(E_ZERO, E_NONFINITE + 1)
    down = power_of_two(-e)
    up = power_of_two(e)
    # A row of zeros is quantized by any factor, a non-finite one is NaN whatever its terms are.
    down[0], down[-1], up[-1] = 0.0, 0.0, float("nan")
    return down, up


_DOWN, _UP = _tables()


@dataclass(frozen=True, slots=True)
class RowScales:
    """Powers of two for rows with some exponents: `down` is 2^(p-1-e) in f32, `up` is 2^(e-(p-1)) in f64.

    down is infinite where f32 has no such power; then `halves` are two factors that it has.
    """

    down: Tensor
    up: Tensor
    halves: tuple[Tensor, Tensor] | None


def row_scales(e: Tensor, p: int) -> RowScales:
    """The factors for quantizing and finishing rows with exponents in [-149, 129]."""
    at = (e - E_ZERO).flatten()
    wide = _DOWN.index_select(0, at).mul_(2.0 ** (p - 1)).view(e.shape)
    up = _UP.index_select(0, at).mul_(2.0 ** (1 - p)).view(e.shape)
    down = wide.to(torch.float32)
    halves = None
    if down.numel() and float(down.amax()) == float("inf"):
        first = wide.clamp_max(2.0**64)
        halves = first.to(torch.float32), torch.where(wide > 0, wide / first, 1.0).to(torch.float32)
    return RowScales(down, up, halves)


def quantize_row(x: Tensor, scales: RowScales, p: int, inner: int) -> Tensor:
    """q_p as f32 for rows whose exponent is at least E(x) of every element, so that only p = 8 needs a clamp.

    x: f32 [*rows, *red], red of `inner` dimensions. f32 is wide enough: x has 24 bits, a power of two moves them, and
    what falls below the normal range rounds to zero. Elements of non-finite rows come out as anything.
    """
    ones = (1,) * inner
    if scales.halves is None:
        q = x * scales.down.reshape(scales.down.shape + ones)
    else:
        first, second = scales.halves
        q = (x * first.reshape(first.shape + ones)).mul_(second.reshape(second.shape + ones))
    q.round_()
    return q.clamp_(-127.0, 127.0) if p == 8 else q


def quantize(x: Tensor, e: Tensor, p: int) -> Tensor:
    """q_p(x, e) as f64 for any exponents; e broadcasts against x. Non-finite x gives 0."""
    limit = 127.0 if p == 8 else 2.0 ** (p - 1)
    # Beyond 2^+-500 every f32 is clamped or rounded to zero alike.
    scale = power_of_two((p - 1 - e.to(torch.int64)).clamp(-500, 500))
    wide = x.to(torch.float64)
    return wide.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0).mul(scale).round_().clamp_(-limit, limit)


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
