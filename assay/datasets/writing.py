"""Tensors written as their rows come, as safetensors files of which no byte depends on anything but the values.

Rows go to a file a tensor; at the end these become one safetensors file behind a header of their types and shapes.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

from assay.protocol.types import DType

NUMPY: Final[dict[DType, str]] = {
    DType.U8: "|u1",
    DType.U16: "<u2",
    DType.I32: "<i4",
    DType.F32: "<f4",
}
"""Element types that converters write, little-endian as all tensors are."""

_NAMES: Final = {DType.F32: "F32", DType.I32: "I32", DType.U16: "U16", DType.U8: "U8"}
_COPIED: Final = 1 << 24


@dataclass
class TensorFile:
    """The rows of one tensor so far. shape: of a row."""

    path: Path
    dtype: DType
    shape: tuple[int, ...]
    stream: BinaryIO
    count: int = 0

    @classmethod
    def open(cls, path: Path, dtype: DType, shape: tuple[int, ...] = ()) -> TensorFile:
        """An empty one."""
        return cls(path, dtype, shape, path.open("wb"))

    def append(self, rows: npt.ArrayLike) -> None:
        """Adds rows [n, *shape], whose numbers the element type holds."""
        array = np.asarray(rows, dtype=NUMPY[self.dtype])
        assert array.shape[1:] == self.shape, (array.shape, self.shape)
        self.stream.write(array.tobytes())
        self.count += len(array)

    def close(self) -> None:
        """Ends writing."""
        self.stream.close()

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return prod(self.shape) * self.dtype.size


@dataclass(frozen=True, slots=True)
class FileRows:
    """Some adjacent rows of a tensor's file: what one file of the result holds of it."""

    source: TensorFile
    start: int
    count: int

    @property
    def dims(self) -> tuple[int, ...]:
        """Of the tensor."""
        return (self.count, *self.source.shape)


def write_tensors(path: Path, tensors: Mapping[str, FileRows]) -> None:
    """One safetensors file of these tensors, in the order that the format's own library writes. Raises OSError."""
    order: Sequence[str] = sorted(tensors, key=lambda name: (-tensors[name].source.dtype.size, name))
    entries, at = [], 0
    for name in order:
        rows = tensors[name]
        end = at + rows.count * rows.source.row_bytes
        dims = ",".join(map(str, rows.dims))
        kind = _NAMES[rows.source.dtype]
        written = json.dumps(name, ensure_ascii=False)
        entries.append(f'{written}:{{"dtype":"{kind}","shape":[{dims}],"data_offsets":[{at},{end}]}}')
        at = end
    header = ("{" + ",".join(entries) + "}").encode()
    header += b" " * (-len(header) % 8)
    with path.open("wb") as out:
        out.write(len(header).to_bytes(8, "little") + header)
        for name in order:
            rows = tensors[name]
            with rows.source.path.open("rb") as stream:
                stream.seek(rows.start * rows.source.row_bytes)
                _copy(stream, out, rows.count * rows.source.row_bytes)


def _copy(stream: BinaryIO, out: BinaryIO, size: int) -> None:
    while size:
        chunk = stream.read(min(size, _COPIED))
        if not chunk:
            raise OSError(f"a temporary file ended {size} bytes too early")
        out.write(chunk)
        size -= len(chunk)


def remove(folder: Path) -> None:
    """A folder that is no longer wanted."""
    shutil.rmtree(folder, ignore_errors=True)
