"""What a solver publishes of a round: its update on the wire, from 32 bits a parameter down to a fifth of one.

Shapes: an update has its parameter's. Of an i8 update: R rows of C elements, a row being what one index of the first
dimension holds; a parameter whose rows are short, or that has none, is one row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from math import prod
from typing import Final

import torch
from torch import Tensor

from assay.engine import ops
from assay.protocol.errors import UserError
from assay.training.cocktail import base_key, pack_cocktail, unpack_cocktail, zero_cocktail
from assay.training.finite import INFINITE, finite
from assay.training.low_rank import pack_low_rank, unpack_low_rank, zero_low_rank
from assay.training.nibbles import bfloat16_of, pack_int4, unpack_int4, zero_int4
from assay.training.one_bit import pack_signs, unpack_signs, zero_signs
from assay.training.sparse import pack_sparse, unpack_sparse, zero_sparse

LARGEST: Final = 127
"""Of an i8 on the wire; -128 is not used, so that zero is in the middle."""

ROW: Final = 64
"""Elements that a row has at least to get a scale of its own: 4 bytes of scale on 64 are 6 %."""


class UpdateWire(Enum):
    """How an update travels.

    F32: one list laid out as the parameters. BF16: the bits of bfloat16, u16 laid out as the parameters. The others
    have a tensor of small numbers for each parameter, then for each one of scales, all in one list. INT8: i8 laid out
    as the parameters; a f32 scale per row, [R]. INT4: `nibbles.pack_int4`. SPARSE: `sparse.pack_sparse`. SIGN, POWERSGD
    and COCKTAIL: `one_bit`, `low_rank`, `cocktail`. Running statistics are f32 differences in all of
    them, at the end of the list.
    """

    F32 = "f32"
    BF16 = "bf16"
    INT8 = "int8"
    INT4 = "int4"
    SPARSE = "sparse"
    SIGN = "sign"
    POWERSGD = "powersgd"
    COCKTAIL = "cocktail"


def compute_update(start: Sequence[Tensor], end: Sequence[Tensor], *, statistics: int = 0) -> tuple[list[Tensor]]:
    """The update of one seat: start - end, tensor by tensor, those of statistics as well."""
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


def compute_update_bf16(start: Sequence[Tensor], end: Sequence[Tensor], *, statistics: int = 0) -> tuple[list[Tensor]]:
    """The same as the bits of bfloat16, u16, to the nearest, ties to even; what is not finite is sent as zero."""
    (update,) = compute_update(start, end)
    count = len(update) - statistics
    return ([*[ops.bits_of(finite(x), torch.bfloat16) for x in update[:count]], *update[count:]],)


def compute_update_int4(start: Sequence[Tensor], end: Sequence[Tensor], *, statistics: int = 0) -> tuple[list[Tensor]]:
    """The same in four bits a parameter, as `nibbles.pack_int4` says; nothing is remembered of what rounding takes."""
    return _packed(start, end, pack_int4, statistics)


def compute_update_sparse(
    start: Sequence[Tensor], end: Sequence[Tensor], *, statistics: int = 0
) -> tuple[list[Tensor]]:
    """The same with one parameter in 64, as `sparse.pack_sparse` says; nothing is remembered of what is not sent."""
    return _packed(start, end, pack_sparse, statistics)


def compute_update_sign(start: Sequence[Tensor], end: Sequence[Tensor], *, statistics: int = 0) -> tuple[list[Tensor]]:
    """The same in one bit a parameter, as `one_bit.pack_signs` says; nothing is remembered of how large it was."""
    return _packed(start, end, pack_signs, statistics)


def compute_update_powersgd(
    start: Sequence[Tensor], end: Sequence[Tensor], *, statistics: int = 0
) -> tuple[list[Tensor]]:
    """The same as two thin factors, as `low_rank.pack_low_rank` says; nothing is remembered of what they leave out."""
    return _packed(start, end, pack_low_rank, statistics)


def compute_update_cocktail(
    start: Sequence[Tensor], end: Sequence[Tensor], *, statistics: int = 0
) -> tuple[list[Tensor]]:
    """The same in the largest of a random eighth, as `cocktail.pack_cocktail` says, drawn by the start's own bits."""
    key = base_key(start[: len(start) - statistics])
    return _packed(start, end, lambda x: pack_cocktail(x, key), statistics)


def packed_list(whole: Sequence[Tensor], wire: UpdateWire, base: Sequence[Tensor]) -> list[Tensor]:
    """These f32 tensors on a wire of two tensors a parameter; base: what the round started from, f32 alike.

    INT8 is not among them: its rows are no blocks.
    """
    key = base_key(base) if wire is UpdateWire.COCKTAIL else None
    pairs = [pack_cocktail(x, key) if key is not None else _PACK[wire](x) for x in whole]
    return [*[values for values, _ in pairs], *[scales for _, scales in pairs]]


def packed_sum(whole: Sequence[Tensor], wire: UpdateWire, *, statistics: int = 0) -> list[Tensor]:
    """A group's sum on one of `SUM_WIRES`, rounded as an update is."""
    if wire is UpdateWire.F32:
        return list(whole)
    return COMPUTE_UPDATE[wire](whole, [torch.zeros_like(x) for x in whole], statistics=statistics)[0]


