"""What updates on the wire stand for, read by numpy alone: bytes, their parts, places in chunks, and factors.

How an update travels shows in the types and shapes of its list: f32; u16 for bfloat16; i8 and scales; u16 twice for two
factors; u8 and two u16 levels a chunk for one parameter in 64; u8 and one u16 scale a block for four bits, or for one
where bytes are too few for four; and with a key of two u16 more, the largest of a random eighth.
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
    if kind == "uint16" and len(update) == len(shapes):
        return [_bfloat16(bits) for bits in update]
    values, scales = update[: len(update) // 2], update[len(update) // 2 :]
    if kind == "int8":
        read = _rows
    elif kind == "uint16":
        read = _factors
    elif scales[0].ndim == 2:
        read = _chunks
    elif len(scales[0]) == len(values[0]) + 2:
        read = _offered
    else:
        is_small = any(2 * value.size < prod(shape) for value, shape in zip(values, shapes, strict=True))
        read = _signs if is_small else _blocks
    return [read(value, scale, shape) for value, scale, shape in zip(values, scales, shapes, strict=True)]


def _bfloat16(bits: Any) -> Any:
    return (bits.astype("<u4") << 16).view("<f4").astype("f8")


def _finite(x: Any) -> Any:
    return np.where(np.isfinite(x), x, 0.0)


def _single(x: Any) -> Any:
    """Rounded to f32."""
    with np.errstate(over="ignore"):
        return x.astype("f4").astype("f8")


def _rows(value: Any, scale: Any, shape: tuple[int, ...]) -> Any:
    """Bytes times the scale of their row."""
    return (value.astype("f8").reshape(len(scale), -1) * scale[:, None]).reshape(shape)


def _blocks(packed: Any, bits: Any, shape: tuple[int, ...]) -> Any:
    """Halves of bytes, those below first, times the scale of their block."""
    codes = np.concatenate([packed % 16, packed // 16], axis=1).astype("i4")
    signed = np.where(codes < 8, codes, codes - 16)
    return (signed * _bfloat16(bits)[:, None]).reshape(-1)[: prod(shape)].reshape(shape)


def _signs(packed: Any, bits: Any, shape: tuple[int, ...]) -> Any:
    """The lowest bits of a row of bytes first; one that is set is below zero."""
    below = np.concatenate([packed >> k & 1 for k in range(8)], axis=1)
    return (np.where(below, -1.0, 1.0) * _bfloat16(bits)[:, None]).reshape(-1)[: prod(shape)].reshape(shape)


def _factors(left: Any, right: Any, shape: tuple[int, ...]) -> Any:
    """The sum of the columns' products, in their order and in f32."""
    total = np.zeros((len(left), len(right)), "f4")
    for a, b in zip(_bfloat16(left).T, _bfloat16(right).T, strict=True):
        total = total + np.outer(a, b).astype("f4")
    return total.reshape(shape)


def _offered(rows: Any, bits: Any, shape: tuple[int, ...]) -> Any:
    """Groups of eight, numbers of four bits, and the key from which the element of each group is drawn."""
    size = -(-prod(shape) // len(rows))
    groups = -(-size // 8)
    count = min(SIDE, groups)
    picked = 8 * np.arange(groups) + (_philox(int(bits[-2]), int(bits[-1]), groups) & 7)
    found = np.zeros((len(rows), 8 * groups))
    for row, scale, own in zip(rows.astype("i4"), _finite(_bfloat16(bits[:-2])), found, strict=True):
        halves = row[count:-1]
        codes = np.concatenate([halves % 16, halves // 16])[:count]
        # A number is one of f32, infinite beyond it; sums of numbers are exact.
        values = _single((codes - 16 * (codes > 7)) * scale)
        for k in range(count):
            group = row[k] + (256 if k >= row[-1] else 0)
            if group < groups:
                with np.errstate(invalid="ignore"):
                    own[picked[group]] += values[k]
    return _squares(found[:, :size], shape)


def _philox(k0: int, k1: int, count: int) -> Any:
    """Words of Philox4x32-10 (Salmon et al., 2011) at counters (n, 0, 0, 0)."""
    found: list[int] = []
    for block in range(-(-count // 4)):
        c, a, b = (block, 0, 0, 0), k0, k1
        for _ in range(10):
            p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = (q >> 32 ^ c[1] ^ a, q & 0xFFFFFFFF, p >> 32 ^ c[3] ^ b, p & 0xFFFFFFFF)
            a, b = a + 0x9E3779B9 & 0xFFFFFFFF, b + 0xBB67AE85 & 0xFFFFFFFF
        found += c
    return np.array(found[:count])


def _chunks(rows: Any, bits: Any, shape: tuple[int, ...]) -> Any:
    """Places in order of +high, +low, -low, -high, and where each of these ends."""
    size = -(-prod(shape) // len(rows))
    count = min(SIDE, size)
    found = np.zeros((len(rows), size))
    for row, (high, low), own in zip(rows.astype("i4"), _finite(_bfloat16(bits)), found, strict=True):
        above, ends = row[count:-3], row[-3:]
        places = row[:count] + 256 * np.concatenate([above % 16, above // 16])[:count]
        for k, place in enumerate(places):
            if place < size:
                own[place] += (high, low, -low, -high)[int((k >= ends).sum())]
    return _squares(found, shape)


def _squares(found: Any, shape: tuple[int, ...]) -> Any:
    """The parameter whose chunks these are."""
    if len(shape) > 1 and shape[0] % SIDE == 0 and prod(shape[1:]) % SIDE == 0:
        across = prod(shape[1:]) // SIDE
        squares = found.reshape(-1, across, SIDE, SIDE)
        return np.concatenate([np.concatenate(list(line), axis=1) for line in squares]).reshape(shape)
    return found.reshape(-1)[: prod(shape)].reshape(shape)
