"""NumPy as far as a step may use it: its arrays and generators. A machine without it has none of them to keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

np: Any
try:
    import numpy as np
except ImportError:
    np = None

ATOMS: Final[tuple[type, ...]] = () if np is None else (np.generic, np.dtype)
"""Types of values that have no parts and cannot change."""


def is_number(value: object) -> bool:
    """Whether a value is one of NumPy's numbers."""
    return np is not None and isinstance(value, np.generic)


def drawn() -> Any:
    """The state of NumPy's own generator, to be put back by `put_back`; None without NumPy."""
    return None if np is None else np.random.get_state()


def put_back(state: Any) -> None:
    """Makes NumPy's own generator stand where it stood."""
    if np is not None:
        np.random.set_state(state)


def seed(number: int) -> None:
    """Starts NumPy's own generator anew."""
    if np is not None:
        np.random.seed(number)


def generator_words() -> object:
    """The state of NumPy's own generator as something to compare."""
    return None if np is None else tuple(bytes(p) if isinstance(p, np.ndarray) else p for p in np.random.get_state())


def blob_of_array(value: Any) -> tuple[object, Callable[[], None]] | None:
    """What an array or generator of NumPy holds, as something to compare, and what writes it back; None for others."""
    if np is None:
        return None
    match value:
        case np.ndarray():
            kept = value.copy()
            bits = repr(kept.tolist()) if kept.dtype.hasobject else kept.tobytes()
            return (kept.dtype.str, kept.shape, bits), lambda: np.copyto(value, kept) if value.flags.writeable else None
        case np.random.Generator():
            inner = value.bit_generator.state
            return repr(inner), lambda: setattr(value.bit_generator, "state", inner)
        case np.random.RandomState():
            older = value.get_state(legacy=False)
            return repr(older), lambda: value.set_state(older)
    return None
