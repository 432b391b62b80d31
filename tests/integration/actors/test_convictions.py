"""Solvers and auditors with real games: a lie in the middle of a commitment, to its one element."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from assay.cli.joining import joining_reasons
from assay.protocol.game.state import Outcome
from assay.protocol.run.claims import ClaimKind
from assay_solver.agent import Solver
from assay_solver.cheats import CheatingSolver, solver_cheat_named
from tests.harness.actors.world import SharedChain, small_work
from tests.harness.auditors.audited_run import new_audited_run


@pytest.mark.gate_takes(1)
@pytest.mark.parametrize(("cheat", "kind"), [("false-step", ClaimKind.INTERVAL), ("false-update", ClaimKind.UPDATE)])
def test_a_lying_solver_is_convicted_by_the_element_that_the_contract_computes(
    stage: SharedChain, tmp_path: Path, cheat: str, kind: ClaimKind
) -> None:
    made = new_audited_run(stage, tmp_path, small_work())
    # Alone on call, it is drawn for all four commitments, which is as many as it answers.
    made.auditor("vera")
    made.settle(lambda view: len(view.books.registry.tickets) == 1 and len(view.epochs) > 3)
    made.add("mallory", partial(CheatingSolver, cheat=solver_cheat_named(cheat, 0)))
    made.add("ada", Solver)
    made.settle(lambda view: len(view.books.tenures.tenures) == 2)
    made.begin()
    view = made.settle(lambda view: any(t.convicted_at for t in view.books.tenures.tenures.values()))
    convicted = [t.holder for t in view.books.tenures.tenures.values() if t.convicted_at]
    assert convicted == [made.address("mallory")]
    told = joining_reasons(made.run, view, made.address("mallory"), "solver", 0)
    assert [why for why in told if "was convicted" in why] == told[:1]
    won = [game for game in view.games.values() if game.is_over]
    assert {game.ref.kind for game in won} == {kind} and won[0].outcome is Outcome.LEAF
    assert won[0].challenger == made.address("vera")
