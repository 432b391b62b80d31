"""Traces: what a player of a game knows of a run, and the reference one, which can also be made to lie.

Positions are those of docs/protocol.md, section 5: state t = 0..steps; step t = 1..steps leads from state t-1 to t;
prefix k = 0..n of step t commits to the values of nodes 0..k-1 in that step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.protocol.errors import InvariantError
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.trees.prefix import PrefixTree
from assay.protocol.trees.state import list_roots, state_root
from assay.protocol.trees.tensors import tensor_root
from assay.protocol.types import Digest

Tamper = Callable[[int, int, bytes], bytes]
"""(step, node, bytes) to the bytes that the node's value is claimed to have; the same bytes mean no lie there."""

OnStep = Callable[[int], None]
"""Told the number of steps done after each."""

SlotTamper = Callable[[int, int, int, bytes], bytes]
"""(step, list, index, bytes) to the bytes that the slot of the state after the step is claimed to have."""


class Trace(Protocol):
    """What both players of a game ask for; every executor can answer it."""

    @property
    def program(self) -> Program:
        """The program that is run."""
        ...

    @property
    def steps(self) -> int:
        """How many times it is run."""
        ...

    def state_root(self, t: int) -> Digest:
        """The root of state t."""
        ...

    def list_roots(self, t: int) -> tuple[Digest, ...]:
        """The roots of the lists of state t."""
        ...

    def slot_roots(self, t: int, number: int) -> tuple[Digest, ...]:
        """The tensor roots of a list of state t."""
        ...

    def prefix_root(self, t: int, k: int) -> Digest:
        """P_k of step t."""
        ...

    def prefix_path(self, t: int, k: int, j: int) -> tuple[Digest, ...]:
        """The 20 siblings of leaf j under P_k of step t; with j = k the append path of node k."""
        ...

    def node_root(self, t: int, k: int) -> Digest:
        """The tensor root of node k's value in step t."""
        ...

    def node_bytes(self, t: int, k: int) -> bytes:
        """The bytes of node k's value in step t."""
        ...


@dataclass(frozen=True, slots=True)
class _ReferenceStep:
    """One step of a reference trace."""

    values: tuple[bytes, ...]
    roots: tuple[Digest, ...]
    prefix: PrefixTree


class ReferenceTrace:
    """A trace by the reference executor, kept whole; with a hook, the consistent trace of a liar.

    `tamper` alters a node's value and everything after it is computed from the altered one: the lie begins in exactly
    that node, whatever its family. `tamper_slot` alters a slot of a state behind the output node that it must equal.
    """

    def __init__(
        self,
        program: Program,
        state: Sequence[Sequence[bytes]],
        steps: int = 1,
        tamper: Tamper | None = None,
        tamper_slot: SlotTamper | None = None,
    ) -> None:
        """Runs `steps` steps from a state given by the bytes of its slots per list.

        Raises:
            InvariantError: more than one step of a program whose outputs are no inputs.
            TensorSizeError: a slot has another size than its input node.
        """
        if steps != 1 and not program.is_iterable():
            raise InvariantError("A program whose Y is no X runs for one step only.", code="NotIterable")
        self._program = program
        self._steps: list[_ReferenceStep] = []
        self._states: list[tuple[tuple[bytes, ...], ...]] = [tuple(tuple(bytes(b) for b in slots) for slots in state)]
        inputs = [[program.specs[k] for k in nodes] for nodes in program.input_nodes]
        outputs = [[program.specs[k] for k in nodes] for nodes in program.output_nodes]
        executor = ReferenceExecutor(program)
        for t in range(1, steps + 1):
            alter = None if tamper is None else (lambda k, data, t=t: tamper(t, k, data))
            values = executor.run(self._states[-1], alter)
            roots = tuple(tensor_root(spec, data) for spec, data in zip(program.specs, values, strict=True))
            self._steps.append(_ReferenceStep(values, roots, PrefixTree(roots)))
            self._states.append(self._after(t, values, tamper_slot))
        self._slot_roots = [
            tuple(
                tuple(tensor_root(spec, data) for spec, data in zip(specs, slots, strict=True))
                for specs, slots in zip(outputs if t else inputs, lists, strict=True)
            )
            for t, lists in enumerate(self._states)
        ]

    def _after(self, t: int, values: Sequence[bytes], tamper: SlotTamper | None) -> tuple[tuple[bytes, ...], ...]:
        """The state that a step's values end in."""
        return tuple(
            tuple(values[k] if tamper is None else tamper(t, number, index, values[k]) for index, k in enumerate(nodes))
            for number, nodes in enumerate(self._program.output_nodes)
        )

    @property
    def program(self) -> Program:
        """See Trace."""
        return self._program

    @property
    def steps(self) -> int:
        """See Trace."""
        return len(self._steps)

    def state_root(self, t: int) -> Digest:
        """See Trace."""
        return state_root(self._slot_roots[t])

    def list_roots(self, t: int) -> tuple[Digest, ...]:
        """See Trace."""
        return list_roots(self._slot_roots[t])

    def slot_roots(self, t: int, number: int) -> tuple[Digest, ...]:
        """See Trace."""
        return self._slot_roots[t][number]

    def slot_bytes(self, t: int, number: int, index: int) -> bytes:
        """The bytes of a slot of state t."""
        return self._states[t][number][index]

    def prefix_root(self, t: int, k: int) -> Digest:
        """See Trace."""
        return self._steps[t - 1].prefix.roots[k]

    def prefix_path(self, t: int, k: int, j: int) -> tuple[Digest, ...]:
        """See Trace."""
        return self._steps[t - 1].prefix.path(k, j)

    def node_root(self, t: int, k: int) -> Digest:
        """See Trace."""
        return self._steps[t - 1].roots[k]

    def node_bytes(self, t: int, k: int) -> bytes:
        """See Trace."""
        return self._steps[t - 1].values[k]


def flip_bit(step: int, node: int, bit: int = 0) -> Tamper:
    """The smallest lie: one bit of one node's value in one step."""

    def tamper(t: int, k: int, data: bytes) -> bytes:
        if (t, k) != (step, node):
            return data
        altered = bytearray(data)
        altered[bit // 8] ^= 1 << bit % 8
        return bytes(altered)

    return tamper
