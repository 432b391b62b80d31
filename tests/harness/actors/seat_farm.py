"""Many seats of one account in one process: real training and real commitments, for runs of more than 64 seats.

A process a seat is what a run has and what two cores cannot play. The seats here train the least that a commitment has,
each on its own piece of the data, and all commit at once; what anybody does for the run the farm does too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from assay.protocol.errors import InvariantError
from assay.protocol.program.trace import Trace
from assay.protocol.rounds.ids import marks_digest
from assay.protocol.rounds.terms import NEVER, SeatWork
from assay.protocol.trees.state import TrainingList
from assay.protocol.types import Digest, Round
from assay.training.long_runs import LongRun
from assay_ledger.agents.agent import Agent
from assay_ledger.agents.handlers import Handlers
from assay_ledger.agents.loop import RunStore
from assay_ledger.agents.round_actions import Choice, RoundAction
from assay_ledger.index.games import Game
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.progress import ProgressFolder
from assay_solver.actions import LeaveTenure


@dataclass(frozen=True, slots=True)
class TakeSeats(RoundAction):
    """Take so many seats."""

    count: int


@dataclass(frozen=True, slots=True)
class CommitSeats(RoundAction):
    """Train and commit for every seat that has not."""

    round: Round


class SeatFarm(Agent):
    """The holder of many seats."""

    role = "solver"

    def __init__(
        self, run: Run, keys: ActorKeys, store: RunStore, data_dir: Path, *, seats: int, **options: Any
    ) -> None:
        super().__init__(run, keys, store, data_dir, **options)
        self._seats, self._folder = seats, data_dir

    def candidates(self, view: RunView) -> Iterator[Choice]:
        """See ActorLoop."""
        mine = [tenure for _, tenure in view.tenures_of(self.me)]
        if len(mine) < self._seats:
            yield TakeSeats(self._seats - len(mine))
        if view.round is not None and any(view.work(view.round, tenure.seat) is None for tenure in mine):
            if view.now < view.round_of(view.round).mask_at:
                yield CommitSeats(view.round)
        elif view.is_over:
            yield from (LeaveTenure(number) for number, t in view.tenures_of(self.me) if t.until == NEVER)
        yield from self.keep(view)

    def times(self, view: RunView) -> Iterator[int]:
        """See ActorLoop."""
        yield from self.keeping_times(view)

    def trace_of(self, game: Game, view: RunView) -> Trace:
        """See GameActor: nobody challenges what is true."""
        raise InvariantError("A farm's seats are never challenged.", code="NotMyClaim")

    def is_finished(self, view: RunView) -> bool:
        """See ActorLoop."""
        return view.is_over and all(t.released for _, t in view.tenures_of(self.me))

    def handlers(self) -> Handlers[RunView]:
        """See ActorLoop."""
        table = super().handlers().add(TakeSeats, self.do_take_seats).add(CommitSeats, self.do_commit_seats)
        return table.add(LeaveTenure, self.do_leave_tenure)

    def do_take_seats(self, action: TakeSeats, view: RunView) -> None:
        """Joins as often."""
        self._all([self.target.tenures.join()] * action.count)

    def do_leave_tenure(self, action: LeaveTenure, view: RunView) -> None:
        """Leaves every seat."""
        lasting = [number for number, tenure in view.tenures_of(self.me) if tenure.until == NEVER]
        self._all([self.target.tenures.leave(number) for number in lasting])

    def do_commit_seats(self, action: CommitSeats, view: RunView) -> None:
        """Trains the least number of units on each seat's data, publishes the updates, and commits to all at once."""
        round_, base = action.round, view.round_of(action.round).base
        with self.objects.own_copies_first():
            parameters = self.archive.base(view, view.round_of(round_).parent, self.compute, publish=False)[0]
        calls = []
        for number, tenure in view.tenures_of(self.me):
            start = self.archive.start(round_, tenure.seat, parameters)
            folder = ProgressFolder(self._folder / "rounds" / f"{round_}-{tenure.seat}")
            run = LongRun(self.compute, self.archive.step, start, view.rules.steps_per_unit, folder, room=1 << 30)
            while run.units < view.rules.min_units:
                run.advance()
            job = self.archive.update_job(start[TrainingList.PARAMETERS], run.lists[TrainingList.PARAMETERS])
            (update,) = self.compute.run(job.program, job.lists, job.steps)
            first, second, third = run.ends
            work = SeatWork(run.units, marks_digest(run.marks), (first, second, third), self._published(update))
            calls.append(self.target.commitments.commit(round_, tenure.seat, number, base, work))
        self._all(calls)

    def _published(self, update: Any) -> Digest:
        return self.objects.put_list(self.archive.update_specs, update)

    def _all(self, calls: list[Any]) -> None:
        for result in self.send_all(calls):
            if isinstance(result, Exception):
                raise result
