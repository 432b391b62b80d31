"""Clocks, entropy, files, databases, queues, generators: calls with results in no state, refused at the user's line."""

from __future__ import annotations

import datetime
import gc
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, ModuleType
from typing import Any, Final

from assay.engine.compiler.hidden.lines import is_library, line_of
from assay.engine.compiler.hidden.walk import STDLIB, is_foreign
from assay.protocol.errors import NumericsError

_CLOCKS: Final = frozenset(
    {"time", "time_ns", "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time"}
    | {"process_time_ns", "thread_time", "localtime", "gmtime", "now", "utcnow", "today"}
)
_ENTROPY: Final = frozenset({"urandom", "getrandom", "getpid"})
_DRAWS: Final = frozenset({"random", "getrandbits", "seed"})
_INPUT: Final = frozenset({"open", "input"})
_BELOW_TORCH: Final = frozenset({"numpy", "sympy", "mpmath"})
"""Packages that PyTorch itself calls while it traces."""
_DATES_RECORDS: Final = "structlog"
"""Our own log is written by it: who calls it, not it, is answered for, as by Python's own modules."""
_FROM_PIPES: Final = frozenset({"read", "pread", "readv", "lseek"})
_OF: Final = {"time": _CLOCKS, "posix": _ENTROPY | _FROM_PIPES, "builtins": _INPUT, "_io": _INPUT, "io": _INPUT}
_TAKEN_FROM: Final = {
    ("_queue", "SimpleQueue"): frozenset({"get", "get_nowait", "qsize", "empty"}),
    **dict.fromkeys(
        [("_io", kind) for kind in ("TextIOWrapper", "BufferedReader", "BufferedRandom", "FileIO")],
        frozenset({"read", "read1", "readline", "readlines", "readinto", "readall", "peek", "tell"}),
    ),
    ("sqlite3", "Connection"): frozenset({"execute", "executemany", "executescript"}),
    ("sqlite3", "Cursor"): frozenset({"execute", "executemany", "executescript", "fetchone", "fetchmany", "fetchall"}),
    ("_socket", "socket"): frozenset({"recv", "recv_into", "recvfrom"}),
}
"""Types of C that hold what no record sees, and what of them tells of it."""
_NAMES: Final = _CLOCKS | _ENTROPY | _DRAWS | _INPUT | _FROM_PIPES | frozenset[str]().union(*_TAKEN_FROM.values())


def _what(function: Any) -> str | None:
    """The name of a forbidden function; None for all others."""
    owner = getattr(function, "__self__", None)
    name = str(function.__name__)
    if isinstance(owner, ModuleType):
        return f"{owner.__name__}.{name}" if name in _OF.get(owner.__name__, ()) else None
    if isinstance(owner, type) and issubclass(owner, datetime.date) and name in _CLOCKS:
        return f"{owner.__name__}.{name}"
    if isinstance(owner, random.Random) and name in _DRAWS:
        return f"random.{name}"
    for kind in type(owner).__mro__:
        if name in _TAKEN_FROM.get((str(kind.__module__), kind.__name__), ()):
            return f"{kind.__name__}.{name}"
    return None


@contextmanager
def forbidden_calls(enter: Callable[[CodeType, dict[str, Any]], None]) -> Iterator[None]:
    """While active, calls of clocks, entropy, files and Python's generators raise where the user's code makes them.

    enter: is told of the user's and packages' code, with its globals, before it runs for the first time; not of what
    PyTorch calls itself, nor of what runs beside the step: imports, and whoever watches the garbage collector.

    Raises (inside the block, and at its end where the user's code swallowed it):
        NumericsError: HiddenInput.
    """
    found: list[NumericsError] = []
    before = sys.getprofile()
    met: dict[tuple[int, int], CodeType] = {}

    def see(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            key = id(frame.f_code), id(frame.f_globals)
            if key in met:
                return
            if is_foreign(frame.f_globals.get("__name__")) and not _is_python_itself(frame):
                if _is_beside(frame):
                    return
                enter(frame.f_code, frame.f_globals)
            met[key] = frame.f_code
            return
        if event != "c_call" or getattr(argument, "__name__", "") not in _NAMES:
            return
        what = _what(argument)
        caller = _user_of(frame) if what is not None else None
        if caller is None:
            return
        found.append(
            NumericsError(
                f"{what} is called at {line_of(caller)}: its result is in no state.",
                code="HiddenInput",
                remedy="Leave it out of the step; torch.rand and its kin draw from the state.",
            )
        )
        raise found[0]

    sys.setprofile(see)
    try:
        yield
    finally:
        sys.setprofile(before)
    if found:
        raise found[0]


def _user_of(frame: FrameType | None) -> FrameType | None:
    """The frame of the user's that a call comes from through Python's own, NumPy's or structlog's; None without one.

    A log's own look at the clock is nobody's: its record goes to handlers. What a handler of the user's asks is theirs.
    """
    caller = frame
    while caller is not None and (_is_python_itself(caller) or _root_of(caller) == _DATES_RECORDS):
        if caller.f_globals.get("__name__") == "logging":
            return None
        caller = caller.f_back
    if _is_beside(frame):
        return None
    return None if caller is None or is_library(caller.f_code.co_filename) else caller


def _is_beside(frame: FrameType | None) -> bool:
    """Whether a module is imported on first use here, or somebody who watches the garbage collector runs."""
    collecting = {getattr(f, "__code__", None) for f in gc.callbacks}
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib") or frame.f_code in collecting:
            return True
        frame = frame.f_back
    return False


def _is_python_itself(frame: FrameType) -> bool:
    root = _root_of(frame)
    return root in STDLIB or root in _BELOW_TORCH


def _root_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]
