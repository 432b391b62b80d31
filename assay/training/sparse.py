"""One parameter in 64, in two bits and its place: the compression of SparseLoCo (Sarfi et al., 2025).

Of each chunk of 64 x 64 the 64 largest magnitudes are sent, ties by the earlier place; a number becomes one of four,
two magnitudes with either sign. The sources send 12 bits of place and 2 of code for each, 146 times less than f32. Here
the order in which places are listed says the code, so that three counts a chunk take the place of the 2 bits.

Shapes: n elements of a parameter in C chunks of c <= 4096 elements, of which k are sent, k' = k made even.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import pad

from assay.engine import ops
from assay.training.finite import finite
from assay.training.nibbles import bfloat16_of, joined, split

SIDE: Final = 64
CHUNK: Final = SIDE * SIDE
"""Elements that share their levels; a place in a chunk has 12 bits."""

SENT: Final = 64
"""Elements of a chunk that are sent."""

DECAY: Final = 0.95
"""What remains each round of what was not sent, where that is carried."""


def pack_sparse(update: Tensor) -> tuple[Tensor, Tensor]:
    """One parameter's update as u8 [C, k + k' / 2 + 3] and the bits of two bfloat16 levels, u16 [C, 2].

    A row: the lower 8 bits of k places, their upper 4 bits two by two, and how many of the list have at least code 0,
    1, 2, in the order of codes +high, +low, -low, -high. What is not finite counts as zero.
    """
    chunks_Cc = chunks_of(finite(update))
    count = sent_of(chunks_Cc.shape[1])
    by_size_Cc = torch.sort(chunks_Cc.abs(), dim=1, descending=True, stable=True)[1]
    places_Ck = by_size_Cc[:, :count]
    values_Ck, order_Ck = torch.sort(chunks_Cc.gather(1, places_Ck), dim=1, descending=True, stable=True)
    places_Ck = places_Ck.gather(1, order_Ck).to(torch.int32)
    size_Ck = values_Ck.abs()
    above_Ck = size_Ck > (size_Ck.sum(1) / float(count))[:, None]
    is_plus_Ck = values_Ck >= 0.0
    levels_C2 = torch.stack([_mean(size_Ck, above_Ck), _mean(size_Ck, ~above_Ck)], 1)
    ends_C3 = torch.stack([_count(above_Ck & is_plus_Ck), _count(is_plus_Ck), _count(is_plus_Ck | ~above_Ck)], 1)
    upper = joined(pad(places_Ck >> 8, (0, count % 2)))
    rows = torch.cat([places_Ck & 255, upper, ends_C3], 1).to(torch.uint8)
    return rows, ops.bits_of(levels_C2, torch.bfloat16)


def unpack_sparse(rows: Tensor, bits_C2: Tensor, shape: Sequence[int]) -> Tensor:
    """What these stand for, f32 in the parameter's shape; a place that is named several times has their sum."""
    _, size = chunk_layout(shape)
    count = sent_of(size)
    numbers = rows.to(torch.int32)
    upper_Ck = split(numbers[:, count:-3])[:, :count]
    places_Ck = numbers[:, :count] | (upper_Ck << 8)
    ends_C3, levels_C2 = numbers[:, -3:], finite(bfloat16_of(bits_C2))
    at_k = torch.arange(count, dtype=torch.int32)
    is_high_Ck = (at_k < ends_C3[:, :1]) | (at_k >= ends_C3[:, 2:])
    level_Ck = torch.where(is_high_Ck, levels_C2[:, :1], levels_C2[:, 1:])
    value_Ck = torch.where(at_k < ends_C3[:, 1:2], level_Ck, -level_Ck)
    # Attack: a place beyond a short chunk is nobody's.
    value_Ck = torch.where(places_Ck < size, value_Ck, 0.0)
    inside_Ck = torch.where(places_Ck < size, places_Ck, 0).long()
    chunks_Cc = torch.zeros((rows.shape[0], size)).scatter_add(1, inside_Ck, value_Ck)
    return whole_of(chunks_Cc, shape)


def zero_sparse(shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """What stands for zeros: bytes of zero."""
    chunks, size = chunk_layout(shape)
    count = sent_of(size)
    width = count + (count + 1) // 2 + 3
    return torch.zeros((chunks, width), dtype=torch.uint8), torch.zeros((chunks, 2), dtype=torch.uint16)


def chunk_layout(shape: Sequence[int]) -> tuple[int, int]:
    """C and c of a parameter of this shape: as few chunks as there can be, of one size."""
    chunks = -(-prod(shape) // CHUNK)
    return chunks, -(-prod(shape) // chunks)


def sent_of(size: int) -> int:
    """k: how many of a chunk of so many are sent."""
    return min(SENT, size)


def _tiles(shape: Sequence[int]) -> tuple[int, int] | None:
    """Rows and columns in sides of 64, where a parameter is a matrix that they divide."""
    if len(shape) < 2 or shape[0] % SIDE or prod(shape[1:]) % SIDE:
        return None
    return shape[0] // SIDE, prod(shape[1:]) // SIDE


def chunks_of(x: Tensor) -> Tensor:
    """[C, c]: squares of a matrix that is made of them, else pieces of the flat tensor with zeros at the end."""
    tiles = _tiles(x.shape)
    if tiles is not None:
        down, across = tiles
        return x.reshape(down, SIDE, across, SIDE).permute(0, 2, 1, 3).reshape(down * across, CHUNK)
    count, size = chunk_layout(x.shape)
    return pad(x.reshape(-1), (0, count * size - x.numel())).reshape(count, size)


def whole_of(chunks_Cc: Tensor, shape: Sequence[int]) -> Tensor:
    """The tensor of this shape whose chunks these are."""
    tiles = _tiles(shape)
    if tiles is not None:
        down, across = tiles
        return chunks_Cc.reshape(down, across, SIDE, SIDE).permute(0, 2, 1, 3).reshape(list(shape))
    return chunks_Cc.reshape(-1)[: prod(shape)].reshape(list(shape))


def _mean(x_Ck: Tensor, chosen_Ck: Tensor) -> Tensor:
    """The mean of the chosen of each row, [C]; 0 where none is."""
    chosen = torch.where(chosen_Ck, 1.0, 0.0)
    return (x_Ck * chosen).sum(1) / torch.maximum(chosen.sum(1), torch.ones(()))


def _count(chosen_Ck: Tensor) -> Tensor:
    return chosen_Ck.to(torch.int32).sum(1, dtype=torch.int32)
