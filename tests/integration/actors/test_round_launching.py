"""A sponsor of the second round: what its run still lacks, the escrow, and the launch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from assay.protocol.errors import AssayError, RejectedError, UserError
from assay.protocol.rounds.escrow import RunPhase, cost_of
from assay.protocol.run.layouts import zero_root
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Digest, DType
from assay.sponsor.round_charters import Pace
from assay.sponsor.round_launching import LaunchLacks, escrow_of, launch_lacks
from assay_ledger.deployment.code import code_of
from assay_ledger.deployment.deploy import deploy_round_run
from assay_solver.round_actions import TakeSeat
from assay_verifier.ticket_keeping import RegisterTicket
from tests.harness.actors.whole_run import WholeRun, new_whole_run
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


def test_rounds_of_another_length_than_the_programs_count_are_not_posted(stage: SharedChain, tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        new_whole_run(stage, tmp_path, pace=Pace(units=3, least=2, steps=2, commit=600))
    assert refused.value.code == "OtherRoundLength" and "10 steps a round" in refused.value.message


@pytest.mark.parametrize(
    ("start", "code"),
    [
        ({"zero_update": zero_root([TensorSpec(DType.F32, (3,))])}, "WrongLayout"),
        ({"zero_optimizer": zero_root([TensorSpec(DType.F32, (3,))])}, "GenesisMissing"),
        ({"data": Digest(b"\1" * 32)}, "GenesisMissing"),
    ],
)
def test_nobody_stakes_anything_in_a_run_that_cannot_be_trained(
    stage: SharedChain, tmp_path: Path, start: dict[str, Any], code: str
) -> None:
    good = new_whole_run(stage, tmp_path)
    training = replace(good.run.charter.training, **start)
    # Its sponsor deploys it by other means than ours, whose posting looks first.
    run = deploy_round_run(stage.chain, stage.sponsor, replace(good.run.charter, training=training))
    made = WholeRun(stage, tmp_path, run, good.store)
    ada, vera = made.solver("ada"), made.auditor("vera")
    for agent, action in ((ada, TakeSeat()), (vera, RegisterTicket(0))):
        with pytest.raises(AssayError) as refused:
            agent.perform(action, agent.see())
        assert refused.value.code == code
        agent.step()
    assert made.locks() == {}
