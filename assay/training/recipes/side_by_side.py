"""Several data tensors as one, for a run: a start that the contract builds has room for one data root.

What belongs to one example stands in one row, and the loss is given it taken apart again, in the shapes and element
types that the recipe has. Nothing is rounded: a type is found that holds every number, or there is none.

Shapes: N entries in the data, C numbers of an entry in all tensors together, B examples, W entries of a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod
from typing import Final

import torch
from torch import Tensor, nn

from assay.protocol.errors import UserError
from assay.training.recipes.form import Loss, Recipe

EXACT: Final = 1 << 24
"""Integers up to this are f32 numbers."""


@dataclass(frozen=True)
class ApartLoss:
    """A loss whose batch stands side by side. shapes: of an entry in each tensor, without its first dimension."""

    loss: Loss
    shapes: tuple[tuple[int, ...], ...]
    dtypes: tuple[torch.dtype, ...]

    def __call__(self, module: nn.Module, rows: Tensor) -> Tensor:
        """The loss of rows [B, C] or, of windows, [B, W, C]."""
        return self.loss(module, *self.apart(rows))

    def apart(self, rows: Tensor) -> list[Tensor]:
        """The batch as the recipe's own loss knows it: [B, ...] or [B, W, ...] each."""
        ends = [0]
        for shape in self.shapes:
            ends.append(ends[-1] + prod(shape))
        parts = [rows[..., a:b] for a, b in pairwise(ends)]
        return [
            part.reshape(*rows.shape[:-1], *shape).to(dtype)
            for part, shape, dtype in zip(parts, self.shapes, self.dtypes, strict=True)
        ]


def side_by_side(recipe: Recipe) -> Recipe:
    """The same recipe with one data tensor [N, C]; a recipe that has one is returned as it is.

    Raises UserError (MixedData), where no element type holds the numbers of all.
    """
    if len(recipe.data) == 1:
        return recipe
    held_out = recipe.validation
    dtype = common_type([*recipe.data, *(held_out or ())])
    shapes, dtypes = tuple(tuple(t.shape[1:]) for t in recipe.data), tuple(t.dtype for t in recipe.data)
    return replace(
        recipe,
        data=(_rows(recipe.data, dtype),),
        loss=ApartLoss(recipe.loss, shapes, dtypes),
        validation=None if held_out is None else (_rows(held_out, dtype),),
    )


def _rows(tensors: Sequence[Tensor], dtype: torch.dtype) -> Tensor:
    return torch.cat([t.reshape(t.shape[0], -1).to(dtype) for t in tensors], 1)


def common_type(tensors: Sequence[Tensor]) -> torch.dtype:
    """The smallest element type that holds every number of these tensors as it is. Raises UserError (MixedData)."""
    kinds = {t.dtype for t in tensors}
    if len(kinds) == 1 and torch.int64 not in kinds:
        return kinds.pop()
    integers = [t.to(torch.int64) for t in tensors if not t.is_floating_point() and t.numel()]
    low = min((int(t.min()) for t in integers), default=0)
    high = max((int(t.max()) for t in integers), default=0)
    if all(not t.is_floating_point() for t in tensors):
        return torch.uint8 if low >= 0 and high < 1 << 8 else torch.int32
    if max(-low, high) > EXACT:
        raise UserError(
            f"The data has fractions in one tensor and integers up to {max(-low, high)} in another: "
            "no element type of a run's one data tensor holds both.",
            code="MixedData",
            remedy=f"Keep the integers within {EXACT}, for example as two tensors of their high and low halves.",
        )
    return torch.float32
