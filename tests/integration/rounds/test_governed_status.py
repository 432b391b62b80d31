"""What a key is told of its pay after a vote on the price: each round pays what held when it opened."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.explorer.money import Account
from assay.protocol.rounds.decisions import Decision, Verb
from assay.protocol.types import Address, Round
from assay.status.account import OwnMoney, status_of
from assay_ledger.agents.waiting import waits
from tests.harness.rounds.governed_world import DEMOCRATIC, GovernedWorld
from tests.harness.rounds.money_scenes import final_round, settle
from tests.harness.rounds.told_money import ToldMoneyWorld

PPM = 1_000_000


class ToldGovernedWorld(ToldMoneyWorld, GovernedWorld):
    """Owners who vote, in a run whose events are folded."""

    def unpaid(self, who: Address) -> int:
        """What somebody's work that is not settled is said to bring at most, in wei."""
        return int(status_of(self.view(who), OwnMoney(Account(), {}))["earned"]["unpaid"]["pay_at_most"])

    def set_price(self, people: list[Address], ppm: int) -> None:
        """Its owners vote another price, in parts per million of the charter's."""
        assert self.decide(people, Decision(Verb.PRICE, (ppm,))) == ""

    def open_round(self) -> None:
        """The rounds under way are over, and the next one opens at the price of now."""
        opened = len(self.model.commitments.rounds)
        for _ in range(3):
            if len(self.model.commitments.rounds) == opened:
                assert self.restart() == ""


@pytest.fixture
def world() -> Iterator[ToldGovernedWorld]:
    made = ToldGovernedWorld(DEMOCRATIC)
    try:
        yield made
        made.check_money()
    finally:
        made.end()


def test_work_brings_the_price_at_which_its_round_opened_whatever_is_voted_later(world: ToldGovernedWorld) -> None:
    people = world.owners()
    world.set_price(people, 750_001)
    world.open_round()
    r = final_round(world, people)
    merge = world.charter.economics.merge_pay
    worth = {who: world.works[r, world.seat(who)].units * world.charter.economics.unit_price for who in people}
    said = {who: world.unpaid(who) for who in people}
    assert said == {who: amount * 750_001 // PPM for who, amount in worth.items()} and min(said.values()) > 0
    world.set_price(people, 500_000)
    assert {who: world.unpaid(who) for who in people} == said
    before = {who: world.vault.free_of(who) for who in people}
    settle(world, r, people)
    assert {who: world.vault.free_of(who) - before[who] - merge for who in people} == said
    assert [world.unpaid(who) for who in people] == [0] * len(people)

    for number in range(len(world.model.commitments.rounds)):
        assert world.told.books.work_pay_of(Round(number), 10**18) == world.call("Escrow", "workPayOf", number, 10**18)


def test_before_its_launch_a_paused_run_says_so_and_not_that_its_sponsor_opens_it(world: ToldGovernedWorld) -> None:
    """`assay run open` is refused under a pause."""
    world.gather(solvers=world.charter.launch.seats)
    assert [wait.code for wait in waits(world.view(world.sponsor))] == ["NotOpened"]
    assert world.guardian_pause() == ""
    (wait,) = waits(world.view(world.sponsor))
    assert (wait.code, wait.until) == ("RoundsPaused", world.governor.paused_until)
    assert world.launch(world.sponsor) == "Paused"
