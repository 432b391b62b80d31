"""A random eighth, the largest of that, in four bits: the three compressors of CocktailSGD (Wang et al., 2023).

Which eighth is drawn by Philox from the base's own bits: all seats of a round offer the same places and the next round
others, and nobody chooses them. The key travels with the update, since a merge reads it alone; a false key
names other places and no more.

Shapes: a parameter in C chunks of c <= 4096 elements, as `sparse.chunks_of` cuts it, each of G groups of 8 neighbours,
the last filled with zeros. One element of each group is offered, the same of every chunk; k <= 64 of them are sent, k'
= k made even.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import pad

from assay.engine import ops
from assay.training.finite import INFINITE, finite
from assay.training.nibbles import MOST, bfloat16_of, joined, split
from assay.training.sparse import SENT, chunk_layout, chunks_of, whole_of

GROUP: Final = 8
"""Elements of which one is offered in a round."""


def base_key(base: Sequence[Tensor]) -> Tensor:
    """What a round's places are drawn from, i32 [2]: 32 bits of the sum of the base's upper halves, 16 in each."""
    total = torch.zeros((), dtype=torch.int32)
    for parameter in base:
        total = total + ops.bits_of(parameter, torch.bfloat16).to(torch.int32).sum(dtype=torch.int32)
    return torch.stack([total & 0xFFFF, (total >> 16) & 0xFFFF])


def pack_cocktail(update: Tensor, key: Tensor) -> tuple[Tensor, Tensor]:
    """One parameter's update as u8 [C, k + k' / 2 + 1] and u16 [C + 2]: bfloat16 bits of C scales, then the key.

    A row: the lower 8 bits of k groups in ascending order, k numbers of -7..7 two by two, and how many of the list are
    below group 256. What is not finite counts as zero, a block too small for a scale as zeros.
    """
    chunks_Cc = chunks_of(finite(update))
    size = chunks_Cc.shape[1]
    groups, count = groups_of(size)
    padded = pad(chunks_Cc, (0, groups * GROUP - size))
    offered_CG = padded.index_select(1, _places(key, groups))
    largest_Ck = torch.sort(offered_CG.abs(), dim=1, descending=True, stable=True)[1][:, :count]
    # Groups are below 2^24, so that f32 has them in order.
    groups_Ck = torch.sort(largest_Ck.to(torch.float32), dim=1, stable=True)[0].to(torch.int32)
    values_Ck = offered_CG.gather(1, groups_Ck.long())
    bits_C = ops.bits_of(values_Ck.abs().amax(1) / float(MOST), torch.bfloat16)
    scale_C = bfloat16_of(bits_C)
    steps_Ck = values_Ck / torch.where(scale_C > 0.0, scale_C, INFINITE)[:, None]
    codes_Ck = torch.round(steps_Ck).clamp(-MOST, MOST).to(torch.int32) & 15
    first_C1 = torch.where(groups_Ck < 256, 1, 0).to(torch.int32).sum(1, dtype=torch.int32)[:, None]
    rows = torch.cat([groups_Ck & 255, joined(pad(codes_Ck, (0, count % 2))), first_C1], 1).to(torch.uint8)
    return rows, torch.cat([bits_C, key.to(torch.uint16)])


def unpack_cocktail(rows: Tensor, bits: Tensor, shape: Sequence[int]) -> Tensor:
    """What these stand for, f32 in the parameter's shape; a group that is named several times has their sum."""
    _, size = chunk_layout(shape)
    groups, count = groups_of(size)
    numbers, chunks = rows.to(torch.int32), rows.shape[0]
    is_upper_Ck = torch.arange(count, dtype=torch.int32) >= numbers[:, -1:]
    groups_Ck = numbers[:, :count] | torch.where(is_upper_Ck, 256, 0)
    codes_Ck = (split(numbers[:, count:-1])[:, :count] ^ 8) - 8
    value_Ck = codes_Ck.to(torch.float32) * finite(bfloat16_of(bits[:chunks]))[:, None]
    # Attack: a group that a short chunk lacks is nobody's.
    value_Ck = torch.where(groups_Ck < groups, value_Ck, 0.0)
    places_G = _places(bits[chunks:].to(torch.int32), groups)
    place_Ck = ops.take(places_G, torch.where(groups_Ck < groups, groups_Ck, 0))
    chunks_Cc = torch.zeros((chunks, groups * GROUP)).scatter_add(1, place_Ck.long(), value_Ck)
    return whole_of(chunks_Cc[:, :size], shape)


def zero_cocktail(shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """What stands for zeros: bytes of zero."""
    chunks, size = chunk_layout(shape)
    _, count = groups_of(size)
    width = count + (count + 1) // 2 + 1
    return torch.zeros((chunks, width), dtype=torch.uint8), torch.zeros(chunks + 2, dtype=torch.uint16)


def groups_of(size: int) -> tuple[int, int]:
    """G and k of chunks of this size."""
    groups = -(-size // GROUP)
    return groups, min(SENT, groups)


def _places(key: Tensor, groups: int) -> Tensor:
    """The element of each group that is offered, counted from the chunk's first, i32 [G]."""
    words_G = ops.random_words(key, torch.zeros(2, dtype=torch.int32), 0, groups)
    return torch.arange(groups, dtype=torch.int32) * GROUP + (words_G & (GROUP - 1))
