"""The same strangers against the model and the contracts at once: every call ends alike, and so does the money."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.harness.contracts.world import RunWorld
from tests.harness.ledger.machine import LedgerMachine
from tests.unit.model.test_model_machine import run_steps

STEPS = 500
MANY = 5_000


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunWorld]:
    made = RunWorld(tmp_path_factory.mktemp("artifacts"))
    yield made
    made.close()


@pytest.fixture
def machine(world: RunWorld) -> Iterator[type[LedgerMachine]]:
    """A machine whose every example starts from the node as it was deployed, and that leaves it so."""
    fields = {"world": world, "snapshot": world.rpc("evm_snapshot"), "steps": 0, "accepted": {}}
    made = type("ChainMachine", (LedgerMachine,), fields)
    yield made
    world.rpc("evm_revert", made.snapshot)


def test_model_and_contracts_agree_on_every_call(machine: type[LedgerMachine]) -> None:
    calls = ("commit", "receipt", "revealDraw", "revealLeaves", "postOuter", "open", "finish", "settleWork")
    run_steps(machine, STEPS, per_example=40, batch=9, calls=calls)


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_model_and_contracts_agree_ten_times_longer(machine: type[LedgerMachine]) -> None:
    run_steps(machine, MANY, per_example=80, batch=16)
