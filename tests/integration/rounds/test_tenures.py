"""Seats, evictions and the one lock, on the contracts and their model at once."""

from __future__ import annotations

import pytest

from assay.protocol.rounds import ids as ids
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Round, Seat
from tests.harness.rounds.samples import ETHER, TERMS, work_of, work_ref
from tests.harness.rounds.world import RoundWorld

S, FEE = TERMS.seat_lock, TERMS.seat_fee


def absent_round(w: RoundWorld, present: list[Address]) -> None:
    """A round in which only some take part, to its end, and the next one open."""
    w.play_round(present)


def work_once(w: RoundWorld, who: Address, rest: list[Address]) -> None:
    """A round to which all commit, and which the rest merge; the work of one is settled, so that nothing holds it."""
    r = w.round
    w.commit_all([who, *rest])
    w.hold_all([who, *rest])
    w.at(w.model.commitments.hold_until(r, 0) + 1)
    assert w.abstain(who) == ""
    w.merge(rest, ("root", r))
    assert w.settle(r, w.seat(who)) == ""


def evict(w: RoundWorld, who: Address, by: Address, round_: int) -> str:
    tenure = w.tenures[who]
    return w.do(
        lambda: w.model.tenures.evict(by, tenure, Round(round_), w.now),
        "Tenures", "evict", tenure, round_, who=by,
    )  # fmt: skip


def leave(w: RoundWorld, who: Address, tenure: int | None = None) -> str:
    number = w.tenures[who] if tenure is None else tenure
    return w.do(lambda: w.model.tenures.leave(who, number), "Tenures", "leave", number, who=who)


def past_commits(w: RoundWorld, round_: int | None = None) -> None:
    """Nothing of a round, the one before, can change any more."""
    r = w.round - 1 if round_ is None else round_
    w.at(max(w.now, w.model.commitments.rounds[r].t0 + TERMS.commit + TERMS.inclusion + 1))


def test_a_seat_counts_from_the_next_round_and_is_handed_on(world: RoundWorld) -> None:
    w = world
    people = w.begin(8)
    late = w.add_person()
    assert w.join(late) == "NoSeatFree"
    assert leave(w, people[3]) == ""
    assert leave(w, people[3]) == "TenureOver"
    assert w.join(late) == ""
    assert w.seat(late) == w.seat(people[3]) == 3
    assert w.commit(late) == "NotInTenure"
    assert w.commit(people[3]) == ""  # the round under way is still its own
    assert w.call("Tenures", "seatedAt", 0) == w.call("Tenures", "seatedAt", 1) == 8
    w.commit_all([who for who in people if who != people[3]])
    w.hold_all(people)
    w.merge(people, "one")
    assert w.commit(people[3]) == "NotInTenure"
    assert w.commit(late) == ""


def test_a_seat_cannot_be_taken_without_its_whole_price(world: RoundWorld) -> None:
    w = world
    poor, enough = w.add_person(S + FEE - 1), w.add_person(S + FEE)
    assert w.join(poor) == "InsufficientFree"
    assert w.join(enough) == ""
    assert w.vault.free_of(enough) == 0
    w.at(TERMS.expiry + 1)
    assert w.join(poor) == "NoRoundsLeft"


def test_nobody_leaves_or_commits_for_another(world: RoundWorld) -> None:
    w = world
    people = w.begin(2)
    assert leave(w, people[0], w.tenures[people[1]]) == "NotTheHolder"
    assert leave(w, people[0], 77) == "TenureNotFound"
    w.tenures[people[0]] = w.tenures[people[1]]
    assert w.commit(people[0]) == "NotTheHolder"


