"""Contents of things that have no places: bytes, sets, buffers, generators, what a cache remembers."""

from __future__ import annotations

import array
import ctypes
import functools
import io
import random
from collections.abc import Callable
from typing import Any, Final

import torch

from assay.engine.compiler.hidden import arrays
from assay.engine.runtime.values.dtypes import raw_bytes

_C_DATA: Final = (ctypes._SimpleCData, ctypes.Structure, ctypes.Union, ctypes.Array)
"""Values of C that lie in the object itself, with nothing to point at."""


def blob_of(value: Any) -> tuple[object, Callable[[], None]] | None:
    """The contents of a thing without places, as something to compare, and what writes them back; None for others."""
    match value:
        case bytearray() | array.array():
            held = bytes(value)
            return held, lambda: _refill(value, held)
        case set():
            members = frozenset(value)
            return members, lambda: _refill(value, members)
        case random.SystemRandom():
            return None  # it has no state: whoever draws from it asks the system, which is seen
        case random.Random():
            state = value.getstate()
            return state, lambda: value.setstate(state)
        case torch.Generator():
            words = value.get_state()
            return raw_bytes(words), lambda: (value.set_state(words), None)[1]
        case io.StringIO() | io.BytesIO():
            written = None if value.closed else (value.getvalue(), value.tell())
            return written, lambda: _rewrite(value, written)
        case _ if isinstance(value, _C_DATA):
            plain = bytes(value)
            return plain, lambda: (ctypes.memmove(ctypes.addressof(value), plain, len(plain)), None)[1]
        case _ if isinstance(value, functools._lru_cache_wrapper):
            # What it remembers cannot be read: forgetting it changes no result.
            misses = value.cache_info().misses
            return (), lambda: value.cache_clear() if value.cache_info().misses != misses else None
    return arrays.blob_of_array(value)


def _refill(value: Any, held: Any) -> None:
    match value:
        case set():
            value.clear()
            value.update(held)
        case bytearray():
            value[:] = held
        case _:
            del value[:]
            value.frombytes(held)


def _rewrite(value: Any, written: tuple[Any, int] | None) -> None:
    if written is not None and not value.closed:
        value.seek(0)
        value.truncate()
        value.write(written[0])
        value.seek(written[1])
