"""Four bits a parameter: blocks of 64 over their largest magnitude, two numbers of -7..7 to a byte.

Blocks of 64 with a scale of their own are those of QLoRA (Dettmers et al., 2023); outer updates of four bits lost
nothing in Streaming DiLoCo (Douillard et al., 2025), whose E3M0 has powers of two where this has equal steps.

Shapes: n elements of a parameter in B blocks of b, b = 64, or n made even where n is smaller; the last block is filled
with zeros. C rows of any kind of k small numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import torch
from torch import Tensor
from torch.nn.functional import pad

from assay.engine import ops
from assay.training.finite import INFINITE, finite

BLOCK: Final = 64
"""Elements under one scale of two bytes: a quarter of a bit each."""

MOST: Final = 7
"""Of a number on the wire; -8 is not used, so that zero is in the middle."""


def pack_int4(update: Tensor) -> tuple[Tensor, Tensor]:
    """One parameter's update as u8 [B, b / 2] and the bits of a bfloat16 scale per block, u16 [B].

    To the nearest step, ties to even; what is not finite is sent as zero, and so is a block too small for a scale. The
    steps are those of the scale as it is sent.
    """
    blocks_Bb = _blocks(finite(update))
    bits_B = ops.bits_of(blocks_Bb.abs().amax(1) / float(MOST), torch.bfloat16)
    scale_B = bfloat16_of(bits_B)
    steps_Bb = blocks_Bb / torch.where(scale_B > 0.0, scale_B, INFINITE)[:, None]
    whole_Bb = torch.round(steps_Bb).clamp(-MOST, MOST).to(torch.int32)
    return joined(whole_Bb & 15).to(torch.uint8), bits_B


def unpack_int4(packed: Tensor, bits_B: Tensor, shape: Sequence[int]) -> Tensor:
    """What these stand for, f32 in the parameter's shape; not finite where a scale is not."""
    # Four bits with a sign: 8..15 are -8..-1.
    whole_Bb = (split(packed) ^ 8) - 8
    values_Bb = whole_Bb.to(torch.float32) * bfloat16_of(bits_B)[:, None]
    return values_Bb.flatten()[: prod(shape)].reshape(list(shape))


def zero_int4(shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """What stands for zeros: bytes of zero."""
    count, size = block_layout(shape)
    return torch.zeros((count, size // 2), dtype=torch.uint8), torch.zeros(count, dtype=torch.uint16)


def block_layout(shape: Sequence[int]) -> tuple[int, int]:
    """B and b of a parameter of this shape."""
    count = prod(shape)
    size = min(BLOCK, count + count % 2)
    return -(-count // size), size


def joined(small_Ck: Tensor) -> Tensor:
    """Numbers 0..15 two by two, i32 [C, k] to i32 [C, k / 2]: the first half of a row below, its second half above."""
    half = small_Ck.shape[1] // 2
    return small_Ck[:, :half] | (small_Ck[:, half:] << 4)


def split(packed: Tensor) -> Tensor:
    """The numbers 0..15 that `joined` put together: [C, k / 2] of integers to i32 [C, k]."""
    both = packed.to(torch.int32)
    return torch.cat([both & 15, both >> 4], 1)


def bfloat16_of(bits: Tensor) -> Tensor:
    """The numbers whose bfloat16 bits these are, f32 in the shape of u16."""
    return ops.floats_of(bits, torch.bfloat16).to(torch.float32)


def _blocks(x: Tensor) -> Tensor:
    count, size = block_layout(x.shape)
    return pad(x.reshape(-1), (0, count * size - x.numel())).reshape(count, size)
