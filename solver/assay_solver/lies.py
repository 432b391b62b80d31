"""How a run is altered: changes of single nodes, from which everything after them is computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from assay.protocol.arithmetic.words import canonical, from_bytes, to_bytes
from assay.protocol.program.nodes import Const, Input, Output
from assay.protocol.program.program import Program
from assay.protocol.trees.tensors import TensorSpec

Change = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Lie:
    """A `Tamper`: changes of single nodes, by (step, node), with step 0 for every step."""

    changes: Mapping[tuple[int, int], Change]

    def touches(self, step: int, node: int) -> bool:
        """Does it change this value?"""
        return (step, node) in self.changes or (0, node) in self.changes

    def __call__(self, step: int, node: int, data: bytes) -> bytes:
        """The bytes that the node's value is claimed to have."""
        change = self.changes.get((step, node)) or self.changes.get((0, node))
        return data if change is None else change(data)


def is_computed(program: Program, node: int) -> bool:
    """Is a node's value computed by the contract, and not compared with another root?"""
    return not isinstance(program.nodes[node], Input | Const | Output)


def output_source(program: Program, number: int) -> int:
    """The first computed node that an output of a list of Y names."""
    ends = (program.nodes[k] for k in program.output_nodes[number])
    return next(end.node for end in ends if isinstance(end, Output) and is_computed(program, end.node))


def constant(value: bytes) -> Change:
    """These bytes, whatever the run gives."""
    return lambda _: value


def flipped(spec: TensorSpec, data: bytes) -> bytes:
    """The first element with one bit flipped, and zero where that would be no number.

    In an f32 a middle bit of the mantissa: the lowest is often rounded away by the next step, and a lie that leaves no
    trace in the claimed end is none.
    """
    size = spec.dtype.size
    (word,) = from_bytes(spec.dtype, data[:size])
    bent = canonical(spec.dtype, word ^ (1 << 12 if spec.dtype.is_float else 1))
    return to_bytes(spec.dtype, [bent if bent != word else 0]) + data[size:]
