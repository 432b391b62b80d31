"""Generations above 64 seats: their committee, what stands behind sums and roots, what falls, and what is final."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.terms import GenerationStatus
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.types import Address, Round, Seat
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_world import GroupedWorld
from tests.harness.rounds.samples import ETHER, terms_of
from tests.harness.rounds.world import played_on

TERMS = terms_of(seats=65, group_size=16, positions=5, top_positions=9, group_merge=180)
OPEN, MERGED, FINAL, CUT = GenerationStatus


@pytest.fixture(scope="module")
def chain() -> RoundChain:
    return RoundChain(TERMS)


@pytest.fixture
def world(chain: RoundChain) -> Iterator[GroupedWorld]:
    with played_on(chain, GroupedWorld) as made:
        yield made


def summed(w: GroupedWorld, people: list[Address]) -> None:
    """A round up to where the generation is merged."""
    w.commit_some(people)
    w.hold_groups()
    w.sum_groups()


def statuses(w: GroupedWorld) -> list[GenerationStatus]:
    return [w.generations.status_of(g) for g in range(w.round + 2)]


def party(ticket: TicketId) -> bytes:
    return ids.ticket_party(ticket)


def finalize_sums(w: GroupedWorld, round_: Round) -> None:
    """All counted sums of a round become final."""
    for group in w.generations.counted_groups(round_):
        node = w.node(group, round_)
        opener = next(iter(w.committee(node)))
        assert w.on_node("finalize", node, party(opener)) == ""


def challenger_of(w: GroupedWorld) -> Address:
    return w.add_person(100 * ETHER)


def test_a_sum_that_half_of_the_committee_holds_makes_no_majority(world: GroupedWorld) -> None:
    """A2: who does not hold a sum cannot compute the root, says so, and is a voice against every root."""
    w = world
    people = w.start()
    w.play_round(people)
    summed(w, people)
    top, cut = w.top(), w.round + 1
    served = w.some(top, 4)
    w.vote(top, {ticket: "root" if ticket in served else None for ticket in w.committee(top)})
    assert w.round == 1
    w.at(w.model.commitments.merge_until(Round(1)))
    assert w.restart() == "RoundAlive"
    w.tick(1)
    assert w.restart() == ""
    assert w.generations.status_of(cut) is CUT
    assert w.model.commitments.rounds[2].parent == 1


def test_more_than_half_of_the_positions_not_of_the_openers_make_a_generation(world: GroupedWorld) -> None:
    """A3: positions that are silent are no voice for anybody: five of nine."""
    w = world
    summed(w, w.start())
    top = w.top()
    honest = w.some(top, 5)
    last = honest[-1]
    for ticket in honest:
        assert w.seal_at(top, ticket, "root") == ""
    w.tick(TERMS.grace + 1)
    for ticket in honest[:-1]:
        assert w.open_at(top, ticket, "root") == ""
    assert w.round == 0
    w.at(w.model.commitments.merge_until(Round(0)))
    assert w.open_at(top, last, "root") == ""
    assert w.round == 1


def test_a_root_that_is_opened_after_its_time_forks_nothing(world: GroupedWorld) -> None:
    w = world
    summed(w, w.start())
    top = w.top()
    members = list(w.committee(top))
    for ticket in members:
        assert w.seal_at(top, ticket, "root") == ""
    w.at(w.model.commitments.merge_until(Round(0)) + 1)
    assert w.open_at(top, members[0], "root") == "TooLate"
    assert w.restart() == ""
    assert w.open_at(top, members[0], "root") == "TooLate"
    assert statuses(w) == [FINAL, CUT, OPEN]


def test_a_minority_that_commits_merges_no_sums(world: GroupedWorld) -> None:
    w = world
    people = w.start()
    w.commit_some(people[:32])
    w.at(w.model.commitments.rounds[0].mask_at + 1)
    w.at(max(w.now, w.submit_beacon()))
    w.hold_groups()
    node = w.node(0)
    assert w.seal_at(node, next(iter(w.committee(node))), "sum") == "TooFewCommitted"
    assert w.restart() == ""


def test_a_generation_is_final_after_its_parent_and_all_its_sums(world: GroupedWorld) -> None:
    w = world
    people = w.start()
    w.play_round(people)
    w.play_round(people)
    last = w.now
    tops = [list(w.committee(w.top(Round(r)))) for r in range(2)]
    node = w.node(0, Round(0))
    opener = next(iter(w.committee(node)))
    assert w.on_node("finalize", 2, party(tops[1][0])) == "NotFinalizable"
    w.at(w.generations.openings[node, party(opener)].at + TERMS.challenge)
    assert w.on_node("finalize", node, party(opener)) == "TooEarly"
    w.at(last + TERMS.challenge + 1)
    assert w.on_node("finalize", 1, party(tops[0][0])) == "NotFinalizable"  # its sums first
    finalize_sums(w, Round(1))  # a sum waits for no parent
    assert w.on_node("finalize", 2, party(tops[1][0])) == "NotFinalizable"
    finalize_sums(w, Round(0))
    assert w.on_node("finalize", node, party(opener)) == "NotFinalizable"
    assert w.on_node("close", node, party(opener)) == "GenerationOpen"
    assert w.on_node("finalize", 1, party(tops[0][0])) == ""
    assert w.on_node("finalize", 2, party(tops[1][0])) == ""
    assert statuses(w) == [FINAL, FINAL, FINAL, OPEN]
    hanging = w.tickets.tickets[opener].obligations
    assert w.on_node("close", node, party(opener)) == ""
    assert w.on_node("close", node, party(opener)) == "NotStanding"
    assert w.tickets.tickets[opener].obligations == hanging - 1
    assert w.settle(Round(0), Seat(64)) == w.settle(Round(1), Seat(3)) == ""


def test_the_opener_of_a_false_sum_loses_its_ticket_once(world: GroupedWorld) -> None:
    w = world
    people, challenger = w.start(), challenger_of(w)
    w.play_round(people)
    node = w.node(0, Round(0))
    liar = next(iter(w.committee(node)))
    assert w.prepare_node(node) == ""
    stake = w.vault.lock_amount(ticket_lock(liar))
    assert w.call("Generations", "mayChallengeDirectly", w.claim(node, liar), "0x" + people[0].hex())
    games = [w.open_game(challenger, w.claim(node, liar)) for _ in range(2)]
    assert w.on_node("finalize", node, party(liar)) == "TooEarly"
    # What its silence is fined meanwhile waits for the verdict.
    assert w.call("Tickets", "ticketOf", liar)[7] == w.tickets.tickets[liar].disputes == 2
    w.end_game(games[0], True)
    assert w.call("Tickets", "ticketOf", liar)[7] == w.tickets.tickets[liar].disputes == 1
    assert (stake, w.vault.lock_amount(ticket_lock(liar))) == (w.tickets.terms.bond, 0)
    w.tick(TERMS.challenge)
    honest = list(w.committee(node))[1]
    assert w.on_node("finalize", node, party(honest)) == "GamesOpen"
    w.end_game(games[1], True)
    assert w.on_node("finalize", node, party(liar)) == "NotStanding"
    assert w.on_node("finalize", node, party(honest)) == ""
    mine = [(n, p) for n, p in w.generations.openings if p == party(liar) and n != node]
    for other, name in mine:
        assert w.on_node("drop", other, name) == ""  # A6: whatever else it opened stands no longer
    assert w.call("Tickets", "isConvicted", liar)


def test_a_generation_over_a_sum_that_fell_is_cut_with_all_above(world: GroupedWorld) -> None:
    """B12, across a restart: the root of the generation is true over the sum, and the sum is false."""
    w = world
    people, challenger = w.start(), challenger_of(w)
    for _ in range(2):
        w.play_round(people)
    w.at(w.model.commitments.merge_until(Round(2)) + 1)
    assert w.restart() == ""  # nobody committed to round 2
    assert w.model.commitments.rounds[3].parent == 1
    w.play_round(people)
    node = w.node(2, Round(0))
    assert w.on_node("fall", node) == "NotFallen"
    assert w.prepare_node(node) == ""
    convicted: set[TicketId] = set()
    for ticket in w.committee(node):
        w.convict(node, ticket, challenger)
        convicted.add(ticket)
    root = w.lists_of(node, ("sum", node))[2]
    until = w.generations.nodes[node, root].rescue_until
    w.at(until)
    assert w.on_node("fall", node) == "NotFallen"
    w.tick(1)
    assert w.on_node("fall", node) == ""
    assert statuses(w) == [FINAL, CUT, CUT, CUT, CUT, CUT]
    assert w.on_node("fall", node) == "NotFallen"
    assert w.on_node("back", node, root, who=challenger) == "NotBackable"
    assert w.restart() == ""
    assert w.model.commitments.rounds[-1].parent == 0
    assert w.settle(Round(1), Seat(0)) == ""
    honest = next(t for t in w.committee(w.top(Round(0))) if t not in convicted)
    assert w.on_node("close", 1, party(honest)) == "GenerationOpen"
    w.at(w.now + TERMS.challenge)
    assert w.on_node("close", 1, party(honest)) == ""


def test_a_sum_is_rescued_by_a_lock_of_its_own(world: GroupedWorld) -> None:
    w = world
    people, challenger, friend = w.start(), challenger_of(w), challenger_of(w)
    w.play_round(people)
    node = w.node(1, Round(0))
    root = w.lists_of(node, ("sum", node))[2]
    assert w.prepare_node(node) == ""
    assert w.on_node("back", node, root, who=friend) == "NotBackable"
    for ticket in w.committee(node):
        w.convict(node, ticket, challenger)
    w.at(w.generations.nodes[node, root].rescue_until)
    assert w.on_node("back", node, root, who=friend) == ""
    w.tick(1)
    assert w.on_node("back", node, root, who=challenger) == "TooLate"
    assert w.on_node("fall", node) == "NotFallen"
    backer = ids.backer_party(root, friend)
    assert w.vault.lock_amount(ids.back_lock(node, backer)) == TERMS.seat_lock
    game = w.open_game(challenger, w.claim(node, next(iter(w.committee(node))), friend))
    w.end_game(game, False)
    w.tick(TERMS.challenge)
    assert w.on_node("finalize", node, backer) == ""
    assert w.on_node("back", node, root, who=friend) == "NotBackable"


def test_a_sum_that_does_not_count_takes_nothing_with_it(world: GroupedWorld) -> None:
    w = world
    people, challenger = w.start(), challenger_of(w)
    w.commit_some(people)
    w.hold_groups()
    node = w.node(0)
    yes = w.some(node, 3)
    for ticket in w.committee(node):
        assert (w.seal_at(node, ticket, "sum") if ticket in yes else w.abstain_at(node, ticket)) == ""
    w.tick(1)
    for ticket in yes:
        assert w.open_at(node, ticket, "sum") == ""
    w.sum_groups([1, 2, 3, 4])
    w.merge_top("root")
    assert w.generations.counted_groups(Round(0)) == [1, 2, 3, 4]
    assert w.prepare_node(node) == ""
    for ticket in yes:
        w.convict(node, ticket, challenger)
    w.tick(TERMS.rescue + 1)
    assert w.on_node("fall", node) == "NotFallen"
    root = w.lists_of(node, "sum")[2]
    assert w.on_node("back", node, root, who=challenger) == "NotBackable"
    w.tick(TERMS.challenge)
    assert w.on_node("finalize", node, party(yes[0])) == "NotFinalizable"
    finalize_sums(w, Round(0))
    honest = next(t for t in w.committee(1) if not w.tickets.is_convicted(t))
    assert w.on_node("finalize", 1, party(honest)) == ""


def test_only_the_game_and_the_launch_move_these_books(world: GroupedWorld) -> None:
    w = world
    w.start()
    ref = (3, 0, 1, 1, bytes(20), bytes(32))
    assert w.refusal("Generations", "onOpened", ref, "0x" + bytes(20).hex(), who=w.people[0]) == "NotTheGame"
    assert w.refusal("Generations", "onClosed", ref, True, who=w.people[0]) == "NotTheGame"
    assert w.refusal("Generations", "begin", who=w.people[0]) == "NotTheLauncher"
