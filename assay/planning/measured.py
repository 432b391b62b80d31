"""What a run would take of this very machine: its own programs run here, its store and its node are asked.

Seconds on this machine's clock, bytes; windows are seconds of chain time.
"""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from assay.engine.runtime import footprint
from assay.engine.runtime.memory_bound import bounded_here, free_memory
from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.words import to_bytes
from assay.protocol.program.program import Program
from assay.protocol.program.witness import witness_lists
from assay.protocol.rounds.run_terms import round_terms
from assay.protocol.run.layouts import zero_root
from assay.protocol.trees.state import ListBytes, TrainingList
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType, Round, Seat
from assay.training.rounds import TorchCompute
from assay_ledger.chain.client import Chain
from assay_ledger.index.computing import Computation
from assay_ledger.rounds.archive import Archive

T = TypeVar("T")

STEPS_S: Final = 3.0
"""Real steps are run for so long at least: a first one builds kernels, and few say little."""

MARGIN: Final = 1.5
"""A window must hold what it is for so many times: machines have other guests, and stores slow hours."""

CALLS: Final = 6
"""Of a node that one commitment takes, one after the other."""

OTHER_S: Final = 1.0
"""The same of the witnessed step."""

KEY: Final = (1, 2)
"""A witness key: what a step takes is the same under any."""


@dataclass(frozen=True, slots=True)
class WindowNeed:
    """Something that must be done within a window: what it is, the seconds that it takes here, and the window's."""

    what: str
    seconds: float
    window: float

    @property
    def fits(self) -> bool:
        """With the margin."""
        return self.seconds * MARGIN <= self.window


@dataclass(frozen=True, slots=True)
class MachineReading:
    """What was read on this machine."""

    step_seconds: float
    build_seconds: float
    """Of the first step: kernels are compiled and tested, once per program and start."""
    witness_seconds: float
    """Of a witnessed step."""
    again_seconds: float
    """Of a unit by other kernels, as before an accusation."""
    state_seconds: float
    """Of a step of the role's claims of which a game asks for the state that it ends in."""
    nodes_seconds: float
    """Of the longest step of the role's claims of which a game asks for all values."""
    update_seconds: float
    merge_seconds: float
    """Of a seat's, or of a group's sum above 64 seats."""
    whole_merge_seconds: float
    """Of a seat's, or of all sums above 64 seats."""
    memory_needed: int
    """By the estimate of the largest program."""
    memory_free: int
    disk_needed: int
    """Over the whole run, if nothing is ever deleted."""
    disk_free: int
    store_bytes_per_second: float
    """Of the run's data and first parameters, as they were read."""
    node_seconds: float
    """Median of five calls."""
    took_seconds: float


@dataclass(frozen=True, slots=True)
class MachineVerdict:
    """A reading against a role's windows."""

    reading: MachineReading
    needs: tuple[WindowNeed, ...]

    @property
    def reasons(self) -> list[str]:
        """Why this machine is not enough; empty when it is."""
        read = self.reading
        found = [
            f"{need.what} takes {need.seconds:.1f} s here, and its window is {need.window:.0f} s: "
            f"it must hold {MARGIN} times as much"
            for need in self.needs
            if not need.fits
        ]
        for what, needed, free in (
            ("memory", read.memory_needed, read.memory_free),
            ("disk", read.disk_needed, read.disk_free),
        ):
            if needed > free:
                found.append(f"{needed / 2**30:.2f} GiB of {what} are needed, and {free / 2**30:.2f} GiB are free")
        return found

    def to_document(self) -> dict[str, Any]:
        """For scripts."""
        needs = [asdict(need) | {"fits": need.fits} for need in self.needs]
        return asdict(self.reading) | {"margin": MARGIN, "windows": needs, "meets_windows": not self.reasons}


