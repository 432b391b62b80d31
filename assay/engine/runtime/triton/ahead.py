"""Compiling a run's kernels before they are launched, side by side: one after another those of a GPT-2 take a minute.

Triton compiles a kernel when it is first launched, or warmed up: the same lookup by the same key, without the launch.
Under its `AsyncCompileMode` warming up leaves the compiling to threads, which spend most of it outside Python's lock.
Triton 3.6 also has a C compiler make what launches a kernel, for each list of types of arguments: by threads as well.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor

from assay.engine.runtime.triton import backend
from assay.engine.runtime.triton.backend import Launch

_ALIGNED = 16
"""Bytes and values: a kernel of its own is made for what is a multiple."""


def compile_ahead(launches: Callable[[], Sequence[Launch]]) -> None:
    """Compiles the kernels of these launches, where a GPU is and Triton can: of one it compiles each at its launch.

    launches: what a run will launch, with the very tensors: where memory begins decides which kernel is made for it. A
    kernel that cannot be compiled is passed over; its launch says why.
    """
    if backend.is_interpreted() or backend.absence():
        return
    try:
        from triton import AsyncCompileMode
    except ImportError:  # an older one
        return
    threads = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = distinct(launches())
    if min(threads, len(found)) > 1:
        # Errors ignored: a mode that ends with one leaves Triton in it.
        with ThreadPoolExecutor(threads) as pool:
            with AsyncCompileMode(pool, ignore_errors=True):
                made = warm(found)
            list(pool.map(partial(load, device=arguments_on(found)), made))


def distinct(launches: Iterable[Launch]) -> list[Launch]:
    """The first launch of every kernel that Triton compiles, in order. Some may be one all the same: Triton sees it."""
    found: dict[object, Launch] = {}
    for launch in launches:
        found.setdefault(_key(launch), launch)
    return list(found.values())


def warm(launches: Iterable[Launch]) -> list[Any]:
    """Asks for the kernels of these launches as `backend.launch` will; what Triton gives for each."""
    made = []
    for launch in launches:
        with suppress(Exception):  # the launch meets it again, and raises
            found = launch.kernel.warmup(
                *launch.arguments, grid=(1,), **launch.constants, **backend.compiled_as(launch.warps, launch.stages)
            )
            made.append(found)
    return made


def arguments_on(launches: Iterable[Launch]) -> torch.device:
    """The device on which kernels find what they are given."""
    given = (value for launch in launches for value in launch.arguments if isinstance(value, Tensor))
    return next((tensor.device for tensor in given), torch.device("cpu"))


def load(kernel: Any, device: torch.device) -> None:
    """Puts a kernel on the device, with what launches it: once for all, and by any thread."""
    with suppress(Exception):
        if device.type == "cuda":
            torch.cuda.set_device(device)  # of this thread
        # A mode gives what will hold the kernel, which loads itself when it is asked for `run`.
        _ = (kernel.result() if hasattr(kernel, "result") else kernel).run


def _key(launch: Launch) -> tuple[object, ...]:
    """What decides which kernel is compiled: of arguments that are not specialized their type alone."""
    plain = set(getattr(launch.kernel, "do_not_specialize", None) or ())
    names = launch.kernel.arg_names[: len(launch.arguments)]
    given = [_kind(value, name in plain) for name, value in zip(names, launch.arguments, strict=True)]
    return (id(launch.kernel), *given, *sorted(launch.constants.items()), launch.warps, launch.stages)


def _kind(value: Any, plain: bool) -> object:
    if isinstance(value, Tensor):
        return value.dtype, value.data_ptr() % _ALIGNED == 0
    if plain and type(value) is int:
        return -(1 << 31) <= value < 1 << 31
    return type(value), value
