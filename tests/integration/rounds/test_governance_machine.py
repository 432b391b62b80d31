"""Anybody does anything in a governed run: model and contracts end alike, and nobody gains by splitting or timing."""

from __future__ import annotations

import os
import random

import hypothesis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.harness.rounds.governance_machine import GovernanceMachine

CALLS = {
    *("transfer", "delegate", "propose", "vote", "queue", "execute", "withdraw", "guardian"),
    *("PAUSE", "SUNSET", "PRICE", "deposit", "ask", "refund", "redeem", "pay", "claim"),
    *("credit", "vest", "cancel", "convict", "a second early", "in time"),
}


def test_a_governed_run_on_model_and_contracts_ends_alike() -> None:
    """Played until every call was accepted at least once, which chance may put off; ASSAY_SEED repeats a run."""
    machine = type("Machine", (GovernanceMachine,), {"accepted": set()})
    first = int(os.environ.get("ASSAY_SEED", random.SystemRandom().randrange(2**32)))
    for seed in range(first, first + 10):
        print(f"ASSAY_SEED={seed}")
        machine.TestCase.settings = settings(
            max_examples=int(os.environ.get("ASSAY_GOVERNANCE", "10")),
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        )
        hypothesis.seed(seed)(machine)
        run_state_machine_as_test(machine, settings=machine.TestCase.settings)
        if machine.accepted >= CALLS:
            return
    raise AssertionError(f"never accepted: {CALLS - machine.accepted}")


def test_rules_about_shares_are_kept_in_a_fixed_order() -> None:
    """The machine's own rules without chance, so that each of its checks is known to be reached."""
    machine = type("Machine", (GovernanceMachine,), {"accepted": set()})()
    try:
        machine.begin()
        machine.alike()
        machine.mature(0)
        machine.alike()
        assert machine.accepted >= {"credit", "vest", "a second early", "in time"} and "cancel" not in machine.accepted
        for a, moment, ended in ((0, None, "cancel"), (1, -1, "cancel"), (2, 0, "vest"), (3, 1, "vest")):
            before = machine.world.ended_shares[ended]
            machine.fall(a, (a + 1) % 4, moment)
            machine.alike()
            # All that the other seats earned is pending still, or vests as before.
            assert machine.world.ended_shares[ended] > before, (a, moment)
        assert machine.accepted >= {"convict", "cancel"}
        machine.expose(0, 0)
        machine.alike()
        assert "cancel a finding" in machine.accepted
        for which in range(3):
            machine.credit_finding(which)
            machine.vest(which, None)
            machine.transfer(which, which + 1, 1)
            machine.alike()
        machine.train()
        machine.judge(0, 1, False)
        machine.alike()
    finally:
        machine.teardown()
