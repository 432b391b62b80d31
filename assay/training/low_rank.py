"""Two thin factors of an update: the compression of PowerSGD (Vogels et al., 2019).

A power iteration finds the left factor, whose columns are made orthonormal one after another by exact sums: the same
bits everywhere, where a library's QR differs between machines. Each seat factors its own update, and the merge sums the
products; the source averages the left factors between the two products, which would be a second phase of every round.
In its place the iteration runs twice here, which costs time and no byte.

Shapes: a parameter as a matrix of R rows (its first dimension) and C columns (all else), r <= 4 its rank on the wire.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import torch
from torch import Tensor

from assay.engine import ops
from assay.training.finite import INFINITE, finite
from assay.training.nibbles import bfloat16_of

RANK: Final = 4
"""Columns of a factor at most; the source's for language models."""

ITERATIONS: Final = 2
"""Of the power method: from columns that know nothing of the update, one is not enough."""


def pack_low_rank(update: Tensor) -> tuple[Tensor, Tensor]:
    """One parameter's update as the bfloat16 bits of two factors, u16 [R, r] orthonormal and u16 [C, r].

    What is not finite counts as zero.
    """
    rows, columns, rank = factor_layout(update.shape)
    x_RC = finite(update).reshape(rows, columns)
    right_Cr, bits_Rr = _drawn(columns, rank), None
    for _ in range(ITERATIONS):
        bits_Rr = ops.bits_of(_orthonormal(x_RC @ right_Cr), torch.bfloat16)
        right_Cr = x_RC.t() @ bfloat16_of(bits_Rr)
    assert bits_Rr is not None
    return bits_Rr, ops.bits_of(right_Cr, torch.bfloat16)


def unpack_low_rank(bits_Rr: Tensor, bits_Cr: Tensor, shape: Sequence[int]) -> Tensor:
    """The product of these factors, f32 in the parameter's shape, column after column; not finite where they are not.

    Rounded as f32 is, not as a program's products are: whoever reads the bytes elsewhere has the same numbers.
    """
    left_Rr, right_Cr = bfloat16_of(bits_Rr), bfloat16_of(bits_Cr)
    total = left_Rr[:, :1] * right_Cr[:, 0]
    for k in range(1, left_Rr.shape[1]):
        total = total + left_Rr[:, k : k + 1] * right_Cr[:, k]
    return total.reshape(list(shape))


def zero_low_rank(shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    """What stands for zeros: bytes of zero."""
    rows, columns, rank = factor_layout(shape)
    return torch.zeros((rows, rank), dtype=torch.uint16), torch.zeros((columns, rank), dtype=torch.uint16)


def factor_layout(shape: Sequence[int]) -> tuple[int, int, int]:
    """R, C and r of a parameter of this shape: factors hold half of its elements at most, or have one column."""
    rows, columns = (shape[0] if shape else 1), prod(shape[1:])
    return rows, columns, max(1, min(RANK, rows * columns // (2 * (rows + columns))))


def _drawn(columns: int, rank: int) -> Tensor:
    """Where the power method begins, f32 [C, r] in [-1, 1): the same for every update of this shape."""
    key, step = torch.tensor([columns, rank], dtype=torch.int32), torch.zeros(2, dtype=torch.int32)
    bits = ops.random_words(key, step, 0, columns * rank)
    return ((bits >> 8).to(torch.float32) * 2.0**-23).reshape(columns, rank)


def _orthonormal(x_Rr: Tensor) -> Tensor:
    """Its columns made orthonormal by Gram and Schmidt, each twice, which leaves nothing of the earlier ones.

    A column that the earlier ones span becomes whatever rounding leaves, orthogonal to them, or zeros.
    """
    done: list[Tensor] = []
    for k in range(x_Rr.shape[1]):
        column_R = x_Rr[:, k]
        for _ in range(2):
            for earlier_R in done:
                column_R = column_R - earlier_R * (earlier_R * column_R).sum()
            length = torch.sqrt((column_R * column_R).sum())
            column_R = column_R / torch.where(length > 0.0, length, INFINITE)
        done.append(column_R)
    return torch.stack(done, 1)
