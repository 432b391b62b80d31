"""A solver at its work: a seat, units, the update, the commitment. `agent` merges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from assay.protocol.errors import InvariantError, UnavailableError
from assay.protocol.program.trace import Tamper
from assay.protocol.rounds.ids import marks_digest
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.trees.state import ListBytes, TrainingList
from assay.protocol.types import Digest, Round, Seat
from assay.training.long_runs import LongRun
from assay.training.rounds import TorchCompute
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.loop import RunStore
from assay_ledger.agents.observing import tell
from assay_ledger.agents.updates_asked import UpdatesAsked
from assay_ledger.chain.client import Head
from assay_ledger.index.computing import Computation, Compute
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.records import WorkRecord
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.manifest import Manifest
from assay_ledger.store.objects import Tensors
from assay_ledger.store.progress import ProgressFolder, remove_before
from assay_solver import strategy
from assay_solver.actions import (
    CommitWork,
    LeaveTenure,
    RestoreUpdate,
    TakeSeat,
    TrainUnit,
)
from assay_solver.memory import FinishedWork, SolverRecorder
from assay_solver.pace import OwnPace

ROOM: Final = 1 << 34
"""Bytes that the states of one round may take on disk."""

UNSETTLED_KEPT: Final = strategy.RECENT
"""Rounds whose progress is kept whatever is settled: the one under way and the one before."""


class Worker(Agent):
    """A solver that trains and commits. Raises JournalInUse, FolderOfAnotherRun."""

    role = "solver"

    def __init__(
        self,
        run: Run,
        keys: ActorKeys,
        store: RunStore,
        data_dir: Path,
        *,
        compute: Compute | None = None,
        inclusion: float = 12.0,
        room: int = ROOM,
        again: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(run, keys, store, data_dir, compute or TorchCompute(), **options)
        self.recorder = SolverRecorder(self.journal)
        self._pace = OwnPace(inclusion)
        self._room = room
        self._forgiven = None if again else 0
        self.free: int | None = None
        """Wei of its stake that nothing locks, asked while it holds no seat."""
        self._free_at: Head | None = None
        self._served: set[int] = set()
        self._folder = data_dir / "rounds"
        self._runs: dict[tuple[Round, Seat, Digest], LongRun] = {}
        self._updates = UpdatesAsked(self.archive, self.objects)
        self.on_commit: Callable[[Round, Seat, Tensors], None] = lambda _round, _seat, _tensors: None
        """Is told what the work of a round ended with, once it is committed."""
        self._restored: dict[Round, int] = {}
        """The epoch in which this solver last looked whether the store has its update of a round."""

    def keep_copies(self, view: RunView) -> None:
        """See ActorLoop. Progress of a round is kept while a commitment to it is not settled, or can be made."""
        newest = view.round or 0
        needed = [*(work.round for work in self._unsettled(view)), *strategy.unworked(view)]
        oldest = min([*needed, max(newest - UNSETTLED_KEPT + 1, 0)])
        self.local_cache.turn(newest, self.before_base(view, oldest))
        self._runs = {key: run for key, run in self._runs.items() if key[0] >= newest or _is_late(view, key[0])}
        self._updates.forget_before(newest - 1)
        remove_before(self._folder, oldest)

    @staticmethod
    def _is_mine(view: RunView, work: WorkRecord) -> bool:
        return view.books.tenures.existing(work.tenure).holder == view.me

    # --- seats

    def refresh(self, view: RunView) -> None:
        """See ActorLoop: its free stake while a seat may need it."""
        super().refresh(view)
        wants = view.tenure is None and not (self.leaving or view.is_over or view.state.money.is_ended)
        if not wants:
            self.free = None
        elif self.free is None or view.head != self._free_at:
            # Once a block: nothing else moves it, and a step without a new block costs one request (docs/nodes.md).
            self.free, self._free_at = self.chain.ask(self.target.vault.free(self.me)), view.head

    def forgiven(self, view: RunView) -> int:
        """Its newest tenure of those that keep it from no further seat: where it takes one `again`, what it had when it
        began."""
        if self._forgiven is None:
            self._forgiven = max((number for number, _ in view.tenures_of(view.me)), default=0)
        return self._forgiven

    def do_take_seat(self, action: TakeSeat, view: RunView) -> None:
        """Takes a seat, once what the run trains is at hand: who cannot work must not lock anything."""
        self.archive.check()
        self.send(self.target.tenures.join(), seen=view.head.number)

    def do_leave_tenure(self, action: LeaveTenure, view: RunView) -> None:
        """Leaves."""
        self.send(self.target.tenures.leave(action.tenure))

    # --- work

    def do_train_unit(self, action: TrainUnit, view: RunView) -> None:
        """Trains one unit. Raises UnavailableError where the base is not to be had."""
        run = self._run_of(action.round, action.seat, action.base, view)
        if run.units != action.unit:
            return  # it went on from a former life's last unit
        total = view.rules.max_units * view.rules.steps_per_unit
        began = self._clock()
        run.advance(lambda t: self.progress(f"training round {action.round}", t, total))
        self._pace = self._pace.measured(self._clock() - began)

    def restoring(self, view: RunView) -> Iterator[RestoreUpdate]:
        """Own updates that others may still need: once an epoch each, while the commitment is not settled.

        Attack: who may write to a store deletes what was held, so that no auditor can make the next base.
        """
        epoch, began = len(view.epochs) - 1, view.epochs[-1].start
        for work in self._unsettled(view):
            if self._restored.get(work.round) != epoch and began > view.commit_until(work.round):
                yield RestoreUpdate(work.round, epoch)

    def do_restore_update(self, action: RestoreUpdate, view: RunView) -> None:
        """Puts its update back where the store has lost it, and what its oldest round starts from: later bases follow
        from that and from updates. Raises UnavailableError."""
        specs, mine = self.archive.update_specs, self._unsettled(view)
        if mine and action.round == mine[0].round:
            self._restore_base(action.round, view)
        for work in mine:
            root = work.work.update
            if work.round == action.round and not self.objects.is_served(root, specs):
                with self.objects.own_copies_first(), self.objects.putting_back():
                    self.put_update(action.round, self.objects.list(root, specs))
        self._restored[action.round] = action.epoch

    def _restore_base(self, round_: Round, view: RunView) -> None:
        """Attack: the same with what a round starts from, so that its auditors miss their duties and are fined."""
        parent = view.round_of(round_).parent
        if self.archive.is_base_known_served(view, parent):
            return
        try:
            with self.objects.own_copies_only():
                lists = self.archive.fetch_base(view, parent)
        except UnavailableError:
            return  # others have it, or nobody
        self.archive.serve_base(lists)

    def _unsettled(self, view: RunView) -> list[WorkRecord]:
        """This actor's commitments that are not settled, the oldest first."""
        return [work for _, work in sorted(view.state.unsettled.items()) if self._is_mine(view, work)]

    def do_commit_work(self, action: CommitWork, view: RunView) -> None:
        """Publishes the update, notes it, and commits; where it is noted already, commits to that very work."""
        key = action.round, action.base
        if key not in self.recorder.finished:
            began = self._clock()
            self.recorder.finish(*key, self._finish(action, view))
            self._pace = self._pace.finished(self._clock() - began)
        done, tenure = self.recorder.finished[key], view.tenure_in(action.round)
        assert tenure is not None
        call = self.target.commitments.commit(action.round, done.seat, tenure[0], action.base, done.work)
        self.send(call, tail=done.manifest)
        if (run := self._runs.get((action.round, action.seat, action.base))) is not None:
            tell(self.on_commit, action.round, action.seat, run.lists[TrainingList.PARAMETERS])

    def _finish(self, action: CommitWork, view: RunView) -> FinishedWork:
        run = self._run_of(action.round, action.seat, action.base, view)
        start = self._start(action.round, action.seat, view)
        (update,) = self.run_update(action.round, self.update_job(start, run.lists))
        with self.objects.noting() as digests:
            root = self.put_update(action.round, update)
            marks = self.objects.put_marks(run.marks)
        manifest = self.objects.put_manifest(Manifest(dict(digests)))
        parameters, optimizer, scalars = run.ends
        work = SeatWork(run.units, marks, (parameters, optimizer, scalars), root)
        assert marks == marks_digest(run.marks)
        return FinishedWork(action.seat, work, manifest)

    def _run_of(self, round_: Round, seat: Seat, base: Digest, view: RunView) -> LongRun:
        # Attack: a reorganization in which the same tenure has another seat, whose work starts from other scalars.
        key = round_, seat, base
        if key not in self._runs:
            start = self._start(round_, seat, view)
            run = LongRun(
                self.compute,
                self.archive.step,
                start,
                view.rules.steps_per_unit,
                self._progress(round_, seat, base),
                room=self._room,
                tamper=self.lie(round_),
            )
            if run.start_root != view.books.commitments.start_of(round_, seat)[1]:
                raise InvariantError("The work would not start from the contract's state.", code="StartMismatch")
            self._runs[key] = run
        return self._runs[key]

    def _progress(self, round_: Round, seat: Seat, base: Digest) -> ProgressFolder:
        return ProgressFolder(self._folder / f"{round_}-{seat}-{base.hex()[:16]}")

    def _start(self, round_: Round, seat: Seat, view: RunView) -> ListBytes:
        return self.archive.start(round_, seat, self._base_lists(round_, view)[0])

    def _base_lists(self, round_: Round, view: RunView) -> ListBytes:
        """What a round starts from: own copies first, since this solver made the base itself as a rule."""
        with self.objects.own_copies_first():
            return self.archive.base(view, view.round_of(round_).parent, self.compute)

    def update_job(self, start: ListBytes, end: ListBytes) -> Computation:
        """The update of some work."""
        return self.archive.update_job(start[TrainingList.PARAMETERS], end[TrainingList.PARAMETERS])

    # --- lies, for those that tell some

    def put_update(self, round_: Round, update: Tensors) -> Digest:
        """Publishes the update of a round; its root."""
        return self.objects.put_list(self.archive.update_specs, update)

    def lie(self, round_: Round) -> Tamper | None:
        """How this solver's training of a round is altered."""
        return None

    def run_update(self, round_: Round, job: Computation) -> ListBytes:
        """The update of a round's work."""
        return self.compute.run(job.program, job.lists, job.steps)


def _is_late(view: RunView, round_: Round) -> bool:
    """Whether this solver still has to commit to the round before."""
    return round_ > (view.round or 0) - strategy.RECENT and strategy.is_unworked(view, round_)
