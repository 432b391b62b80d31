"""Element types of programs as torch types, bit patterns as tensors, and the one NaN."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.protocol.types import DType

NAN_BITS = 0x7FC00000

TORCH: dict[DType, torch.dtype] = {
    DType.F32: torch.float32,
    DType.I32: torch.int32,
    DType.I64: torch.int64,
    DType.BOOL: torch.bool,
    DType.U8: torch.uint8,
    DType.I8: torch.int8,
    DType.U16: torch.uint16,
}
"""The torch type in which an executor keeps values of each element type."""

PROTOCOL = {torch_type: dtype for dtype, torch_type in TORCH.items()}

_SAME_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def bits(t: Tensor) -> Tensor:
    """The same memory as integers of the same size (u8, i16, i32, i64), for moving values without reading them."""
    return t.view(_SAME_SIZE[t.element_size()])


def canonical(t: Tensor) -> Tensor:
    """The value as a store writes it: f32 with the one NaN, bool of 0 and 1; the tensor itself when nothing changes.

    Arithmetic between nodes does not care which NaN it meets, so executors call this only where bits are read.
    """
    if t.dtype is not torch.float32:
        return t
    odd = t.isnan()
    return torch.where(odd, float("nan"), t) if bool(odd.any()) else t


def fill_tensor(dtype: DType, word: int) -> Tensor:
    """A 0-dimensional tensor with the element whose low bits are those of `word` (the fill of a view)."""
    size = dtype.size
    raw = bytearray((word & ((1 << 8 * size) - 1)).to_bytes(size, "little"))
    if dtype is DType.BOOL:
        raw[0] = int(word != 0)
    return torch.frombuffer(raw, dtype=TORCH[dtype]).clone().reshape(())


def from_bytes(dtype: DType, dims: tuple[int, ...], data: bytes) -> Tensor:
    """The tensor with these little-endian elements, in memory of its own; bools other than 0 become 1.

    Raises:
        ValueError: the length does not fit.
    """
    if len(data) == 0:
        return torch.zeros(dims, dtype=TORCH[dtype])
    if dtype is DType.BOOL:
        return torch.frombuffer(bytearray(data), dtype=torch.uint8).ne(0).reshape(dims)
    return torch.frombuffer(bytearray(data), dtype=TORCH[dtype]).reshape(dims)


def to_bytes(t: Tensor) -> bytes:
    """The canonical little-endian elements of a tensor, row-major."""
    return canonical(t).numpy().tobytes()
