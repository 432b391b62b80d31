"""One bit a parameter: its sign, over the mean magnitude of its block.

Signs over a mean magnitude are the compressor of EF-signSGD (Karimireddy et al., 2019) and of 1-bit Adam (Tang et al.,
2021), which scale whole tensors; blocks cost an eighth of a bit more at most and tell large rows from small ones.

Shapes: n elements of a parameter in B blocks of b <= 256 elements, as few of one size as there can be, b a multiple of
8; the last is filled with zeros.
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
from assay.training.nibbles import bfloat16_of

BLOCK: Final = 256
"""Elements under one scale of two bytes, at most: a sixteenth of a bit each."""


def pack_signs(update: Tensor) -> tuple[Tensor, Tensor]:
    """One parameter's update as u8 [B, b / 8], a bit that is set below zero, and bfloat16 bits of scales, u16 [B].

    What is not finite counts as zero; a zero is sent as one above it.
    """
    count, size = sign_layout(update.shape)
    flat = finite(update).reshape(-1)
    blocks_Bb = pad(flat, (0, count * size - flat.numel())).reshape(count, size)
    # Over the elements that there are, on average of a block: what fills the last one is no number.
    mean_B = blocks_Bb.abs().sum(1) / (flat.numel() / count)
    below_Bb = torch.where(blocks_Bb < 0.0, 1, 0).to(torch.int32)
    eighth = size // 8
    packed = below_Bb[:, :eighth]
    for k in range(1, 8):
        packed = packed | (below_Bb[:, k * eighth : (k + 1) * eighth] << k)
    return packed.to(torch.uint8), ops.bits_of(mean_B, torch.bfloat16)


def unpack_signs(packed: Tensor, bits_B: Tensor, shape: Sequence[int]) -> Tensor:
    """What these stand for, f32 in the parameter's shape; not finite where a scale is not."""
    whole = packed.to(torch.int32)
    below_Bb = torch.cat([(whole >> k) & 1 for k in range(8)], 1)
    scale_B1 = bfloat16_of(bits_B)[:, None]
    values_Bb = torch.where(below_Bb == 1, -scale_B1, scale_B1)
    return values_Bb.flatten()[: prod(shape)].reshape(list(shape))


def zero_signs(shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """What stands for zeros: bytes of zero."""
    count, size = sign_layout(shape)
    return torch.zeros((count, size // 8), dtype=torch.uint8), torch.zeros(count, dtype=torch.uint16)


def sign_layout(shape: Sequence[int]) -> tuple[int, int]:
    """B and b of a parameter of this shape."""
    count = -(-prod(shape) // BLOCK)
    return count, -(-prod(shape) // (8 * count)) * 8
