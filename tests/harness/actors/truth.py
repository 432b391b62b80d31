"""What rounds must come to, computed by the protocol's reference executor alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.words import to_bytes
from assay.protocol.digests import state_digest
from assay.protocol.program.program import Program
from assay.protocol.program.reference import ReferenceExecutor
from assay.protocol.trees.state import ListBytes, RoundScalars
from assay.protocol.types import Digest, DType, Round, Seat
from assay_ledger.store.objects import root_of_list
from tests.harness.actors.stage import RoundStageRun


def run_of(program: Program, lists: ListBytes, steps: int = 1) -> ListBytes:
    """Y of a program by the reference executor."""
    executor = ReferenceExecutor(program)
    for _ in range(steps):
        values = executor.run(lists)
        lists = tuple(tuple(values[k] for k in nodes) for nodes in program.output_nodes)
    return lists


def replayed_bases(run: RoundStageRun, rounds: int, counted: Sequence[frozenset[int]] | None = None) -> list[Digest]:
    """The roots of generation 0 and of those after it, all seats doing all units; `counted`: whose updates count."""
    terms, work = run.run.facts.rounds, run.work
    parameters: Any = work.parameters
    momentum: Any = tuple(s.zeros() for s in work.specs)
    roots = [_root(work.specs, parameters, momentum)]
    for r in range(rounds):
        chosen = frozenset(range(terms.seats)) if counted is None else counted[r]
        updates = []
        for k in range(terms.seats):
            if k not in chosen:
                updates.append(tuple(s.zeros() for s in work.specs))
                continue
            scalars = RoundScalars(
                terms.run, Seat(k), Round(r), terms.max_units * terms.steps_per_unit, terms.shards,
                terms.shard_length, terms.learning_rate, terms.data,
            )  # fmt: skip
            values = scalars.values()
            start = (parameters, work.optimizer, (*(values[s] for s in sorted(values)), work.data))
            end = run_of(work.step, start, terms.max_units * terms.steps_per_unit)
            (update,) = run_of(work.update, (parameters, end[0]))
            updates.append(update)
        mask = to_bytes(DType.F32, [f32.ONE if k in chosen else 0 for k in range(terms.seats)])
        parameters, momentum = run_of(work.outer, (parameters, momentum, *updates, (mask,)))
        roots.append(_root(work.specs, parameters, momentum))
    return roots


def _root(specs: Any, parameters: Any, momentum: Any) -> Digest:
    return state_digest((root_of_list(specs, parameters), root_of_list(specs, momentum)))
