"""A solver whose machine stalls for one unit: it works on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from assay.sponsor.charters import Pace
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import COMPUTE, SharedChain


class StallingOnce:
    """The usual compute by a clock of its own, whose first unit takes so many seconds more than the others' two."""

    def __init__(self, stall_s: float) -> None:
        self.now, self._stall_s = 0.0, stall_s

    def __getattr__(self, name: str) -> Any:
        return getattr(COMPUTE, name)

    def clock(self) -> float:
        """Seconds."""
        return self.now

    def run(self, program: Any, lists: Any, steps: int = 1, tamper: Any = None, on_step: Any = None) -> Any:
        """See TorchCompute."""
        if steps > 1:  # a unit
            self.now += steps + self._stall_s
            self._stall_s = 0.0
        return COMPUTE.run(program, lists, steps, tamper, on_step)


@pytest.mark.long
def test_a_solver_whose_first_unit_was_slow_goes_on_and_commits(stage: SharedChain, tmp_path: Path) -> None:
    """Attack: four units that would each take what the first did are not done in time, and no other was begun."""
    pace = Pace(units=5, least=4, steps=2, commit=600)
    made = new_whole_run(stage, tmp_path, seats=2, rounds=1, pace=pace)
    machine = StallingOnce(240.0)  # kernels are compiled, or others need the machine
    ada = made.solver("ada", clock=machine.clock, compute=machine)
    made.solver("ben")
    made.auditor("vera", tickets=5)
    made.enrol()
    made.fund()
    made.launch()
    made.end()
    view = made.view
    assert ada.me in [view.books.tenures.existing(work.tenure).holder for work in view.state.works.values()]
