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
    each parameter, all in one list. Running statistics are as they are in both, at the end of the list.
    """

    F32 = "f32"
    INT8 = "int8"


def compute_update(start: Sequence[Tensor], end: Sequence[Tensor]) -> tuple[list[Tensor]]:
    """The update of one seat: start - end, tensor by tensor."""
    return ([s - e for s, e in zip(start, end, strict=True)],)


def compute_update_int8(start: Sequence[Tensor], end: Sequence[Tensor], *, statistics: int = 0) -> tuple[list[Tensor]]:
    """The same as i8 and scales: each row over its largest magnitude, to the nearest of 255 values, ties to even.

    What is not finite is sent as zero. What rounding takes away is not remembered: there is no state beside the base.
    statistics: tensors at the end of the lists that are sent as differences, unrounded: they are small, and a variance
    of one channel would be lost beside another's.
    """
    values: list[Tensor] = []
    scales: list[Tensor] = []
    count = len(start) - statistics
    for s, e in zip(start[:count], end[:count], strict=True):
        update_RC = finite(s - e).reshape(rows_of(s.shape), -1)
        scale_R = update_RC.abs().amax(1) / float(LARGEST)
        # A row of zeros, or of numbers so small that their scale is none, is sent as zeros.
        steps_RC = update_RC / torch.where(scale_R > 0.0, scale_R, INFINITE)[:, None]
        values.append(torch.round(steps_RC).clamp(-LARGEST, LARGEST).to(torch.int8).reshape(s.shape))
        scales.append(scale_R)
    return ([*values, *scales, *compute_update(start[count:], end[count:])[0]],)


def received(update: Sequence[Tensor], wire: UpdateWire, *, statistics: int = 0) -> list[Tensor]:
    """The update that a list on the wire stands for, as it is: not finite where its sender made it so.

    Laid out as the parameters; the last `statistics` tensors are running statistics.
    """
    if wire is UpdateWire.F32:
        return list(update)
    end = len(update) - statistics
    count = end // 2
    unpacked = [
        (values.to(torch.float32).reshape(len(scale_R), -1) * scale_R[:, None]).reshape(values.shape)
        for values, scale_R in zip(update[:count], update[count:end], strict=True)
    ]
    return [*unpacked, *update[end:]]


def zero_update(parameters: Sequence[Tensor], wire: UpdateWire, *, statistics: int = 0) -> list[Tensor]:
    """The list of a seat whose update is not counted: zeros, laid out as the wire's."""
    count = 0 if wire is UpdateWire.F32 else len(parameters) - statistics
    values = [torch.zeros(p.shape, dtype=torch.int8) for p in parameters[:count]]
    scales = [torch.zeros(rows_of(p.shape)) for p in parameters[:count]]
    return [*values, *scales, *[torch.zeros_like(p) for p in parameters[count:]]]


def rows_of(shape: Sequence[int]) -> int:
    """R: scales that a parameter of this shape has."""
    has_rows = len(shape) > 1 and prod(shape[1:]) >= ROW
    return shape[0] if has_rows else 1


def finite(x: Tensor) -> Tensor:
    """x with zero where it is NaN or infinite."""
    return torch.where(x.abs() < INFINITE, x, 0.0)
