"""What Triton runs on here: a GPU, its interpreter, or nothing; launching kernels, and making them from text.

The interpreter is chosen before Triton is imported, for the whole process: `TRITON_INTERPRET=1`.
"""

from __future__ import annotations

import hashlib
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from threading import Lock, local
from typing import Any

import torch

from assay.engine.runtime.triton.interpreting import quicken
from assay.protocol.errors import ConfigError

INTERPRETER = "TRITON_INTERPRET"

SEEN_ON_A_GPU = False
"""Whether a training by these kernels was seen to give every bit on a GPU (`make device`, its figures in docs/LOG.md).
Until then nobody gets them who does not ask: known answers that are right are not a run that was compared."""

OPTIONS = {"enable_fp_fusion": False}
"""Of every compilation: no multiplication and addition become one operation with one rounding."""


_interpreting = Lock()
"""Triton's interpreter patches its language for a kernel and keeps the program's place in the grid: one at a time, or
a kernel of another thread loses its language, or its place."""


@dataclass(frozen=True, slots=True)
class Launch:
    """A kernel with what it was given: tensors and numbers, the constants that it is made for, its warps and stages;
    and the sizes of its grid, of which GPUs take 65,535 at most but for the first.
    """

    kernel: Any
    arguments: tuple[Any, ...]
    constants: dict[str, Any]
    warps: int
    stages: int
    grid: tuple[int, ...] = (1,)


@cache
def absence() -> str:
    """Why programs cannot run by Triton in this process; empty where they can."""
    if find_spec("triton") is None:
        return "Triton is not installed"
    if not is_interpreted() and (missing := no_gpu()):
        return missing
    if is_interpreted() and find_spec("numpy") is None:
        return "Triton's interpreter needs NumPy, which is not installed"
    return ""


def no_gpu() -> str:
    """Why torch can use no GPU here; empty where it can."""
    if torch.cuda.is_available():
        return ""
    built = f"is built for CUDA {torch.version.cuda}" if torch.version.cuda else "is built for the CPU alone"
    return f"there is no GPU that torch can use; torch {torch.__version__} {built}"


def is_interpreted() -> bool:
    """Whether kernels run by Triton's interpreter, on the CPU."""
    return os.environ.get(INTERPRETER) == "1"


def interpret_without_gpu() -> None:
    """Asks for the interpreter where there is no GPU, unless Triton has been imported for one."""
    if not torch.cuda.is_available() and "triton" not in sys.modules:
        os.environ[INTERPRETER] = "1"
        absence.cache_clear()


def in_one_line(error: Exception) -> str:
    """What an error of torch's or Triton's says, of which a user sees no traceback."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or ['no more is said'])[0][:200]}"


def is_of_the_gpu(error: BaseException) -> bool:
    """Whether an error is a GPU's, its driver's or its compiler's: none of a program, and none of ours."""
    if isinstance(error, torch.OutOfMemoryError) or type(error).__module__.partition(".")[0] == "triton":
        return True
    return isinstance(error, RuntimeError) and any(word in str(error) for word in _OF_A_GPU)


_OF_A_GPU = "CUDA", "HIP", "Triton Error"


def lacks_memory(error: BaseException) -> bool:
    """Whether it says that a GPU has no memory left. torch has a class for what it asks for itself; the code of kernels
    and the stacks of their threads are the driver's, of whose refusals Triton makes a RuntimeError.
    """
    return isinstance(error, torch.OutOfMemoryError) or (is_of_the_gpu(error) and "out of memory" in str(error))


@contextmanager
def named_memory(asked: str) -> Iterator[None]:
    """In this block memory that the GPU has not has a name. Raises ConfigError (MemoryExceeded)."""
    try:
        yield
    except RuntimeError as error:
        if not lacks_memory(error):
            raise
        raise ConfigError(
            f"The GPU has no {asked} ({in_one_line(error)}).",
            code="MemoryExceeded",
            remedy="End what else runs on it, run by --device cpu, or use a GPU with more memory.",
        ) from error


def give_back() -> None:
    """Gives the GPU what torch keeps of memory that nobody uses: its driver has none of that for what it loads."""
    if device().type == "cuda":
        torch.cuda.empty_cache()


