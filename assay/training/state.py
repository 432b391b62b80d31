"""The state of training: lists (parameters, optimizer, scalars), in the order that the protocol fixes.

Source: docs/protocol.md section 4. Everything that influences a step is in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

TensorLists = tuple[list[Tensor], ...]
"""Lists of tensors: the state of a program, its X or its Y."""


def i32(*values: int, shape: tuple[int, ...] = ()) -> Tensor:
    """An i32 tensor of these numbers, each signed or as 32 unsigned bits."""
    signed = [((v & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000 for v in values]
    return torch.tensor(signed, dtype=torch.int32).reshape(shape)


@dataclass(frozen=True, slots=True)
class Scalars:
    """The third list; the fields stand in protocol order.

    step, key: i32 [2] (low, high word; the key's words as given). learning_rate: f32 []. seat, round, shard_start,
    shard_length: i32 []. data: u8 or u16 [L], the training split.
    """

    step: Tensor
    learning_rate: Tensor
    key: Tensor
    seat: Tensor
    round: Tensor
    shard_start: Tensor
    shard_length: Tensor
    data: Tensor

    @classmethod
    def of(
        cls,
        data: Tensor,
        *,
        learning_rate: float,
        step: int = 0,
        key: tuple[int, int] = (0, 0),
        seat: int = 0,
        round: int = 0,
        shard_start: int = 0,
        shard_length: int | None = None,
    ) -> Scalars:
        """The scalars with these values; key: two unsigned 32-bit words; shard_length: all of the data unless given."""
        return cls(
            step=i32(step & 0xFFFFFFFF, step >> 32, shape=(2,)),
            learning_rate=torch.tensor(learning_rate, dtype=torch.float32),
            key=i32(*key, shape=(2,)),
            seat=i32(seat),
            round=i32(round),
            shard_start=i32(shard_start),
            shard_length=i32(data.numel() if shard_length is None else shard_length),
            data=data,
        )

    @classmethod
    def from_list(cls, tensors: Sequence[Tensor]) -> Scalars:
        """The scalars of a state's third list."""
        return cls(*tensors)

    def to_list(self) -> list[Tensor]:
        """The third list of the state."""
        return [getattr(self, f.name) for f in fields(self)]

    def advanced(self) -> Scalars:
        """The same with `step` one further, carrying into the high word; all else as it is."""
        low, high = self.step[0], self.step[1]
        next_low = low + 1
        carry = (next_low == 0).to(torch.int32)
        return replace(self, step=torch.stack([next_low, high + carry]))


SCALAR_NAMES = tuple(f.name for f in fields(Scalars))
