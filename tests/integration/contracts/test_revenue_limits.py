"""Revenue at its limits, with a listed token of which anybody makes any amount: shares move whatever is paid in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.contracts.run_world import Rejected, RunWorld
from tests.integration.contracts.test_shares import STREAM, WEEK, claim, deposit, mint

MAX_TOTAL = 1 << 120
MAX_SUPPLY = (1 << 208) - 1
"""Of shares: what votes can be counted in."""


@pytest.fixture
def shares(tmp_path: Path) -> Iterator[RunWorld]:
    """A run that lists a token without any limit, and a contract of grants that the test speaks for."""
    world = RunWorld(tmp_path, accounts=10, token="ReentrantToken")
    grants = "0x" + world.addresses["grants"].hex()
    world.rpc("anvil_impersonateAccount", grants)
    world.rpc("anvil_setBalance", grants, hex(10**20))
    payer = world.people[9]
    world.send(payer, "token", "approve", world.addresses["revenue"], 2**256 - 1)
    world.send(payer, "token", "mint", payer, 1 << 140)
    world.now = (world.now // WEEK + 1) * WEEK
    yield world
    world.close()


def test_no_deposit_stops_shares_from_moving(shares: RunWorld) -> None:
    """Any amount bought the end of a run's shares once: 2^128 overflowed what every transfer computes."""
    world = shares
    token, payer = world.addresses["token"], world.people[9]
    mint(world, 1, 1)  # one wei of shares: growth per share is never larger than with it
    for amount in (1 << 128, MAX_TOTAL + 1):
        with pytest.raises(Rejected, match="DepositTooLarge") as refused:
            deposit(world, amount)
        assert refused.value.values == (amount, MAX_TOTAL)
    first = MAX_TOTAL - 1_000_000
    begins = deposit(world, first)
    with pytest.raises(Rejected, match="DepositTooLarge"):
        deposit(world, 1_000_001)
    assert deposit(world, 1_000_000) == begins, "to the last wei"
    with pytest.raises(Rejected, match="DepositTooLarge"):
        world.send(payer, "revenue", "deposit", token, 1_000_000)
    end = begins + STREAM
    world.send(world.people[1], "shares", "transfer", world.people[2], 1, at=end - 1)
    mint(world, 3, MAX_SUPPLY - 1, at=end)
    with pytest.raises(Rejected, match="ERC20ExceededSafeSupply"):
        mint(world, 3, 1)
    world.send(world.people[3], "shares", "transfer", world.people[4], MAX_SUPPLY - 1)
    world.send(world.people[4], "shares", "transfer", world.people[1], 1)
    paid = [claim(world, k) for k in (1, 2, 3, 4)]
    assert sum(paid) + 4 >= MAX_TOTAL >= sum(paid) and min(paid[:2]) > 0


def test_as_much_as_may_be_parked_streams_anew(shares: RunWorld) -> None:
    world = shares
    begins = deposit(world, MAX_TOTAL)
    mint(world, 1, MAX_SUPPLY, at=begins + STREAM)
    assert claim(world, 1, at=begins + STREAM + WEEK + STREAM) in (MAX_TOTAL - 1, MAX_TOTAL)


@pytest.mark.parametrize("held", [1, MAX_SUPPLY])
def test_all_that_a_run_ever_takes_fits_into_what_one_owner_is_owed(shares: RunWorld, held: int) -> None:
    """It is kept in 2^-128 of a wei until it is claimed, however often its owner is settled."""
    world = shares
    mint(world, 1, held)
    begins = deposit(world, MAX_TOTAL)
    for part in range(1, 8):
        world.send(world.people[2], "shares", "transfer", world.people[1], 0, at=begins + part * STREAM // 8)
    claimable = world.call("revenue", "claimable", world.addresses["token"], world.people[1])
    assert claim(world, 1, at=begins + STREAM) + (held > 1) >= MAX_TOTAL > claimable > MAX_TOTAL // 8 * 7 - 2
