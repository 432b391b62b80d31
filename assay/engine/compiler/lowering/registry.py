"""The table of lowering rules, and what a rule may ask of the graph it is called for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.fx import Node

from assay.engine.compiler.ir.strided import Strided
from assay.engine.compiler.ir.value import Literal, Value
from assay.engine.compiler.ir.values import Fill, GraphValues, Tensorlike, fold, number
from assay.engine.runtime.values.dtypes import PROTOCOL
from assay.protocol.types import DType

LoweringRule = Callable[..., Any]

RULES: dict[Any, LoweringRule] = {}
"""ATen (or our own) operator overload to its rule (context, arguments as the operator takes them) -> tensors."""


SIXTEEN = {torch.bfloat16: "bfloat16", torch.float16: "float16"}
"""Types that are computed as f32, by name: their bits lie in u16 slots (`lowering/sixteen.py`)."""


class Unsupported(Exception):
    """Raised by a rule for arguments that no program expresses; the message says which."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Bits of the operands of products: a tier.

    sensitive: for gradients of softmax and cross-entropy, and for softmax outputs, where 14 bits ruin a model with a
    large vocabulary.
    """

    default: int = 14
    sensitive: int = 22


FIXED14 = Precision()
FIXED22 = Precision(22, 22)
FIXED8 = Precision(8, 22)


@dataclass(frozen=True, slots=True)
class Treatment:
    """What calibration chose for one product: bits above the tier's, columns that become a product of their own.

    axis: of the axes of the contraction, the one that the columns are indices of.
    """

    bits_a: int = 0
    bits_b: int = 0
    axis: int = 0
    columns: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Product:
    """A product as calibration names it: its number in the order of lowering, the same in every capture of a function.

    axes: sizes of the axes of the contraction. cuttable: those of which columns may become a product of their own.
    sensitive: one operand is a softmax's output or a gradient of one; its largest terms are its message, no outliers.
    """

    number: int
    axes: tuple[int, ...]
    cuttable: tuple[int, ...]
    sensitive: bool


@dataclass
class Context:
    """The graph being lowered; `result` is what PyTorch says of the present operation's output (fake tensors)."""

    values: GraphValues
    precision: Precision = FIXED14
    treatments: Mapping[int, Treatment] = field(default_factory=dict)
    result: Any = None
    node: Node | None = None
    """The operation being lowered, as PyTorch's graph has it."""
    known: Mapping[Node, Any] = field(default_factory=dict)
    """What the nodes of that graph became so far."""
    placed: dict[int, tuple[int, Strided]] = field(default_factory=dict)
    """Positions in the order of ranks, by the number of their value: the dimension, and the ranks."""
    products: list[tuple[Value, Product]] = field(default_factory=list)
    """All products so far, with the dot that each became."""
    narrowed: dict[str, str] = field(default_factory=dict)
    """The user's lines that cast to 16 bits, and to which type."""

    @property
    def dtype(self) -> DType:
        """The element type of the (first) result."""
        first = self.result[0] if isinstance(self.result, tuple | list) else self.result
        return program_dtype(first.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the (first) result."""
        first = self.result[0] if isinstance(self.result, tuple | list) else self.result
        return tuple(first.shape)

    def apply(self, op: str, *args: Any, dtype: DType | None = None, parameters: tuple = ()) -> Tensorlike:
        """An elementwise operation on tensors and Python numbers; numbers take the type of the first tensor."""
        tensors = [a for a in args if isinstance(a, Strided | Fill)]
        of = tensors[0].dtype if tensors else DType.F32
        operands = [a if isinstance(a, Strided | Fill | Literal) else number(of.value_type, a) for a in args]
        return self.values.pointwise(op, operands, of.value_type if dtype is None else dtype, parameters)

    def cast(self, x: Any, dtype: DType) -> Any:
        """A tensor or number in another element type."""
        if isinstance(x, Literal):
            return Literal(dtype, fold("cast", [x], dtype, (dtype,)))
        if not isinstance(x, Strided | Fill):
            return number(dtype, x)
        if x.dtype is dtype:
            return x
        return self.values.pointwise("cast", [x], dtype, (dtype,))

    def strided(self, x: Tensorlike) -> Strided:
        """A tensor that a value backs."""
        return self.values.materialize(x)

    def bits_of(self, x: Strided) -> int:
        """The precision that the tier gives to a product's operand."""
        return self.precision.sensitive if x.value.sensitive else self.precision.default


def program_dtype(dtype: torch.dtype) -> DType:
    """The element type of a program for a torch type: int64 is computed as i32, since indices fit, 16-bit ones as f32.

    Raises:
        Unsupported: there is none.
    """
    if dtype is torch.int64:
        return DType.I32
    if dtype in SIXTEEN:
        return DType.F32
    if dtype is torch.float64:
        raise Unsupported("element type torch.float64 (write .float(): a step computes in float32)")
    if dtype not in PROTOCOL:
        raise Unsupported(f"element type {dtype}")
    return PROTOCOL[dtype]


def lowers(*targets: Any) -> Callable[[LoweringRule], LoweringRule]:
    """Register a rule for these operators."""

    def register(rule: LoweringRule) -> LoweringRule:
        for target in targets:
            RULES[target] = rule
        return rule

    return register


def axis(dim: int, rank: int) -> int:
    """A dimension counted from the front. Raises Unsupported of a single number, which has none."""
    if rank == 0:
        raise Unsupported("a single number along a dimension (reshape it to [1] first)")
    return dim + rank if dim < 0 else dim


def all_axes(dims: Sequence[int] | int | None, rank: int) -> tuple[int, ...]:
    """Dimensions counted from the front, ascending; none given means all. A single number has none."""
    if rank == 0 or dims is None or (not isinstance(dims, int) and not dims):
        return tuple(range(rank))
    given = [dims] if isinstance(dims, int) else dims
    return tuple(sorted(axis(d, rank) for d in given))
