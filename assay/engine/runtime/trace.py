"""The trace of a run by re-execution: what a player of a game is asked for, without ever storing a whole trace.

Kept are the start, the slot roots after each step, states at equal distances as fit a limit and the one last computed,
the node roots of the steps last asked about (many games may stand at as many steps) and the values of few nodes.
Everything else is computed again when it is asked for: the steps from the nearest state, and of the last step no more
than the nodes up to the one asked for.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from torch import Tensor

from assay.engine.runtime.executor import Executor
from assay.engine.runtime.native.sha256 import tensor_root
from assay.engine.runtime.roots import stored_root
from assay.engine.runtime.triton import backend
from assay.engine.runtime.values.dtypes import to_bytes
from assay.engine.runtime.values.state_io import (
    check_mapped,
    from_lists_of_bytes,
    input_specs,
    output_specs,
    tensor_from_bytes,
    to_lists_of_bytes,
)
from assay.mapped_files import mapping_of
from assay.protocol.errors import InvariantError
from assay.protocol.program.nodes import Input, Output, reads
from assay.protocol.program.program import Program
from assay.protocol.program.trace import SlotTamper, Tamper
from assay.protocol.trees.prefix import PrefixTree
from assay.protocol.trees.state import ListBytes, SlotLists, list_roots, state_root
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest

MAX_STATE_BYTES = 1 << 28
"""Bytes of states that a trace keeps beside the start and the one last computed; where more would not fit, every other
one is dropped."""

MAX_PREFIX_BYTES = 1 << 26
"""Bytes of node roots that a trace keeps; those of the step last asked about are always kept."""

PREFIX_BYTES_PER_NODE = 400
"""What a node's root, its prefix root and the trees over them take in memory."""

MAX_NODE_BYTES = 1 << 26
"""Bytes of node values that a trace keeps; those of one question are always kept."""


class _Seen(Exception):
    """Every node that was asked for has been seen; the rest of the step is of no use."""


