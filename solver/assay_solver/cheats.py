"""Dishonest solvers, for demonstrations and tests: an honest solver over an execution that lies.

A cheat alters the values of computed nodes; everything after them is computed from the altered ones, so that the lie is
consistent to the last byte, and the longest defence that there is loses only when the contract computes an element.
Each cheat lies in one round and is honest otherwise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from assay.protocol.errors import UsageError
from assay.protocol.program.nodes import Gather, Output, reads
from assay.protocol.program.program import Program
from assay.protocol.program.trace import Tamper
from assay.protocol.trees.state import ListBytes, Scalar, TrainingList
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, Round, Seat
from assay_ledger.index.archive import Archive, Computation, Compute
from assay_ledger.index.records import RoundRecord
from assay_ledger.index.view import RunView
from assay_solver.lies import Change, Lie, constant, flipped, is_computed, output_source


@dataclass(frozen=True, slots=True)
class Scene:
    """What a cheat may look at when it makes up its lie."""

    view: RunView
    archive: Archive
    compute: Compute
    round: Round
    seat: Seat

    @property
    def record(self) -> RoundRecord:
        """The round."""
        return self.view.state.rounds[self.round]

    @property
    def intervals(self) -> int:
        """n."""
        return self.archive.facts.charter.training.intervals


class Cheat(ABC):
    """One way to cheat, in one round."""

    name: str
    default_round: int = 1
    is_silent = False
    """Makes no move in a game on its claims."""
    waits = False
    """Trains after another seat has committed."""

    def __init__(self, round_: Round) -> None:
        self.round = round_

    @abstractmethod
    def lie(self, scene: Scene, number: int, job: Computation) -> Tamper | None:
        """The lie in the run behind a duty, if there is one."""


class SkipSteps(Cheat):
    """Stops early and claims for the rest of the round that nothing changed."""

    name = "skip-steps"

    def lie(self, scene: Scene, number: int, job: Computation) -> Tamper | None:
        """From the middle of the round on, parameters and moments stay as they are."""
        if number >= scene.intervals or number < scene.intervals // 2:
            return None
        return Lie(_outputs_become(job.program, job.lists[: TrainingList.SCALARS]))


class WrongData(Cheat):
    """Trains on other tokens than those of its shard."""

    name = "wrong-data"

    def lie(self, scene: Scene, number: int, job: Computation) -> Tamper | None:
        """Every batch is read one place further on."""
        if number >= scene.intervals:
            return None
        node = data_gather(job.program)
        return Lie({(0, node): lambda data: _rolled(job.program.specs[node], data)})


class BitFlip(Cheat):
    """One bit of one moment, in the middle of one interval."""

    name = "bit-flip"
    default_round = 2

    def lie(self, scene: Scene, number: int, job: Computation) -> Tamper | None:
        """A bit of a moment's first element, in the output of the node that writes it."""
        if number != scene.intervals // 2:
            return None
        node = output_source(job.program, TrainingList.OPTIMIZER)
        return Lie({(job.steps // 2 + 1, node): lambda data: flipped(job.program.specs[node], data)})


class Silent(BitFlip):
    """The same, and does not answer the game."""

    name = "silent"
    is_silent = True


class StaleStart(Cheat):
    """Trains from the weights of the round before, behind the correct start root."""

    name = "stale-start"

    def lie(self, scene: Scene, number: int, job: Computation) -> Tamper | None:
        """In the first step every computed value is what the old weights would give."""
        if number != 0 or scene.round == 0:
            return None
        before = scene.view.outer_lists(Round(scene.round - 1), _base_before(scene))
        weights = scene.archive.objects.list(before.parameters, scene.archive.specs(TrainingList.PARAMETERS))
        return Lie(_values_of(job.program, (weights, *job.lists[1:]), scene.compute))


class CopiedUpdate(Cheat):
    """Commits another seat's update over its own intervals."""

    name = "copied-update"
    waits = True

    def lie(self, scene: Scene, number: int, job: Computation) -> Tamper | None:
        """The update is another seat's, whatever its own work came to."""
        if number != scene.intervals:
            return None
        own = scene.record.commitments.get(scene.seat)
        others = [c for seat, c in sorted(scene.record.commitments.items()) if seat != scene.seat]
        if own is None and not others:
            return None
        root = others[0].update if own is None else own.update
        copied = scene.archive.objects.list(root, scene.archive.specs(TrainingList.PARAMETERS))
        return Lie(_outputs_become(job.program, (copied,)))


CHEATS: Final[Mapping[str, type[Cheat]]] = {
    cheat.name: cheat for cheat in (SkipSteps, WrongData, BitFlip, StaleStart, CopiedUpdate, Silent)
}
"""Every way to cheat by the name that a person types."""


def cheat_named(name: str, rounds: int, at: int | None = None) -> Cheat:
    """The cheat of this name. It lies in round `at`, by default its own, the last one at most.

    Raises UsageError (UnknownCheat).
    """
    if name not in CHEATS:
        raise UsageError(
            f"There is no cheat called {name!r}.",
            code="UnknownCheat",
            remedy=f"Choose one of: {', '.join(sorted(CHEATS))}, none.",
        )
    kind = CHEATS[name]
    return kind(Round(min(kind.default_round if at is None else at, rounds - 1)))


# --- where to lie


def data_gather(program: Program) -> int:
    """The node that reads the data: the first gather from the data tensor or from something computed of it alone."""
    data = program.input_nodes[TrainingList.SCALARS][Scalar.DATA]
    stems = {data}
    for k, node in enumerate(program.nodes):
        if isinstance(node, Gather) and node.table.node in stems:
            return k
        sources = set(reads(node))
        if sources and sources <= stems:
            stems.add(k)
    raise UsageError("The program reads no data by a gather.", code="NoDataGather", remedy="Choose another cheat.")


def _outputs_become(program: Program, lists: ListBytes) -> dict[tuple[int, int], Change]:
    """In every step the outputs of the first lists of Y are these bytes."""
    changes: dict[tuple[int, int], Change] = {}
    for nodes, slots in zip(program.output_nodes, lists, strict=False):
        for k, value in zip(nodes, slots, strict=True):
            node = program.nodes[k]
            if isinstance(node, Output) and is_computed(program, node.node):
                changes[0, node.node] = constant(value)
    return changes


def _values_of(program: Program, lists: ListBytes, compute: Compute) -> dict[tuple[int, int], Change]:
    """In the first step every computed node has the value that it has in a run from other lists."""
    changes: dict[tuple[int, int], Change] = {}

    def record(step: int, node: int, data: bytes) -> bytes:
        if is_computed(program, node):
            changes[1, node] = constant(data)
        return data

    compute.run(program, lists, 1, record)
    return changes


def _base_before(scene: Scene) -> Digest:
    """The outer root that the round before started from, on the way to this round's base."""
    own = scene.record.commitments.get(scene.seat)
    base = scene.view.verified_base(scene.round) if own is None else own.base
    outer = None if base is None else scene.view.outer(scene.round, base)
    assert outer is not None
    return outer.base


def _rolled(spec: TensorSpec, data: bytes) -> bytes:
    """The elements moved one place; one bit flipped where that changes nothing."""
    size = spec.dtype.size
    moved = data[size:] + data[:size]
    return moved if moved != data else flipped(spec, data)