def test_two_absences_in_a_row_cost_the_seat_and_half_of_the_fee_burns(world: RoundWorld) -> None:
    w = world
    people = w.begin(8)
    gone, by, rest = people[5], people[0], [who for who in people if who != people[5]]
    absent_round(w, rest)
    past_commits(w)
    assert evict(w, gone, by, 0) == "NotEvictable"  # once is not enough
    absent_round(w, rest)
    assert evict(w, gone, by, 1) == "NotEvictable"  # it can still commit to round 1
    w.at(w.model.commitments.rounds[1].t0 + TERMS.commit + TERMS.inclusion)
    assert evict(w, gone, by, 1) == "NotEvictable"
    w.tick(1)
    before, burned = w.vault.free_of(by), w.vault.burned
    assert evict(w, gone, by, 1) == ""
    assert w.vault.free_of(by) == before + FEE // 2
    assert w.vault.burned == burned + FEE - FEE // 2
    assert evict(w, gone, by, 1) == "TenureOver"
    w.tick(TERMS.commit + TERMS.inclusion + TERMS.longest_dispute)  # it never worked
    assert w.release(gone) == ""
    assert w.vault.free_of(gone) == 1000 * ETHER - FEE


def test_who_took_its_lock_back_commits_to_nothing(world: RoundWorld) -> None:
    """Attack: stay away twice, evict oneself for half of the fee, take the lock back, and poison the next round."""
    w = world
    gone, *rest = w.begin(8)
    work_once(w, gone, rest)
    absent_round(w, rest)
    absent_round(w, rest)
    past_commits(w)
    assert w.round == 3 and evict(w, gone, gone, 2) == ""
    assert w.release(gone) == ""
    assert w.commit(gone) == "NotInTenure"
    assert not w.model.commitments.group_of(w.round, 0).committed


def test_who_is_evicted_commits_to_the_round_under_way_and_is_bound_by_it(world: RoundWorld) -> None:
    w = world
    gone, *rest = w.begin(8)
    absent_round(w, rest)
    absent_round(w, rest)
    past_commits(w)
    assert evict(w, gone, rest[0], 1) == ""
    assert w.commit(gone) == ""
    assert w.release(gone) == "TenureObliged"


def test_who_came_back_or_is_there_again_is_not_put_off(world: RoundWorld) -> None:
    w = world
    people = w.begin(8)
    gone, rest = people[5], [who for who in people if who != people[5]]
    absent_round(w, rest)
    absent_round(w, rest)
    past_commits(w)
    assert w.commit(gone) == ""
    assert evict(w, gone, people[0], 1) == "NotEvictable"


def test_the_first_round_of_an_outage_is_waived_and_three_are_not(world: RoundWorld) -> None:
    """E10, B13: an outage costs nobody its seat at once, and a staged one does not last."""
    w = world
    people = w.begin(8)
    for number in range(2):
        w.at(w.model.commitments.rounds[w.round].t0 + TERMS.commit + TERMS.inclusion)
        assert w.commit(people[0]) == ""
        assert w.restart() == "RoundAlive"
        w.tick(1)
        assert evict(w, people[1], people[0], number) == "NotEvictable"
        w.tick(TERMS.hold)
        assert evict(w, people[1], people[0], number) == "NotEvictable"
        assert w.restart() == ""
    w.at(w.model.commitments.rounds[2].t0 + TERMS.commit + TERMS.inclusion + 1)
    assert evict(w, people[1], people[0], 2) == ""


def test_two_rounds_of_others_after_an_outage_cost_the_seat(world: RoundWorld) -> None:
    w = world
    people = w.begin(8)
    rest = people[1:]
    w.at(w.model.commitments.rounds[0].t0 + TERMS.commit + TERMS.inclusion + 1)
    assert w.restart() == ""  # nobody committed: waived
    absent_round(w, rest)
    past_commits(w)
    assert evict(w, people[0], people[1], 1) == "NotEvictable"
    absent_round(w, rest)
    past_commits(w)
    assert evict(w, people[0], people[1], 2) == ""


def test_the_second_round_of_an_outage_is_not_waived(world: RoundWorld) -> None:
    w = world
    people = w.begin(8)
    for present in (people[0], people[1]):
        w.at(w.model.commitments.rounds[w.round].t0 + TERMS.commit + TERMS.inclusion)
        assert w.commit(present) == ""
        w.tick(1)
        assert w.restart() == ""
    absent_round(w, people[1:])
    past_commits(w)
    assert evict(w, people[0], people[1], 2) == ""


