"""What a demo costs: CPU seconds by kind of work, and the memory of all its processes.

Each process's CPU time is read several times a second and booked to what the actor said it was doing. Memory is the sum
of proportional set sizes, so pages that processes share count once.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

KINDS: Final = ("training", "commitment", "audit", "dispute", "chain", "start")

# The first prefix counts, so a longer one stands before its beginning.
_KIND_OF: Final = {
    "train": "training",
    "compute merge": "training",
    "commit challenge": "dispute",
    "commit": "commitment",
    "replay": "audit",
    "confirm finding": "audit",
    "challenge": "dispute",
    "reveal challenge": "dispute",
    "try accusation": "dispute",
    "play": "dispute",
    "end overdue": "dispute",
    "starting": "start",
}


def kind_of(doing: str) -> str:
    """The kind of work that a heartbeat's words stand for; everything else is talk with the chain."""
    return next((kind for prefix, kind in _KIND_OF.items() if doing.startswith(prefix)), "chain")


@dataclass(slots=True)
class CpuMeter:
    """Books CPU seconds; `pids` are the processes watched, by a name that `doing` also uses."""

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(KINDS, 0.0))
    peak_pss: int = 0
    _last: dict[str, float] = field(default_factory=dict)

    def book(self, pids: Mapping[str, int], doing: Mapping[str, str], fixed: Mapping[str, str]) -> None:
        """One look at every process; `fixed` names the kind of those that send no heartbeats."""
        for name, pid in pids.items():
            with contextlib.suppress(psutil.Error):
                times = psutil.Process(pid).cpu_times()
                now = times.user + times.system
                spent = max(0.0, now - self._last.get(name, 0.0))
                self._last[name] = now
                self.seconds[fixed.get(name) or kind_of(doing.get(name, "starting"))] += spent

    def add(self, kind: str, seconds: float) -> None:
        """Books time that was measured elsewhere."""
        self.seconds[kind] += seconds

    def weigh(self, pids: Mapping[str, int]) -> int:
        """Bytes of proportional memory of these processes now; the largest sum is kept."""
        total = sum(_pss(pid) for pid in pids.values())
        self.peak_pss = max(self.peak_pss, total)
        return total


def _pss(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError):
        for row in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if row.startswith("Pss:"):
                return int(row.split()[1]) * 1024
    return 0
