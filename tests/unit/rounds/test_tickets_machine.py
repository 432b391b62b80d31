"""Strangers with tickets, on the model alone and on model and contract at once."""

from __future__ import annotations

import os
import random

import hypothesis
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.harness.rounds.tickets import TicketMachine

CALLS = {
    "register",
    "retire",
    "reclaim",
    "replace",
    "top_up",
    "remove_short",
    "show",
    "fine",
    "forfeit",
    "oblige",
    "acquit",
    "dispute",
    "undispute",
    "collect",
}


def play(examples: int, steps: int, contracts: bool) -> None:
    """Play until every call was accepted at least once, which chance may put off; ASSAY_SEED repeats a run."""
    machine = type("Machine", (TicketMachine,), {"contracts": contracts, "accepted": {}})
    first = int(os.environ.get("ASSAY_SEED", random.SystemRandom().randrange(2**32)))
    for seed in range(first, first + 20):
        print(f"ASSAY_SEED={seed}")
        machine.TestCase.settings = settings(
            max_examples=examples,
            stateful_step_count=steps,
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


def test_who_counted_at_a_time_never_changes_whatever_strangers_do() -> None:
    play(30, 80, contracts=False)


@pytest.mark.timeout(600)
def test_tickets_on_model_and_contract_end_alike() -> None:
    play(6, 60, contracts=True)
