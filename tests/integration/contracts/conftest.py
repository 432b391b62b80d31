"""A node with one run per worker; every test that asks for `clean_world` gets it in its first state.

Beside it, for tests of single contracts, an EVM in this process and the leaf contracts on it.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.program.nodes import Family
from assay_ledger.deployment.places import by_code
from tests.harness.contracts.harness import Evm, EvmContract
from tests.harness.contracts.leaf_cases import NO_LEAF, deploy_leaves
from tests.harness.contracts.run_world import RunWorld


@pytest.fixture(scope="module")
def evm() -> Evm:
    """One for every contract of a test module."""
    return Evm()


@pytest.fixture(scope="module")
def leaves(evm: Evm) -> dict[Family, EvmContract]:
    """The leaf contract of every family that has one."""
    return deploy_leaves(evm)


@pytest.fixture(scope="module")
def leaf_harness(evm: Evm) -> EvmContract:
    """What loads openings as the arbiter does, beside the leaves."""
    return evm.deploy("LeafHarness")


@pytest.fixture(scope="module")
def arbiter(evm: Evm, leaves: dict[Family, EvmContract]) -> EvmContract:
    """The arbiter over the leaves."""
    return evm.deploy("Arbiter", by_code({f: leaf.address for f, leaf in leaves.items()}, NO_LEAF))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunWorld]:
    """A node and a run on it; its state is whatever the last test left."""
    made = RunWorld(tmp_path_factory.mktemp("artifacts"))
    made.first_state = made.rpc("evm_snapshot")
    yield made
    made.close()


@pytest.fixture
def clean_world(world: RunWorld) -> RunWorld:
    """The node back in its first state: people have tokens and nothing else has happened."""
    world.rpc("evm_revert", world.first_state)
    world.first_state = world.rpc("evm_snapshot")
    world.now = int(world.rpc("eth_getBlockByNumber", "latest", False)["timestamp"], 16)
    return world
