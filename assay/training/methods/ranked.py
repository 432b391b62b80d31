"""Decoupled momentum between the ranks of one seat (DeMo, Peng, Quesnelle and Kingma, 2024).

Each rank keeps a momentum of its own gradients. Of each piece of 64 x 64 its discrete cosine transform's 32 largest
coefficients are sent, and leave the momentum; all ranks add up what all sent, transform it back and step by its sign.

Shapes: a matrix is cut into C pieces of h rows and w columns, each the largest divisor of its side up to 64, c = h w;
another tensor is a row. k <= 32 of a piece are sent, k' = k made even. N ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import pad

from assay.engine import ops
from assay.training.finite import finite
from assay.training.nibbles import bfloat16_of, joined, split
from assay.training.state import Scalars

SIDE: Final = 64
SENT: Final = 32
"""Coefficients of a piece that are sent."""

DECAY: Final = 0.999
"""Of the momentum in each step."""


@dataclass(frozen=True)
class RankStep:
    """One rank's part of a step: (parameters, momentum, scalars) to (what it sends, momentum, scalars).

    Sent: of each parameter u8 [C, k + k' / 2], the places of coefficients, then of each u16 [C, k], their bfloat16
    bits, in the order of magnitude. gradients: (parameters, scalars) to those of the batch that the scalars draw.
    """

    gradients: Callable[[Sequence[Tensor], Sequence[Tensor]], list[Tensor]]
    decay: float = DECAY

    def __call__(
        self, parameters: Sequence[Tensor], momentum: Sequence[Tensor], scalars: Sequence[Tensor]
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        """What is sent, the momentum without it, and the scalars one step later."""
        now = Scalars.from_list(scalars)
        pairs_of = zip(momentum, self.gradients(parameters, scalars), strict=True)
        whole = [m * self.decay + g * now.learning_rate for m, g in pairs_of]
        pairs = [pack_coefficients(x) for x in whole]
        rest = [x - unpack_coefficients(*pair, x.shape) for x, pair in zip(whole, pairs, strict=True)]
        sent = [*[places for places, _ in pairs], *[bits for _, bits in pairs]]
        return sent, rest, now.advanced().to_list()


def sign_step(
    parameters: Sequence[Tensor], rate_list: Sequence[Tensor], *sent: Sequence[Tensor], weight_decay: float
) -> tuple[list[Tensor]]:
    """New parameters from what N ranks sent: a step of the rate, f32 [] in a list, along the sign of their sum.

    Decay is for matrices, as in `AdamW`.
    """
    (rate,) = rate_list
    count = len(parameters)
    updated = []
    for k, p in enumerate(parameters):
        total = coefficients_of(sent[0][k], sent[0][count + k], p.shape)
        for other in sent[1:]:
            total = total + coefficients_of(other[k], other[count + k], p.shape)
        kept = p * (1.0 - rate * weight_decay) if weight_decay and p.ndim > 1 else p
        updated.append(kept - rate * torch.sign(_turned_back(total, p.shape)))
    return (updated,)


def pack_coefficients(x: Tensor) -> tuple[Tensor, Tensor]:
    """The largest coefficients of each piece, as `RankStep` says; of equal magnitudes the earlier."""
    flat_Cc = _turned(finite(x))
    count = min(SENT, flat_Cc.shape[1])
    places_Ck = torch.sort(flat_Cc.abs(), dim=1, descending=True, stable=True)[1][:, :count]
    values_Ck = flat_Cc.gather(1, places_Ck)
    places_Ck = places_Ck.to(torch.int32)
    rows = torch.cat([places_Ck & 255, joined(pad(places_Ck >> 8, (0, count % 2)))], 1)
    return rows.to(torch.uint8), ops.bits_of(values_Ck, torch.bfloat16)


def coefficients_of(rows: Tensor, bits_Ck: Tensor, shape: Sequence[int]) -> Tensor:
    """f32 [C, c] with what was sent in its places and zeros elsewhere; places beyond a piece are nobody's."""
    _, height, width = piece_layout(shape)
    count, size = bits_Ck.shape[1], height * width
    numbers = rows.to(torch.int32)
    places_Ck = numbers[:, :count] | (split(numbers[:, count:])[:, :count] << 8)
    value_Ck = torch.where(places_Ck < size, finite(bfloat16_of(bits_Ck)), 0.0)
    inside_Ck = torch.where(places_Ck < size, places_Ck, 0).long()
    return torch.zeros((rows.shape[0], size)).scatter_add(1, inside_Ck, value_Ck)


def unpack_coefficients(rows: Tensor, bits_Ck: Tensor, shape: Sequence[int]) -> Tensor:
    """What one rank's list stands for, in the parameter's shape."""
    return _turned_back(coefficients_of(rows, bits_Ck, shape), shape)


def piece_layout(shape: Sequence[int]) -> tuple[int, int, int]:
    """C, h and w of a parameter of this shape."""
    rows, columns = _matrix(shape)
    height, width = _divisor(rows), _divisor(columns)
    return (rows // height) * (columns // width), height, width


def cosines(size: int) -> Tensor:
    """The orthonormal transform of vectors of this size, f32 [size, size]: row k is the k-th frequency."""
    rows = [
        [math.sqrt((2.0 if k else 1.0) / size) * math.cos(math.pi * (n + 0.5) * k / size) for n in range(size)]
        for k in range(size)
    ]
    return torch.tensor(rows)


def _turned(x: Tensor) -> Tensor:
    """The transform of each piece, [C, c]."""
    rows, columns = _matrix(x.shape)
    _, height, width = piece_layout(x.shape)
    down, across = rows // height, columns // width
    turned = x.reshape(rows * across, width) @ cosines(width).t()
    pieces = turned.reshape(down, height, across, width).permute(0, 2, 3, 1).reshape(-1, height)
    return (pieces @ cosines(height).t()).reshape(down * across, width * height)


def _turned_back(flat_Cc: Tensor, shape: Sequence[int]) -> Tensor:
    """The parameter whose pieces' transforms these are."""
    rows, columns = _matrix(shape)
    _, height, width = piece_layout(shape)
    down, across = rows // height, columns // width
    pieces = flat_Cc.reshape(-1, height) @ cosines(height)
    lines = pieces.reshape(down, across, width, height).permute(0, 3, 1, 2).reshape(-1, width)
    return (lines @ cosines(width)).reshape(list(shape))


def _matrix(shape: Sequence[int]) -> tuple[int, int]:
    return (shape[0], math.prod(shape[1:])) if len(shape) > 1 else (1, math.prod(shape))


def _divisor(size: int) -> int:
    """The largest divisor up to SIDE."""
    return max(d for d in range(1, min(SIDE, size) + 1) if size % d == 0)
