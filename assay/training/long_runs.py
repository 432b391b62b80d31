"""Runs of many steps, unit by unit, that a crash resumes: the work of a whole round.

After each unit the state's root is noted, a mark of progress, and the state itself is kept. States take disk, so that
some go again: every other one where they would not fit, never the last. From what is kept `long_trace` answers games.
Source: docs/adr/0033-second-round.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from assay.engine.runtime.native.sha256 import tensor_root
from assay.protocol.digests import state_digest
from assay.protocol.errors import InvariantError
from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep, Tamper, Trace
from assay.protocol.trees.state import ListBytes, list_root
from assay.protocol.types import Digest


class Progress(Protocol):
    """What is kept of one run beyond the process: state roots by step, and some states."""

    @property
    def roots(self) -> Mapping[int, Digest]:
        """State roots that are known, by the number of steps done."""
        ...

    def note(self, roots: Mapping[int, Digest]) -> None:
        """Adds roots; they are on disk when it returns."""
        ...

    def kept(self) -> Sequence[int]:
        """The numbers of steps after which a state is kept, in ascending order."""
        ...

    def put(self, step: int, data: bytes) -> None:
        """Keeps a state, whole or not at all."""
        ...

    def get(self, step: int) -> bytes | None:
        """A state as it was put, not checked; None where it cannot be read."""
        ...

    def drop(self, step: int) -> None:
        """Forgets a state."""
        ...


class MemoryProgress:
    """Progress of a run whose process does not end."""

    def __init__(self) -> None:
        self.roots: dict[int, Digest] = {}
        self.states: dict[int, bytes] = {}

    def note(self, roots: Mapping[int, Digest]) -> None:
        """See Progress."""
        self.roots |= roots

    def kept(self) -> Sequence[int]:
        """See Progress."""
        return sorted(self.states)

    def put(self, step: int, data: bytes) -> None:
        """See Progress."""
        self.states[step] = data

    def get(self, step: int) -> bytes | None:
        """See Progress."""
        return self.states.get(step)

    def drop(self, step: int) -> None:
        """See Progress."""
        self.states.pop(step, None)


class Runs(Protocol):
    """What runs programs on bytes: `rounds.TorchCompute`."""

    def run(
        self,
        program: Program,
        lists: ListBytes,
        steps: int,
        tamper: Tamper | None = None,
        on_step: OnStep | None = None,
    ) -> ListBytes:
        """Y after some steps from X."""
        ...

    def trace(self, program: Program, lists: ListBytes, steps: int, tamper: Tamper | None = None) -> Trace:
        """The same run with everything that a game may ask about."""
        ...


class StateFormat:
    """States of one run as bytes without the slots that are as at its start: data, which no step changes."""

    def __init__(self, program: Program, start: ListBytes) -> None:
        """Raises InvariantError (NotIterable): the program's Y is no X."""
        if not program.is_iterable():
            raise InvariantError("A program whose Y is no X has no long run.", code="NotIterable")
        self._specs = [[program.specs[k] for k in part] for part in program.input_nodes]
        self._start = start
        self._roots = [
            [tensor_root(s, d) for s, d in zip(part, datas, strict=True)]
            for part, datas in zip(self._specs, start, strict=True)
        ]

    def encode(self, lists: ListBytes) -> bytes:
        """A flag per slot, whether it differs from the start's, then those that do."""
        pairs = [(a, b) for part, own in zip(self._start, lists, strict=True) for a, b in zip(part, own, strict=True)]
        differs = [a is not b and a != b for a, b in pairs]
        return b"".join([bytes(differs), *(b for (_, b), other in zip(pairs, differs, strict=True) if other)])

    def decode(self, data: bytes) -> ListBytes | None:
        """The state that was encoded so; None for bytes that are none."""
        count = sum(map(len, self._specs))
        flags, at, place, lists = data[:count], count, 0, []
        if len(flags) < count:
            return None
        for specs, slots in zip(self._specs, self._start, strict=True):
            own = []
            for spec, slot in zip(specs, slots, strict=True):
                changed = spec.nbytes if flags[place] else 0
                own.append(data[at : at + changed] if flags[place] else slot)
                if len(own[-1]) != spec.nbytes:
                    return None
                at, place = at + changed, place + 1
            lists.append(tuple(own))
        return tuple(lists) if at == len(data) else None

    def list_roots(self, lists: ListBytes) -> tuple[Digest, ...]:
        """The list roots of a state; slots that are as at the start are not hashed again."""
        return tuple(
            list_root(
                [
                    root if old is new or old == new else tensor_root(spec, new)
                    for spec, old, new, root in zip(specs, olds, news, roots, strict=True)
                ]
            )
            for specs, olds, news, roots in zip(self._specs, self._start, lists, self._roots, strict=True)
        )


