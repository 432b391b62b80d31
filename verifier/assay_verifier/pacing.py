"""How long a unit takes here, whether work ends in time by that, and a unit that is given up before it is too late.

A machine is slow once (kernels are compiled, a disk is full) and quick again. So the estimate is a middle one of the
last few units; where nothing ends in time by it, work is tried all the same, so that a wrong estimate corrects itself;
and whatever was begun ends before the last moment of a call, however long its steps turn out to be.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from statistics import median_low
from typing import Final

LAST_FEW: Final = 5
"""Units whose times are looked at: of two that differ the quicker one counts."""


SLOWER: Final = 16
"""What a unit takes by other kernels against the usual ones, before one was measured: 2 to 10, by stock torch more."""


class OutOfTime(Exception):
    """The next step of a unit would end too late."""


@dataclass(frozen=True, slots=True)
class UnitPace:
    """What a unit of so many steps takes, in seconds, None before that is known; `window` is what a call lasts."""

    unit_s: float | None = None
    steps: int = 1
    window: float = inf

    def ends_in(self, left_s: float, units: int) -> bool:
        """Whether so many units end in so many seconds."""
        return left_s > 0 and (self.unit_s is None or units * self.unit_s <= left_s)

    def may_try(self, left_s: float) -> bool:
        """Whether there is time for a step, in work that does not end in time by the estimate.

        No step is believed to take more than half of a window: at its beginning there is time for a try in any case.
        """
        return left_s > 0 and (self.unit_s is None or min(self.unit_s / self.steps, self.window / 2) <= left_s)


class Stint:
    """A unit under way, told of each of its steps; `clock` gives seconds that never run back."""

    def __init__(self, clock: Callable[[], float], steps: int, left_s: float) -> None:
        """`left_s`: seconds until its last step has to be done."""
        self._clock, self._steps, self._done = clock, steps, 0
        self._began = self._at = clock()
        self._until = self._began + left_s
        self._longest = 0.0

    def __call__(self, step: int) -> None:
        """One more step is done. Raises OutOfTime where another one as long as the longest would end too late."""
        before, self._at = self._at, self._clock()
        self._longest = max(self._longest, self._at - before)
        self._done += 1
        if self._done < self._steps and self._at + self._longest > self._until:
            raise OutOfTime

    @property
    def seconds(self) -> float | None:
        """What the unit takes, from its beginning to its last step; as much a step for one that was given up.

        None before the first step.
        """
        return (self._at - self._began) * self._steps / self._done if self._done else None


class Measured:
    """The times of the last few units of one kind."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=LAST_FEW)

    def note(self, seconds: float) -> None:
        """A unit took so long."""
        self._last.append(seconds)

    @property
    def unit_s(self) -> float | None:
        """What one takes, in seconds; None before the first."""
        return median_low(self._last) if self._last else None
