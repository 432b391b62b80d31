"""The trace of a long run, from the states and roots that were kept of it: no question runs it from the start again.

A run is cut at its kept states. Each part is a trace of its own, made when it is asked about; few are held at once.
The state roots that a part gave are noted for good: the next bisection, and the next life of the process, know them.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from assay.protocol.program.program import Program
from assay.protocol.program.trace import Tamper, Trace
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Digest
from assay.training.long_runs import Progress, Runs, StateFormat, kept_state, shifted

PARTS: Final = 2
"""Parts held at once: a bisection ends in one, and a step may stand at the border of two."""


class LongTrace:
    """`protocol.program.trace.Trace` of some steps from `start`; `tamper` counts steps of the whole run."""

    def __init__(
        self,
        compute: Runs,
        program: Program,
        start: ListBytes,
        steps: int,
        progress: Progress,
        tamper: Tamper | None = None,
    ) -> None:
        self._compute, self._program, self._start, self._count = compute, program, start, steps
        self._progress, self._tamper = progress, tamper
        self._format = StateFormat(program, start)
        self._cuts = [0, *(t for t in sorted(progress.kept()) if 0 < t < steps)]
        self._parts: OrderedDict[int, Trace] = OrderedDict()

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
        """What the parts hold in memory; states on disk do not count."""
        return sum(getattr(part, "bytes_kept", 0) for part in self._parts.values())

    def shed(self) -> None:
        """Lets go of all parts; what they noted stays."""
        self._parts.clear()

    def state_root(self, t: int) -> Digest:
        """See Trace."""
        known = self._progress.roots.get(t)
        if known is not None:
            return known
        first, part = self._part(t)
        found = {first + k: part.state_root(k) for k in range(t - first + 1)}
        self._progress.note({at: root for at, root in found.items() if at not in self._progress.roots})
        return found[t]

    def list_roots(self, t: int) -> tuple[Digest, ...]:
        """See Trace."""
        first, part = self._part(t)
        return part.list_roots(t - first)

    def slot_roots(self, t: int, number: int) -> tuple[Digest, ...]:
        """See Trace."""
        first, part = self._part(t)
        return part.slot_roots(t - first, number)

    def prefix_root(self, t: int, k: int) -> Digest:
        """See Trace."""
        first, part = self._part(t)
        return part.prefix_root(t - first, k)

    def prefix_path(self, t: int, k: int, j: int) -> tuple[Digest, ...]:
        """See Trace."""
        first, part = self._part(t)
        return part.prefix_path(t - first, k, j)

    def node_root(self, t: int, k: int) -> Digest:
        """See Trace."""
        first, part = self._part(t)
        return part.node_root(t - first, k)

    def node_bytes(self, t: int, k: int) -> bytes:
        """See Trace."""
        first, part = self._part(t)
        return part.node_bytes(t - first, k)

    def look_up(self, places: Iterable[tuple[int, int | None]]) -> None:
        """Has every part that many games ask about compute at once what they ask for; see TorchTrace."""
        by_part: dict[int, list[tuple[int, int | None]]] = {}
        for t, k in places:
            by_part.setdefault(self._first(t), []).append((t, k))
        for first, wanted in sorted(by_part.items()):
            _, part = self._part(wanted[0][0])
            look_up = getattr(part, "look_up", None)
            if look_up is not None:
                look_up([(t - first, k) for t, k in wanted])

    def _first(self, t: int) -> int:
        """The kept state that step t follows from."""
        return self._cuts[max(bisect_left(self._cuts, t) - 1, 0)]

    def _part(self, t: int) -> tuple[int, Trace]:
        """The part that step t is in, and the steps before it."""
        first = self._first(t)
        if first in self._parts:
            self._parts.move_to_end(first)
            return first, self._parts[first]
        state = self._start if first == 0 else kept_state(self._progress, self._format, first)
        if state is None:
            # Damaged: the part before reaches as far.
            self._cuts.remove(first)
            self._parts.clear()
            return self._part(t)
        after = [cut for cut in self._cuts if cut > first]
        end = after[0] if after else self._count
        while len(self._parts) >= PARTS:
            self._parts.popitem(last=False)
        tamper = shifted(self._tamper, first)
        self._parts[first] = self._compute.trace(self._program, state, end - first, tamper)
        return first, self._parts[first]
