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

NO_HELP: Final = frozenset({ExitCode.USAGE})
"""Exit codes that nothing but another command line changes. A node that is away, a full disk, a port or a folder that
somebody else still holds, memory that others took: all of that passes, and a role may have a lock at stake meanwhile.
"""

AT_LEISURE: Final = frozenset({ExitCode.CONFIG})
"""Exit codes after which a person has to do something, mostly."""


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


def after_end(code: int, ran_s: float, ends: int, *, serves: bool = False) -> Next:
    """What follows the end of a child with an exit code (negative: a signal) after so many ends in a row before.

    serves: it has work as long as it is not stopped, and is never done.
    """
    if code == ExitCode.OK and not serves:
        return Next(ChildState.DONE, 0.0, 0, "it ended with nothing left to do")
    how = f"signal {-code}" if code < 0 else f"exit code {code}"
    if code in NO_HELP:
        return Next(ChildState.GIVEN_UP, 0.0, ends + 1, f"{how}: its command line is wrong, and stays so")
    ends = 1 if ran_s >= STEADY_S else ends + 1
    # Attack: whoever keeps a node, a store or a port from an actor for some minutes would have it given up for good.
    wait = MOST_S if code in AT_LEISURE else min(FIRST_S * 2 ** min(ends - 1, 16), MOST_S)
    return Next(ChildState.WAITING, wait, ends, f"{how}; started again in {wait:g} s")


def after_failed_start(error: BaseException, ends: int) -> Next:
    """What follows where no process could be made, after so many ends and failed starts in a row before."""
    # Memory, processes and open files that others took pass; one role must not end the others with it.
    wait = min(FIRST_S * 2 ** min(ends, 16), MOST_S)
    return Next(ChildState.WAITING, wait, ends + 1, f"no process could be made ({error}); tried again in {wait:g} s")
