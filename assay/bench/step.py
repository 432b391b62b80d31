"""What exactness costs: whole training steps by exact programs against PyTorch's, in one alternating run.

The stock side is the same module with `backward()` and its own `torch.optim` optimizer, eager in f32; its peers are the
same by torch.compile, in f32 and in bf16. Ratios are medians over rounds in which each side runs once. On one thread
they are of processor time: other work on the machine disturbs all sides alike. On more, and on a GPU, they are of wall
time, since threads that wait for each other spin, and an idle machine is needed.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import median
from typing import Any, Final

import torch

from assay.bench.memory import WARM, growth
from assay.bench.sides import CPU, PEERS, YARDSTICK, Contender, Exact, side_of, why_not_compiled
from assay.engine.runtime import roots
from assay.engine.runtime.executor import usable_natives

INTERVAL: Final = 25
"""Steps between commitments (J)."""

StepSide = Callable[[], object]


@dataclass(frozen=True, slots=True)
class StepRow:
    """One model, one tier, one executor, over eager f32 and over torch.compile.

    time_ratio: median of rounds, over eager f32. compile_ratio, compile_bf16_ratio: the same over torch.compile in f32
    (on a GPU with products in TF32) and with autocast to bf16; without_compile says why there is none. over_plain: the
    same over the plain step beside it, for a witnessed one, in a run of these two: after eager each would find other
    caches. memory_ratio: growth of a process to the peak of a step, see `growth`. hash_share: one state root per
    INTERVAL steps, as a share of their time. Times in milliseconds, see `clock_for`; best_ms: the shortest of each.
    """

    model: str
    tier: str
    executor: str
    witnessed: bool
    device: str
    time_ratio: float
    compile_ratio: float | None
    compile_bf16_ratio: float | None
    over_plain: float | None
    memory_ratio: float | None
    hash_share: float | None
    step_ms: float
    eager_ms: float
    compile_ms: float | None
    compile_bf16_ms: float | None
    best_ms: dict[str, float]
    rounds: int
    threads: int
    nodes: int | None
    without_compile: str


@dataclass(frozen=True, slots=True)
class StepTerms:
    """How steps are measured: for how many seconds a model, on how many threads of which device, against what."""

    seconds: float
    threads: int = 1
    device: torch.device = CPU
    with_memory: bool = True
    with_compile: bool = True


def clock_for(threads: int, device: torch.device = CPU) -> Callable[[], float]:
    """What times steps, in seconds: processor time on one thread, wall time on more and on a GPU that is done."""
    if device.type == "cuda":

        def when_done() -> float:
            torch.cuda.synchronize()
            return time.perf_counter()

        return when_done
    return time.process_time if threads == 1 else time.perf_counter


def alternate(
    sides: Sequence[StepSide], seconds: float, least: int = 5, clock: Callable[[], float] = time.process_time
) -> list[list[float]]:
    """Milliseconds per round and side; every round runs every side once, first warm."""
    for side in sides:
        for _ in range(WARM):
            side()
    rounds: list[list[float]] = []
    while len(rounds) < least or sum(map(sum, rounds)) < seconds * 1e3:
        times = []
        for side in sides:
            start = clock()
            side()
            times.append((clock() - start) * 1e3)
        rounds.append(times)
    return rounds


def measure(model: str, sides: Sequence[Contender], terms: StepTerms) -> list[StepRow]:
    """One row per side, all of one alternating run.

    Raises:
        UsageError: UnknownModel, UnknownTier. UserError: NoNativeKernels.
    """
    rows = _timed(model, sides, terms)
    # By now no side is left: on a GPU all of them together leave no room for another process.
    return with_memory(rows, terms) if terms.with_memory else rows


def _timed(model: str, sides: Sequence[Contender], terms: StepTerms) -> list[StepRow]:
    torch.set_num_threads(terms.threads)
    own = [side_of(model, side, terms.device) for side in sides]
    peers, why = _peers(model, terms)
    clock = clock_for(terms.threads, terms.device)
    timed = alternate([side_of(model, YARDSTICK, terms.device), *own, *peers], terms.seconds, clock=clock)
    # Of each side the times in all rounds: eager, the sides, torch.compile in f32 and in bf16 or neither.
    eager, *rest = ([row[k] for row in timed] for k in range(len(timed[0])))
    in_f32, in_bf16 = rest[len(own) :] or ([], [])
    rows = []
    for side, call, times in zip(sides, own, rest, strict=False):
        step_ms = median(times)
        root_ms = _root_ms(call, clock) if isinstance(call, Exact) else None
        plain = replace(side, is_witnessed=False)
        beside = own[sides.index(plain)] if side.is_witnessed and plain in sides else None
        rows.append(
            StepRow(
                model,
                side.tier,
                side.executor,
                side.is_witnessed,
                terms.device.type,
                time_ratio=_ratio(times, eager),
                compile_ratio=_ratio(times, in_f32) if peers else None,
                compile_bf16_ratio=_ratio(times, in_bf16) if peers else None,
                over_plain=None if beside is None else _over(call, beside, terms.seconds / 2, clock),
                memory_ratio=None,
                hash_share=None if root_ms is None else round(root_ms / (INTERVAL * step_ms), 4),
                step_ms=round(step_ms, 2),
                eager_ms=round(median(eager), 2),
                compile_ms=round(median(in_f32), 2) if peers else None,
                compile_bf16_ms=round(median(in_bf16), 2) if peers else None,
                best_ms=_best(step=times, eager=eager, compile=in_f32, compile_bf16=in_bf16),
                rounds=len(timed),
                threads=terms.threads,
                nodes=len(call.program.nodes) if isinstance(call, Exact) else None,
                without_compile=why,
            )
        )
    return rows


def _best(**times: list[float]) -> dict[str, float]:
    return {name: round(min(found), 2) for name, found in times.items() if found}


def with_memory(rows: Sequence[StepRow], terms: StepTerms) -> list[StepRow]:
    """The rows of a model with the memory that their steps take over eager's, each in a process of its own."""
    gc.collect()
    if terms.device.type == "cuda":
        torch.cuda.empty_cache()
    floor = growth(rows[0].model, YARDSTICK, terms.threads, terms.device) if rows else None
    found = []
    for row in rows:
        side = Contender(row.tier, row.executor, is_witnessed=row.witnessed)
        grown = growth(row.model, side, terms.threads, terms.device) if floor else None
        found.append(replace(row, memory_ratio=round(grown / floor, 3) if grown and floor else None))
    return found


