"""A commitment replayed unit by unit, under every witness key that its auditor answers for, in one pass.

Nothing is asked of whoever is audited. The solver's marks of progress only tell where a lie begins: from the unit of
the first mark that differs on all is computed again by other kernels before anybody is accused, so that a fault of this
machine does not become somebody's fraud (`rechecking`). What is kept on disk resumes the pass after a crash, and
answers games about it.
Source: docs/adr/0032-witnessed-step.md; docs/protocol/witness.md, WT-11, WT-12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from assay.protocol.digests import keccak, state_digest
from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep, Trace
from assay.protocol.program.witness import ACCUMULATOR, witnessed_program
from assay.protocol.trees.state import ListBytes, TrainingList
from assay.protocol.types import Digest
from assay.training.long_runs import LongRun, Progress, StateFormat, kept_state
from assay.training.long_trace import LongTrace
from assay_ledger.index.computing import Compute, RecheckMismatch
from assay_ledger.store.progress import ProgressFolder
from assay_verifier.rechecking import SecondRun

KEY_BYTES: Final = 8
"""Of a witness key that the program reads; what is behind them is zero."""

MOST_KEYS: Final = 16
"""Keys of one pass; each adds a tenth to the program's nodes and a hundredth to its work."""

ROOM: Final = 1 << 34
"""Bytes on disk for the states of one pass."""

PLAIN: Final = tuple(range(len(TrainingList)))
"""The lists of a training state among those of a witnessed one."""


@dataclass(frozen=True, slots=True)
class WorkToReplay:
    """A commitment as it is computed: `lists` are s_0, `marks` the state roots that its solver shows, one per unit.

    Marks are hints: with none, or another number than units, the replay works all the same.
    """

    plain: Program
    lists: ListBytes
    units: int
    steps_per_unit: int
    marks: tuple[Digest, ...] = ()

    @property
    def steps(self) -> int:
        """Of the whole commitment."""
        return self.units * self.steps_per_unit


