"""Dishonest solvers, for demonstrations and tests: an honest one that lies, or leaves work undone.

Each cheats in one round and is honest otherwise. A lie is consistent to the last byte: what follows from it is computed
from it, so that the longest defence loses only where the contract computes an element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from assay.protocol.errors import UsageError
from assay.protocol.program.nodes import Output
from assay.protocol.program.program import Program
from assay.protocol.program.trace import Tamper, Trace
from assay.protocol.trees.state import ListBytes, TrainingList
from assay.protocol.types import Digest, Round
from assay_ledger.agents.loop import RunStore
from assay_ledger.agents.round_actions import Choice
from assay_ledger.index.computing import Computation
from assay_ledger.keys.keystore import ActorKeys
from assay_ledger.rounds.run import Run
from assay_ledger.rounds.view import RunView
from assay_ledger.store.objects import Tensors
from assay_solver.actions import CommitWork, TrainUnit
from assay_solver.agent import Solver
from assay_solver.lies import Change, Lie, constant, flipped, is_computed, output_source


class SolverCheat:
    """A way to cheat, in one round; this one does not."""

    name = "none"
    default_round = 1

    def __init__(self, round_: Round) -> None:
        self.round = round_

    def step_lie(self, program: Program, steps: int) -> Tamper | None:
        """A lie in the training; steps count from 1 over the whole round, `steps` is a unit's."""
        return None

    def update_lie(self, job: Computation, solver: Solver) -> Tamper | None:
        """A lie in the update."""
        return None

    def merge_lie(self, job: Computation) -> Tamper | None:
        """A lie in the merge."""
        return None

    def choose(self, action: Choice, view: RunView) -> Choice | None:
        """What it does instead of an action in its round; None where it does nothing."""
        return action

    hides_update = False
    """Publishes nothing of its update."""


class FalseStep(SolverCheat):
    """One bit of one weight, at the end of one step."""

    name = "false-step"

    def step_lie(self, program: Program, steps: int) -> Tamper | None:
        """See SolverCheat; in the second unit, the last step of it."""
        node = output_source(program, TrainingList.PARAMETERS)
        return Lie({(2 * steps, node): lambda data: flipped(program.specs[node], data)})


class FalseUpdate(SolverCheat):
    """Another update than the work came to."""

    name = "false-update"

    def update_lie(self, job: Computation, solver: Solver) -> Tamper | None:
        """See SolverCheat."""
        node = output_source(job.program, 0)
        return Lie({(1, node): lambda data: flipped(job.program.specs[node], data)})


class OthersUpdate(SolverCheat):
    """Another seat's update behind its own work."""

    name = "copied-update"

    def update_lie(self, job: Computation, solver: Solver) -> Tamper | None:
        """See SolverCheat; once it has committed, what it said: seats before the one it copied may come later."""
        view = solver.see()
        said = {view.books.tenures.existing(work.tenure).holder: work for work in view.works(self.round)}
        copied = said.get(solver.me) or next(iter(said.values()), None)
        return None if copied is None else Lie(_become(job.program, solver.archive.fetch_update(copied)))

    def choose(self, action: Choice, view: RunView) -> Choice | None:
        """See SolverCheat: it commits once there is something to copy."""
        return None if isinstance(action, CommitWork) and not view.works(self.round) else action


class HiddenUpdate(SolverCheat):
    """Commits to an update that nobody can fetch."""

    name = "hidden-update"
    hides_update = True


class Squatter(SolverCheat):
    """Does the least that holds a seat."""

    name = "squatter"

    def choose(self, action: Choice, view: RunView) -> Choice | None:
        """See SolverCheat."""
        if isinstance(action, TrainUnit) and action.unit >= view.rules.min_units:
            return CommitWork(action.round, action.seat, action.base)
        return action


class AbsentSolver(SolverCheat):
    """Does not work."""

    name = "absent"

    def choose(self, action: Choice, view: RunView) -> Choice | None:
        """See SolverCheat."""
        return None if isinstance(action, TrainUnit | CommitWork) else action


class LateCommitter(SolverCheat):
    """Commits after the mask has closed."""

    name = "late-commitment"

    def choose(self, action: Choice, view: RunView) -> Choice | None:
        """See SolverCheat."""
        return None if isinstance(action, CommitWork) and not view.is_mask_closed(self.round) else action


