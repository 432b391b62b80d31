"""Reading operands whole, for executors in Python: addresses of a view, rows over reduced dims, quantized rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from assay.protocol.arithmetic.rounding import quantize
from assay.protocol.arithmetic.words import Word, as_f32, canonical, from_bytes
from assay.protocol.program.nodes import Operand
from assay.protocol.program.views import View
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType

_quantized = lru_cache(maxsize=1 << 18)(quantize)


def load(dtype: DType, data: bytes) -> list[Word]:
    """The canonical words of a tensor's bytes."""
    raw = from_bytes(dtype, data)
    return [canonical(dtype, w) for w in raw] if dtype in (DType.F32, DType.BOOL) else raw


def addresses(view: View, dims: Sequence[int], first: int = 0, offset: int | None = None) -> list[int | None]:
    """The source element per index over dims first..first+len(dims) of a view, row-major; None where it reads fill."""
    found: list[int | None] = [view.offset if offset is None else offset]
    for d, size in enumerate(dims, first):
        stride, lo, hi = view.strides[d], view.lo[d], view.hi[d]
        found = [None if a is None or not lo <= i < hi else a + i * stride for a in found for i in range(size)]
    return found


def read_all(operand: Operand, dims: Sequence[int], words: Sequence[list[Word]]) -> list[Word]:
    """The words of an operand over an index space."""
    source, fill = words[operand.node], operand.view.fill
    return [fill if a is None else at(source, a) for a in addresses(operand.view, dims)]


def at(source: Sequence[Word], address: int) -> Word:
    """An element; 0 outside the source."""
    return source[address] if 0 <= address < len(source) else 0


class Rows:
    """The rows of an operand over out + red, one per output element; equal rows are read once."""

    def __init__(self, operand: Operand, spec: TensorSpec, red: Sequence[int], words: Sequence[list[Word]]) -> None:
        self.bases = addresses(operand.view, spec.dims)
        self._inner = addresses(operand.view, red, len(spec.dims), 0)
        self._source, self._fill = words[operand.node], operand.view.fill
        self._rows: dict[int | None, list[Word]] = {}

    def row(self, o: int) -> list[Word]:
        """The words of the row of output element o."""
        base = self.bases[o]
        if base not in self._rows:
            self._rows[base] = [
                self._fill if base is None or i is None else at(self._source, base + i) for i in self._inner
            ]
        return self._rows[base]

    def each(self, of: Callable[[list[Word]], int]) -> Iterator[int]:
        """`of` every row, computed once per different row."""
        known: dict[int | None, int] = {}
        for o, base in enumerate(self.bases):
            if base not in known:
                known[base] = of(self.row(o))
            yield known[base]


class QuantizedRows:
    """Rows quantized under the exponent of their output element, each pair of row and exponent once."""

    def __init__(self, rows: Rows, precision: int) -> None:
        self._rows, self._precision = rows, precision
        self._known: dict[tuple[int | None, int], list[int]] = {}

    def row(self, o: int, exponent: int) -> list[int]:
        """q_p of the row of output element o."""
        key = self._rows.bases[o], exponent
        if key not in self._known:
            self._known[key] = [_quantized(as_f32(w), self._precision, exponent) for w in self._rows.row(o)]
        return self._known[key]
