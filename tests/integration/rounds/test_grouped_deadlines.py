"""Above 64 seats: what an owner of tickets must say, seal and open by when is what the contracts then take."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import pytest

from assay.protocol.rounds.ids import Node
from assay.protocol.rounds.ticket_types import TicketId
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.types import Address, Round, Seat
from assay.status.deadlines import OwnDeadline, deadlines_of
from assay.watchdog.alarms import AlarmKind
from assay.watchdog.run_alarms import judge_roots
from assay_ledger.bindings.game import GameOpened
from assay_ledger.rounds.fold import fold
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_player import TERMS
from tests.harness.rounds.keeper_calls import view_of
from tests.harness.rounds.samples import mark
from tests.harness.rounds.told_world import TRANSACTION, ToldGroupedWorld
from tests.harness.rounds.world import played_on


@pytest.fixture(scope="module")
def chain() -> RoundChain:
    return RoundChain(TERMS)


@pytest.fixture
def world(chain: RoundChain) -> Iterator[ToldGroupedWorld]:
    with played_on(chain, ToldGroupedWorld) as made:
        made.commit_some(made.start(auditors=(1,) * 24))
        yield made


def due(world: ToldGroupedWorld, who: Address, begins: str, of: str) -> list[OwnDeadline]:
    """Deadlines of somebody's merges that begin and end so."""
    found = [each for each in deadlines_of(view_of(world, who), {}) if each.kind == "merge"]
    return [each for each in found if each.text.startswith(begins) and of in each.text]


def two_of(world: ToldGroupedWorld, node: Node) -> list[tuple[TicketId, Address]]:
    """Two tickets of a node's committee, and whose they are."""
    return [(ticket, world.owners[ticket]) for ticket in list(world.committee(node))[:2]]


def test_what_a_group_holds_is_said_to_the_last_second_that_takes_it(world: ToldGroupedWorld) -> None:
    node, text = world.node(0), "group 0 of round 0"
    (first, who), (second, late) = two_of(world, node)
    positions = world.committee(node)
    (only,) = due(world, who, "say which updates", text)
    world.at(only.until)
    assert due(world, who, "say which updates", text) == [only]
    assert world.hold(who, None, positions[first], 0) == ""
    assert due(world, who, "say which updates", text) == []
    world.at(world.model.commitments.hold_until(world.round, 0) + 1)
    assert due(world, late, "say which updates", text) == []
    assert world.hold(late, None, positions[second], 0) != ""


@pytest.mark.parametrize("is_group", [True, False], ids=["sum", "generation"])
def test_roots_are_sealed_and_opened_in_the_seconds_that_are_said(world: ToldGroupedWorld, is_group: bool) -> None:
    node, text = (world.node(0), "the sum of group 0 of round 0") if is_group else (world.top(), "generation 1")
    (first, who), (second, late) = two_of(world, node)
    assert due(world, who, "seal a root", text) == [], "what goes into it can still change"
    world.hold_groups()
    if not is_group:
        world.sum_groups()
        world.at(world.generations.groups_until(world.round) + 1)
    for ticket in list(world.committee(node))[2:]:
        assert world.seal_at(node, ticket, "root") == ""
    (sealing,) = due(world, who, "seal a root", text)
    assert sealing.text.endswith(f"ticket {first}")
    world.at(sealing.until)
    assert due(world, who, "seal a root", text) == [sealing] and world.seal_at(node, first, "root") == ""
    assert due(world, who, "seal a root", text) == []
    world.tick(1)
    (opening,) = due(world, who, "open the root", text)
    assert due(world, late, "seal a root", text) == [] and world.seal_at(node, second, "root") != ""
    world.at(opening.until)
    assert due(world, who, "open the root", text) == [opening] and world.open_at(node, first, "root") == ""
    assert due(world, who, "open the root", text) == []


def test_a_game_about_the_sum_of_a_group_is_told_as_one_about_a_generation_is(world: ToldGroupedWorld) -> None:
    """What is merged from a sum that falls is cut with it."""
    world.hold_groups()
    world.sum_groups()
    ticket = next(iter(world.committee(world.node(0))))
    ref = ClaimRef(ClaimKind.OUTER, Round(0), Seat(ticket), 1)
    challenger, defender = world.owners[ticket], world.owners[ticket]
    view = deepcopy(view_of(world, challenger))  # the contracts have no such game
    fold(view.state, GameOpened(1, mark("sum"), challenger, defender, ref), world.now, TRANSACTION)
    (alarm,) = judge_roots(view)
    assert (alarm.kind, alarm.about) == (AlarmKind.ROOT_CHALLENGED, "the sum of group 0 in generation 1")