class FalseRoot(SolverCheat):
    """Opens a root that the merge does not give."""

    name = "false-root"

    def merge_lie(self, job: Computation) -> Tamper | None:
        """See SolverCheat."""
        node = output_source(job.program, 0)
        return Lie({(1, node): lambda data: flipped(job.program.specs[node], data)})


SOLVER_CHEATS: Final[Mapping[str, type[SolverCheat]]] = {
    cheat.name: cheat
    for cheat in (
        FalseStep,
        FalseUpdate,
        OthersUpdate,
        HiddenUpdate,
        Squatter,
        AbsentSolver,
        LateCommitter,
        FalseRoot,
    )
}
"""Every way to cheat by the name that a person types."""


def solver_cheat_named(name: str, at: int | None = None) -> SolverCheat:
    """The cheat of this name; it cheats in round `at`, by default its own. Raises UsageError (UnknownCheat)."""
    if name not in SOLVER_CHEATS:
        raise UsageError(
            f"There is no cheat called {name!r}.",
            code="UnknownCheat",
            remedy=f"Choose one of: {', '.join(sorted(SOLVER_CHEATS))}.",
        )
    kind = SOLVER_CHEATS[name]
    return kind(Round(kind.default_round if at is None else at))


class CheatingSolver(Solver):
    """A solver that cheats in one round."""

    def __init__(
        self, run: Run, keys: ActorKeys, store: RunStore, data_dir: Path, *, cheat: SolverCheat, **options: Any
    ) -> None:
        self.cheat = cheat
        super().__init__(run, keys, store, data_dir, **options)

    def candidates(self, view: RunView) -> Iterator[Choice]:
        """See Solver."""
        for action in super().candidates(view):
            is_its = self.cheat.round in (view.round, getattr(action, "round", None))
            chosen = self.cheat.choose(action, view) if is_its else action
            if chosen is not None:
                yield chosen

    def lie(self, round_: Round) -> Tamper | None:
        """See Worker."""
        return self.cheat.step_lie(self.archive.step, self._unit) if round_ == self.cheat.round else None

    @property
    def _unit(self) -> int:
        return self.target.facts.rounds.steps_per_unit

    def run_update(self, round_: Round, job: Computation) -> ListBytes:
        """See Worker."""
        return self.compute.run(job.program, job.lists, job.steps, self._update_lie(round_, job))

    def update_trace(self, round_: Round, job: Computation) -> Trace:
        """See Solver."""
        return self.compute.trace(job.program, job.lists, job.steps, self._update_lie(round_, job))

    def _update_lie(self, round_: Round, job: Computation) -> Tamper | None:
        return self.cheat.update_lie(job, self) if round_ == self.cheat.round else None

    def put_update(self, round_: Round, update: Tensors) -> Digest:
        """See Worker."""
        if round_ == self.cheat.round and self.cheat.hides_update:
            return self.objects.keep_list(self.archive.update_specs, update)
        return super().put_update(round_, update)

    def run_merge(self, round_: Round, job: Computation) -> ListBytes:
        """See Solver."""
        return self.compute.run(job.program, job.lists, job.steps, self._merge_lie(round_, job))

    def merge_trace(self, round_: Round, job: Computation) -> Trace:
        """See Solver."""
        return self.compute.trace(job.program, job.lists, job.steps, self._merge_lie(round_, job))

    def confirm(self, round_: Round, view: RunView) -> None:
        """See Solver; who lies looks away."""
        if round_ != self.cheat.round:
            super().confirm(round_, view)

    def _merge_lie(self, round_: Round, job: Computation) -> Tamper | None:
        return self.cheat.merge_lie(job) if round_ == self.cheat.round else None


def _become(program: Program, tensors: Tensors) -> dict[tuple[int, int], Change]:
    """The first list of Y is these bytes."""
    changes: dict[tuple[int, int], Change] = {}
    for k, value in zip(program.output_nodes[0], tensors, strict=True):
        node = program.nodes[k]
        if isinstance(node, Output) and is_computed(program, node.node):
            changes[1, node.node] = constant(value)
    return changes