def name() -> str:
    """What this executor is called where several are listed."""
    return f"triton, {'interpreted' if is_interpreted() else 'cuda'}"


def device_name() -> str:
    """Of the device that kernels run on."""
    return "interpreted" if is_interpreted() else str(torch.cuda.get_device_name())


def device() -> torch.device:
    """Where the kernels find and leave tensors; where none can run, the CPU."""
    return torch.device("cpu" if absence() or is_interpreted() else "cuda")


_BESIDE = 1 << 30
"""Bytes of a GPU that programs do not get: its driver's, code of kernels, stacks of their threads, what probes take.
On an H200 the driver alone has about half of it.
"""


def memory() -> int | None:
    """Bytes that programs may have of the GPU that kernels run on; None where they run in the machine's own memory."""
    if device().type != "cuda":
        return None
    return int(torch.cuda.get_device_properties(torch.cuda.current_device()).total_memory) - _BESIDE


@cache
def shared_memory() -> int:
    """Bytes that the warps of a program may share. Where there is no GPU, what kernels are compiled for has as much as
    the smallest of those that they run on.
    """
    if device().type != "cuda":
        return 96 << 10
    found = torch.cuda.get_device_properties(torch.cuda.current_device())
    return getattr(found, "shared_memory_per_block_optin", 64 << 10)


@cache
def processors() -> int:
    """How many programs run at a time; 1 where there is no GPU."""
    if device().type != "cuda":
        return 1
    return torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count


def compiled_as(warps: int, stages: int) -> dict[str, Any]:
    """What a kernel is compiled with: to the letter the same wherever it is asked for, or it is compiled again."""
    return {"num_warps": warps, "num_stages": stages, **OPTIONS}


def launch(
    kernel: Any, grid: tuple[int, ...], *arguments: Any, warps: int = 4, stages: int = 3, **constants: Any
) -> None:
    """Run a kernel over a grid, none of whose sizes is 0. stages: steps of its loops whose loads are under way."""
    if seen := _recording.seen:
        seen[-1].append(Launch(kernel, arguments, constants, warps, stages, grid))
    elif is_interpreted():
        import numpy as np  # the interpreter's; a machine with a GPU may have none

        with _interpreting, np.errstate(all="ignore"):  # what overflows or is no number is meant to
            quicken()
            kernel[grid](*arguments, **constants)
    else:
        try:
            kernel[grid](*arguments, **constants, **compiled_as(warps, stages))
        except Exception as error:  # compilers name a line, all kernels made from text alike
            function = kernel.fn
            error.add_note(
                f"Kernel {function.__name__} of {function.__code__.co_filename}, {constants}, {warps} warps."
            )
            raise


@contextmanager
def recorded() -> Iterator[list[Launch]]:
    """Collects this thread's launches within, none of which runs: what they are made for is compiled without a GPU."""
    _recording.seen.append([])
    try:
        yield _recording.seen[-1]
    finally:
        _recording.seen.pop()


class _Recording(local):
    """Where a thread's launches are collected. Another thread runs its own meanwhile: they must not be taken for it."""

    def __init__(self) -> None:
        self.seen: list[list[Launch]] = []


_recording = _Recording()


_made: dict[str, Any] = {}


def kernel_of(text: str, name: str, known: dict[str, Any], *, plain: Sequence[str] = ()) -> Any:
    """The kernel `name` that this text defines, made once per process.

    known: the functions that it calls. plain: arguments for whose values no kernel of their own is made.
    """
    if text not in _made:
        import triton
        import triton.language as tl

        file = f"<assay-triton-{hashlib.sha256(text.encode()).hexdigest()[:16]}>"
        # Triton reads a kernel's source anew; there is no file of it.
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        scope: dict[str, Any] = {"__name__": "assay.engine.runtime.triton.generated", "tl": tl, **known}
        exec(compile(text, file, "exec"), scope)  # noqa: S102
        function: Callable[..., None] = scope[name]
        _made[text] = triton.jit(function, do_not_specialize=list(plain))
    return _made[text]
