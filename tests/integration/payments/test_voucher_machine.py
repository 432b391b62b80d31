"""Anybody does anything with vouchers: model and contract end alike, and nothing is lost."""

from __future__ import annotations

import os
import random

import hypothesis
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.harness.payments.voucher_machine import VoucherMachine

CALLS = {"deposit", "ask_refund", "withdraw", "redeem", "pay_owners"}


def test_vouchers_on_model_and_contract_end_alike() -> None:
    """Played until every call was accepted at least once, which chance may put off; ASSAY_SEED repeats a run."""
    machine = type("Machine", (VoucherMachine,), {"accepted": {}})
    first = int(os.environ.get("ASSAY_SEED", random.SystemRandom().randrange(2**32)))
    for seed in range(first, first + 20):
        print(f"ASSAY_SEED={seed}")
        machine.TestCase.settings = settings(
            max_examples=int(os.environ.get("ASSAY_VOUCHERS", "4")),
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
