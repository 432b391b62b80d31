"""Python's collector of cycles, out of the way of what makes many objects and drops few."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """While active, cycles are not looked for: a graph is tens of thousands of objects, each looked at again and again.

    They took a third of a capture. Afterwards the collector is on where it was.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
