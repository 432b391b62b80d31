"""Merge pay above 64 seats, on model and contracts: a round is settled when every opening of its sums and root is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.grouped_generations import GroupedGenerations
from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.types import Address, Digest, Round, Wei
from tests.harness.rounds.charters import WIDE, changed
from tests.harness.rounds.grouped_world import GroupedWorld
from tests.harness.rounds.money_chain import CONTRACTS, MoneyChain
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.run_limits import staked
from tests.harness.rounds.samples import ETHER

SEATS: Final = 65

_LARGE: Final = changed(WIDE, "training", seats=SEATS, group_size=33, positions=3, top_positions=3, shards=2 * SEATS)
CHARTER: Final = staked(
    changed(changed(_LARGE, "timing", merge=6 * 3600), "launch", seats=3), merge_pay=Wei(ETHER // 100)
)
"""Two groups, three positions at each node, and a merge that may last longer than a challenge."""


class WideChain(MoneyChain):
    """The contracts of a run with groups."""

    contracts_of: ClassVar = CONTRACTS | {"generations": "GroupedGenerations"}

    def __init__(self) -> None:
        super().__init__(CHARTER)
        self.contracts["Generations"] = self.contracts["GroupedGenerations"]


class WideMoneyWorld(MoneyWorld, GroupedWorld):
    """A run of 65 seats, and auditors whose tickets merge what they did."""

    chain_of = staticmethod(lambda _: WideChain())

    def __init__(self) -> None:
        MoneyWorld.__init__(self, CHARTER)
        made = self.model.generations
        assert isinstance(made, GroupedGenerations)
        self.generations, self.tickets, self.owners = made, self.run.tickets, {}

    def add_ticket(self, who: Address) -> TicketId:
        """See MoneyWorld."""
        made = super().add_ticket(who)
        self.owners[made] = who
        return made

    def settle_node(self, node: Node, party: Digest) -> str:
        """The merge pay of an opening."""
        settle = lambda: self.run.payments.settle_opening(node, party, self.now)  # noqa: E731
        return self.do(settle, "Payments", "settleOpening", node, party)


@pytest.fixture
def world() -> Iterator[WideMoneyWorld]:
    made = WideMoneyWorld()
    yield made
    made.check_money()


def openings(world: WideMoneyWorld, round_: Round) -> list[tuple[Node, Digest]]:
    """All of a round that has one root at each node."""
    return [place for place in world.generations.openings if ids.generation_of(place[0]) == round_ + 1]


def test_a_round_is_settled_when_every_ticket_that_opened_its_nodes_was_paid(world: WideMoneyWorld) -> None:
    """A puppet's game about a true sum could else last until the run is over, and who opened it is never paid."""
    people = world.start(solvers=SEATS)
    r = world.play_round(people)
    opened, opened_at = openings(world, r), world.now
    nodes = {node for node, _ in opened}
    assert len(nodes) == 3 and len(opened) > 3
    world.at(max(opened_at + world.charter.timing.challenge, world.model.commitments.merge_until(r)) + 1)
    for node in sorted(nodes, reverse=True):
        party = next(party for at, party in opened if at == node)
        assert world.on_node("finalize", node, party) == ""
    for place in opened:
        assert world.on_node("close", *place) == ""
    own = _audited(world, r)
    for seat in range(SEATS):
        assert world.settle_work(r, seat, own) == ""
    before = {who: world.vault.free_of(who) for who in world.owners.values()}
    for place in opened:
        assert world.settle_round(r, own) == "RoundUnsettled"
        assert world.settle_node(*place) == ""
        assert world.settle_node(*place) == "AlreadySettled"
    earned = sum(world.vault.free_of(who) - amount for who, amount in before.items())
    assert earned == len(opened) * world.charter.economics.merge_pay
    assert world.settle_round(r, own) == ""


def test_nothing_of_a_node_is_paid_while_somebody_may_open_it(world: WideMoneyWorld) -> None:
    """Nodes are counted once all that opened them are paid: none may come after."""
    people = world.start(solvers=SEATS)
    r = world.play_round(people)
    (node, party), *_ = openings(world, r)
    until, ended = world.model.commitments.merge_until(r), world.now + world.charter.timing.challenge
    assert ended < until
    world.at(ended + 1)
    for at in sorted({at for at, _ in openings(world, r)}, reverse=True):
        assert world.on_node("finalize", at, next(by for place, by in openings(world, r) if place == at)) == ""
    assert world.on_node("close", node, party) == ""
    world.at(until)
    assert world.settle_node(node, party) == "OpeningOpen"
    world.tick(1)
    assert world.settle_node(node, party) == ""


def _audited(world: WideMoneyWorld, round_: Round) -> int:
    """Epochs until the round can be settled; its own."""
    for _ in range(20):
        own = world.own_epoch(round_)
        if world.run.duties.number > own and world.run.duties.over_since(own + 5):
            return own
        world.play_epoch()
    raise AssertionError("epochs do not end")
