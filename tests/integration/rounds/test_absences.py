"""Which updates count as absences: those that fewer than a third of the voices hold, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.rounds.terms import Presence
from assay.protocol.types import Address, Round, Seat
from tests.harness.rounds.chain import RoundChain
from tests.harness.rounds.grouped_world import GroupedWorld
from tests.harness.rounds.samples import TERMS, terms_of
from tests.harness.rounds.world import RoundWorld, played_on

FEE = TERMS.seat_fee
PRESENT, UNCOUNTED, UNHELD = Presence.PRESENT, Presence.UNCOUNTED, Presence.UNHELD


@pytest.fixture(scope="module")
def grouped_chain() -> RoundChain:
    return RoundChain(terms_of(seats=66, group_size=33, group_merge=300))


@pytest.fixture
def grouped(grouped_chain: RoundChain) -> Iterator[GroupedWorld]:
    with played_on(grouped_chain, GroupedWorld) as made:
        yield made


def evict(w: RoundWorld, who: Address, by: Address) -> str:
    """By the newest round that is over."""
    last, tenure = Round(w.round - 1), w.tenures[who]
    w.at(max(w.now, w.model.commitments.rounds[last].t0 + TERMS.commit + TERMS.inclusion + 1))
    return w.do(
        lambda: w.model.tenures.evict(by, tenure, last, w.now), "Tenures", "evict", tenure, last, who=by
    )  # fmt: skip


def presence(w: RoundWorld, seat: Seat) -> Presence:
    """In the newest round that is over; the contract's, which `check` compares with the model's."""
    return Presence(w.call("Commitments", "presenceOf", w.round - 1, seat))


def play_round(w: RoundWorld, people: list[Address], spoke: int, held: int) -> None:
    """A round in which the last so many speak, of whom the first so many hold the first seat's update."""
    w.commit_all(people)
    w.tick(1)
    speakers = people[-spoke:]
    for number, who in enumerate(speakers):
        assert w.hold(who, [s for s in range(len(people)) if s or number < held]) == ""
    w.merge(people, w.round)


def test_three_of_eight_deny_weight_and_put_nobody_off(world: RoundWorld) -> None:
    """Attack: deny five honest seats three times, take half of their fees, and their seats in the same second."""
    w = world
    people = w.begin(8)
    liars, honest = people[:3], people[3:]
    for number in range(4):
        w.commit_all(people)
        w.tick(1)
        for who in honest:
            assert w.hold(who) == ""
        for who in liars:
            assert w.hold(who, [w.seat(x) for x in liars]) == ""
        w.merge(people, number)
        assert w.model.commitments.counted_of(Round(number), 0, w.now)[0] == {w.seat(x) for x in liars}
        assert [evict(w, who, liars[0]) for who in honest] == ["NotEvictable"] * 5
    assert presence(w, w.seat(honest[0])) is UNCOUNTED
    assert w.join(w.add_person()) == "NoSeatFree"


@pytest.mark.parametrize(
    ("seats", "spoke", "held", "wanted"),
    [
        (8, 8, 2, UNHELD),
        (8, 8, 3, UNCOUNTED),
        (8, 8, 5, UNCOUNTED),
        (8, 8, 6, PRESENT),
        # Exactly a third: liars that are one keep a hidden update's seat, those that are two thirds put nobody off.
        (6, 6, 1, UNHELD),
        (6, 6, 2, UNCOUNTED),
        (6, 6, 3, UNCOUNTED),
        (6, 6, 4, PRESENT),
        (7, 7, 2, UNHELD),
        (7, 7, 3, UNCOUNTED),
        (7, 7, 4, UNCOUNTED),
        (7, 7, 5, PRESENT),
        # Silence counts for neither.
        (8, 5, 1, UNHELD),
        (8, 5, 2, UNCOUNTED),
        (8, 3, 0, UNHELD),
        (8, 3, 1, UNCOUNTED),
        (3, 3, 0, UNHELD),
        (3, 3, 1, UNCOUNTED),
        (2, 2, 1, UNCOUNTED),
    ],
)
def test_fewer_than_a_third_of_those_that_spoke_is_an_absence(
    world: RoundWorld, seats: int, spoke: int, held: int, wanted: Presence
) -> None:
    w = world
    people = w.begin(seats)
    by = people[-1]
    for number in range(3):
        play_round(w, people, spoke, held)
        is_gone = number == 2 and wanted is UNHELD
        assert evict(w, people[0], by) == ("" if is_gone else "NotEvictable")
        assert presence(w, Seat(0)) is wanted
    assert w.model.tenures.tenures[w.tenures[people[0]]].fee_gone is (wanted is UNHELD)


def test_a_round_in_which_a_third_holds_an_update_ends_a_row_of_absences(world: RoundWorld) -> None:
    w = world
    people = w.begin(8)
    for held, said in ((2, "NotEvictable"), (2, "NotEvictable"), (3, "NotEvictable"), (2, "NotEvictable")):
        play_round(w, people, 8, held)
        assert evict(w, people[0], people[1]) == said
    for said in ("NotEvictable", ""):
        play_round(w, people, 8, 2)
        assert evict(w, people[0], people[1]) == said


def test_a_missed_round_and_updates_in_doubt_are_no_absences_in_a_row(world: RoundWorld) -> None:
    """Attack: wait for an honest seat's first outage, and deny it twice."""
    w = world
    people = w.begin(8)
    w.play_round(people[1:])
    assert evict(w, people[0], people[1]) == "NotEvictable"
    for _ in range(2):
        play_round(w, people, 8, 3)
        assert evict(w, people[0], people[1]) == "NotEvictable"


@pytest.mark.parametrize(("held", "wanted"), [(4, UNHELD), (5, UNCOUNTED), (9, UNCOUNTED), (10, PRESENT)])
def test_a_third_of_a_committees_voices_puts_no_seat_off(grouped: GroupedWorld, held: int, wanted: Presence) -> None:
    """Attack: a third of the tickets, without a seat, puts groups of honest seats off: of 15 positions five are one."""
    w = grouped
    people = w.start(auditors=(24,))
    (auditor,) = set(w.owners.values())
    for number in range(3):
        w.commit_some(people)
        positions = range(w.terms.positions)
        assert w.hold(auditor, None, positions[:held], 0) == ""
        assert w.hold(auditor, range(1, 33), positions[held:], 0) == ""
        assert w.hold(auditor, None, positions, 1) == ""
        w.tick(1)
        w.sum_groups()
        w.merge_top(("root", number))
        is_gone = number == 2 and wanted is UNHELD
        before = w.vault.free_of(auditor)
        assert evict(w, people[0], auditor) == ("" if is_gone else "NotEvictable")
        assert w.vault.free_of(auditor) == before + (FEE // 2 if is_gone else 0)
        assert evict(w, people[1], auditor) == "NotEvictable"
        assert presence(w, Seat(0)) is wanted
