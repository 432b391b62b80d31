"""A commitment replayed unit by unit, under every witness key that its auditor answers for, in one pass.

Nothing is asked of whoever is audited. The solver's marks of progress only tell where a lie begins: the unit of the
first mark that differs is computed again by other kernels before anybody is accused, so that a fault of this machine
does not become somebody's fraud. State is kept on disk now and then, and a process that died goes on from there.
Source: docs/adr/0032-witnessed-step.md; docs/protocol/witness.md, WT-11, WT-12.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from assay.engine.runtime.native.sha256 import tensor_root
from assay.protocol.digests import keccak, state_digest
from assay.protocol.program.nodes import reads
from assay.protocol.program.program import Program
from assay.protocol.program.witness import ACCUMULATOR, witnessed_program
from assay.protocol.trees.state import ListBytes, TrainingList, list_root, list_roots
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest
from assay_ledger.agents.participant import RecheckMismatch
from assay_ledger.index.archive import Compute

KEY_BYTES: Final = 8
"""Of a witness key that the program reads; what is behind them is zero."""

MOST_KEYS: Final = 16
"""Keys of one pass; each adds a tenth to the program's nodes and a hundredth to its work."""

Ends = tuple[Digest, Digest, Digest]
"""List roots of a training state: parameters, optimizer, scalars."""


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
    """One pass over a commitment. `folder` keeps its state; None keeps nothing."""

    def __init__(
        self, compute: Compute, work: WorkToReplay, keys: Sequence[Digest], folder: Path | None = None
    ) -> None:
        self.work = work
        self.keys = tuple(keys)
        self.done = 0
        """Units."""
        self.differs_at: int | None = None
        """The unit, from 1, whose end this auditor finds to be another than the solver's mark says."""
        self._compute = compute
        self._program = witnessed_by(work.plain, len(self.keys))
        self._specs = _list_specs(work.plain)
        self._passed = _passed_roots(work.plain, self._specs, work.lists)
        self._lists: ListBytes = (*work.lists, *witness_lists_of(self.keys))
        self._before: ListBytes | None = None
        start = b"".join(list_roots(self._slot_roots(work.lists)))
        place = keccak(work.plain.root + start + work.units.to_bytes(8, "big") + b"".join(self.keys))
        self._file = None if folder is None else folder / f"{place.hex()}.replay"
        self._load()

    @property
    def is_done(self) -> bool:
        """Whether every unit was computed."""
        return self.done == self.work.units

    @property
    def ends(self) -> Ends:
        """List roots of the state reached."""
        parameters, optimizer, scalars = list_roots(self._slot_roots(self.lists))
        return parameters, optimizer, scalars

    @property
    def lists(self) -> ListBytes:
        """The training state reached."""
        return self._lists[: len(TrainingList)]

    @property
    def accumulators(self) -> tuple[Digest, ...]:
        """The eight words of each key's accumulator, in the order of the keys."""
        return tuple(Digest(part[0]) for part in self._lists[len(TrainingList) + 1 :: 2])

    def advance(self) -> None:
        """Compute one unit, and once more by other kernels where it ends otherwise than the solver's mark for the
        first time.

        Raises:
            RecheckMismatch: this machine's two calculations differ. The unit is not done.
        """
        before = self._lists
        self._lists = self._compute.run(self._program, before, self.work.steps_per_unit)
        if self.differs_at is None and self._has_marks and state_digest(self.ends) != self.work.marks[self.done]:
            try:
                self._check_unit(before)
            except RecheckMismatch:
                self._lists = before
                raise
            self.differs_at = self.done + 1
        self._before = before
        self.done += 1

    def confirm(self) -> None:
        """Compute again by other kernels what an accusation over the end would rest on, unless that is done.

        Raises:
            RecheckMismatch: this machine's two calculations differ.
        """
        if self.differs_at is not None:
            return
        if self._has_marks and self._before is not None:
            # All marks agree, and the end differs all the same.
            self._check_unit(self._before)
        else:
            again = self._compute.recheck(self.work.plain, self.work.lists, self.work.steps)
            self._check(list_roots(self._slot_roots(again)))

    def confirm_accumulators(self) -> None:
        """Compute everything again by other kernels: an accumulator shows no place at which it went wrong.

        Raises:
            RecheckMismatch: this machine's two calculations differ.
        """
        lists = (*self.work.lists, *witness_lists_of(self.keys))
        again = self._compute.recheck(self._program, lists, self.work.steps)
        self._check(list_roots(self._slot_roots(again[: len(TrainingList)])))
        if tuple(Digest(part[0]) for part in again[len(TrainingList) + 1 :: 2]) != self.accumulators:
            raise RecheckMismatch("Two replays end in different accumulators.")

    def save(self) -> None:
        """Keep the state reached on disk, in place of what was kept before."""
        if self._file is None or not self.done:
            return
        self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        body = b"".join(self._moving(self._lists))
        head = json.dumps({"done": self.done, "differs_at": self.differs_at, "digest": keccak(body).hex()}).encode()
        staged = self._file.with_suffix(".new")
        staged.write_bytes(head + b"\n" + body)
        staged.replace(self._file)

    def forget(self) -> None:
        """Delete what was kept."""
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    # --- inside

    @property
    def _has_marks(self) -> bool:
        return len(self.work.marks) == self.work.units

    def _check_unit(self, before: ListBytes) -> None:
        again = self._compute.recheck(self.work.plain, before[: len(TrainingList)], self.work.steps_per_unit)
        self._check(list_roots(self._slot_roots(again)))

    def _check(self, again: Sequence[Digest]) -> None:
        if tuple(again) != self.ends:
            raise RecheckMismatch(
                f"Two replays of a commitment of {self.work.units} units end in different states.",
                first=state_digest(self.ends),
                second=state_digest(again),
            )

    def _slot_roots(self, lists: ListBytes) -> tuple[tuple[Digest, ...], ...]:
        """Tensor roots of a training state; what no step changes is hashed once."""
        return tuple(
            tuple(
                root if root is not None else tensor_root(spec, data)
                for spec, root, data in zip(specs, passed, part, strict=True)
            )
            for specs, passed, part in zip(self._specs, self._passed, lists, strict=True)
        )

    def _moving(self, lists: ListBytes) -> list[bytes]:
        """The slots that a step changes, in order, then those of the witness."""
        found = []
        for passed, part in zip(self._passed, lists[: len(TrainingList)], strict=True):
            found += [data for root, data in zip(passed, part, strict=True) if root is None]
        return [*found, *(data for part in lists[len(TrainingList) :] for data in part)]

    def _load(self) -> None:
        """Go on from what a process that died has left; what is not whole is as if it were not there."""
        if self._file is None or not self._file.is_file():
            return
        head, _, body = self._file.read_bytes().partition(b"\n")
        size = sum(map(len, self._moving(self._lists)))
        try:
            kept = json.loads(head)
            done, differs_at, digest = kept["done"], kept["differs_at"], kept["digest"]
        except (ValueError, KeyError, TypeError):
            return
        if len(body) != size or keccak(body).hex() != digest or not 0 < done <= self.work.units:
            return
        self.done, self.differs_at = done, differs_at
        self._lists = self._refilled(body)

    def _refilled(self, body: bytes) -> ListBytes:
        """A state from the slots that a step changes, and those that none does."""
        at, parts = 0, []
        for number, part in enumerate(self._lists):
            slots = []
            for index, data in enumerate(part):
                if number < len(TrainingList) and self._passed[number][index] is not None:
                    slots.append(data)
                    continue
                slots.append(body[at : at + len(data)])
                at += len(data)
            parts.append(tuple(slots))
        return tuple(parts)


