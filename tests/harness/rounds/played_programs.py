"""The four programs of a small run that is really computed, and the true and false runs of them that people claim.

Parameters and update are those of `mlp_step` with four hidden units. A merge adds all updates to the parameters and
counts the rounds in the momentum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from assay.protocol.arithmetic.scalar_builder import ScalarBuilder
from assay.protocol.program.builder import ProgramBuilder
from assay.protocol.program.program import Program
from assay.protocol.program.trace import ReferenceTrace, Tamper, flip_bit
from assay.protocol.program.witness import witness_lists, witnessed_program
from assay.protocol.rounds.terms import SeatWork
from assay.protocol.trees.state import ListBytes, RoundScalars
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from tests.harness.programs import Example, binary, f32_bytes, mlp_step, scalar_slots
from tests.harness.rounds.samples import mark

SEATS: Final = 4
F32: Final = DType.F32


@dataclass(frozen=True)
class RunPrograms:
    """Step, update, merge and witnessed step, and the bytes that a run starts from."""

    step: Example
    update: Program
    merge: Program
    witness: Program

    @property
    def parameters(self) -> tuple[bytes, ...]:
        return self.step.state[0]

    @property
    def zeros(self) -> tuple[bytes, ...]:
        """Moments at the start of every round, momentum of generation 0, and the update of nobody."""
        return self.step.state[1]

    @property
    def data(self) -> bytes:
        return self.step.state[2][-1]


@cache
def run_programs() -> RunPrograms:
    """One of each."""
    step = mlp_step(rows=2, context=4, hidden=4)
    specs = [step.program.specs[k] for k in step.program.input_nodes[0]]
    b = ProgramBuilder([specs, specs])
    moved = [b.map(binary((F32, F32), "sub"), [b.input(0, i), b.input(1, i)], s.dims) for i, s in enumerate(specs)]
    update = b.build([moved])
    b = ProgramBuilder([specs] * (2 + SEATS) + [[TensorSpec(F32, (SEATS,))]])
    total = ScalarBuilder([F32] * (1 + SEATS))
    summed = total.operand(0)
    for k in range(SEATS):
        summed = total.add(summed, total.operand(1 + k))
    addition = total.build(summed)
    after = [b.map(addition, [b.input(k, i) for k in (0, *range(2, 2 + SEATS))], s.dims) for i, s in enumerate(specs)]
    s = ScalarBuilder([F32])
    increment = s.build(s.add(s.operand(0), s.f32(1.0)))
    counted = [b.map(increment, [b.input(1, i)], spec.dims) for i, spec in enumerate(specs)]
    return RunPrograms(step, update, b.build([after, counted]), witnessed_program(step.program))


def start_state(scalars: RoundScalars) -> ListBytes:
    """What a seat's round starts from."""
    p = run_programs()
    return (p.parameters, p.zeros, scalar_slots(scalars, p.data))


def end_slots(run: ReferenceTrace) -> tuple[bytes, ...]:
    """The parameters that a seat's run ends in."""
    return tuple(run.slot_bytes(run.steps, 0, i) for i in range(len(run_programs().parameters)))


def blind_lie(scalars: RoundScalars, key: Digest, steps: int) -> ReferenceTrace:
    """A replay under a key with a wrong accumulator, whose other lists are true."""
    true = witnessed(scalars, key, steps)
    for node in range(len(run_programs().witness.nodes) - 1, 0, -1):
        trace = witnessed(scalars, key, steps, flip_bit(2, node, 3))
        if trace.list_roots(steps)[:4] == true.list_roots(steps)[:4] and accumulator(trace) != accumulator(true):
            return trace
    raise AssertionError("No node reaches the accumulator alone.")


def lie_in(program: Program, state: ListBytes, steps: int, step: int = 1) -> ReferenceTrace:
    """A run with one wrong bit of one node at a step, which reaches every state after."""
    true = ReferenceTrace(program, state, steps)
    for node in range(len(program.nodes) // 2, len(program.nodes)):
        trace = ReferenceTrace(program, state, steps, flip_bit(step, node, 3))
        if trace.state_root(steps) != true.state_root(steps):
            return trace
    raise AssertionError("No node of the program reaches its end.")


@dataclass(frozen=True)
class SeatRun:
    """A seat's run and its update, and what it commits to."""

    run: ReferenceTrace
    update: ReferenceTrace
    work: SeatWork


@cache
def trained(scalars: RoundScalars, units: int, steps: int, lie: str = "") -> SeatRun:
    """A seat's work, true, or with a lie in its "run" or its "update"."""
    p, state = run_programs(), start_state(scalars)
    run = lie_in(p.step.program, state, steps, 2) if lie == "run" else ReferenceTrace(p.step.program, state, steps)
    moved: ListBytes = (p.parameters, end_slots(run))
    update = lie_in(p.update, moved, 1) if lie == "update" else ReferenceTrace(p.update, moved, 1)
    first, second, third = run.list_roots(steps)
    return SeatRun(run, update, SeatWork(units, mark("marks"), (first, second, third), update.list_roots(1)[0]))


@cache
def witnessed(scalars: RoundScalars, key: Digest, steps: int, tamper: Tamper | None = None) -> ReferenceTrace:
    """A replay under a key, with a lie where `tamper` says."""
    words = tuple(int.from_bytes(key[i : i + 4], "little") for i in (0, 4))
    state = (*start_state(scalars), *witness_lists(words))
    return ReferenceTrace(run_programs().witness, state, steps, tamper)


def accumulator(trace: ReferenceTrace) -> Digest:
    """What a replay under a key ends in."""
    return Digest(trace.slot_bytes(trace.steps, 4, 0))


def merged(updates: Sequence[Sequence[bytes]]) -> ListBytes:
    """X of the first merge where the updates of all seats count: each update, and the mask."""
    p = run_programs()
    return (p.parameters, p.zeros, *map(tuple, updates), (f32_bytes(*[1.0] * SEATS),))