def test_updates_nobody_holds_cost_the_seat_after_three_rounds(world: RoundWorld) -> None:
    """E11, A1: unpublished work is an absence, but a hostile third cannot put an honest seat off in two rounds."""
    w = world
    people = w.begin(8)
    hidden = people[7]
    for number in range(3):
        w.commit_all(people)
        w.tick(1)
        seat = w.seat(hidden)
        for who in people:
            assert w.hold(who, [s for s in range(8) if s != seat]) == ""
        w.merge(people, number)
        past_commits(w)
        assert evict(w, hidden, people[0], number) == ("" if number == 2 else "NotEvictable")


def test_leaving_after_an_absence_costs_the_fee(world: RoundWorld) -> None:
    """Else who stays away leaves before its eviction, and joins again for nothing."""
    w = world
    people = w.begin(8)
    work_once(w, people[0], people[1:])
    assert leave(w, people[0]) == ""
    assert leave(w, people[1]) == ""
    assert w.release(people[2]) == "TenureLasts"
    assert w.release(people[0]) == "TenureLasts"  # its last round takes commitments
    w.commit_all(people[1:])
    past_commits(w, 1)
    burned = w.vault.burned
    assert w.release(people[0]) == ""
    assert w.vault.burned == burned + FEE
    assert w.release(people[0]) == "AlreadyReleased"
    assert w.release(people[1]) == "TenureObliged"


def test_a_tenure_that_never_counted_costs_nothing(world: RoundWorld) -> None:
    w = world
    w.begin(3)
    brief = w.add_person()
    assert w.join(brief) == leave(w, brief) == w.release(brief) == ""
    assert w.vault.free_of(brief) == 1000 * ETHER


def test_seats_left_before_their_first_round_have_one_holder_a_round(world: RoundWorld) -> None:
    """Joining and leaving within a round moves one seat from hand to hand, and counts one seat at its end."""
    w = world
    people = w.begin(6)
    brief, last = w.add_person(), w.add_person()
    left: list[int] = []
    for _ in range(3):
        assert w.join(brief) == ""
        left.append(w.tenures[brief])
        assert w.seat(brief) == 6
        assert leave(w, brief) == ""
    assert w.join(last) == w.join(brief) == ""
    assert (w.seat(last), w.seat(brief)) == (6, 7)
    assert leave(w, people[2]) == ""
    assert w.join(people[2]) == ""  # its own seat, from the next round on, behind a second lock
    assert [w.call("Tenures", "seatedAt", r) for r in (0, 1, 2)] == [6, 8, 8]
    assert w.call("Tenures", "tenuresOf", "0x" + brief.hex()) == 1
    now = dict(w.tenures)
    w.check()
    for number in left:  # empty: of no round at all
        w.tenures[brief] = number
        assert w.commit(brief) == "NotInTenure"
    w.tenures |= now | {people[2]: 3}
    w.commit_all(people)
    w.hold_all(people)
    w.merge(people, "root")
    assert w.model.commitments.rounds[1].seated == 8
    for number in left:
        w.tenures[brief] = number
        assert w.commit(brief) == "NotInTenure"
        assert w.release(brief) == ""
    assert w.commit(people[2]) == "NotInTenure"
    w.tenures |= now
    for who in w.people:
        assert w.commit(who) == ""


def test_seats_joined_and_left_before_the_run_begins_count_nothing(world: RoundWorld) -> None:
    w = world
    brief = w.add_person()
    for _ in range(2):
        assert w.join(brief) == leave(w, brief) == ""
    assert w.do(lambda: w.model.generations.begin(w.now), "RoundsBench", "begin") == "Paused"
    people = w.begin(1)
    assert (w.seat(people[0]), w.call("Tenures", "seatedAt", 0)) == (0, 1)


