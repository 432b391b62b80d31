"""The generators and modes of the process, which every step could use."""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from assay.engine.compiler.hidden import arrays, hooks
from assay.engine.runtime.values.dtypes import raw_bytes


@contextmanager
def uncompiled() -> Iterator[None]:
    """While active, what `torch.compile` made runs as the functions that it was made of."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is None:  # nothing has been compiled
        yield
        return
    nested, dynamo.config.error_on_nested_fx_trace = dynamo.config.error_on_nested_fx_trace, False
    try:
        with torch.compiler.set_stance("force_eager"):
            yield
    finally:
        dynamo.config.error_on_nested_fx_trace = nested


def surroundings() -> Iterator[tuple[str, Any, Callable[[], Any], Callable[[], Any]]]:
    """Of each: its name, what it holds now, what reads it, what puts back what it holds now."""
    numpy, drawn, shared = arrays.drawn(), torch.get_rng_state(), hooks.shared_hooks()
    held: list[tuple[str, Callable[[], Any], Callable[[Any], Any]]] = [
        ("the state of Python's random numbers", random.getstate, random.setstate),
        ("the state of NumPy's random numbers", arrays.generator_words, lambda _: arrays.put_back(numpy)),
        ("the state of PyTorch's random numbers", _torch, lambda _: torch.set_rng_state(drawn)),
        ("the table of hooks of all modules", hooks.shared_words, lambda _: hooks.put_back_shared(shared)),
        ("whether gradients are computed", torch.is_grad_enabled, torch.set_grad_enabled),
        ("PyTorch's default element type", torch.get_default_dtype, torch.set_default_dtype),
    ]
    for name, read, write in held:
        before = read()
        yield name, before, read, functools.partial(write, before)


def _torch() -> bytes:
    return raw_bytes(torch.get_rng_state())
