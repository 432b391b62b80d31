"""When a child that ended is started again, and when it is given up. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from assay.protocol.errors import ExitCode

FIRST_S: Final = 1.0
MOST_S: Final = 60.0
STEADY_S: Final = 300.0
"""A child that ran so long has started well: its next end is a first one."""

MOST_ENDS: Final = 10
"""Ends in a row after which nobody is helped by another start: some five minutes."""

NO_HELP: Final = frozenset({ExitCode.USAGE, ExitCode.CONFIG})
"""Exit codes that a repetition cannot change."""


class ChildState(StrEnum):
    """What a child is at."""

    RUNNING = "running"
    WAITING = "waiting"
    """Until it is started again."""
    DONE = "done"
    """It ended by itself with nothing left to do."""
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True)
class Next:
    """What follows an end: the state, seconds until the next start, how many ends in a row that makes, and why."""

    state: ChildState
    wait_s: float
    ends: int
    why: str


def after_end(code: int, ran_s: float, ends: int) -> Next:
    """What follows the end of a child with an exit code (negative: a signal) after so many ends in a row before."""
    if code == ExitCode.OK:
        return Next(ChildState.DONE, 0.0, 0, "it ended with nothing left to do")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    if code in NO_HELP:
        return Next(ChildState.GIVEN_UP, 0.0, ends + 1, f"{how}: what it was told is wrong, and stays so")
    ends = 1 if ran_s >= STEADY_S else ends + 1
    if ends >= MOST_ENDS:
        return Next(ChildState.GIVEN_UP, 0.0, ends, f"{how}, {ends} times in a row")
    wait = min(FIRST_S * 2 ** (ends - 1), MOST_S)
    return Next(ChildState.WAITING, wait, ends, f"{how}; started again in {wait:g} s")
