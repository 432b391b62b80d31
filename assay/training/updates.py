"""What a solver publishes of a round: its update on the wire, in f32 or in one byte a parameter.

Shapes: an update has its parameter's. Of an i8 update: R rows of C elements, a row being what one index of the first
dimension holds; a parameter whose rows are short, or that has none, is one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod
from typing import Final

import torch
from torch import Tensor

INFINITE: Final = float("inf")
LARGEST: Final = 127
"""Of an i8 on the wire; -128 is not used, so that zero is in the middle."""

ROW: Final = 64
"""Elements that a row has at least to get a scale of its own: 4 bytes of scale on 64 are 6 %."""


class UpdateWire(Enum):
    """How an update travels.

    F32: one list laid out as the parameters. INT8: i8 laid out as the parameters, then a f32 scale per row, [R], for
    each parameter, all in one list.
    """

    F32 = "f32"
    INT8 = "int8"


def compute_update(start: Sequence[Tensor], end: Sequence[Tensor]) -> tuple[list[Tensor]]:
    """The update of one seat: start - end, tensor by tensor."""
    return ([s - e for s, e in zip(start, end, strict=True)],)


def compute_update_int8(start: Sequence[Tensor], end: Sequence[Tensor]) -> tuple[list[Tensor]]:
    """The same as i8 and scales: each row over its largest magnitude, to the nearest of 255 values, ties to even.

    What is not finite is sent as zero. What rounding takes away is not remembered: there is no state beside the base.
    """
    values: list[Tensor] = []
    scales: list[Tensor] = []
    for s, e in zip(start, end, strict=True):
        update_RC = finite(s - e).reshape(rows_of(s.shape), -1)
        scale_R = update_RC.abs().amax(1) / float(LARGEST)
        # A row of zeros, or of numbers so small that their scale is none, is sent as zeros.
        steps_RC = update_RC / torch.where(scale_R > 0.0, scale_R, INFINITE)[:, None]
        values.append(torch.round(steps_RC).clamp(-LARGEST, LARGEST).to(torch.int8).reshape(s.shape))
        scales.append(scale_R)
    return ([*values, *scales],)


def received(update: Sequence[Tensor], wire: UpdateWire) -> list[Tensor]:
    """The f32 update that a list on the wire stands for, as it is: not finite where its sender made it so."""
    if wire is UpdateWire.F32:
        return list(update)
    count = len(update) // 2
    return [
        (values.to(torch.float32).reshape(len(scale_R), -1) * scale_R[:, None]).reshape(values.shape)
        for values, scale_R in zip(update[:count], update[count:], strict=True)
    ]


def zero_update(parameters: Sequence[Tensor], wire: UpdateWire) -> list[Tensor]:
    """The list of a seat whose update is not counted: zeros, laid out as the wire's."""
    if wire is UpdateWire.F32:
        return [torch.zeros_like(p) for p in parameters]
    values = [torch.zeros(p.shape, dtype=torch.int8) for p in parameters]
    return [*values, *[torch.zeros(rows_of(p.shape)) for p in parameters]]


def rows_of(shape: Sequence[int]) -> int:
    """R: scales that a parameter of this shape has."""
    has_rows = len(shape) > 1 and prod(shape[1:]) >= ROW
    return shape[0] if has_rows else 1


def finite(x: Tensor) -> Tensor:
    """x with zero where it is NaN or infinite."""
    return torch.where(x.abs() < INFINITE, x, 0.0)
