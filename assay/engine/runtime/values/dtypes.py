"""Element types of programs as torch types, bit patterns as tensors, and the one NaN."""

from __future__ import annotations

import ctypes
from typing import Any

import torch
from torch import Tensor

from assay.engine.runtime.native.sha256 import hasher
from assay.mapped_files import mapping_of
from assay.protocol.digests import Buffer
from assay.protocol.types import DType

NAN_BITS = 0x7FC00000

_LOOKED_THROUGH = 1 << 4
"""Elements from which on a native kernel looks for odd NaNs faster than torch."""

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
    if t.dtype is torch.bool:
        odd = t.view(torch.uint8) > 1
        return t.view(torch.uint8).ne(0) if bool(odd.any()) else t
    if t.dtype is not torch.float32 or not _may_be_odd(t):
        return t
    odd = t.isnan()
    return torch.where(odd, float("nan"), t) if bool(odd.any()) else t


def _may_be_odd(t: Tensor) -> bool:
    """Whether some f32 is a NaN that no store writes; also true where no native kernel can look through the tensor."""
    kernels = hasher() if t.numel() > _LOOKED_THROUGH and t.is_contiguous() and t.device.type == "cpu" else None
    return kernels is None or kernels.has_odd_nan(t.data_ptr(), t.numel())


def fill_tensor(dtype: DType, word: int) -> Tensor:
    """A 0-dimensional tensor with the element whose low bits are those of `word` (the fill of a view)."""
    size = dtype.size
    raw = bytearray((word & ((1 << 8 * size) - 1)).to_bytes(size, "little"))
    if dtype is DType.BOOL:
        raw[0] = int(word != 0)
    return torch.frombuffer(raw, dtype=TORCH[dtype]).clone().reshape(())


def from_bytes(dtype: DType, dims: tuple[int, ...], data: Buffer) -> Tensor:
    """The tensor with these little-endian elements, in memory of its own; bits are kept, canonical or not.

    It lies on torch's default device, as other new tensors do. On a CPU that of a view of a mapped file lies in the
    file: whoever writes into it ends the process.

    Raises:
        ValueError: the length does not fit.
    """
    if len(data) == 0:
        return torch.zeros(dims, dtype=TORCH[dtype])
    held = mapped_memory(data) if mapping_of(data) is not None else bytearray(data)
    made = torch.frombuffer(held, dtype=TORCH[dtype]).reshape(dims)
    return made.to(torch.get_default_device())


def mapped_memory(data: Buffer) -> Any:
    """The memory of a view as torch takes it without a copy: torch knows no memory that must not be written to."""
    import numpy as np  # only an actor's data is mapped: a bare checkout has torch alone

    held = (ctypes.c_char * len(data)).from_address(np.frombuffer(data, np.uint8).ctypes.data)
    held.kept = data  # type: ignore[attr-defined]  # torch keeps `held`, and this keeps the mapping
    return held


def to_bytes(t: Tensor) -> bytes:
    """The little-endian elements of a computed value, row-major: as a store writes them."""
    return raw_bytes(canonical(t))


def raw_bytes(t: Tensor) -> bytes:
    """The little-endian elements of a slot, row-major: as they are in memory, canonical or not."""
    held = t if t.device.type == "cpu" and t.is_contiguous() else t.detach().cpu().contiguous()
    return ctypes.string_at(held.data_ptr(), held.nbytes)
