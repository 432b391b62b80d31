"""A charter whose fee cap no fee is below: what waits for cheaper gas is done all the same, and work is paid.

Its sponsor chooses the cap. Work that nobody settles is void when the run is wound down, and its pay goes back.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from assay.protocol.rounds.escrow import RunPhase
from assay.sponsor.charters import HOUR
from assay_ledger.agents import round_actions
from assay_ledger.deployment.deploy import deploy_run
from tests.harness.actors.whole_run import WholeRun, new_whole_run
from tests.harness.actors.world import SharedChain


@pytest.mark.long
@pytest.mark.timeout(120)
def test_work_is_paid_in_a_run_whose_cap_is_below_every_fee(
    stage: SharedChain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(round_actions, "DEAR_S", 2 * HOUR)
    monkeypatch.setattr(round_actions, "TakesOn", ())  # they joined while gas was cheap
    usual = new_whole_run(stage, tmp_path / "usual", seats=2, rounds=1)
    chain = replace(usual.run.charter.chain, fee_cap=1)
    run = deploy_run(stage.chain, stage.sponsor, replace(usual.run.charter, chain=chain))
    made = WholeRun(stage, tmp_path, run, usual.store)
    made.begin_with("ada", "bob")
    before = {name: made.wealth(name) for name in ("ada", "bob")}
    assert stage.chain.head().base_fee > chain.fee_cap
    view = made.settle(lambda view: sum(view.state.money.work_settled.values()) == 2, stops=28)
    assert view.state.money.phase is RunPhase.RUNNING
    assert all(made.wealth(name) - had >= run.charter.price for name, had in before.items())
