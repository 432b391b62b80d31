"""Seats that were held for a moment, and in which nobody ever worked: contracts and model."""

from __future__ import annotations

from assay.protocol.types import Address
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.samples import ETHER, TERMS
from tests.harness.rounds.world import RoundWorld
from tests.integration.rounds.test_tenures import evict, leave, work_once

S, FEE = TERMS.seat_lock, TERMS.seat_fee


def idle_until(w: RoundWorld, round_: int) -> int:
    """The last second in which a lock stays whose holder left in a round and never worked."""
    t0 = w.model.commitments.rounds[round_].t0
    return t0 + w.terms.commit + w.terms.inclusion + w.terms.longest_dispute


def abandoned(w: RoundWorld) -> tuple[list[Address], list[Address]]:
    """Three that work, and four that took seats for round 1, left in it, and had it given up."""
    people, brief = w.begin(3), [w.add_person(S + 2 * FEE) for _ in range(4)]
    w.commit_all(people)
    assert [w.join(who) for who in brief] == [""] * 4
    w.hold_all(people)
    w.merge(people, "cut")
    assert [leave(w, who) for who in brief] == [""] * 4
    w.commit_all(people)
    w.at(w.model.commitments.rounds[1].t0 + TERMS.commit + TERMS.inclusion + 1)
    assert w.restart() == "" and w.model.generations.newest() == 0, "it cut what was merged"
    return people, brief


def test_seats_that_nobody_worked_in_cut_no_second_generation(world: RoundWorld) -> None:
    """Attack: take the free seats just before a round opens, leave in it, and do it again with the same stakes."""
    w = world
    people, brief = abandoned(w)
    assert [w.release(who) for who in brief] == ["TenureLasts"] * 4
    w.commit_all(people)
    assert [w.join(who) for who in brief] == ["InsufficientFree"] * 4
    w.hold_all(people)
    w.merge(people, "stays")
    w.commit_all(people)
    w.at(w.model.commitments.rounds[3].t0 + TERMS.commit + TERMS.inclusion + 1)
    assert w.restart() == "RoundAlive" and w.model.generations.newest() == 3


def test_a_lock_that_nobody_worked_behind_stays_as_long_as_a_game_can(world: RoundWorld) -> None:
    w = world
    _, brief = abandoned(w)
    w.at(idle_until(w, 1))
    assert [w.release(who) for who in brief] == ["TenureLasts"] * 4
    w.tick(1)
    burned = w.vault.burned
    assert [w.release(who) for who in brief] == [""] * 4
    # The round was the first of an outage, and is waived for others.
    assert w.vault.burned == burned + 4 * FEE
    assert [w.vault.free_of(who) for who in brief] == [S + FEE] * 4
    w.check()


def test_who_was_evicted_and_never_worked_waits_for_its_lock(world: RoundWorld) -> None:
    w = world
    gone, *rest = w.begin(8)
    for _ in range(2):
        w.play_round(rest)
    w.at(w.model.commitments.rounds[1].t0 + TERMS.commit + TERMS.inclusion + 1)
    assert evict(w, gone, rest[0], 1) == ""
    w.at(idle_until(w, 2))
    assert w.release(gone) == "TenureLasts"
    w.tick(1)
    assert w.release(gone) == ""
    assert w.vault.free_of(gone) == 1000 * ETHER - FEE


def test_who_worked_once_leaves_in_the_first_round_of_an_outage_for_nothing(world: RoundWorld) -> None:
    w = world
    who, *rest = w.begin(8)
    work_once(w, who, rest)
    assert leave(w, who) == ""
    until = w.model.commitments.rounds[1].t0 + TERMS.commit + TERMS.inclusion
    w.at(until)
    assert w.release(who) == "TenureLasts"
    w.tick(1)
    assert w.release(who) == ""
    assert w.vault.free_of(who) == 1000 * ETHER


def test_a_stop_frees_the_lock_of_a_seat_that_nobody_worked_in() -> None:
    w = MoneyWorld()
    who, *_ = w.start(solvers=3)
    free = w.vault.free_of(who)
    w.at(w.now + 2 * w.charter.timing.stall)  # as long as rounds hold off a wind-down
    assert w.restart() == "" and w.round == 1
    assert leave(w, who) == ""
    w.tick(1)
    assert w.release(who) == "TenureLasts"
    assert w.wind_down() == "" and w.release(who) == ""
    e = w.charter.economics
    assert w.vault.free_of(who) == free + e.seat_lock + e.seat_fee
    w.check_money()
    w.end()
