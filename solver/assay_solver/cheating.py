"""A dishonest solver, for demonstrations and tests: an honest one whose runs lie, and who leaves undone what tells.

The lies themselves are in `cheats`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from assay.protocol.program.trace import OnStep, Tamper, Trace
from assay.protocol.run.claims import ClaimKind
from assay.protocol.trees.state import ListBytes
from assay.protocol.types import Round, Seat
from assay_ledger.agents.actions import Action, Challenge, Commit, Defer, Play, Train
from assay_ledger.agents.loop import RunStore
from assay_ledger.index.archive import Computation
from assay_ledger.index.records import RoundRecord
from assay_ledger.index.run import Run
from assay_ledger.index.view import Duty, RunView
from assay_ledger.keys.keystore import ActorKeys
from assay_solver.agent import SolverAgent
from assay_solver.cheats import Cheat, Scene, cheat_named


class CheatingSolver(SolverAgent):
    """A solver that cheats in one round, by a `Cheat` or the name of one. Raises UsageError (UnknownCheat)."""

    def __init__(
        self, run: Run, keys: ActorKeys, store: RunStore, data_dir: Path, *, cheat: str | Cheat, **options: Any
    ) -> None:
        self.cheat = cheat if isinstance(cheat, Cheat) else cheat_named(cheat, run.charter.rounds)
        super().__init__(run, keys, store, data_dir, **options)

    def candidates(self, view: RunView) -> Iterator[Action]:
        """See Agent."""
        return as_cheat(self.cheat, super().candidates(view), view)

    def times(self, view: RunView) -> Iterator[int]:
        """See Agent."""
        yield from super().times(view)
        record = view.state.round
        if record is not None and holds_back(self.cheat, record):
            yield last_moment(record)

    def run_own(
        self, action: Train, number: int, job: Computation, view: RunView, on_step: OnStep | None = None
    ) -> ListBytes:
        """See SolverAgent; a lie where the cheat lies."""
        lie = self.lie(action.round, action.seat, number, job, view)
        return self.compute.run(job.program, job.lists, job.steps, lie, on_step)

    def own_trace(self, duty: Duty, job: Computation, view: RunView) -> Trace:
        """See Participant; the same lie once more."""
        lie = self.lie(duty.round, duty.seat, duty.number, job, view)
        return self.compute.trace(job.program, job.lists, job.steps, lie)

    def lie(self, round_: Round, seat: Seat, number: int, job: Computation, view: RunView) -> Tamper | None:
        """How the run behind one's own claim on a duty is altered; None where it is not."""
        if round_ != self.cheat.round:
            return None
        return self.cheat.lie(Scene(view, self.archive, self.compute, round_, seat), number, job)


def as_cheat(cheat: Cheat, actions: Iterable[Action], view: RunView) -> Iterator[Action]:
    """Of what an honest solver would do now, what a cheat does."""
    return (action for action in actions if not _leaves_out(cheat, action, view))


def _leaves_out(cheat: Cheat, action: Action, view: RunView) -> bool:
    match action:
        case Challenge(ref):
            # Who denies its work is right.
            return ref.kind is ClaimKind.ATTESTATION
        case Play() | Defer():
            return cheat.is_silent and view.state.games[action.game_id].defender == view.me
        case Train() | Commit():
            record = view.state.rounds[action.round]
            return holds_back(cheat, record) and not record.commitments and view.now < last_moment(record)
        case _:
            return False


def holds_back(cheat: Cheat, record: RoundRecord) -> bool:
    """Does it train in this round only after another seat has committed?"""
    return cheat.waits and record.number == cheat.round


def last_moment(record: RoundRecord) -> int:
    """When a solver that waits for another seat's commitment stops waiting."""
    t = record.times
    return t.t1 - (t.t1 - t.t0) // 4
