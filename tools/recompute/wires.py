"""What updates on the wire stand for, read by numpy alone: bytes, halves of bytes, and places in chunks.

How an update travels shows in the types of its list: f32; u16 for bfloat16; i8 and scales; u8 and one u16 scale a block
for four bits; u8 and two u16 levels a chunk for one parameter in 64.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

SIDE = 64


def numbers(update: list[Any], shapes: list[tuple[int, ...]]) -> list[Any]:
    """An update of parameters of these shapes as numbers."""
    kind = update[0].dtype.name
    if kind == "float32":
        return update
    if kind == "uint16":
        return [_bfloat16(bits) for bits in update]
    values, scales = update[: len(update) // 2], update[len(update) // 2 :]
    read = _rows if kind == "int8" else _blocks if scales[0].ndim == 1 else _chunks
    return [read(value, scale, shape) for value, scale, shape in zip(values, scales, shapes, strict=True)]


def _bfloat16(bits: Any) -> Any:
    return (bits.astype("<u4") << 16).view("<f4").astype("f8")


def _rows(value: Any, scale: Any, shape: tuple[int, ...]) -> Any:
    """Bytes times the scale of their row."""
    return (value.astype("f8").reshape(len(scale), -1) * scale[:, None]).reshape(shape)


def _blocks(packed: Any, bits: Any, shape: tuple[int, ...]) -> Any:
    """Halves of bytes, those below first, times the scale of their block."""
    codes = np.concatenate([packed % 16, packed // 16], axis=1).astype("i4")
    signed = np.where(codes < 8, codes, codes - 16)
    return (signed * _bfloat16(bits)[:, None]).reshape(-1)[: prod(shape)].reshape(shape)


def _chunks(rows: Any, bits: Any, shape: tuple[int, ...]) -> Any:
    """Places in order of +high, +low, -low, -high, and where each of these ends."""
    size = -(-prod(shape) // len(rows))
    count = min(SIDE, size)
    found = np.zeros((len(rows), size))
    for row, (high, low), own in zip(rows.astype("i4"), _bfloat16(bits), found, strict=True):
        above, ends = row[count:-3], row[-3:]
        places = row[:count] + 256 * np.concatenate([above % 16, above // 16])[:count]
        for k, place in enumerate(places):
            if place < size:
                own[place] += (high, low, -low, -high)[int((k >= ends).sum())]
    if len(shape) > 1 and shape[0] % SIDE == 0 and prod(shape[1:]) % SIDE == 0:
        across = prod(shape[1:]) // SIDE
        squares = found.reshape(-1, across, SIDE, SIDE)
        return np.concatenate([np.concatenate(list(line), axis=1) for line in squares]).reshape(shape)
    return found.reshape(-1)[: prod(shape)].reshape(shape)
