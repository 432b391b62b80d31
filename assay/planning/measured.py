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
from assay.planning.outlook import outlook_of_run
from assay.protocol.arithmetic import f32
from assay.protocol.arithmetic.words import to_bytes
from assay.protocol.program.program import Program
from assay.protocol.rounds.run_terms import round_terms
from assay.protocol.trees.state import TrainingList
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import DType, Round, Seat
from assay.training.rounds import TorchCompute
from assay_ledger.chain.client import Chain
from assay_ledger.rounds.archive import Archive

T = TypeVar("T")

STEPS_S: Final = 3.0
"""Real steps are run for so long at least: a first one builds kernels, and few say little."""

MARGIN: Final = 1.5
"""A window must hold what it is for so many times: machines have other guests, and stores slow hours."""

CALLS: Final = 6
"""Of a node that one commitment takes, one after the other."""

WITNESS: Final = 1.05
"""A witnessed step over a plain one (docs/LOG.md)."""


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
    update_seconds: float
    merge_seconds: float
    memory_needed: int
    """By the estimate of the largest program."""
    memory_free: int
    disk_needed: int
    """Over the whole run, if nothing is ever deleted."""
    disk_free: int
    store_bytes_per_second: float
    """Of the run's first parameters, as they were read."""
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

    folder: where an actor would keep its copies; needs not exist. Takes STEPS_S, what a step and a merge take, and the
    download of data and parameters. Raises UserError (ProgramTooLarge), MemoryExceeded, UnavailableError.
    """
    began = clock()
    say("reads the store and the node")
    specs = archive.specs(TrainingList.PARAMETERS)
    start = archive.facts.rounds
    parameters, fetch = _timed(clock, lambda: archive.objects.list(start.parameters, specs))
    waits = [_timed(clock, chain.head)[1] for _ in range(5)]
    lists = archive.start(Round(0), Seat(0), parameters)
    needed = max(_peak(program) for program in _programs(archive))
    with bounded_here():
        compute = TorchCompute()
        say("runs real steps of the run's program")
        _, build = _timed(clock, lambda: compute.run(archive.step, lists, 1))
        steps, spent = 0, 0.0
        while spent < STEPS_S:
            state, took = _timed(clock, partial(compute.run, archive.step, lists, max(1, steps)))
            steps, spent = steps + max(1, steps), spent + took
        job = archive.update_job(parameters, state[TrainingList.PARAMETERS])
        update = _timed(clock, lambda: compute.run(job.program, job.lists, job.steps))[1]
        say("merges once")
        merge = _timed(clock, lambda: compute.run(*_merge(archive, parameters)))[1]
    place = next(path for path in (folder, *folder.parents) if path.exists())
    size, sent = _nbytes(specs), _nbytes(archive.update_specs)
    reading = MachineReading(
        step_seconds=spent / steps,
        build_seconds=build,
        update_seconds=update,
        merge_seconds=merge,
        memory_needed=needed,
        memory_free=free_memory(),
        disk_needed=len(archive.data) + archive.charter.rounds * (2 * size + start.group_size * sent),
        disk_free=shutil.disk_usage(place).free,
        store_bytes_per_second=size / fetch,
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
        work = steps * read.step_seconds + read.update_seconds + sent / link + calls
        yield WindowNeed("a round's work", work, outlook_of_run(charter).round_seconds)
        if rules.by_seats:
            merge = read.merge_seconds + rules.seats * sent / link + calls
            yield WindowNeed("its merge", merge, rules.hold + rules.merge)
    else:
        if not rules.by_seats:
            # Positions are drawn of tickets. A merge of sums was not measured: that of a group stands for it.
            summed = _nbytes(archive.sum_specs)
            group = read.merge_seconds + (rules.group_size * sent + summed) / link + calls
            yield WindowNeed("the sum of a group", group, rules.hold + rules.group_merge)
            whole = read.merge_seconds + (rules.groups * summed + size) / link + calls
            yield WindowNeed("a merge of sums", whole, rules.merge)
        fetched = (size + sent) / link
        replay = steps * read.step_seconds * WITNESS + read.update_seconds + fetched + calls
        capacity = charter.economics.capacity
        yield WindowNeed(f"a call with {capacity} replays", capacity * replay, charter.timing.epoch)


def _programs(archive: Archive) -> list[Program]:
    found = [archive.step, archive.update, archive.merge, archive.witness]
    return found if archive.facts.rounds.by_seats else [*found, archive.partial]


def _peak(program: Program) -> int:
    """Of a run by the usual kernels, and of one by stock torch, which confirms an accusation."""
    return max(footprint.needed(program, stock)[0] for stock in (footprint.left_to_stock(program), None))


def _merge(archive: Archive, parameters: tuple[bytes, ...]) -> tuple[Program, tuple[tuple[bytes, ...], ...], int]:
    """A merge as a seat computes it, of updates that are nothing; the sum of a group above 64 seats."""
    start = archive.facts.rounds
    zero = archive.objects.list(start.zero_update, archive.update_specs)
    if not start.by_seats:
        return archive.partial, (zero,) * start.group_size, 1
    momentum = archive.objects.list(start.momentum, archive.specs(TrainingList.PARAMETERS))
    mask = to_bytes(DType.F32, [f32.ONE] * start.seats)
    return archive.merge, (parameters, momentum, *(zero,) * start.seats, (mask,)), 1


def _nbytes(specs: Iterable[TensorSpec]) -> int:
    return sum(spec.nbytes for spec in specs)


def _timed(clock: Callable[[], float], action: Callable[[], T]) -> tuple[T, float]:
    began = clock()
    found = action()
    return found, max(clock() - began, 1e-9)
