"""Rows of numbers as tensors of examples, and which of them are held out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from assay.datasets.tables import TableRow, bad_row
from assay.datasets.writing import TensorFile
from assay.protocol.types import DType

_AT_ONCE: Final = 1 << 10


def is_held_out(number: int, percent: int) -> bool:
    """Whether example `number` is held out: at equal distances, so that order says nothing."""
    return number * percent // 100 != (number + 1) * percent // 100


class ExampleFiles:
    """Tensors of examples under way, each in a file for training and one for validation."""

    def __init__(self, folder: Path, names: Sequence[str], percent: int) -> None:
        self._folder, self._names, self._percent = folder, names, percent
        self.train: dict[str, TensorFile] = {}
        self.validation: dict[str, TensorFile] = {}
        self._counts: dict[int, int] = {}

    def open(self, dtypes: Sequence[DType], shapes: Sequence[tuple[int, ...]]) -> None:
        """Once types and shapes are known."""
        for part, files in (("train", self.train), ("validation", self.validation)):
            for k, (name, dtype, shape) in enumerate(zip(self._names, dtypes, shapes, strict=True)):
                files[name] = TensorFile.open(self._folder / f"{part}.{k}.rows", dtype, shape)

    def append(self, example: Sequence[npt.ArrayLike], kind: int = 0) -> None:
        """Adds an example; of each kind the same share is held out."""
        number = self._counts.get(kind, 0)
        self._counts[kind] = number + 1
        files = self.validation if is_held_out(number, self._percent) else self.train
        for name, value in zip(self._names, example, strict=True):
            files[name].append(np.asarray(value)[None])

    def close(self) -> None:
        """Ends writing."""
        for file in (*self.train.values(), *self.validation.values()):
            file.close()


def write_examples(folder: Path, rows: Iterable[TableRow], names: Sequence[str], percent: int) -> ExampleFiles:
    """Fields of numbers, or of lists of numbers of one shape: integers as i32, else f32, as the first row has them.

    Raises UserError (BadRow), with the place of a row that is otherwise.
    """
    made = ExampleFiles(folder, names, percent)
    dtypes: list[DType] = []
    shapes: list[tuple[int, ...]] = []
    for row in rows:
        if not dtypes:
            first = [_array(row, name, value) for name, value in zip(names, row.values, strict=True)]
            dtypes = [DType.I32 if a.dtype.kind in "iub" else DType.F32 for a in first]
            shapes = [a.shape for a in first]
            made.open(dtypes, shapes)
        found = [
            _fitting(row, name, value, dtype, shape)
            for name, value, dtype, shape in zip(names, row.values, dtypes, shapes, strict=True)
        ]
        made.append(found)
    made.close()
    return made


def _array(row: TableRow, name: str, value: Any) -> npt.NDArray[Any]:
    try:
        array = np.asarray(value)
    except (ValueError, OverflowError):
        array = np.asarray(None)
    if array.dtype.kind not in "iubf" or not array.size:
        raise bad_row(row.where, f"{name!r} holds neither a number nor a list of numbers of one shape")
    return array


def _fitting(row: TableRow, name: str, value: Any, dtype: DType, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    array = _array(row, name, value)
    if array.shape != shape:
        raise bad_row(row.where, f"{name!r} has the shape {list(array.shape)}, in the first row {list(shape)}")
    if dtype is DType.I32:
        if array.dtype.kind == "f":
            raise bad_row(row.where, f"{name!r} holds fractions, in the first row integers")
        if int(array.max()) >= 1 << 31 or int(array.min()) < -(1 << 31):
            raise bad_row(row.where, f"{name!r} holds an integer beyond 32 bits")
        return array
    with np.errstate(over="ignore"):
        narrow = array.astype(np.float32)
    if not np.isfinite(narrow).all():
        raise bad_row(row.where, f"{name!r} holds a number that float32 does not")
    return narrow