def test_one_seat_that_stays_away_is_put_off_after_three_rounds(world: RoundWorld) -> None:
    """Its first absence is waived as an outage, since it is most of the seats."""
    w = world
    (alone,) = w.begin(1)
    by = w.add_person()
    for number in range(3):
        past_commits(w, w.round)
        assert evict(w, alone, by, number) == ("" if number == 2 else "NotEvictable")
        assert w.restart() == ""
    # The last round is given up, and no other opens: nobody holds a seat.
    assert w.round == 2
    assert w.restart() == "Paused"


def test_one_conviction_takes_lock_seat_and_all_unsettled_work(world: RoundWorld) -> None:
    w = world
    people = w.begin(8)
    liar, challenger = people[2], w.add_person()
    for _ in range(2):
        w.play_round(people)
    seat, tenure = w.seat(liar), w.tenures[liar]
    work = work_of((liar, 0))
    kind = ClaimKind.INTERVAL
    assert w.prepare(kind, Round(0), seat, work) == ""
    game = w.open_game(challenger, work_ref(kind, Round(0), seat))
    assert w.settle(Round(1), seat) == "ParentOpen"
    assert w.settle(Round(0), seat) == "StillDisputed"
    w.end_game(game, True)
    assert w.vault.lock_amount(ids.tenure_lock(tenure)) == 0
    assert w.call("Commitments", "claimOf", work_ref(kind, Round(0), seat))[10] is True  # nobody plays for it again
    assert w.commit(liar) == "NotInTenure"
    assert w.settle(Round(0), seat) == w.settle(Round(1), seat) == ""
    assert w.settle(Round(0), seat) == "AlreadySettled"
    assert w.call("Commitments", "workOf", 1, seat)[-1] is True
    assert w.release(liar) == "TenureObliged"  # its openings


@pytest.mark.parametrize("accused", [False, True])
def test_nothing_settles_or_leaves_while_an_accusation_is_open(world: RoundWorld, accused: bool) -> None:
    """E5: further lies are free if the rounds beside a stalled game are paid."""
    w = world
    people = w.begin(8)
    w.play_round(people)
    if accused:
        w.by_duties("accuse", w.tenures[people[0]])
    assert w.settle(Round(0), w.seat(people[0])) == ("StillDisputed" if accused else "")
    if accused:
        w.by_duties("unaccuse", w.tenures[people[0]])
        assert w.settle(Round(0), w.seat(people[0])) == ""


def test_work_of_a_suspended_tenure_has_no_weight_until_its_last_verdict(world: RoundWorld) -> None:
    """A puppet's accusation brings the lock back: whoever is accused poisons nothing for as long as its game lasts."""
    w = world
    people = w.begin(8)
    tenure = w.tenures[people[0]]
    w.by_duties("suspend", tenure)
    weighed = []
    for number in range(12):
        if number == 3:
            w.by_duties("suspend", tenure)
        if number in (9, 10):
            w.by_duties("resume", tenure)
        w.commit_all(people)
        weighed.append(0 in w.model.commitments.group_of(Round(number), 0).maskable)
        present = people if weighed[-1] else people[1:]
        w.hold_all(present)
        w.merge(present, number)
    assert weighed == [*[False] * 10, *[True] * 2]


def test_who_is_suspended_weighs_again_with_another_lock(world: RoundWorld) -> None:
    """An accuser that is wrong, or stalls, keeps nobody out who can lock S once more."""
    w = world
    people = w.begin(8)
    first = w.tenures[people[0]]
    w.by_duties("suspend", first)
    w.commit_all(people)
    assert leave(w, people[0]) == w.join(people[0]) == ""
    assert w.tenures[people[0]] != first and w.seat(people[0]) == 0
    w.hold_all(people[1:])
    w.merge(people[1:], "one")
    w.commit_all(people)
    assert 0 in w.model.commitments.group_of(Round(1), 0).maskable
    assert w.vault.free_of(people[0]) == 1000 * ETHER - 2 * (S + FEE)
    w.by_duties("resume", first)
    past_commits(w, 0)
    assert w.settle(Round(0), Seat(0)) == ""
    number = first
    assert w.do(lambda: w.model.tenures.release(number, w.now), "Tenures", "release", number) == ""
    assert w.vault.free_of(people[0]) == 1000 * ETHER - S - FEE
