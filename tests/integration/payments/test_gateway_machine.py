"""Anybody does anything with bonds and statements: model and contracts end alike, and no honest gateway loses."""

from __future__ import annotations

import os
import random

import hypothesis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.harness.payments.gateway_machine import GatewayMachine

CALLS = {"bond", "unbond", "pledge", "accuse", "commit", "reveal"}


def test_bonds_on_model_and_contract_end_alike_whatever_anybody_does() -> None:
    """Played until every call was accepted at least once, which chance may put off; ASSAY_SEED repeats a run."""
    machine = type("Machine", (GatewayMachine,), {"accepted": {}})
    first = int(os.environ.get("ASSAY_SEED", random.SystemRandom().randrange(2**32)))
    for seed in range(first, first + 20):
        print(f"ASSAY_SEED={seed}")
        machine.TestCase.settings = settings(
            max_examples=int(os.environ.get("ASSAY_BONDS", "4")),
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        )
        hypothesis.seed(seed)(machine)
        run_state_machine_as_test(machine, settings=machine.TestCase.settings)
        if machine.accepted.keys() >= CALLS:
            return
    raise AssertionError(f"never accepted: {CALLS - machine.accepted.keys()}")
