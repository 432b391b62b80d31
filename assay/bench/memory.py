"""How much memory a side of `assay bench step` takes at the peak of a step, in a process of its own."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import re
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import torch

from assay.bench.models import recipe_of
from assay.bench.sides import CPU, Contender, Exact, side_of, start_of
from assay.protocol.program.programfile import decode_program, encode_program

WARM: Final = 3
"""Steps before memory is looked at, and while it is."""


def growth(model: str, side: Contender, threads: int, device: torch.device = CPU) -> int | None:
    """Bytes by which a process of its own grows until the peak of a warm step; None where Linux does not say.

    From its size when everything is imported that either side needs: stock optimizers import a compiler. An exact side
    starts from program and state, since capture is no part of a step; an eager one builds its module. On a GPU: the
    most that torch had taken of its memory.
    """
    spawning = multiprocessing.get_context("spawn")
    # Unlike multiprocessing's own pool, this one ends when its process does.
    with TemporaryDirectory() as folder, ProcessPoolExecutor(1, spawning) as pool:
        start = Path(folder) / "start" if side.is_exact else None
        if start is not None:
            program, state = start_of(model, side.tier, is_witnessed=side.is_witnessed)
            torch.save([encode_program(program), *state], start)
        return pool.submit(_growth_here, model, side, threads, start, device).result()


def _growth_here(model: str, side: Contender, threads: int, start: Path | None, device: torch.device) -> int | None:
    torch.set_num_threads(threads)
    recipe_of(model)
    _give_back()
    before = _kilobytes("VmRSS")
    step = side_of(model, side, device) if start is None else _read(start, side.executor, device)
    for _ in range(WARM):
        step()
    _give_back()
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    else:
        try:
            # 5 resets the peak (proc(5)): what building took is not a step's.
            Path("/proc/self/clear_refs").write_text("5")
        except OSError:
            return None
    for _ in range(WARM):
        step()
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated())
    after = _kilobytes("VmHWM")
    return None if before is None or after is None else (after - before) * 1024


def _read(start: Path, variant: str, device: torch.device) -> Exact:
    program, *state = torch.load(start)
    return Exact(decode_program(program), tuple(state), variant, device)


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
