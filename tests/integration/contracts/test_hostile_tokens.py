"""A token that calls back in the middle of its own transfers, as the money of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from eth_hash.auto import keccak

from tests.harness.contracts import harness
from tests.harness.contracts.run_world import RunWorld
from tests.harness.rounds.samples import ETHER


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunWorld]:
    """A run whose token is hostile, and owns a stake of 20 tokens of itself of which half may be withdrawn."""
    world = RunWorld(tmp_path_factory.mktemp("artifacts"), accounts=3, token="ReentrantToken")
    world.artifacts["token"] = harness.artifact("ReentrantToken")
    token, vault = world.addresses["token"], world.addresses["vault"]
    world.send(world.people[1], "token", "mint", token, 100 * ETHER)
    act(world, "token", "approve", vault, 2**256 - 1)
    act(world, "vault", "deposit", 20 * ETHER)
    act(world, "vault", "requestExit", 10 * ETHER)
    world.now += world.charter.timing.exit + 1
    yield world
    world.close()


def act(world: RunWorld, contract: str, function: str, *args: Any) -> None:
    """The token itself calls a contract, as an owner of a stake."""
    call = world.calldata(contract, function, *args)
    world.send(world.people[1], "token", "act", world.addresses[contract], call)


@pytest.mark.parametrize(
    ("function", "args", "back", "back_args"),
    [
        ("deposit", (ETHER,), "deposit", (ETHER,)),
        ("deposit", (ETHER,), "withdraw", ()),
        ("withdraw", (), "withdraw", ()),
        ("withdraw", (), "deposit", (ETHER,)),
        ("withdraw", (), "flush", ()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_token_that_calls_back_in_a_transfer_takes_nothing_out_twice(
    hostile: RunWorld, function: str, args: tuple[int, ...], back: str, back_args: tuple[int, ...]
) -> None:
    world, token, vault = hostile, hostile.addresses["token"], hostile.addresses["vault"]
    snapshot = world.rpc("evm_snapshot")
    now, before = world.now, world.call("token", "balanceOf", token)
    world.send(world.people[1], "token", "arm", vault, world.calldata("vault", back, *back_args))
    act(world, "vault", function, *args)
    assert world.call("token", "succeeded") == 0
    refusal = world.call("token", "refusal")
    assert refusal[:4] == keccak(b"ReentrancyGuardReentrantCall()")[:4]
    moved = -ETHER if function == "deposit" else 10 * ETHER
    assert world.call("token", "balanceOf", token) - before == moved
    assert world.call("token", "balanceOf", vault) == sum(world.call("vault", "totals"))
    world.rpc("evm_revert", snapshot)
    world.now = now


def test_the_hostile_token_does_call_back_where_nothing_forbids_it(hostile: RunWorld) -> None:
    """Otherwise the test above could not fail."""
    world = hostile
    snapshot, now = world.rpc("evm_snapshot"), world.now
    call = world.calldata("vault", "requestExit", ETHER)
    world.send(world.people[1], "token", "arm", world.addresses["vault"], call)
    act(world, "vault", "deposit", ETHER)
    assert world.call("token", "succeeded") == 1
    # It asked for an exit in the middle of its own deposit: allowed, and harmless.
    assert world.call("token", "balanceOf", world.addresses["vault"]) == sum(world.call("vault", "totals"))
    world.rpc("evm_revert", snapshot)
    world.now = now
