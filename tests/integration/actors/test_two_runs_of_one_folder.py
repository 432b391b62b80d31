"""One actor's key and data folder in two runs, one after the other: `--run` alone is another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay_ledger.agents.journal import FolderOfAnotherRun
from assay_solver.agent import Solver
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import COMPUTE, SharedChain


@pytest.mark.parametrize("kind", [Solver, AuditorAgent])
def test_what_was_done_in_one_run_is_taken_for_nothing_in_another(
    stage: SharedChain, tmp_path: Path, kind: type[Solver] | type[AuditorAgent]
) -> None:
    """Attack on oneself: the next run starts from the same model, by other data, and the work of round 0 is at hand:
    a solver committed to it, and was convicted."""
    first, second = (new_whole_run(stage, tmp_path / name, seats=1, rounds=1) for name in ("first", "second"))
    agent = first.solver("ada") if kind is Solver else first.auditor("ada")
    agent.close()
    for _ in range(2):  # it holds nothing
        with pytest.raises(FolderOfAnotherRun, match=first.run.address.hex()):
            kind(second.run, agent.keys, second.store, first.folder / "ada", compute=COMPUTE)
    assert first.restart("ada").me == agent.me
