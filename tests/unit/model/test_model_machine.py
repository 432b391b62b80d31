"""A state machine of strangers against the executable model: tokens are conserved and no honest party loses."""

from __future__ import annotations

import os
import random
from collections.abc import Collection

import hypothesis
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.harness.ledger.machine import LedgerMachine

STEPS = 5_000
MANY = 50_000


def run_steps(
    machine: type[LedgerMachine], wanted: int, per_example: int, batch: int, calls: Collection[str] = ()
) -> None:
    """Run examples until at least `wanted` rules have run; ASSAY_SEED repeats a run.

    calls: each must have been accepted, or the run proves nothing. Where chance has left one out, it goes on for up to
    five times as many rules.
    """
    seed = int(os.environ.get("ASSAY_SEED", random.SystemRandom().randrange(2**32)))
    machine.steps, machine.accepted = 0, {}
    while machine.steps < wanted or (machine.steps < 5 * wanted and not machine.accepted.keys() >= set(calls)):
        print(f"ASSAY_SEED={seed} ({machine.steps} rule steps so far)")
        machine.TestCase.settings = settings(
            max_examples=batch,
            stateful_step_count=per_example,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=True,
        )
        hypothesis.seed(seed)(machine)
        run_state_machine_as_test(machine, settings=machine.TestCase.settings)
        seed += 1
    assert machine.accepted.keys() >= set(calls), f"never accepted: {set(calls) - machine.accepted.keys()}"
    print(f"{machine.steps} rule steps; accepted calls: {dict(sorted(machine.accepted.items()))}")


def fresh(name: str) -> type[LedgerMachine]:
    """A machine class with counters of its own."""
    return type(name, (LedgerMachine,), {"steps": 0, "accepted": {}})


def test_strangers_play_and_nobody_honest_loses() -> None:
    calls = ("commit", "revealLeaves", "postOuter", "rescue", "open", "finish", "settleWork", "settleDuties", "release")
    run_steps(fresh("PureMachine"), STEPS, per_example=100, batch=10, calls=calls)


@pytest.mark.long
def test_strangers_play_ten_times_longer() -> None:
    run_steps(fresh("LongPureMachine"), MANY, per_example=200, batch=20)