@dataclass(frozen=True, slots=True)
class ShiftedTamper:
    """A lie as a part of a run sees it that begins after `steps` steps of the whole."""

    tamper: Tamper
    steps: int

    def touches(self, step: int, node: int) -> bool:
        """Whether it changes this value."""
        touches = getattr(self.tamper, "touches", None)
        return touches is None or touches(step + self.steps, node)

    def __call__(self, step: int, node: int, data: bytes) -> bytes:
        """The bytes that the node's value is claimed to have."""
        return self.tamper(step + self.steps, node, data)


def shifted(tamper: Tamper | None, steps: int) -> Tamper | None:
    """The lie of a whole run for a part of it that begins after so many steps."""
    return None if tamper is None else ShiftedTamper(tamper, steps)


class LongRun:
    """A run of whole units of steps, resumed from what its progress keeps.

    `unit` is a number of steps; `room` the bytes that kept states may take, of which there is always one; `tamper`
    counts steps of the whole run.
    """

    def __init__(
        self,
        compute: Runs,
        program: Program,
        start: ListBytes,
        unit: int,
        progress: Progress,
        *,
        room: int,
        tamper: Tamper | None = None,
    ) -> None:
        self._compute, self._program, self._unit = compute, program, unit
        self._progress, self._room, self._tamper = progress, room, tamper
        self._format = StateFormat(program, start)
        self._stride = 1
        self._ends: tuple[ListBytes, tuple[Digest, ...]] | None = None
        self.start_root = state_digest(self._format.list_roots(start))
        self.units, self.lists = self._resumed(start)

    def advance(self, on_step: OnStep | None = None) -> Digest:
        """Runs one more unit; the mark after it. `on_step` is told the steps done of the whole run."""
        done = self.units * self._unit
        lie = shifted(self._tamper, done)
        tell = None if on_step is None else lambda t: on_step(done + t)
        self.lists = self._compute.run(self._program, self.lists, self._unit, lie, tell)
        self.units += 1
        root = state_digest(self.ends)
        # The root first: a state whose root is not known is never taken up.
        self._progress.note({done + self._unit: root})
        state = self._format.encode(self.lists)
        self._progress.put(done + self._unit, state)
        self._thin_out(len(state))
        return root

    @property
    def ends(self) -> tuple[Digest, ...]:
        """The list roots of the state reached."""
        # A unit's mark, an auditor's note and the commitment ask for them, and to hash a state takes long.
        if self._ends is None or self._ends[0] is not self.lists:
            self._ends = self.lists, self._format.list_roots(self.lists)
        return self._ends[1]

    @property
    def marks(self) -> tuple[Digest, ...]:
        """The state roots after each unit so far."""
        return tuple(self._progress.roots[k * self._unit] for k in range(1, self.units + 1))

    def _resumed(self, start: ListBytes) -> tuple[int, ListBytes]:
        for step in sorted(self._progress.kept(), reverse=True):
            lists = kept_state(self._progress, self._format, step)
            steps = range(self._unit, step + 1, self._unit)
            if lists is not None and step % self._unit == 0 and all(t in self._progress.roots for t in steps):
                return step // self._unit, lists
        return 0, start

    def _thin_out(self, size: int) -> None:
        """Every other state goes while they would not fit, and of those between them all but the last.

        size: bytes that one takes, without data, which no step changes: else a run over large data would keep none.
        """
        kept = [step // self._unit for step in self._progress.kept()]
        while self._stride < self.units and sum(k % self._stride == 0 for k in kept) * size > self._room:
            self._stride *= 2
        for k in kept:
            if k != self.units and k % self._stride:
                self._progress.drop(k * self._unit)


def kept_state(progress: Progress, format_: StateFormat, step: int) -> ListBytes | None:
    """A kept state if it has the root that was noted; a damaged one is forgotten."""
    data = progress.get(step)
    lists = None if data is None else format_.decode(data)
    if lists is not None and state_digest(format_.list_roots(lists)) == progress.roots.get(step):
        return lists
    progress.drop(step)
    return None
