"""The same strangers against the model and the contracts at once: every call ends alike, and so does the money."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contracts.world import World
from tests.ledger.machine import LedgerMachine
from tests.ledger.test_model_machine import run_steps

STEPS = 500
MANY = 5_000


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("artifacts"))
    yield made
    made.close()


def machine_on(world: World) -> type[LedgerMachine]:
    """A machine whose every example starts from the node's present state."""
    snapshot = world.rpc("evm_snapshot")
    return type("ChainMachine", (LedgerMachine,), {"world": world, "snapshot": snapshot, "steps": 0, "accepted": {}})


def test_model_and_contracts_agree_on_every_call(world: World) -> None:
    machine = machine_on(world)
    run_steps(machine, STEPS, per_example=40, batch=9)
    for call in ("commit", "receipt", "revealDraw", "revealLeaves", "postOuter", "open", "finish", "settleWork"):
        assert machine.accepted.get(call, 0) > 0, f"{call} was never accepted"


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_model_and_contracts_agree_ten_times_longer(world: World) -> None:
    run_steps(machine_on(world), MANY, per_example=80, batch=16)
