"""Units of a replay computed once more by other kernels, one at a time, before somebody is accused.

A unit is checked where other kernels, from the state before it, end in the state that the replay ended in; a run is
checked where each of its units is. So nothing of a second calculation is kept but which units it agreed on.
"""

from __future__ import annotations

from pathlib import Path

from assay.protocol.digests import state_digest
from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Digest
from assay.training.long_runs import Progress, StateFormat, kept_state
from assay_ledger.index.computing import Compute, RecheckMismatch
from assay_ledger.store.progress import ProgressFolder


class SecondRun:
    """Second calculations of the units of one run, whose states and roots `first` keeps; `unit` is a number of steps.

    `folder` is for the roots that were found again.
    """

    def __init__(
        self, compute: Compute, program: Program, start: ListBytes, unit: int, first: Progress, folder: Path
    ) -> None:
        self._compute, self._program, self._unit, self._first = compute, program, unit, first
        self._format = StateFormat(program, start)
        self._found = ProgressFolder(folder)
        self._start = start
        self._known: dict[str, tuple[int, ListBytes]] = {}

    def offer(self, units: int, lists: ListBytes) -> None:
        """The state of the first run after so many units, in memory: the disk may not keep it."""
        self._known["first"] = units, lists

    def forget(self) -> None:
        """The states in memory may be false."""
        self._known = {}

    def left(self, wanted: range) -> range:
        """The units to compute so that the wanted ones are checked: from the last state before them that there is."""
        unchecked = [unit for unit in wanted if not self._is_checked(unit)]
        if not unchecked:
            return range(0)
        there = {0, *(units for units, _ in self._known.values()), *(step // self._unit for step in self._first.kept())}
        return range(max(units for units in there if units < unchecked[0]) + 1, unchecked[-1] + 1)

    def check(self, unit: int, on_step: OnStep | None = None) -> None:
        """Compute a unit; nothing, where the state before it turns out to be damaged: then others are left.

        Raises:
            RecheckMismatch: it ends elsewhere than the first time.
        """
        before = self._state(unit - 1)
        if before is None:
            return
        after = self._compute.recheck(self._program, before, self._unit, on_step)
        root = state_digest(self._format.list_roots(after))
        if root != self._root(unit):
            raise RecheckMismatch(f"Two calculations of unit {unit} of a commitment end in different states.")
        self._found.note({unit * self._unit: root})
        self._known["second"] = unit, after

    # --- inside

    def _is_checked(self, unit: int) -> bool:
        found = self._found.roots.get(unit * self._unit)
        return found is not None and found == self._root(unit)

    def _root(self, unit: int) -> Digest | None:
        return self._first.roots.get(unit * self._unit)

    def _state(self, units: int) -> ListBytes | None:
        if not units:
            return self._start
        for at, lists in self._known.values():
            if at == units:
                return lists
        return kept_state(self._first, self._format, units * self._unit)
