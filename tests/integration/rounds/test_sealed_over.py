"""What is signed is bound to what it is true of: seals name what their root is over, commitments their seat.

A reorganization mines a transaction again as it is, over whatever it left.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.types import Round, Seat
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_world import GroupedWorld
from tests.harness.rounds.samples import bits, mark, terms_of
from tests.harness.rounds.world import RoundWorld, played_on

GROUPED = terms_of(seats=66, group_size=16, positions=9, top_positions=11, group_merge=180)
"""Five groups; the last has two seats."""


@pytest.fixture(scope="module")
def grouped_chain() -> RoundChain:
    return RoundChain(GROUPED)


@pytest.fixture
def grouped(grouped_chain: RoundChain) -> Iterator[GroupedWorld]:
    with played_on(grouped_chain, GroupedWorld) as made:
        yield made


def test_a_root_opens_only_over_what_its_seal_names(world: RoundWorld) -> None:
    """Attack: another mask, other commitments or another base under a seal and an opening that are mined again."""
    w, people = world, world.begin()
    w.commit_all(people)
    w.hold_all(people)
    w.at(w.model.commitments.hold_until(Round(0), 0) + 1)
    acc, base = w.model.commitments.group_of(Round(0), 0).acc, w.model.commitments.rounds[0].base
    everybody = bits(range(len(people)))
    others = [
        ids.over_updates(base, everybody & ~1, acc),
        ids.over_updates(base, everybody, mark("other commitments")),
        ids.over_updates(mark("another base"), everybody, acc),
    ]
    for who, over in zip(people, (*others, *[None] * 5), strict=True):
        assert w.seal(who, "root", over=over) == ""
    w.tick(1)
    said = [w.open(who, "root", Round(0)) for who in people]
    assert said == [*["SealMismatch"] * 3, *[""] * 5] and w.round == 1


def test_a_sum_and_a_generation_open_only_over_what_their_seals_name(grouped: GroupedWorld) -> None:
    w = grouped
    w.commit_some(w.start())
    w.hold_groups({group: range(16) if group else range(15) for group in range(5)} | {4: range(2)})
    first = w.node(0)
    acc, base = w.model.commitments.group_of(Round(0), 0).acc, w.model.commitments.rounds[0].base
    assert w.over_of(first) == ids.over_updates(base, bits(range(15)), acc)
    misled, *members = w.committee(first)
    assert w.seal_at(first, misled, "sum", over=ids.over_updates(base, bits(range(16)), acc)) == ""
    assert [w.seal_at(first, ticket, "sum") for ticket in members] == [""] * len(members)
    w.tick(1)
    assert w.open_at(first, misled, "sum") == "SealMismatch"
    assert [w.open_at(first, ticket, "sum") for ticket in members] == [""] * len(members)
    w.sum_groups([1, 2, 3])  # the last group is silent
    w.at(w.generations.groups_until(Round(0)) + 1)
    top, roots = w.top(), {g: w.generations.votes[w.node(g)].root or mark("none") for g in range(4)}
    sums = [(g, roots[g], 16 if g else 15) for g in w.generations.counted_groups(Round(0))]
    assert [g for g, _, _ in sums][-3:] == [1, 2, 3] and w.over_of(top) == ids.over_sums(base, sums)
    *fewer, (g, root, weight) = sums
    others = [
        ids.over_sums(base, fewer),
        ids.over_sums(base, [*fewer, (g + 1, root, weight)]),
        ids.over_sums(base, [*fewer, (g, mark("another sum"), weight)]),
        ids.over_sums(base, [*fewer, (g, root, weight - 1)]),
        ids.over_sums(mark("another base"), sums),
    ]
    tickets = list(w.committee(top))
    for n, ticket in enumerate(tickets):
        assert w.seal_at(top, ticket, "root", over=others[n] if n < len(others) else None) == ""
    w.tick(1)
    said = [w.open_at(top, ticket, "root") for ticket in tickets]
    assert said == [*["SealMismatch"] * len(others), *[""] * (len(tickets) - len(others))] and len(tickets) > 5


def test_a_commitment_names_the_seat_that_its_work_was_done_for(world: RoundWorld) -> None:
    """Attack: two leave in another order, so that who joined sits elsewhere, and its work starts from other scalars."""
    w, people, late = world, world.begin(), world.add_person()
    seats = {w.seat(people[3]), w.seat(people[4])}
    for who in people[3:5]:
        leave = partial(w.model.tenures.leave, who, w.tenures[who])
        assert w.do(leave, "Tenures", "leave", w.tenures[who], who=who) == ""
    assert w.join(late) == ""
    w.play_round(people)
    assert {w.seat(late)} < seats
    (other,) = seats - {w.seat(late)}
    assert w.commit(late, seat=other) == "SeatMismatch"
    assert w.commit(late, seat=Seat(99)) == "SeatMismatch"
    assert w.commit(late) == "" and w.model.commitments.works[Round(1), w.seat(late)].tenure == w.tenures[late]
