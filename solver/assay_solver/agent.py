"""The solver: trains, publishes, commits, and defends what it committed to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from assay.protocol.digests import state_digest
from assay.protocol.errors import InvariantError
from assay.protocol.program.trace import OnStep
from assay.protocol.trees.state import ListBytes, TrainingList
from assay.protocol.types import Digest
from assay.training.rounds import TorchCompute
from assay_ledger.agents.actions import Action, Commit, Join, LeaveSeat, Train
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.loop import RunStore
from assay_ledger.agents.participant import Participant
from assay_ledger.index.archive import Computation, Compute
from assay_ledger.index.run import Run
from assay_ledger.index.view import RunView, Trained
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.store.manifest import Manifest
from assay_solver import strategy


class SolverAgent(Participant):
    """A solver of one run."""

    role = "solver"

    def __init__(
        self,
        run: Run,
        keys: ActorKeys,
        store: RunStore,
        data_dir: Path,
        *,
        compute: Compute | None = None,
        first_seats: int = 1,
        first_verifiers: int = 1,
        **options: Any,
    ) -> None:
        super().__init__(run, keys, store, data_dir, compute or TorchCompute(), **options)
        self._first = first_seats, first_verifiers

    def candidates(self, view: RunView) -> Iterator[Action]:
        """See Agent."""
        plan = strategy.SolverPlan(
            leaving=self.leaving,
            first_seats=self._first[0],
            first_verifiers=self._first[1],
            free=self.free_stake(view),
        )
        return strategy.candidates(view, plan)

    def times(self, view: RunView) -> Iterator[int]:
        """See Agent."""
        return strategy.times(view)

    def handlers(self) -> Handlers[RunView]:
        """See Agent."""
        table = super().handlers()
        table.add(Join, self.do_join).add(LeaveSeat, self.do_leave_seat)
        return table.add(Train, self.do_train).add(Commit, self.do_commit)

    def do_join(self, action: Join, view: RunView) -> None:
        """Takes a seat."""
        self.archive.check_programs()
        self.archive.check_genesis()
        self.send(self.target.rounds.join())

    def do_leave_seat(self, action: LeaveSeat, view: RunView) -> None:
        """Gives up the seat."""
        self.send(self.target.rounds.leave_seat())

    def do_train(self, action: Train, view: RunView) -> None:
        """Trains a round interval by interval and publishes every object before anybody hears of it.

        Raises InvariantError (StartMismatch) when the contract builds another start than this actor.
        """
        asked = self.target.rounds.start_of(action.round, action.seat, action.base)
        parameters, optimizer, scalars, start = self.chain.ask(asked)
        if scalars != self.archive.scalars_root(action.round, action.seat, 0):
            raise InvariantError("The contract builds other scalars than docs/protocol.md says.", code="StartMismatch")
        with self.archive.told_of_base(view, action.round, action.base):
            lists = self.archive.assemble(action.round, action.seat, 0, parameters, optimizer)
        with self.archive.objects.noting() as digests:
            trained = self._train(action, lists, start, view)
        trained = replace(trained, manifest=self.archive.objects.put_manifest(Manifest(digests)))
        self.recorder.trained(action.round, trained)

    def _train(self, action: Train, lists: ListBytes, start: Digest, view: RunView) -> Trained:
        training = self.facts.charter.training
        first = lists[TrainingList.PARAMETERS]
        ends = self.archive.publish_state(action.round, action.seat, 0, lists)
        roots = [state_digest(ends)]
        if roots[0] != start:
            raise InvariantError("The published start is not the contract's.", code="StartMismatch")
        for j in range(training.intervals):
            lists = self._interval(action, j, lists, view)
            done = (j + 1) * training.steps_per_interval
            ends = self.archive.publish_state(action.round, action.seat, done, lists)
            roots.append(state_digest(ends))
        job = Computation(self.archive.update, (first, lists[TrainingList.PARAMETERS]), 1)
        (update,) = self.run_own(action, training.intervals, job, view)
        return Trained(action.base, tuple(roots), ends, self.archive.publish_update(update))

    def _interval(self, action: Train, j: int, lists: ListBytes, view: RunView) -> ListBytes:
        training = self.facts.charter.training
        job = Computation(self.archive.step, lists, training.steps_per_interval)
        total = training.steps_per_round
        doing = f"training round {action.round}"

        def on_step(t: int) -> None:
            self.progress(doing, j * training.steps_per_interval + t, total)

        return self.run_own(action, j, job, view, on_step)

    def run_own(
        self, action: Train, number: int, job: Computation, view: RunView, on_step: OnStep | None = None
    ) -> ListBytes:
        """The run that an interval of one's own, or the update behind the last one, is about."""
        return self.compute.run(job.program, job.lists, job.steps, on_step=on_step)

    def do_commit(self, action: Commit, view: RunView) -> None:
        """Commits to what was published."""
        trained = self.memory.trained[action.round, action.base]
        call = self.target.rounds.commit(
            action.round, action.seat, trained.roots, trained.end_lists, trained.update, trained.base
        )
        # Where everything lies, behind the arguments: only this solver can write there, and contracts do not look.
        tail = trained.manifest or b""
        self.send(call, tail=tail)
