"""What a tape is made of: operations on numbered tensors, and what is known of operations that are alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor
from torch._ops import OpOverload

from assay.engine.compiler.steps import Steps


class NotOnTape(Exception):
    """Raised where an operation is none that a tape takes; never seen by a user."""


@dataclass(frozen=True, slots=True)
class TensorNumber:
    """A tensor of the tape, by its number: inputs first, then what operations make or write."""

    number: int


@dataclass(frozen=True, slots=True)
class ConstantNumber:
    """A tensor with values, by its number among those of the tape."""

    number: int


@dataclass(frozen=True, slots=True)
class Taped:
    """One operation. arguments: (positional, named), tensors by reference, numbers with their types."""

    func: OpOverload
    arguments: Any
    results: tuple[int | None, ...]
    """Numbers of the tensors of its result, in order, then of those that it writes."""
    is_sequence: bool


@dataclass
class Signatures:
    """What is known of operations by their signatures, shared by the tapes of one function."""

    results: dict[Any, list[Any]] = field(default_factory=dict)
    templates: dict[Any, Steps] = field(default_factory=dict)
    decompositions: Mapping[Any, Callable[..., Any]] | None = None
    """How operations are written out; PyTorch takes a while to list it."""
    kept: list[Tensor] = field(default_factory=list)
    """Constants that signatures name by identity, which no other tensor may take over."""
