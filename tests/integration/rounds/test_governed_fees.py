"""Fees of a governed run: a vote closes new deposits, and touches nothing of what was deposited."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds.decisions import Decision, Verb
from tests.harness.payments.voucher_stage import DELAY, GATEWAYS
from tests.harness.rounds.governed_money import EarningWorld
from tests.harness.rounds.governed_world import SUNSET
from tests.harness.rounds.samples import ETHER


@pytest.fixture
def world() -> Iterator[EarningWorld]:
    """A run whose model earns, and whose owners vote."""
    made = EarningWorld()
    try:
        yield made
        made.check_money()
        made.check_votes()
        made.check_earnings()
    finally:
        made.end()


def served_on(world: EarningWorld, gateway: int) -> None:
    """A voucher is redeemed, a refund is asked for and taken, the owners are paid."""
    assert world.redeem(gateway, [(0, 2 * ETHER)]) == ""
    assert world.ask_back(0, gateway, ETHER) == ""
    world.tick(DELAY)
    assert world.take_back(0, gateway) == ""
    assert world.pay_owners(world.vouchers.owed[world.earned_in]) == ""


def test_a_gateway_off_the_list_takes_no_deposit_and_keeps_what_it_has(world: EarningWorld) -> None:
    people = world.owners()
    for gateway in (0, 1):
        assert world.pay_in(0, gateway, 5 * ETHER) == ""
    assert world.decide(people, Decision(Verb.LIST, (GATEWAYS[0], True))) == ""
    assert world.pay_in(0, 0, ETHER) == "GatewayDelisted"
    assert world.pay_in(0, 1, ETHER) == ""
    served_on(world, 0)
    assert world.decide(people, Decision(Verb.LIST, (GATEWAYS[0], False))) == ""
    assert world.pay_in(0, 0, ETHER) == ""


def test_after_the_sunset_no_deposit_is_taken_and_all_else_goes_on(world: EarningWorld) -> None:
    people = world.owners()
    assert world.pay_in(0, 0, 5 * ETHER) == ""
    assert world.decide(people, SUNSET) == ""
    assert world.pay_in(0, 0, ETHER) == world.pay_in(1, 1, ETHER) == "FeesEnded"
    served_on(world, 0)
    world.tick(60 * 86_400)
    assert sum(world.claim(who) for who in people) > 0


def test_a_pause_closes_no_deposit(world: EarningWorld) -> None:
    world.start()
    assert world.guardian_pause() == ""
    assert world.pay_in(0, 0, 5 * ETHER) == ""
    served_on(world, 0)
