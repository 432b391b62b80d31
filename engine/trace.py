"""The trace of a run by re-execution: what a player of a game is asked for, without ever storing a whole trace.

Kept are the start, the slot roots after each step, as many states between steps as fit a limit, the node roots of the
step last asked about and the values of few nodes. Everything else is computed again when it is asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence

from torch import Tensor

from assay.engine.dtypes import to_bytes
from assay.engine.executor import Executor
from assay.engine.native_sha256 import tensor_root
from assay.engine.state_io import (
    ListBytes,
    from_lists_of_bytes,
    input_specs,
    output_specs,
    tensor_from_bytes,
    to_lists_of_bytes,
)
from assay.protocol.errors import InvariantError
from assay.protocol.nodes import Input, Output, reads
from assay.protocol.prefix import PrefixTree
from assay.protocol.program import Program
from assay.protocol.state import SlotLists, list_roots, state_root
from assay.protocol.trace import SlotTamper, Tamper
from assay.protocol.types import Digest

MAX_STATE_BYTES = 1 << 28
"""Bytes of states between steps that a trace keeps; beyond them it runs again from the start."""

MAX_NODE_BYTES = 1 << 26
"""Bytes of node values that a trace keeps; those of one question are always kept."""


class TorchTrace:
    """`protocol.trace.Trace` by the stock-torch executor; with `tamper`, the consistent trace of a liar.

    `tamper` alters a node's value and everything after it is computed from the altered one; one that has a method
    `touches(step, node)` is asked for the nodes that it names only. `tamper_slot` alters a slot of a state behind the
    output node that it must equal.
    """

    def __init__(
        self,
        program: Program | Executor,
        state: Sequence[Sequence[Tensor]] | ListBytes,
        steps: int = 1,
        tamper: Tamper | None = None,
        tamper_slot: SlotTamper | None = None,
    ) -> None:
        """Nothing is run yet. state: tensors, or their bytes, per slot of X.

        Raises:
            InvariantError: NotIterable, more than one step of a program whose outputs are no inputs.
        """
        self._executor = program if isinstance(program, Executor) else Executor(program)
        self._program = self._executor.program
        if steps != 1 and not self._program.is_iterable():
            raise InvariantError("A program whose Y is no X runs for one step only.", code="NotIterable")
        self._count = steps
        self._tamper, self._tamper_slot = tamper, tamper_slot
        self._ins, self._outs = input_specs(self._program), output_specs(self._program)
        start = _as_bytes(state)
        self._states: dict[int, ListBytes] = {0: start}
        self._slot_roots: list[SlotLists] = [self._roots_of(start, 0, None)]
        self._prefix: tuple[int, PrefixTree, tuple[Digest, ...]] | None = None
        self._nodes: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    @property
    def program(self) -> Program:
        """See Trace."""
        return self._program

    @property
    def steps(self) -> int:
        """See Trace."""
        return self._count

    def state_root(self, t: int) -> Digest:
        """See Trace."""
        return state_root(self._slots(t))

    def list_roots(self, t: int) -> tuple[Digest, ...]:
        """See Trace."""
        return list_roots(self._slots(t))

    def slot_roots(self, t: int, number: int) -> tuple[Digest, ...]:
        """See Trace."""
        return self._slots(t)[number]

    def slot_bytes(self, t: int, number: int, index: int) -> bytes:
        """The bytes of a slot of state t."""
        return self.state_bytes(t)[number][index]

    def state_bytes(self, t: int) -> ListBytes:
        """The bytes of state t, computed again from the nearest state that is kept."""
        at = max(k for k in self._states if k <= t)
        state = self._states[at]
        while at < t:
            at += 1
            state = self._advance(at, state)
        return state

    def prefix_root(self, t: int, k: int) -> Digest:
        """See Trace."""
        return self._traced(t)[0].roots[k]

    def prefix_path(self, t: int, k: int, j: int) -> tuple[Digest, ...]:
        """See Trace."""
        return self._traced(t)[0].path(k, j)

    def node_root(self, t: int, k: int) -> Digest:
        """See Trace."""
        return self._traced(t)[1][k]

    def node_bytes(self, t: int, k: int) -> bytes:
        """See Trace; the values that the node reads are kept as well, since they are asked for next."""
        if (t, k) not in self._nodes:
            wanted = {k, *reads(self._program.nodes[k])}
            found: dict[int, bytes] = {}

            def keep(node: int, data: Callable[[], bytes]) -> None:
                if node in wanted:
                    found[node] = data()

            self._run(t, self.state_bytes(t - 1), keep)
            for node, data in found.items():
                self._nodes[t, node] = data
            while len(self._nodes) > len(found) and sum(map(len, self._nodes.values())) > MAX_NODE_BYTES:
                self._nodes.popitem(last=False)
        return self._nodes[t, k]

    def _slots(self, t: int) -> SlotLists:
        """The slot roots of state t; runs the steps up to it once."""
        while len(self._slot_roots) <= t:
            step = len(self._slot_roots)
            self._advance(step, self.state_bytes(step - 1))
        return self._slot_roots[t]

    def _advance(self, t: int, state: ListBytes) -> ListBytes:
        """State t from state t-1; its roots are noted, and the state itself is kept while states fit the limit."""
        after = self._run(t, state)
        if len(self._slot_roots) == t:
            self._slot_roots.append(self._roots_of(after, t, state))
        kept = {id(data): len(data) for lists in self._states.values() for part in lists for data in part}
        new = sum(len(data) for part in after for data in part if id(data) not in kept)
        if sum(kept.values()) + new <= MAX_STATE_BYTES:
            self._states[t] = after
        return after

    def _roots_of(self, state: ListBytes, t: int, before: ListBytes | None) -> SlotLists:
        """The slot roots of state t; a slot whose bytes were passed through keeps its root."""
        known: dict[int, Digest] = {}
        if before is not None:
            for datas, roots in zip(before, self._slot_roots[t - 1], strict=True):
                known.update((id(data), root) for data, root in zip(datas, roots, strict=True))
        return tuple(
            tuple(known.get(id(d)) or tensor_root(spec, d) for spec, d in zip(specs, datas, strict=True))
            for specs, datas in zip(self._outs if t else self._ins, state, strict=True)
        )

    def _traced(self, t: int) -> tuple[PrefixTree, tuple[Digest, ...]]:
        """The prefix tree and the node roots of one step; those of the last step asked about are kept."""
        if self._prefix is None or self._prefix[0] != t:
            roots: list[Digest] = []
            slots = [root for part in self._slots(t - 1) for root in part]
            specs, nodes = self._program.specs, self._program.nodes

            def hash_node(k: int, data: Callable[[], bytes]) -> None:
                node = nodes[k]
                if self._tamper is None and isinstance(node, Input):
                    roots.append(slots[k])
                elif self._tamper is None and isinstance(node, Output):
                    roots.append(roots[node.node])
                else:
                    roots.append(tensor_root(specs[k], data()))

            self._run(t, self.state_bytes(t - 1), hash_node)
            self._prefix = t, PrefixTree(roots), tuple(roots)
        return self._prefix[1], self._prefix[2]

    def _run(
        self, t: int, state: ListBytes, see: Callable[[int, Callable[[], bytes]], None] | None = None
    ) -> ListBytes:
        """Run step t from a state's bytes; `see` gets every node and a way to its claimed bytes. Returns state t."""
        inputs = from_lists_of_bytes(self._ins, state)
        flat = [data for part in state for data in part]
        altered: dict[int, bytes] = {}
        tamper = self._tamper
        touches = getattr(tamper, "touches", lambda _t, _k: True)

        def claimed(k: int, value: Tensor) -> bytes:
            node = self._program.nodes[k]
            source = node.node if isinstance(node, Output) else k
            if source in altered:
                return altered[source]
            # Slots are taken as they came, canonical or not; what is computed is stored canonically.
            return flat[source] if source < len(flat) else to_bytes(value)

        def hook(k: int, value: Tensor) -> Tensor:
            if tamper is not None and touches(t, k):
                honest = claimed(k, value)
                lie = tamper(t, k, honest)
                if lie != honest:
                    value = tensor_from_bytes(self._program.specs[k], lie)
                    altered[k] = lie
            if see is not None:
                see(k, lambda: altered.get(k) or claimed(k, value))
            return value

        results = self._executor.run(inputs, hook if see is not None or tamper is not None else None)
        first = len(self._program.nodes) - sum(self._program.outputs)
        after, k = [], first
        for number, part in enumerate(results):
            datas = []
            for index, value in enumerate(part):
                data = altered.get(k) or claimed(k, value)
                if self._tamper_slot is not None:
                    data = self._tamper_slot(t, number, index, data)
                datas.append(data)
                k += 1
            after.append(tuple(datas))
        return tuple(after)


def _as_bytes(state: Sequence[Sequence[Tensor]] | ListBytes) -> ListBytes:
    if any(isinstance(slot, Tensor) for part in state for slot in part):
        return to_lists_of_bytes(state)  # type: ignore[arg-type]
    return tuple(tuple(bytes(slot) for slot in part) for part in state)
