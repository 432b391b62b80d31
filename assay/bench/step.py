"""What exactness costs: whole training steps by exact programs against stock eager f32 PyTorch, in one alternating run.

The stock side is the same module with `backward()` and its own `torch.optim` optimizer. Ratios are medians over rounds
in which each side runs once. On one thread they are of processor time: other work on the machine disturbs both sides
alike. On more they are of wall time, since threads that wait for each other spin, and an idle machine is needed.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import re
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, Final

import torch

from assay.bench.models import recipe_of
from assay.engine.compiler.cache import cached_program
from assay.engine.compiler.capture import capture
from assay.engine.runtime.executor import Executor, KernelVariant, usable_natives
from assay.engine.runtime.values import state_io
from assay.programs.capture import tier_of
from assay.protocol.program.program import Program
from assay.protocol.program.programfile import decode_program, encode_program
from assay.protocol.program.witness import witness_lists, witnessed_program
from assay.training.recipes.recipe import RecipeStep
from assay.training.state import TensorLists

EAGER: Final = "eager"
DETERMINISTIC: Final = "deterministic"
"""Eager with `torch.use_deterministic_algorithms`."""

INTERVAL: Final = 25
"""Steps between commitments (J)."""

WARM = 3


@dataclass(frozen=True, slots=True)
class Contender:
    """What is measured: a tier by an executor (fused or stock), plain or witnessed, or eager f32."""

    tier: str
    executor: str
    is_witnessed: bool = False


@dataclass(frozen=True, slots=True)
class StepRow:
    """One model, one tier, one executor, over eager f32.

    time_ratio: median of rounds. over_plain: the same over the plain step beside it, for a witnessed one, in a run of
    these two: after eager each would find other caches. memory_ratio: growth of a process to the peak of a step, see
    `growth`. hash_share: one state root per INTERVAL steps, as a share of their time. Times in milliseconds, see
    `clock_for`.
    """

    model: str
    tier: str
    executor: str
    witnessed: bool
    time_ratio: float
    over_plain: float | None
    memory_ratio: float | None
    hash_share: float | None
    step_ms: float
    eager_ms: float
    rounds: int
    threads: int
    nodes: int | None


def program_of(model: str, tier: str) -> Program:
    """The program of one step, captured without calibration, from the cache where it has been captured before."""
    step = RecipeStep(recipe_of(model))
    described = {"kind": "bench step", "model": model, "tier": tier, "shapes": _shapes(step.state())}
    return cached_program(described, lambda: capture(step, step.state(), tier_of(tier)).program)


def _shapes(state: TensorLists) -> list[list[str]]:
    return [[f"{t.dtype} {list(t.shape)}" for t in part] for part in state]


def start_of(model: str, tier: str, *, is_witnessed: bool = False) -> tuple[Program, TensorLists]:
    """The program of one step and the state before the first: what a participant of a run is given."""
    plain, state = program_of(model, tier), RecipeStep(recipe_of(model)).state(key=(1, 2))
    if not is_witnessed:
        return plain, state
    program = witnessed_program(plain)
    specs = state_io.input_specs(program)[len(state) :]
    return program, (*state, *state_io.from_lists_of_bytes(specs, witness_lists((3, 4))))


class Exact:
    """A side that runs a program, state after state, as `Executor.repeat` does; it takes the first one over."""

    def __init__(self, program: Program, state: TensorLists, variant: str) -> None:
        self.program, self.state = program, state
        self.executor = Executor(program, variant=KernelVariant(variant))

    def __call__(self) -> None:
        """One step."""
        self.state = tuple(self.executor.run(self.state, give=True, store=False))


class Eager:
    """A side that trains the recipe's module as a PyTorch user would."""

    def __init__(self, model: str, *, is_deterministic: bool = False) -> None:
        self._recipe = recipe_of(model)
        self._is_deterministic = is_deterministic

    def __call__(self) -> None:
        """One step: batch, forward, backward, optimizer."""
        torch.use_deterministic_algorithms(self._is_deterministic)
        try:
            self._step()
        finally:
            torch.use_deterministic_algorithms(False)

    def _step(self) -> None:
        recipe, optimizer = self._recipe, self._recipe.optimizer
        assert isinstance(optimizer, torch.optim.Optimizer)
        width = recipe.window or 1
        rows = torch.randint(recipe.data[0].shape[0] - width + 1, (recipe.batch_size,))
        if recipe.window is not None:
            rows = rows[:, None] + torch.arange(width)
        optimizer.zero_grad(set_to_none=True)
        loss: Any = recipe.loss(recipe.module, *(t[rows] for t in recipe.data))
        loss.backward()
        optimizer.step()


def side_of(model: str, side: Contender) -> Callable[[], None]:
    """The step of a side, ready to be called again and again."""
    if _is_eager(side):
        return Eager(model, is_deterministic=side.executor == DETERMINISTIC)
    return Exact(*start_of(model, side.tier, is_witnessed=side.is_witnessed), side.executor)


