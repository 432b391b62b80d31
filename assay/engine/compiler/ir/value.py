"""What the intermediate form is made of: axes, values that become nodes, and how a value reads another."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from assay.protocol.types import DType


@dataclass(frozen=True, slots=True)
class Axis:
    """An index range: `size` indices, `stride` elements apart; those outside [lo, hi) read the fill."""

    size: int
    stride: int
    lo: int
    hi: int

    @property
    def is_full(self) -> bool:
        """Whether no index reads the fill."""
        return self.lo <= 0 and self.hi >= self.size

    def split(self, inner: int) -> tuple[Axis, Axis]:
        """Two axes, the inner one of this size; the axis is full and divisible."""
        return full_axis(self.size // inner, self.stride * inner), full_axis(inner, self.stride)


def full_axis(size: int, stride: int) -> Axis:
    """An axis inside its source."""
    return Axis(size, stride, 0, size)


@dataclass(frozen=True, slots=True)
class ValueRead:
    """A value read over an index space: one axis per dimension, out before red."""

    value: Value
    axes: tuple[Axis, ...]
    offset: int = 0
    fill: int = 0


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant of a scalar program: f32 bits, or a number."""

    dtype: DType
    word: int


@dataclass(eq=False, slots=True)
class Value:
    """One tensor that the program computes, by identity.

    kind: input, const, pointwise, rowexp, max, dot, sum, gather, scatter_sum, rank, random. attributes: what else the
    node holds. sensitive: operands of products take the high precision (gradients of softmax and cross-entropy,
    softmax outputs). normalized: dims along which a softmax made the elements sum to 1. layout_hint: what is computed
    from it element by element lies in memory as it does (results of convolutions, whose channels lie innermost).
    """

    number: int
    kind: str
    dtype: DType
    dims: tuple[int, ...]
    red: tuple[int, ...] = ()
    reads: tuple[ValueRead, ...] = ()
    attributes: tuple = ()
    sensitive: bool = False
    normalized: frozenset[int] = frozenset()
    layout_hint: bool = False
    source: str = ""

    @property
    def numel(self) -> int:
        """Number of elements."""
        return prod(self.dims)