def received(
    update: Sequence[Tensor], wire: UpdateWire, shapes: Sequence[Sequence[int]], *, statistics: int = 0
) -> list[Tensor]:
    """The update that a list on the wire stands for, as it is: not finite where its sender made it so.

    shapes: the parameters', as which it is laid out; the last `statistics` tensors are running statistics.
    """
    end = len(update) - statistics
    if wire is UpdateWire.F32:
        return list(update)
    if wire is UpdateWire.BF16:
        return [*[bfloat16_of(bits) for bits in update[:end]], *update[end:]]
    count = end // 2
    unpack = _UNPACK[wire]
    pairs = zip(update[:count], update[count:end], shapes[:count], strict=True)
    return [*[unpack(values, scales, shape) for values, scales, shape in pairs], *update[end:]]


def zero_update(parameters: Sequence[Tensor], wire: UpdateWire, *, statistics: int = 0) -> list[Tensor]:
    """The list of a seat whose update is not counted: bytes of zero, laid out as the wire's."""
    count = len(parameters) - statistics
    shapes = [p.shape for p in parameters[:count]]
    still = [torch.zeros_like(p) for p in parameters[count:]]
    if wire is UpdateWire.F32:
        return [*[torch.zeros_like(p) for p in parameters[:count]], *still]
    if wire is UpdateWire.BF16:
        return [*[torch.zeros(shape, dtype=torch.uint16) for shape in shapes], *still]
    pairs = [_ZERO[wire](shape) for shape in shapes]
    return [*[values for values, _ in pairs], *[scales for _, scales in pairs], *still]


def rows_of(shape: Sequence[int]) -> int:
    """R: scales that a parameter of this shape has."""
    has_rows = len(shape) > 1 and prod(shape[1:]) >= ROW
    return shape[0] if has_rows else 1


def _packed(
    start: Sequence[Tensor], end: Sequence[Tensor], pack: Callable[[Tensor], tuple[Tensor, Tensor]], statistics: int
) -> tuple[list[Tensor]]:
    (update,) = compute_update(start, end)
    count = len(update) - statistics
    pairs = [pack(x) for x in update[:count]]
    return ([*[values for values, _ in pairs], *[scales for _, scales in pairs], *update[count:]],)


def _unpack_int8(values: Tensor, scale_R: Tensor, shape: Sequence[int]) -> Tensor:
    return (values.to(torch.float32).reshape(len(scale_R), -1) * scale_R[:, None]).reshape(values.shape)


def _zero_int8(shape: Sequence[int]) -> tuple[Tensor, Tensor]:
    return torch.zeros(list(shape), dtype=torch.int8), torch.zeros(rows_of(shape))


_UNPACK: Final = {
    UpdateWire.INT8: _unpack_int8,
    UpdateWire.INT4: unpack_int4,
    UpdateWire.SPARSE: unpack_sparse,
    UpdateWire.SIGN: unpack_signs,
    UpdateWire.POWERSGD: unpack_low_rank,
    UpdateWire.COCKTAIL: unpack_cocktail,
}
_ZERO: Final = {
    UpdateWire.INT8: _zero_int8,
    UpdateWire.INT4: zero_int4,
    UpdateWire.SPARSE: zero_sparse,
    UpdateWire.SIGN: zero_signs,
    UpdateWire.POWERSGD: zero_low_rank,
    UpdateWire.COCKTAIL: zero_cocktail,
}
_PACK: Final = {
    UpdateWire.INT4: pack_int4,
    UpdateWire.SPARSE: pack_sparse,
    UpdateWire.SIGN: pack_signs,
    UpdateWire.POWERSGD: pack_low_rank,
}

COMPUTE_UPDATE: Final = {
    UpdateWire.F32: compute_update,
    UpdateWire.BF16: compute_update_bf16,
    UpdateWire.INT8: compute_update_int8,
    UpdateWire.INT4: compute_update_int4,
    UpdateWire.SPARSE: compute_update_sparse,
    UpdateWire.SIGN: compute_update_sign,
    UpdateWire.POWERSGD: compute_update_powersgd,
    UpdateWire.COCKTAIL: compute_update_cocktail,
}
"""What a program of each wire was captured from."""

SUM_WIRES: Final = (UpdateWire.F32, UpdateWire.BF16, UpdateWire.INT8)
"""What a group's sum may travel as: rules that keep every element, in steps that are small beside what one seat can
make the largest one."""


def update_wire(name: str) -> UpdateWire:
    """The rule of this name. Raises UserError (UnknownCarrier)."""
    if name not in {wire.value for wire in UpdateWire}:
        raise _unknown("Updates", name, "UnknownCarrier", list(UpdateWire))
    return UpdateWire(name)


def sum_wire(name: str) -> UpdateWire:
    """As what sums of groups travel by this name. Raises UserError (UnknownSums)."""
    if name not in {wire.value for wire in SUM_WIRES}:
        raise _unknown("Sums of groups", name, "UnknownSums", SUM_WIRES)
    return UpdateWire(name)


def _unknown(what: str, name: str, code: str, known: Sequence[UpdateWire]) -> UserError:
    return UserError(
        f"{what} do not travel as {name!r}.",
        code=code,
        remedy=f"Choose one of: {', '.join(wire.value for wire in known)}.",
    )
