"""A sponsor of the second round: what its run still lacks, the escrow, and the launch."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay.protocol.errors import RejectedError
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.sponsor.round_launching import LaunchLacks, escrow_of, launch_lacks
from assay_ledger.deployment.code import code_of
from tests.harness.actors.whole_run import new_whole_run
from tests.harness.actors.world import SharedChain


def test_a_run_is_launched_once_it_lacks_neither_tickets_nor_seats_nor_money(
    stage: SharedChain, tmp_path: Path
) -> None:
    made = new_whole_run(stage, tmp_path)
    charter = made.run.charter
    assert code_of(made.run).status() == "release"
    assert launch_lacks(made.run) == LaunchLacks(tickets=5, seats=4, escrow=cost_of(charter, 4))
    for name in ("ada", "bob", "cleo", "dan"):
        made.solver(name)
    made.auditor("vera", tickets=3)
    made.auditor("viktor", tickets=2)
    made.enrol()
    assert launch_lacks(made.run) == LaunchLacks(tickets=0, seats=0, escrow=cost_of(charter, 4))
    with pytest.raises(RejectedError) as refused:
        made.launch()
    assert refused.value.code == "Paused"
    made.fund()
    assert not launch_lacks(made.run)
    assert made.chain.ask(made.run.escrow.balance()) == escrow_of(charter) == charter.rounds * cost_of(charter, 4)
    made.launch()
    assert made.view.state.money.phase is RunPhase.RUNNING and made.view.round == 0
