"""A token drawn from logits by integers alone, so that every machine draws the same one (docs/inference.md).

Source: docs/adr/0062-inference.md. Shapes: B rows, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import isqrt
from typing import Final

import torch
from torch import Tensor

from assay.protocol.arithmetic.philox import philox4x32
from assay.protocol.errors import NumericsError, UsageError

UNIT: Final = 1_000_000
"""A temperature of 1, in millionths."""

MAX_TEMPERATURE: Final = 100 * UNIT

_POINT: Final = 20
"""Logits are multiples of 2^-20."""

_BOUND: Final = 1 << 30
"""Logits beyond it, infinities among them, count as it; in units of 2^-20 it takes 50 bits."""

_WEIGHT: Final = 31
"""The largest weight is 2^31; what is below 2^-31 of it has none."""

_LOG2_E: Final = 1_549_082_005
"""log2(e) in units of 2^-30, to the nearest."""

_HALF: Final = 10
_MASK: Final = (1 << 32) - 1


@dataclass(frozen=True, slots=True)
class SamplingTerms:
    """How an answer is drawn. seed: below 2^64. temperature: in millionths, 0 takes the largest logit. top_k: of how
    many tokens at most, 0 for all.

    Raises UsageError (BadSampling).
    """

    seed: int = 0
    temperature: int = UNIT
    top_k: int = 0

    def __post_init__(self) -> None:
        bounds = {"seed": (self.seed, 1 << 64), "temperature": (self.temperature, MAX_TEMPERATURE + 1)}
        for name, (value, most) in (bounds | {"top_k": (self.top_k, 1 << 31)}).items():
            if not 0 <= value < most:
                raise UsageError(
                    f"{name} is {value}.", code="BadSampling", remedy=f"Give a whole number from 0 to {most - 1}."
                )


GREEDY: Final = SamplingTerms(temperature=0)


def draw(logits_BV: Tensor, terms: Sequence[SamplingTerms], places: Sequence[int]) -> list[int]:
    """One token a row from f32 [B, V]; places: the number of each row's token in its answer, from 0.

    Raises NumericsError (LogitsNotFinite) where a row holds NaN.
    """
    if bool(logits_BV.isnan().any()):
        raise NumericsError(
            "The model's logits hold NaN: no token follows from them.",
            code="LogitsNotFinite",
            remedy="Choose another generation of the model; this one computes no numbers.",
        )
    hot = [k for k, t in enumerate(terms) if t.temperature]
    found = largest(logits_BV) if len(hot) < len(terms) else [0] * len(terms)
    if not hot:
        return found
    weights_bV = weights(logits_BV[hot], [terms[k] for k in hot])
    sums_bV = weights_bV.cumsum(1)
    for row, k in enumerate(hot):
        target = random_bits(terms[k].seed, places[k]) * int(sums_bV[row, -1]) >> 64
        found[k] = int((sums_bV[row] <= target).sum())
    return found


def largest(logits_BV: Tensor) -> list[int]:
    """The token of the largest logit of each row; of equal ones the first."""
    numbers_V = torch.arange(logits_BV.shape[1])
    is_largest_BV = logits_BV == logits_BV.amax(1, keepdim=True)
    found: list[int] = torch.where(is_largest_BV, numbers_V, logits_BV.shape[1]).amin(1).tolist()
    return found


def random_bits(seed: int, place: int) -> int:
    """64 bits: words 0 (the upper half) and 1 of Philox stream 0 at step `place` under the seed's two words."""
    upper, lower, _, _ = philox4x32((0, 0, place & _MASK, place >> 32), (seed & _MASK, seed >> 32))
    return upper << 32 | lower


def weights(logits_bV: Tensor, terms: Sequence[SamplingTerms]) -> Tensor:
    """What each token weighs, i64 [b, V], 2^31 the largest; 0 below the first `top_k`. Temperatures are above 0."""
    units_bV = torch.round(logits_bV.to(torch.float64).clamp(-_BOUND, _BOUND) * (1 << _POINT)).to(torch.int64)
    below_bV = units_bV.amax(1, keepdim=True) - units_bV
    # Units of 2^-50 of a power of two per unit of a logit. Nothing overflows: what has no weight anyway is cut first.
    rates = [_LOG2_E * UNIT // t.temperature for t in terms]
    most_b1 = torch.tensor([[((_WEIGHT + 1) << 50) // rate + 1] for rate in rates])
    powers_bV = torch.minimum(below_bV, most_b1) * torch.tensor(rates)[:, None] >> 30
    upper, lower = powers_of_two()
    part_bV = powers_bV & (1 << _POINT) - 1
    exact_bV = upper[part_bV >> _HALF] * lower[part_bV & (1 << _HALF) - 1] >> _WEIGHT
    found_bV = exact_bV >> (powers_bV >> _POINT).clamp_max(62)
    limits = [t.top_k for t in terms]
    if not any(limits):
        return found_bV
    order_bV = logits_bV.sort(dim=1, descending=True, stable=True).indices
    ranks_bV = torch.empty_like(order_bV).scatter_(1, order_bV, torch.arange(order_bV.shape[1]).expand_as(order_bV))
    limits_b1 = torch.tensor([[k or order_bV.shape[1]] for k in limits])
    return torch.where(ranks_bV < limits_b1, found_bV, 0)


@cache
def powers_of_two() -> tuple[Tensor, Tensor]:
    """2^(31 - i / 2^10) and 2^(31 - i / 2^20), i64 [2^10] each, to the nearest: made of square roots of integers."""
    bits, one = 128, 1 << 128
    roots = [one >> 1]  # 2^(-1 / 2^k) in units of 2^-128
    for _ in range(2 * _HALF):
        roots.append(isqrt(roots[-1] << bits))
    tables = []
    for last in (_HALF, 2 * _HALF):
        values = []
        for i in range(1 << _HALF):
            value = one
            for k in range(_HALF):
                if i >> k & 1:
                    value = value * roots[last - k] >> bits
            values.append((value + (1 << bits - _WEIGHT - 1)) >> bits - _WEIGHT)
        tables.append(torch.tensor(values))
    return tables[0], tables[1]