def _is_eager(side: Contender) -> bool:
    return side.executor in (EAGER, DETERMINISTIC)


def clock_for(threads: int) -> Callable[[], float]:
    """What times steps, in seconds: processor time on one thread, wall time on more."""
    return time.process_time if threads == 1 else time.perf_counter


def alternate(
    sides: Sequence[Callable[[], object]],
    seconds: float,
    least: int = 5,
    clock: Callable[[], float] = time.process_time,
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


def measure(
    model: str, sides: Sequence[Contender], *, seconds: float, threads: int, with_memory: bool = True
) -> list[StepRow]:
    """One row per side, all of one alternating run.

    Raises:
        UsageError: UnknownModel, UnknownTier. UserError: NoNativeKernels.
    """
    torch.set_num_threads(threads)
    built = [side_of(model, Contender("f32", EAGER)), *(side_of(model, side) for side in sides)]
    clock = clock_for(threads)
    rounds = alternate(built, seconds, clock=clock)
    floor = growth(model, Contender("f32", EAGER), threads) if with_memory else None
    rows = []
    for k, side in enumerate(sides, 1):
        call = built[k]
        step_ms = median(r[k] for r in rounds)
        root_ms, nodes = None, None
        if isinstance(call, Exact):
            state = call.state
            root_ms = median(r[0] for r in alternate([lambda s=state: state_io.state_root(s)], 0.0, clock=clock))  # type: ignore[misc]
            nodes = len(call.program.nodes)
        grown = growth(model, side, threads) if floor else None
        plain = replace(side, is_witnessed=False)
        beside = sides.index(plain) + 1 if side.is_witnessed and plain in sides else None
        rows.append(
            StepRow(
                model,
                side.tier,
                side.executor,
                side.is_witnessed,
                time_ratio=round(median(r[k] / r[0] for r in rounds), 3),
                over_plain=None if beside is None else _over(call, built[beside], seconds / 2, clock),
                memory_ratio=round(grown / floor, 3) if grown and floor else None,
                hash_share=None if root_ms is None else round(root_ms / (INTERVAL * step_ms), 4),
                step_ms=round(step_ms, 2),
                eager_ms=round(median(r[0] for r in rounds), 2),
                rounds=len(rounds),
                threads=threads,
                nodes=nodes,
            )
        )
    return rows


def _over(side: Callable[[], object], plain: Callable[[], object], seconds: float, clock: Callable[[], float]) -> float:
    return round(median(b / a for a, b in alternate([plain, side], seconds, clock=clock)), 4)


def growth(model: str, side: Contender, threads: int) -> int | None:
    """Bytes by which a process of its own grows until the peak of a warm step; None where Linux does not say.

    From its size when everything is imported that either side needs: stock optimizers import a compiler. An exact side
    starts from program and state, since capture is no part of a step; an eager one builds its module.
    """
    spawning = multiprocessing.get_context("spawn")
    # Unlike multiprocessing's own pool, this one ends when its process does.
    with TemporaryDirectory() as folder, ProcessPoolExecutor(1, spawning) as pool:
        start = None if _is_eager(side) else Path(folder) / "start"
        if start is not None:
            program, state = start_of(model, side.tier, is_witnessed=side.is_witnessed)
            torch.save([encode_program(program), *state], start)
        return pool.submit(_growth_here, model, side, threads, start).result()


def _growth_here(model: str, side: Contender, threads: int, start: Path | None) -> int | None:
    torch.set_num_threads(threads)
    recipe_of(model)
    _give_back()
    before = _kilobytes("VmRSS")
    step = side_of(model, side) if start is None else _read(start, side.executor)
    for _ in range(WARM):
        step()
    _give_back()
    try:
        # 5 resets the peak (proc(5)): what building took is not a step's.
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None
    for _ in range(WARM):
        step()
    after = _kilobytes("VmHWM")
    return None if before is None or after is None else (after - before) * 1024


def _read(start: Path, variant: str) -> Exact:
    program, *state = torch.load(start)
    return Exact(decode_program(program), tuple(state), variant)


def _give_back() -> None:
    """Returns memory to the system that nothing holds any more, so that it is not taken for what a step needs."""
    gc.collect()
    with suppress(AttributeError):  # only glibc has it
        ctypes.CDLL(None).malloc_trim(0)


def _kilobytes(name: str) -> int | None:
    """A line of this process's status, in KiB."""
    try:
        found = re.search(rf"^{name}:\s*(\d+) kB", Path("/proc/self/status").read_text(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1]) if found else None


def default_variant() -> str:
    """How programs run here unless asked otherwise."""
    return KernelVariant.STOCK.value if usable_natives()[0] is None else KernelVariant.FUSED.value


def document(rows: Sequence[StepRow]) -> dict[str, Any]:
    """Rows and the machine they were measured on, as plain JSON."""
    return {
        "rows": [asdict(row) for row in rows],
        "capability": torch.backends.cpu.get_cpu_capability(),
        "torch": torch.__version__,
        "without_kernels": usable_natives()[1],
    }