class CommitmentReplay:
    """One pass over a commitment, resumed from what `folder` keeps of it."""

    def __init__(
        self, compute: Compute, work: WorkToReplay, keys: Sequence[Digest], folder: Path, room: int = ROOM
    ) -> None:
        self.work = work
        self.keys = tuple(keys)
        self._compute, self._room = compute, room
        self._start: ListBytes = (*work.lists, *witness_lists_of(self.keys))
        self._program = witnessed_by(work.plain, len(self.keys))
        self._format = StateFormat(self._program, self._start)
        roots = b"".join(self._format.list_roots(self._start))
        self._folder = folder / keccak(self._program.root + work.steps.to_bytes(8, "big") + roots).hex()
        self._progress = ProgressFolder(self._folder)
        self._roots = ProgressFolder(self._folder / "plain")
        self._run = self._resumed()
        again = self._folder / "again"
        self._second = SecondRun(compute, self._program, self._start, work.steps_per_unit, self._progress, again)

    @property
    def done(self) -> int:
        """Units computed."""
        return self._run.units

    @property
    def is_done(self) -> bool:
        """Whether every unit was computed."""
        return self.done == self.work.units

    @property
    def ends(self) -> tuple[Digest, Digest, Digest]:
        """List roots of the training state reached: parameters, optimizer, scalars."""
        parameters, optimizer, scalars = self._run.ends[: len(TrainingList)]
        return parameters, optimizer, scalars

    @property
    def lists(self) -> ListBytes:
        """The training state reached."""
        return self._run.lists[: len(TrainingList)]

    @property
    def accumulators(self) -> tuple[Digest, ...]:
        """The eight words of each key's accumulator, in the order of the keys."""
        return tuple(Digest(part[0]) for part in self._run.lists[len(TrainingList) + 1 :: 2])

    @property
    def differs_at(self) -> int | None:
        """The first unit, from 1, whose end is another than the solver's mark says."""
        if not self._has_marks:
            return None
        roots, unit = self._roots.roots, self.work.steps_per_unit
        return next((k for k in range(1, self.done + 1) if roots[k * unit] != self.work.marks[k - 1]), None)

    def advance(self, on_step: OnStep | None = None) -> None:
        """Compute one unit."""
        before = self.done, self._run.lists
        self._run.advance(on_step)
        self._note()
        self._second.offer(*before)

    def unchecked(self, key: Digest | None) -> int:
        """Units to compute until other kernels found what an accusation rests on: over the end, or a key's accumulator.

        From the first unit whose mark differs on, where the solver shows marks: up to there two machines found the
        same. Its last one where all agree; everything where it shows none. An accumulator shows no place at which it
        went wrong, so everything too.
        """
        return len(self._second.left(self._wanted(key)))

    def check_unit(self, key: Digest | None, on_step: OnStep | None = None) -> None:
        """Compute the next of them by other kernels.

        Raises:
            RecheckMismatch: this machine's two calculations differ. The unit, and what came after it, is not done.
        """
        unit = self._second.left(self._wanted(key)).start
        try:
            self._second.check(unit, on_step)
        except RecheckMismatch:
            self._take_back(unit)
            raise

    def confirm(self, key: Digest | None = None) -> None:
        """Compute all of them. Raises RecheckMismatch."""
        while self.unchecked(key):
            self.check_unit(key)

    def trace(self, key: Digest | None) -> Trace:
        """The run for games from the states that were kept: of the plain program, or of the witnessed one and a key."""
        lists, place = PLAIN, "plain"
        if key is not None:
            at = len(PLAIN) + 2 * self.keys.index(key)
            lists, place = (*PLAIN, at, at + 1), key[:KEY_BYTES].hex()
        program = witnessed_by(self.work.plain, 0 if key is None else 1)
        start = tuple(self._start[k] for k in lists)
        format_ = StateFormat(program, start)
        progress = PartOfProgress(self._progress, self._format, ProgressFolder(self._folder / place), format_, lists)
        return LongTrace(self._compute, program, start, self.work.steps, progress)

    def forget(self) -> None:
        """Delete what was kept."""
        self._progress.remove()

    # --- inside

    @property
    def _has_marks(self) -> bool:
        return len(self.work.marks) == self.work.units

    def _resumed(self) -> LongRun:
        run = LongRun(
            self._compute, self._program, self._start, self.work.steps_per_unit, self._progress, room=self._room
        )
        known = self._roots.roots
        if any(k * self.work.steps_per_unit not in known for k in range(1, run.units)):
            # Roots that the disk lost: nothing says any more where the solver's marks differ.
            self._progress.remove()
            return self._resumed()
        self._run = run
        if run.units:
            self._note()
        return run

    def _note(self) -> None:
        """Note the root of the training state reached: that of the witnessed one is no mark."""
        step, root = self.done * self.work.steps_per_unit, state_digest(self.ends)
        if self._roots.roots.get(step) != root:
            self._roots.note({step: root})

    def _wanted(self, key: Digest | None) -> range:
        if key is not None or not self._has_marks:
            return range(1, self.work.units + 1)
        # Attack: true work with a false first mark, so that a fault of the auditor's machine behind it costs B.
        # Where all marks agree the update, or somebody's attestation, differs: the solver found the same end.
        return range(self.differs_at or self.work.units, self.work.units + 1)

    def _take_back(self, unit: int) -> None:
        """Forget a unit and what came after it."""
        for done in range(unit, self.done + 1):
            self._progress.drop(done * self.work.steps_per_unit)
        self._second.forget()
        self._run = self._resumed()


class PartOfProgress:
    """What was kept of a run of many lists, as the progress of a run of some of them (`Progress`).

    `own` keeps the roots of the part. Nothing is put: the whole is.
    """

    def __init__(
        self, whole: Progress, whole_format: StateFormat, own: Progress, own_format: StateFormat, lists: Sequence[int]
    ) -> None:
        self._whole, self._whole_format = whole, whole_format
        self._own, self._own_format, self._lists = own, own_format, tuple(lists)

    @property
    def roots(self) -> Mapping[int, Digest]:
        """See Progress."""
        return self._own.roots

    def note(self, roots: Mapping[int, Digest]) -> None:
        """See Progress."""
        self._own.note(roots)

    def kept(self) -> Sequence[int]:
        """See Progress."""
        return self._whole.kept()

    def put(self, step: int, data: bytes) -> None:
        """See Progress."""

    def get(self, step: int) -> bytes | None:
        """See Progress; checked against the root of the whole, so that the part's is right."""
        state = kept_state(self._whole, self._whole_format, step)
        if state is None:
            return None
        part = tuple(state[k] for k in self._lists)
        root = state_digest(self._own_format.list_roots(part))
        if self.roots.get(step) != root:
            self.note({step: root})
        return self._own_format.encode(part)

    def drop(self, step: int) -> None:
        """See Progress."""
        self._whole.drop(step)


@cache
def witnessed_by(plain: Program, keys: int) -> Program:
    """The program that samples for several keys at once; the plain one for none."""
    return plain if not keys else witnessed_program(witnessed_by(plain, keys - 1))


def witness_lists_of(keys: Sequence[Digest]) -> ListBytes:
    """A list of a key and one of an accumulator of zeros, per key."""
    return tuple(part for key in keys for part in ((bytes(key[:KEY_BYTES]),), (bytes(ACCUMULATOR.nbytes),)))