class TorchTrace:
    """`protocol.program.trace.Trace` by the stock-torch executor; with `tamper`, the consistent trace of a liar.

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
        self._stride = 1
        self._last: tuple[int, ListBytes] = (0, start)
        self._slot_roots: list[SlotLists] = [self._roots_of(start, 0, None)]
        self._prefixes: OrderedDict[int, tuple[PrefixTree, tuple[Digest, ...]]] = OrderedDict()
        self._nodes: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    @property
    def program(self) -> Program:
        """See Trace."""
        return self._program

    @property
    def steps(self) -> int:
        """See Trace."""
        return self._count

    @property
    def bytes_kept(self) -> int:
        """What is held now: states, node roots, values of nodes."""
        states = [*self._states.values(), self._last[1]]
        datas = {id(data): len(data) for lists in states for part in lists for data in part}
        roots = PREFIX_BYTES_PER_NODE * sum(len(roots) for _, roots in self._prefixes.values())
        return sum(datas.values()) + roots + sum(map(len, self._nodes.values()))

    def shed(self) -> None:
        """Lets go of what takes much memory and can be computed again: states after the start, values of nodes."""
        start = self._states[0]
        self._states, self._stride, self._last = {0: start}, 1, (0, start)
        self._nodes.clear()

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
        known = {**self._states, self._last[0]: self._last[1]}
        at = max(k for k in known if k <= t)
        state = known[at]
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
            found = self._values(t, {k, *reads(self._program.nodes[k])})
            self._keep_values(t, found, len(found))
        return self._nodes[t, k]

    def look_up(self, places: Iterable[tuple[int, int | None]]) -> None:
        """Computes what many games ask for next in one run of each of their steps, as far as memory holds it.

        places: (step, node), or (step, None) where the step's prefix roots alone are asked for.
        """
        wanted: dict[int, set[int]] = {}
        for t, k in places:
            wanted.setdefault(t, set()).update(() if k is None else (k, *reads(self._program.nodes[k])))
        for t, nodes in sorted(wanted.items()):
            missing = {k for k in nodes if (t, k) not in self._nodes}
            if t not in self._prefixes:
                self._keep_values(t, self._trace_step(t, missing), 0)
            elif missing:
                self._keep_values(t, self._values(t, missing), 0)

    def _values(self, t: int, wanted: set[int]) -> dict[int, bytes]:
        """The bytes of some nodes of a step, by a run up to the last of them."""
        found: dict[int, bytes] = {}

        def keep(node: int, value: Tensor, step: _OpenStep) -> None:
            if node in wanted:
                found[node] = step.bytes_of(node, value)
            if len(found) == len(wanted):
                raise _Seen

        with suppress(_Seen):
            self._run(t, self.state_bytes(t - 1), keep)
        return found

    def _keep_values(self, t: int, found: dict[int, bytes], at_least: int) -> None:
        """Keeps values of nodes, the newest within the limit; `at_least` so many of the newest in any case."""
        for node, data in found.items():
            self._nodes[t, node] = data
            self._nodes.move_to_end((t, node))
        while len(self._nodes) > at_least and sum(map(len, self._nodes.values())) > MAX_NODE_BYTES:
            self._nodes.popitem(last=False)

    def _slots(self, t: int) -> SlotLists:
        """The slot roots of state t; runs the steps up to it once."""
        while len(self._slot_roots) <= t:
            step = len(self._slot_roots)
            self._advance(step, self.state_bytes(step - 1))
        return self._slot_roots[t]

    def _advance(self, t: int, state: ListBytes) -> ListBytes:
        """State t from state t-1; its roots are noted."""
        step, results = self._run(t, state)
        after, k = [], len(self._program.nodes) - sum(self._program.outputs)
        for number, part in enumerate(results):
            datas = [step.bytes_of(k + index, value) for index, value in enumerate(part)]
            if self._tamper_slot is not None:
                datas = [self._tamper_slot(t, number, index, data) for index, data in enumerate(datas)]
            after.append(tuple(datas))
            k += len(part)
        if len(self._slot_roots) == t:
            self._slot_roots.append(self._roots_of(tuple(after), t, state))
        self._last = t, tuple(after)
        self._keep(t, self._last[1])
        return self._last[1]

    def _keep(self, t: int, state: ListBytes) -> None:
        """Keeps the states at multiples of a stride, which doubles when they would not fit."""
        if t % self._stride:
            return
        self._states[t] = state
        while len(self._states) > 1 and self._size_of_states() > MAX_STATE_BYTES:
            self._stride *= 2
            self._states = {k: kept for k, kept in self._states.items() if k % self._stride == 0}

    def _size_of_states(self) -> int:
        """Bytes of the states that are kept, without the start; slots that are passed on are there once."""
        start = {id(data) for part in self._states[0] for data in part}
        found = {id(data): len(data) for lists in self._states.values() for part in lists for data in part}
        return sum(size for key, size in found.items() if key not in start)

    def _roots_of(self, state: ListBytes, t: int, before: ListBytes | None) -> SlotLists:
        """The slot roots of state t; a slot whose bytes were passed through keeps its root."""
        # By type and dims as well: short bytes that are equal are one object, whatever tensor they are of.
        known: dict[tuple[TensorSpec, int], Digest] = {}
        if before is not None:
            for specs, datas, roots in zip(self._ins, before, self._slot_roots[t - 1], strict=True):
                known.update(((spec, id(d)), root) for spec, d, root in zip(specs, datas, roots, strict=True))
        return tuple(
            tuple(known.get((spec, id(d))) or tensor_root(spec, d) for spec, d in zip(specs, datas, strict=True))
            for specs, datas in zip(self._outs if t else self._ins, state, strict=True)
        )

    def _traced(self, t: int) -> tuple[PrefixTree, tuple[Digest, ...]]:
        """The prefix tree and the node roots of one step; those of the steps last asked about are kept."""
        if t not in self._prefixes:
            self._trace_step(t, set())
        self._prefixes.move_to_end(t)
        return self._prefixes[t]

    def _trace_step(self, t: int, wanted: set[int]) -> dict[int, bytes]:
        """Runs one whole step for its prefix tree; returns the bytes of some nodes, as many as the limit holds."""
        roots: list[Digest] = []
        found: dict[int, bytes] = {}
        slots = [root for part in self._slots(t - 1) for root in part]
        specs, nodes = self._program.specs, self._program.nodes
        room = MAX_NODE_BYTES

        def hash_node(k: int, value: Tensor, step: _OpenStep) -> None:
            nonlocal room
            node = nodes[k]
            if k in step.altered:
                roots.append(tensor_root(specs[k], step.altered[k]))
            elif isinstance(node, Input):
                roots.append(slots[k])
            elif isinstance(node, Output):
                roots.append(roots[node.node])
            else:
                roots.append(stored_root(value))
            if k in wanted and specs[k].nbytes <= room:
                found[k] = step.bytes_of(k, value)
                room -= specs[k].nbytes

        self._run(t, self.state_bytes(t - 1), hash_node)
        self._prefixes[t] = PrefixTree(roots), tuple(roots)
        each = PREFIX_BYTES_PER_NODE * len(nodes)
        while len(self._prefixes) > 1 and len(self._prefixes) * each > MAX_PREFIX_BYTES:
            self._prefixes.popitem(last=False)
        return found

    def _run(self, t: int, state: ListBytes, see: See | None = None) -> tuple[_OpenStep, list[list[Tensor]]]:
        """Run step t from a state's bytes; `see` gets every node as later ones read it. Returns the outputs too."""
        step = _OpenStep(self._program, [data for part in state for data in part], {})
        tamper = self._tamper
        touches = getattr(tamper, "touches", lambda _t, _k: True)
        lies = tamper is not None and any(touches(t, k) for k in range(len(self._program.nodes)))

        def hook(k: int, value: Tensor) -> Tensor:
            if lies and tamper is not None and touches(t, k):
                honest = step.bytes_of(k, value)
                lie = tamper(t, k, honest)
                if lie != honest:
                    value = tensor_from_bytes(self._program.specs[k], lie)
                    step.altered[k] = lie
            if see is not None:
                see(k, value, step)
            return value

        inputs, is_seen = from_lists_of_bytes(self._ins, state), see is not None or lies
        try:
            return step, self._executor.run(inputs, hook if is_seen else None)
        except Exception as error:
            is_gpu_s = getattr(error, "code", None) == "MemoryExceeded" or backend.is_of_the_gpu(error)
            if is_seen or not is_gpu_s:
                raise
            # A whole run takes a GPU's memory at once, which others may hold; a game goes on node by node, and where
            # the GPU is lost by the CPU.
            return step, self._executor.run(inputs, hook)
        finally:
            check_mapped(state)


@dataclass(frozen=True)
class _OpenStep:
    """One step under way. slots: the bytes of X, in the order of its nodes; altered: nodes whose claimed bytes lie."""

    program: Program
    slots: list[bytes]
    altered: dict[int, bytes]

    def bytes_of(self, k: int, value: Tensor) -> bytes:
        """The bytes that node k's value is claimed to have."""
        node = self.program.nodes[k]
        source = node.node if isinstance(node, Output) and k not in self.altered else k
        if source in self.altered:
            return self.altered[source]
        # Slots are taken as they came, canonical or not; what is computed is stored canonically.
        return self.slots[source] if source < len(self.slots) else to_bytes(value)


See = Callable[[int, Tensor, _OpenStep], None]
"""Shown every node of a step: its number, the value that later nodes read, the step."""


def _as_bytes(state: Sequence[Sequence[Tensor]] | ListBytes) -> ListBytes:
    if any(isinstance(slot, Tensor) for part in state for slot in part):
        return to_lists_of_bytes(state)  # type: ignore[arg-type]
    return tuple(
        tuple(slot if mapping_of(slot) is not None else bytes(slot) for slot in part)  # type: ignore[misc]
        for part in state
    )
