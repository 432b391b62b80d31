"""Partial sums of groups, above 64 seats: who may say what when, and which count before the generation is merged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.terms import RoundTerms
from assay.protocol.rounds.ticket_types import TicketId, ticket_lock
from assay.protocol.types import Round, Wei
from tests.harness.contracts.harness import Reverted
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_world import GroupedWorld
from tests.harness.rounds.samples import TICKET_TERMS, bits, terms_of
from tests.harness.rounds.world import played_on

TERMS = terms_of(seats=66, group_size=16, positions=9, top_positions=11, group_merge=180)
"""Five groups; the last has two seats."""


@pytest.fixture(scope="module")
def chain() -> RoundChain:
    return RoundChain(TERMS)


@pytest.fixture
def world(chain: RoundChain) -> Iterator[GroupedWorld]:
    with played_on(chain, GroupedWorld) as made:
        yield made


def held(w: GroupedWorld) -> None:
    """A round up to where sums are computed."""
    w.commit_some(w.start())
    w.hold_groups()


def test_everybody_merges_and_the_majority_opens_the_next_round_in_its_block(world: GroupedWorld) -> None:
    w = world
    people = w.start()
    w.commit_some(people)
    w.hold_groups()
    w.sum_groups()
    assert w.generations.counted_groups(Round(0)) == [0, 1, 2, 3, 4]
    voices, top = 0, w.top()
    for ticket in (members := w.committee(top)):
        assert w.seal_at(top, ticket, "root") == ""
    w.tick(1)
    for ticket, positions in members.items():
        assert w.round == (0 if voices <= 5 else 1)
        assert w.open_at(top, ticket, "root") == ""
        voices += len(positions)
    state = w.model.commitments.rounds[1]
    assert (voices, state.t0, state.parent, state.base) == (11, w.now, 1, w.root_of("root")[2])


def test_sums_wait_for_the_mask_and_the_generation_for_the_sums(world: GroupedWorld) -> None:
    """A2, E13: which sums count is chain state before any root over them is sealed."""
    w = world
    w.commit_some(w.start())
    first = next(iter(w.committee(w.node(0))))
    assert w.seal_at(w.node(0), first, "sum") == "MaskOpen"
    w.hold_groups()
    leader = next(iter(w.committee(w.top())))
    assert w.seal_at(w.top(), leader, "root") == "GroupsOpen"
    nodes = [w.node(group) for group in w.groups()]
    for node in nodes:
        for ticket in w.committee(node):
            assert w.seal_at(node, ticket, "sum") == ""
    assert w.open_at(nodes[0], first, "sum") == "TooEarly"  # the second in which all had sealed
    w.tick(1)
    for node in nodes:
        for ticket in w.committee(node):
            assert w.open_at(node, ticket, "sum") == ""
    assert w.seal_at(w.top(), leader, "root") == "GroupsOpen"  # the second in which all had spoken
    w.tick(1)
    assert w.seal_at(w.top(), leader, "root") == ""


def test_the_generation_waits_for_a_silent_group_to_its_last_second(world: GroupedWorld) -> None:
    w = world
    held(w)
    w.sum_groups([0, 1, 2, 3])
    leader = next(iter(w.committee(w.top())))
    w.at(w.model.commitments.partial_until(Round(0)))
    assert w.seal_at(w.top(), leader, "root") == "GroupsOpen"
    w.tick(1)
    assert w.seal_at(w.top(), leader, "root") == ""
    assert w.generations.counted_groups(Round(0)) == [0, 1, 2, 3]
    silent = next(iter(w.committee(w.node(4))))
    assert w.seal_at(w.node(4), silent, "sum") == "TooLate"


def test_a_group_closes_when_the_grace_after_its_half_is_over(world: GroupedWorld) -> None:
    w = world
    held(w)
    w.sum_groups([1, 2, 3, 4])
    node = w.node(0)
    early = w.some(node, 5)
    late = [ticket for ticket in w.committee(node) if ticket not in early]
    for ticket in w.committee(node):
        assert w.seal_at(node, ticket, "sum") == ""
    w.tick(1)
    for ticket in early:
        assert w.open_at(node, ticket, "sum") == ""
    closes = w.now + TERMS.grace
    assert w.generations.groups_until(Round(0)) == closes == w.call("Generations", "openUntil", node)
    w.at(closes)
    assert w.open_at(node, late[0], "sum") == ""
    w.tick(1)
    assert w.open_at(node, late[1], "sum") == "TooLate"
    assert w.seal_at(w.top(), next(iter(w.committee(w.top()))), "root") == ""


def test_two_thirds_of_those_who_spoke_make_a_sum_count(world: GroupedWorld) -> None:
    """A1: a captured half completes a sum over what nobody else holds; who cannot compute it speaks against it."""
    w = world
    held(w)
    for group, yes, no in ((0, 6, 3), (1, 5, 4), (2, 5, 0), (3, 6, 0)):
        node = w.node(group)
        members = w.committee(node)
        sealing = w.some(node, yes)
        labels: dict[TicketId, object] = dict.fromkeys(sealing, "sum")
        if no:
            labels |= {ticket: None for ticket in members if ticket not in sealing}
        for ticket, label in labels.items():
            assert (w.abstain_at(node, ticket) if label is None else w.seal_at(node, ticket, label)) == ""
    w.tick(TERMS.grace + 1)
    for group, yes in ((0, 6), (1, 5), (2, 5), (3, 6)):
        for ticket in w.some(w.node(group), yes):
            assert w.open_at(w.node(group), ticket, "sum") == ""
    # Six of nine are two thirds, five of nine are not; five of five are: silence speaks for neither side.
    assert w.generations.counted_groups(Round(0)) == [0, 2, 3]
    assert w.call("Generations", "groupsOf", 0)[0] == bits([0, 2, 3])


def test_a_leading_sum_counts_only_while_it_has_two_thirds(world: GroupedWorld) -> None:
    w = world
    held(w)
    node = w.node(0)
    ours = w.some(node, 6)
    theirs = [ticket for ticket in w.committee(node) if ticket not in ours]
    for ticket in w.committee(node):
        assert w.seal_at(node, ticket, "true" if ticket in ours else "false") == ""
    w.tick(1)
    for ticket in theirs:
        assert w.open_at(node, ticket, "false") == ""
    assert w.generations.counted_groups(Round(0)) == [0]  # three of three
    said = 3
    for ticket in ours:
        assert w.open_at(node, ticket, "true") == ""
        said += len(w.committee(node)[ticket])
        counts = 3 * max(3, said - 3) >= 2 * said
        assert w.generations.counted_groups(Round(0)) == ([0] if counts else [])
    root = w.lists_of(node, "true")[2]
    assert w.generations.votes[node].root == root


def test_no_more_than_half_of_a_committee_makes_no_sum(world: GroupedWorld) -> None:
    """Captured positions whose seals are fast shut nobody out, and alone they open nothing."""
    w = world
    held(w)
    node = w.node(0)
    fast = w.some(node, 4)
    for ticket in fast:
        assert w.seal_at(node, ticket, "false") == ""
    w.at(w.model.commitments.partial_until(Round(0)))
    assert w.open_at(node, fast[0], "false") == "TooEarly"
    others = [ticket for ticket in w.committee(node) if ticket not in fast]
    assert w.seal_at(node, others[0], "true") == ""  # the last second
    w.tick(1)
    assert w.open_at(node, fast[0], "false") == "TooLate"
    assert w.generations.counted_groups(Round(0)) == []


def test_sealing_goes_on_for_the_grace_after_a_fast_half(world: GroupedWorld) -> None:
    w = world
    held(w)
    node = w.node(0)
    fast = w.some(node, 5)
    for ticket in fast:
        assert w.seal_at(node, ticket, "false") == ""
    others = [ticket for ticket in w.committee(node) if ticket not in fast]
    w.tick(TERMS.grace)
    assert w.seal_at(node, others[0], "true") == ""
    w.tick(1)
    assert w.seal_at(node, others[1], "true") == "TooLate"
    assert w.abstain_at(node, others[1]) == "TooLate"
    assert w.open_at(node, fast[0], "false") == ""


def test_a_ticket_speaks_once_for_all_its_positions_and_for_no_other(world: GroupedWorld) -> None:
    w = world
    held(w)
    node = next(w.node(g) for g in w.groups() if any(len(p) > 1 for p in w.committee(w.node(g)).values()))
    members = w.committee(node)
    double = next(ticket for ticket, positions in members.items() if len(positions) > 1)
    other = next(ticket for ticket in members if ticket != double)
    outsider = next(ticket for ticket in w.owners if ticket not in members)
    for ticket, positions in (
        (double, []), (double, members[other]), (double, [*members[double], *members[other]]),
        (double, [*members[double], TERMS.positions]), (outsider, members[double]),
    ):  # fmt: skip
        assert w.seal_at(node, ticket, "sum", positions) == "NotThePosition"
    stranger = next(who for who in w.people if who != w.owners[double])
    assert w.seal_at(node, double, "sum", who=stranger) == "NotThePosition"
    assert w.seal_at(node, TicketId(len(w.owners) + 1), "sum", [0], who=stranger) == "TicketNotFound"
    # Who names one of its two positions has used the other: one root per ticket, as one lock.
    assert w.seal_at(node, double, "sum", members[double][:1]) == ""
    assert w.seal_at(node, double, "another sum", members[double][1:]) == "AlreadySealed"
    assert w.abstain_at(node, double) == "AlreadySealed"
    assert w.generations.votes[node].sealed == 1


def test_a_convicted_ticket_has_no_position_and_a_retired_one_keeps_it(world: GroupedWorld) -> None:
    w = world
    held(w)
    node = w.node(0)
    convicted, sealed, retired = list(w.committee(node))[:3]
    assert w.do(lambda: w.tickets.convict(convicted, w.now), "RoundsBench", "convict", convicted) == ""
    assert w.seal_at(node, convicted, "sum") == "NotThePosition"
    owner = w.owners[retired]
    assert w.do(lambda: w.tickets.retire(owner, retired, w.now), "Tickets", "retire", retired, who=owner) == ""
    for ticket in w.committee(node):
        if ticket != convicted:
            assert w.seal_at(node, ticket, "sum") == ""
    assert w.do(lambda: w.tickets.convict(sealed, w.now), "RoundsBench", "convict", sealed) == ""
    w.tick(TERMS.grace + 1)
    assert w.open_at(node, sealed, "sum") == "NotThePosition"
    assert w.open_at(node, retired, "sum") == ""
    assert w.tickets.tickets[retired].obligations == 1


def test_a_ticket_drained_after_its_seal_opens_nothing(world: GroupedWorld) -> None:
    """Half of what fines take may go to a puppet, and what is left must answer for what is opened."""
    w = world
    held(w)
    node, to = w.node(0), w.add_person()
    for ticket in w.committee(node):
        assert w.seal_at(node, ticket, "sum") == ""
    drained, charged = list(w.committee(node))[:2]
    for ticket, more in ((drained, 1), (charged, 0)):
        fine = Wei(TICKET_TERMS.bond // 10 + more)
        model = lambda ticket=ticket, fine=fine: w.tickets.fine(ticket, fine, to, w.now)  # type: ignore[misc]  # noqa: E731
        assert w.do(model, "RoundsBench", "fine", ticket, fine, "0x" + to.hex()) == ""
    w.tick(1)
    assert w.open_at(node, drained, "sum") == "NotThePosition"
    assert w.open_at(node, charged, "sum") == ""


def test_a_group_of_which_nobody_committed_is_not_waited_for(world: GroupedWorld) -> None:
    w = world
    people = w.start()
    w.commit_some(people[:64])  # the last group has two seats
    w.hold_groups()
    silent = next(iter(w.committee(w.node(4))))
    w.at(w.now + TERMS.hold)
    assert w.seal_at(w.node(4), silent, "sum") == "NobodyCommitted"
    assert w.seal_at(w.node(5), silent, "sum", [0]) == "NobodyCommitted"
    assert w.seal_at(w.node(2**32 - 2), silent, "sum", [0]) == "NobodyCommitted"
    assert w.seal_at(0, silent, "sum", [0]) == "RoundNotOpen"
    assert w.seal_at(w.top(Round(1)), silent, "sum", [0]) == "RoundNotOpen"
    w.sum_groups()
    assert w.seal_at(w.top(), next(iter(w.committee(w.top()))), "root") == ""


def test_x_of_a_sum_and_of_a_generation_is_what_the_chain_counted(world: GroupedWorld) -> None:
    w = world
    people = w.start()
    w.commit_some(people)
    w.hold_groups({0: [0, 2], 1: range(16), 2: range(16), 3: range(16), 4: range(2)})
    node = w.node(0)
    entries = w.group_entries(Round(0), 0)
    assert w.prepare_node(node, [entries[1], entries[0], *entries[2:]]) == "EntriesMismatch"
    assert w.prepare_node(node) == ""
    updates = [e.update if e.seat in (0, 2) else TERMS.zero_update for e in entries]
    assert w.generations.inputs[node] == ids.partial_input(updates)
    assert w.prepare_node(w.top()) == "GroupsOpen"
    w.sum_groups([0, 1, 2, 4])
    w.at(w.model.commitments.partial_until(Round(0)) + 1)
    assert w.prepare_node(w.top()) == ""
    sums = [w.lists_of(w.node(g), ("sum", w.node(g)))[0] if g != 3 else TERMS.zero_partial for g in range(5)]
    expected = ids.weighed_input(TERMS.parameters, TERMS.momentum, sums, [2, 16, 16, 0, 2])
    assert w.generations.inputs[w.top()] == expected
    w.merge_top("root")
    opener = next(iter(w.committee(node)))
    view = w.call("Generations", "claimOf", w.claim(node, opener))
    assert view[2:5] == (ids.partial_input(updates), w.lists_of(node, ("sum", node))[2], TERMS.partial_program)
    kind, round_, seat, group, *rest = w.claim(node, opener)
    # The same node by a round of more than 32 bits would be judged by the program of generations.
    view = w.call("Generations", "claimOf", (kind, group << 32 | round_, seat, 0, *rest))
    assert view[7] == 0, "such a round names no claim"
    leader = next(iter(w.committee(w.top(Round(0)))))
    view = w.call("Generations", "claimOf", w.claim(w.top(Round(0)), leader))
    assert view[2:5] == (expected, w.root_of("root")[2], TERMS.outer_program)
    assert (view[8], view[9]) == (ticket_lock(leader), TICKET_TERMS.bond)


@pytest.mark.parametrize("left", [1, 0])
def test_a_root_stands_with_what_fines_have_left_of_its_ticket(world: GroupedWorld, left: int) -> None:
    w = world
    people = w.start()
    w.play_round(people)
    node = w.node(0, Round(0))
    liar = next(iter(w.committee(node)))
    assert w.prepare_node(node) == ""
    assert w.call("Generations", "claimOf", w.claim(node, liar))[9] == TICKET_TERMS.bond
    # A game would else advance what nobody can pay back, and never end.
    fine, to = Wei(TICKET_TERMS.bond - left), people[0]
    assert w.do(lambda: w.tickets.fine(liar, fine, to, w.now), "RoundsBench", "fine", liar, fine, "0x" + to.hex()) == ""
    view = w.call("Generations", "claimOf", w.claim(node, liar))
    assert (view[8], view[9]) == (ticket_lock(liar), left)


@pytest.mark.parametrize(
    ("name", "terms", "error"),
    [("GroupedGenerations", terms_of(seats=64), "TooFewSeats"), ("Generations", TERMS, "TooManySeats")],
)
def test_each_contract_of_generations_refuses_the_other_ones_seats(
    chain: RoundChain, name: str, terms: RoundTerms, error: str
) -> None:
    with pytest.raises(Reverted, match=error) as refused:
        chain.try_deploy(name, terms)
    assert refused.value.values == (terms.seats,)
