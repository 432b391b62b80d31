"""Compute that takes time: steps of training, and those that are computed again by other kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.protocol.program.program import Program
from assay.protocol.program.trace import OnStep, Trace
from assay.protocol.trees.state import ListBytes
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.world import COMPUTE


class SlowClock:
    """A clock in seconds that only computing moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class SlowCompute:
    """The usual compute; `takes` is told the seconds of each step that is done of runs of several steps.

    `stall` seconds are added to the next step, once. `runs` and `rechecks` count such runs.
    """

    def __init__(self, takes: Callable[[float], None], step_s: float, recheck_s: float) -> None:
        self._takes, self._step_s, self._recheck_s = takes, step_s, recheck_s
        self.stall = 0.0
        self.runs = self.rechecks = 0

    def run(
        self, program: Program, lists: ListBytes, steps: int = 1, tamper: None = None, on_step: OnStep | None = None
    ) -> ListBytes:
        """See Compute."""
        if steps == 1:
            return COMPUTE.run(program, lists, steps, tamper, on_step)
        self.runs += 1
        return COMPUTE.run(program, lists, steps, tamper, self._after(self._step_s, on_step))

    def recheck(self, program: Program, lists: ListBytes, steps: int = 1, on_step: OnStep | None = None) -> ListBytes:
        """See Compute."""
        if steps == 1:
            return COMPUTE.recheck(program, lists, steps, on_step)
        self.rechecks += 1
        return COMPUTE.recheck(program, lists, steps, self._after(self._recheck_s, on_step))

    def trace(self, *given: Any, **named: Any) -> Trace:
        """See Compute."""
        return COMPUTE.trace(*given, **named)

    def serve(self, agent: AuditorAgent) -> None:
        """From now on an auditor computes by it."""
        agent.compute = agent.jobs._compute = agent.merges._compute = self

    def _after(self, seconds: float, on_step: OnStep | None) -> OnStep:
        def after(step: int) -> None:
            self._takes(seconds + self.stall)
            self.stall = 0.0
            if on_step is not None:
                on_step(step)

        return after
