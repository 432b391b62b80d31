"""Long turns on a shared processor, for actors that compute for hours.

Where more processes compute than there are processors, each turn begins with caches that others filled. Linux gives a
turn of about 3 ms; whoever asks gets up to 100 ms, and pays by waiting longer for the next, so that nobody's share
changes. Eight solvers on two processors take 4 % less CPU time a step so.
Source: sched_setattr(2), and Documentation/scheduler/sched-eevdf.rst of Linux 6.12, which gave the field a meaning for
ordinary processes; older ones ignore it.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from typing import Final

TURN_NS: Final = 100_000_000
"""The longest that Linux gives."""

_ATTR: Final = struct.Struct("=IIQiIQQQ")
"""struct sched_attr: its size, policy, flags, nice, priority, runtime (the turn), deadline, period."""

_NUMBERS: Final = {"x86_64": (314, 315), "aarch64": (274, 275)}
"""The system calls sched_setattr and sched_getattr, which no libc of ours has functions for."""


def take_long_turns() -> bool:
    """Asks for turns of TURN_NS for this thread and those that it starts; whether there is a kernel that was asked."""
    found = _attributes()
    if found is None or found[1] not in (os.SCHED_OTHER, os.SCHED_BATCH):
        return False
    size, policy, flags, nice, priority, _, deadline, period = found
    data = ctypes.create_string_buffer(_ATTR.pack(size, policy, flags, nice, priority, TURN_NS, deadline, period), size)
    return _call(0, 0, data, 0)


def turn_ns() -> int | None:
    """The turn of this thread in ns, 0 for the usual; None where the kernel does not say."""
    found = _attributes()
    return None if found is None else found[5]


def _attributes() -> tuple[int, ...] | None:
    data = ctypes.create_string_buffer(_ATTR.size)
    return _ATTR.unpack(data.raw) if _call(1, 0, data, _ATTR.size, 0) else None


def _call(which: int, *arguments: int | ctypes.Array[ctypes.c_char]) -> bool:
    if sys.platform != "linux" or platform.machine() not in _NUMBERS or sys.maxsize < 1 << 32:
        return False
    return bool(ctypes.CDLL(None).syscall(_NUMBERS[platform.machine()][which], *arguments) == 0)