@cache
def witnessed_by(plain: Program, keys: int) -> Program:
    """The program that samples for several keys at once; the plain one for none."""
    return plain if not keys else witnessed_program(witnessed_by(plain, keys - 1))


def witness_lists_of(keys: Sequence[Digest]) -> ListBytes:
    """A list of a key and one of an accumulator of zeros, per key."""
    return tuple(part for key in keys for part in ((bytes(key[:KEY_BYTES]),), (bytes(ACCUMULATOR.nbytes),)))


def root_of_parameters(plain: Program, tensors: Sequence[bytes]) -> Digest:
    """The list root of parameters, or of an update, which is laid out as they are."""
    specs = _list_specs(plain)[TrainingList.PARAMETERS]
    return list_root([tensor_root(spec, data) for spec, data in zip(specs, tensors, strict=True)])


def _list_specs(program: Program) -> tuple[tuple[TensorSpec, ...], ...]:
    return tuple(tuple(program.specs[k] for k in nodes) for nodes in program.input_nodes)


def _passed_roots(
    plain: Program, specs: Sequence[Sequence[TensorSpec]], lists: ListBytes
) -> tuple[tuple[Digest | None, ...], ...]:
    """The root of each slot that a step passes through as it is, such as the data; None where a step computes it."""
    found = []
    for ins, outs, part_specs, part in zip(plain.input_nodes, plain.output_nodes, specs, lists, strict=True):
        slots = zip(ins, outs, part_specs, part, strict=True)
        found.append(
            tuple(tensor_root(spec, data) if reads(plain.nodes[end]) == (k,) else None for k, end, spec, data in slots)
        )
    return tuple(found)
