"""A run whose merge has a guard: a majority of harmful updates leaves the base as it was, and the run goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.program.trace import Tamper
from assay.protocol.rounds.escrow import RunPhase
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.types import Round
from assay.sponsor.charters import AuditRates, Pace
from assay.sponsor.preparing import prepare_rounds
from assay.training.presets import TINY
from assay_ledger.index.computing import Computation
from assay_solver.agent import Solver
from assay_solver.cheats import FalseUpdate
from assay_solver.lies import Lie
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain
from tools.recompute.bases import false_merges
from tools.recompute.chain import RecordedRun
from tools.recompute.store import Store

TEXT = "\n".join(f"{n} times {n} is {n * n}, and half of it is {n * n / 2}." for n in range(120))
HARMFUL = Round(1)


class OppositeUpdate(FalseUpdate):
    """The opposite of its work: which no auditor happens to replay."""

    def update_lie(self, job: Computation, solver: Solver) -> Tamper | None:
        """See SolverCheat: the sign of every number of the update."""
        nodes = {job.program.nodes[k].node for k in job.program.output_nodes[0]}

        def turned(data: bytes) -> bytes:
            return bytes(b ^ 0x80 if k % 4 == 3 else b for k, b in enumerate(data))

        return Lie({(1, node): turned for node in nodes})


@pytest.mark.long
def test_a_guard_keeps_the_base_from_a_majority_and_the_run_goes_on(stage: SharedChain, tmp_path: Path) -> None:
    prepared = prepare_rounds(TINY, TEXT, 4, guard=0.0)
    pace, rates = Pace(units=5, least=1, steps=2, commit=600), AuditRates(audit_ppm=1_000)
    made = new_whole_run(stage, tmp_path, rounds=3, pace=pace, rates=rates, prepared=prepared)
    made.solver("ada")
    for name in ("bob", "cleo", "dan"):
        made.solver(name, OppositeUpdate(HARMFUL))
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()
    made.fund()
    made.launch()
    view = made.end()
    assert view.state.money.phase is RunPhase.OVER and not view.games
    assert all(view.status(g) is GenerationStatus.FINAL for g in (1, 2, 3))
    # All four counted, three of them liars; what they made was not taken, what came before and after was.
    assert len(view.counted(HARMFUL)[0]) == 4
    roots = [view.base(Round(0)).root, *(view.votes(g).root for g in (1, 2, 3))]
    assert roots[1] == roots[2] and len(set(roots)) == 3
    recorded, store = RecordedRun(made.chain.url, "0x" + made.run.address.hex()), Store(made.folder / "store")
    assert list(false_merges(recorded, store, guarded=True)) == []
    assert list(false_merges(recorded, store)), "a merge without a guard makes another base"