def _peers(model: str, terms: StepTerms) -> tuple[list[StepSide], str]:
    """Both sides of torch.compile, each called once; or none, and why."""
    why = why_not_compiled(terms.device) if terms.with_compile else "it was not asked for"
    if why:
        return [], why
    # torch counts what it compiles of one function, and leaves the ninth to eager: four models, each in two ways, were
    # all that a process could compare.
    torch.compiler.reset()
    peers: list[StepSide] = [side_of(model, peer, terms.device) for peer in PEERS]
    try:
        for peer in peers:
            peer()
    except Exception as error:  # a compiler of kernels may fail in any way; the exact side is measured all the same
        return [], f"torch.compile fails: {type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
    return peers, ""


def _ratio(times: Sequence[float], others: Sequence[float]) -> float:
    """The median over rounds."""
    return round(median(b / a for a, b in zip(others, times, strict=True)), 3)


def _root_ms(call: Exact, clock: Callable[[], float]) -> float:
    return median(r[0] for r in alternate([lambda: roots.state_root(call.state)], 0.0, clock=clock))


def _over(side: StepSide, plain: StepSide, seconds: float, clock: Callable[[], float]) -> float:
    return round(median(b / a for a, b in alternate([plain, side], seconds, clock=clock)), 4)


def refusals(rows: Sequence[StepRow]) -> Iterator[str]:
    """A sentence for each model that torch.compile was not measured on, though it was asked for."""
    for model, why in dict.fromkeys((row.model, row.without_compile) for row in rows):
        if why:
            yield f"{model}: no ratio over torch.compile: {why}."


def document(rows: Sequence[StepRow]) -> dict[str, Any]:
    """Rows and the machine they were measured on, as plain JSON."""
    return {
        "rows": [asdict(row) for row in rows],
        "capability": torch.backends.cpu.get_cpu_capability(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "torch": torch.__version__,
        "without_kernels": usable_natives()[1],
    }
