"""Hooks that a step installs: tables that all modules share, and the numbers that PyTorch gives to hooks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch.nn.modules.module as modules
import torch.optim.optimizer as optimizers
from torch.utils.hooks import RemovableHandle

_SHARED: Final = tuple(
    sorted(
        (f"{of.__name__}.{name}", table)
        for of in (modules, optimizers)
        for name, table in vars(of).items()
        if name.startswith("_global_") and isinstance(table, dict)
    )
)
"""Every table of hooks that are called for all modules, or for all optimizers, by its name."""

Shared = dict[str, dict[int, Any]]


def shared_hooks() -> Shared:
    """The hooks of all modules and optimizers, by table and number."""
    return {name: dict(table) for name, table in _SHARED}


def shared_words() -> object:
    """The hooks of all modules and optimizers as something to compare."""
    return tuple((name, tuple((k, id(v)) for k, v in table.items())) for name, table in _SHARED)


def put_back_shared(held: Shared) -> None:
    """Makes all modules and optimizers have these hooks again."""
    for name, table in _SHARED:
        table.clear()
        table.update(held[name])


def next_number() -> int:
    """The number that the next hook gets."""
    return RemovableHandle.next_id


def number_from(following: int) -> None:
    """Numbers hooks from here on: what was put back and runs again gets the same numbers, and lies in the same places.

    The hooks that had these numbers must be gone.
    """
    RemovableHandle.next_id = following


@contextmanager
def numbers_kept() -> Iterator[None]:
    """Hooks registered inside take no numbers from those registered after it, on tensors that live no longer."""
    following = next_number()
    try:
        yield
    finally:
        number_from(following)
