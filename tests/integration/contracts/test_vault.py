"""The vault: nothing leaves without its owner's delay, nothing moves but by the run's own contracts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds.escrow import ESCROW_LOCK
from tests.harness.contracts.run_world import Rejected, RunWorld
from tests.harness.rounds.samples import ETHER


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunWorld]:
    made = RunWorld(tmp_path_factory.mktemp("artifacts"))
    yield made
    made.close()


def refused(world: RunWorld, name: str, sender: bytes, *call: object, at: int | None = None) -> Rejected:
    with pytest.raises(Rejected) as rejected:
        world.send(sender, *call, at=at)  # type: ignore[arg-type]
    assert rejected.value.name == name
    return rejected.value


def test_a_stake_comes_back_after_the_delay_and_not_before(world: RunWorld) -> None:
    me, token = world.people[1], world.addresses["vault"]
    before = world.call("token", "balanceOf", me)
    world.send(me, "vault", "deposit", 10 * ETHER)
    world.send(me, "vault", "requestExit", 4 * ETHER)
    asked = world.now
    assert world.call("vault", "free", me) == 6 * ETHER
    assert world.call("vault", "exiting", me) == (4 * ETHER, asked + world.charter.timing.exit)
    refused(world, "ExitTooEarly", me, "vault", "withdraw", at=asked + world.charter.timing.exit)
    world.send(me, "vault", "withdraw", at=asked + world.charter.timing.exit + 1)
    assert world.call("token", "balanceOf", me) == before - 6 * ETHER
    assert world.call("token", "balanceOf", token) == sum(world.call("vault", "totals"))
    refused(world, "NothingExiting", me, "vault", "withdraw")


def test_asking_again_starts_the_delay_again(world: RunWorld) -> None:
    me = world.people[2]
    world.send(me, "vault", "deposit", 10 * ETHER)
    world.send(me, "vault", "requestExit", ETHER)
    first = world.now
    world.send(me, "vault", "requestExit", ETHER, at=first + 1000)
    assert world.call("vault", "exiting", me) == (2 * ETHER, first + 1000 + world.charter.timing.exit)


def test_nobody_moves_what_is_not_there(world: RunWorld) -> None:
    me = world.people[3]
    refused(world, "AmountZero", me, "vault", "deposit", 0)
    assert refused(world, "InsufficientFree", me, "vault", "requestExit", 1).values == (me, 0, 1)


@pytest.mark.parametrize("function", ["lock", "release", "seize", "burn"])
def test_strangers_lock_release_seize_and_burn_nothing(world: RunWorld, function: str) -> None:
    me, lock = world.people[4], ESCROW_LOCK
    args = {"lock": (lock, me, 1), "release": (lock,), "seize": (lock, me, 1), "burn": (lock, 1)}[function]
    assert refused(world, "NotAModule", me, "vault", function, *args).values == (me,)
    sponsor = world.people[0]
    refused(world, "NotAModule", sponsor, "vault", function, *args)


def test_a_token_that_keeps_a_fee_is_refused(tmp_path_factory: pytest.TempPathFactory) -> None:
    world = RunWorld(tmp_path_factory.mktemp("artifacts"), token="FeeToken")
    try:
        me = world.people[1]
        short = (99 * ETHER, 100 * ETHER)
        assert refused(world, "FeeOnTransfer", me, "vault", "deposit", 100 * ETHER).values == short
        assert world.call("vault", "totals") == (0, 0, 0, 0)
        token, revenue = world.addresses["token"], world.addresses["revenue"]
        world.send(me, "token", "approve", revenue, 100 * ETHER)
        assert refused(world, "FeeOnTransfer", me, "revenue", "deposit", token, 100 * ETHER).values == short
        assert world.call("token", "balanceOf", revenue) == 0
    finally:
        world.close()
