"""Numbers of a ticket's chains: none is used up in vain, and none is lost at a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from assay_verifier.secret_chains import GAP
from assay_whistleblower.agent import AuditorAgent
from tests.harness.actors.world import ETHER, SharedChain, small_work
from tests.harness.auditors.audited_run import AuditedRun, new_audited_run

GWEI = 10**9


def numbers(agent: AuditorAgent) -> list[int]:
    """Those that its journal knows."""
    return [int(entry["number"]) for entry in agent.journal.entries("chain")]


def mine(made: AuditedRun, base_fee: int) -> None:
    """A block at a base fee, in wei per gas."""
    made.chain.rpc("anvil_setNextBlockBaseFeePerGas", hex(base_fee))
    made.chain.rpc("evm_mine")


def answers_after_a_restart(made: AuditedRun, name: str) -> None:
    """Its ticket is registered, its process dies, and the next one opens every call."""
    made.settle(lambda view: len(view.books.registry.tickets) == len(made.players))
    made.restart(name)
    before, ticket = made.wealth(name), made.ticket(name)
    served = made.view.books.registry.tickets[ticket].from_
    made.settle(lambda view: view.epochs[-1].start > served and bool(view.epochs[-1].on_call))
    first = len(made.view.epochs)
    made.settle(lambda view: len(view.epochs) > first)
    assert made.view.epochs[first - 1].opened == made.view.epochs[first - 1].on_call == len(made.players)
    assert made.wealth(name) == before


@pytest.mark.long
@pytest.mark.parametrize("why", ["the base fee is above the cap", "the wallet has no coins"])
def test_a_time_of_dear_gas_uses_up_no_number_of_a_chain(stage: SharedChain, tmp_path: Path, why: str) -> None:
    made = new_audited_run(stage, tmp_path, small_work())
    made.auditor("wilma")
    made.settle(lambda view: len(view.books.registry.tickets) == 1)
    vera, dear = made.auditor("vera"), 2 * made.run.charter.chain.fee_cap
    if "coins" in why:
        made.chain.rpc("anvil_setBalance", vera.account.address, hex(0))
        dear = GWEI
    for _ in range(40):
        mine(made, dear)
        vera.step()
    assert numbers(vera) == [0]
    made.chain.rpc("anvil_setBalance", vera.account.address, hex(10 * ETHER))
    mine(made, GWEI)
    answers_after_a_restart(made, "vera")
    assert numbers(vera) == [0]


def test_a_ticket_whose_number_is_far_above_the_last_is_answered_for_after_a_restart(
    stage: SharedChain, tmp_path: Path
) -> None:
    made = new_audited_run(stage, tmp_path, small_work())
    made.auditor("wilma")
    vera = made.auditor("vera")
    for number in range(GAP + 8):  # as an earlier release left them
        vera.journal.append("chain", number=number)
    made.restart("vera")
    answers_after_a_restart(made, "vera")