def measure(
    archive: Archive,
    chain: Chain,
    role: str,
    folder: Path,
    *,
    say: Callable[[str], None] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> MachineVerdict:
    """Runs a run's own programs on this machine, with its memory bounded on a CPU, and reads its store and its node.

    folder: where an actor would keep its copies; needs not exist. Takes STEPS_S and OTHER_S, what some steps and merges
    take by all kernels and in games, and the download of data and parameters. Raises UserError (ProgramTooLarge),
    MemoryExceeded, UnavailableError.
    """
    began = clock()
    say("reads the store and the node")
    specs = archive.specs(TrainingList.PARAMETERS)
    start = archive.facts.rounds
    parameters, fetch = _timed(clock, lambda: archive.objects.list(start.parameters, specs))
    data, fetch_data = _timed(clock, lambda: archive.data)
    size, sent = _nbytes(specs), _nbytes(archive.update_specs)
    # Attack: parameters of zeros, which no store is asked for, as the measure of a slow one.
    came = len(data) + (0 if start.parameters == zero_root(specs) else size)
    waits = [_timed(clock, chain.head)[1] for _ in range(5)]
    lists = archive.start(Round(0), Seat(0), parameters)
    witnessed = (*lists, *witness_lists(KEY))
    needed = max(_peak(program) for program in _programs(archive))
    with bounded_here():
        compute = TorchCompute()
        say("runs real steps of the run's program")
        build, step, state = _paced(clock, STEPS_S, lambda count: compute.run(archive.step, lists, count))
        _, witness, _ = _paced(clock, OTHER_S, lambda count: compute.run(archive.witness, witnessed, count))
        say("runs a step by other kernels, as before an accusation")
        again = _unit_again(compute, archive, witnessed, clock)
        job = archive.update_job(parameters, state[TrainingList.PARAMETERS])
        update = _timed(clock, lambda: compute.run(job.program, job.lists, job.steps))[1]
        say("merges once")
        jobs = _merges(archive, parameters)
        merges = [_timed(clock, partial(compute.run, one.program, one.lists, 1))[1] for one in jobs]
        say("answers a game about each")
        claim = Computation(archive.step, lists, 2) if role == "solver" else Computation(archive.witness, witnessed, 2)
        states, nodes = zip(*(_game(compute, one, clock) for one in (claim, job, *jobs)), strict=True)
    place = next(path for path in (folder, *folder.parents) if path.exists())
    reading = MachineReading(
        step_seconds=step,
        build_seconds=build,
        witness_seconds=witness,
        again_seconds=again,
        state_seconds=states[0],
        nodes_seconds=max(nodes),
        update_seconds=update,
        merge_seconds=merges[0],
        whole_merge_seconds=merges[-1],
        memory_needed=needed,
        memory_free=free_memory(),
        disk_needed=len(data) + archive.charter.rounds * (2 * size + start.group_size * sent),
        disk_free=shutil.disk_usage(place).free,
        store_bytes_per_second=came / (fetch + fetch_data),
        node_seconds=statistics.median(waits),
        took_seconds=clock() - began,
    )
    return MachineVerdict(reading, tuple(_needs(archive, role, reading, size, sent)))


def _needs(archive: Archive, role: str, read: MachineReading, size: int, sent: int) -> Iterable[WindowNeed]:
    """What a role must do in time: bytes go as fast as they came."""
    charter, start, rules = archive.charter, archive.facts.rounds, round_terms(archive.charter)
    steps = start.max_units * start.steps_per_unit
    link, calls = read.store_bytes_per_second, CALLS * read.node_seconds
    if role == "solver":
        # Attack: a chain that is said to keep transactions out for days, in which no work has weight any more.
        work = steps * read.step_seconds + read.update_seconds + sent / link + calls
        yield WindowNeed("a round's work", work, rules.commit)
        if rules.by_seats:
            yield WindowNeed("fetching what others made", rules.seats * sent / link + calls, rules.hold)
            yield WindowNeed("its merge", read.merge_seconds + calls, rules.merge)
    else:
        if not rules.by_seats:
            # Positions are drawn of tickets.
            summed = _nbytes(archive.sum_specs)
            yield WindowNeed("fetching what a group made", rules.group_size * sent / link + calls, rules.hold)
            yield WindowNeed("the sum of a group", read.merge_seconds + summed / link + calls, rules.group_merge)
            whole = read.whole_merge_seconds + (rules.groups * summed + size) / link + calls
            yield WindowNeed("a merge of sums", whole, rules.merge)
        fetched = (size + sent) / link
        replay = steps * read.witness_seconds + read.update_seconds + fetched + calls
        capacity = charter.economics.capacity
        yield WindowNeed(f"a call with {capacity} replays", capacity * replay, charter.timing.epoch)
        yield WindowNeed("a unit again before an accusation", read.again_seconds, charter.timing.epoch)
    # Attack: clocks by which who computes all of a claim again, as a game asks, is late whatever it does.
    yield WindowNeed("the first answer of a game", steps * read.state_seconds + calls, charter.clocks.replay)
    yield WindowNeed("another answer of a game", read.nodes_seconds + calls, charter.clocks.replay)
    # Who challenges runs the step once more for the values of the node that was opened, and has no extension for that.
    selecting = charter.clocks.move + charter.clocks.budget
    yield WindowNeed("a first selection in a game", read.nodes_seconds + calls, selecting)


def _programs(archive: Archive) -> list[Program]:
    found = [archive.step, archive.update, archive.merge, archive.witness]
    return found if archive.facts.rounds.by_seats else [*found, archive.partial]


def _peak(program: Program) -> int:
    """Of a run by the usual kernels, and of one by stock torch, which confirms an accusation."""
    return max(footprint.needed(program, stock)[0] for stock in (footprint.left_to_stock(program), None))


def _merges(archive: Archive, parameters: tuple[bytes, ...]) -> list[Computation]:
    """A merge as a seat computes it, of updates that are nothing; above 64 seats that of a group, and that of all."""
    start = archive.facts.rounds
    zero = archive.objects.list(start.zero_update, archive.update_specs)
    momentum = archive.objects.list(start.momentum, archive.specs(TrainingList.PARAMETERS))
    found, merged, what = [], start.seats, zero
    if not start.by_seats:
        found.append(Computation(archive.partial, (zero,) * start.group_size, 1))
        merged, what = start.groups, archive.objects.list(start.zero_partial, archive.sum_specs)
    weights = to_bytes(DType.F32, [f32.ONE] * merged)
    return [*found, Computation(archive.merge, (parameters, momentum, *(what,) * merged, (weights,)), 1)]


def _paced(clock: Callable[[], float], least: float, run: Callable[[int], T]) -> tuple[float, float, T]:
    """Seconds of a first step, and of a step in runs of `least` seconds together; what the last of them ended in."""
    _, first = _timed(clock, partial(run, 1))
    steps, spent = 0, 0.0
    while True:
        found, took = _timed(clock, partial(run, max(1, steps)))
        steps, spent = steps + max(1, steps), spent + took
        if spent >= least:
            return first, spent / steps, found


def _unit_again(compute: TorchCompute, archive: Archive, lists: ListBytes, clock: Callable[[], float]) -> float:
    """Seconds of a unit by other kernels: they are made for each."""
    began, ends = clock(), list[float]()
    compute.recheck(archive.witness, lists, 2, lambda _: ends.append(clock()))
    return ends[0] - began + (archive.facts.rounds.steps_per_unit - 1) * (ends[1] - ends[0])


def _game(compute: TorchCompute, claim: Computation, clock: Callable[[], float]) -> tuple[float, float]:
    """Seconds of the claim's last step where a game asks for its end, and where it asks for all its values."""
    trace = compute.trace(claim.program, claim.lists, claim.steps)
    trace.state_root(claim.steps - 1)
    state = _timed(clock, partial(trace.state_root, claim.steps))[1]
    return state, _timed(clock, partial(trace.prefix_root, claim.steps, 1))[1]


def _nbytes(specs: Iterable[TensorSpec]) -> int:
    return sum(spec.nbytes for spec in specs)


def _timed(clock: Callable[[], float], action: Callable[[], T]) -> tuple[T, float]:
    began = clock()
    found = action()
    return found, max(clock() - began, 1e-9)
