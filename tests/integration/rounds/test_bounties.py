"""Pots of convictions: who enters, who is too late, and what each gets, on model and contracts."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Round, Seat
from tests.harness.rounds.money_scenes import leave, with_work_prepared
from tests.harness.rounds.money_world import MoneyWorld


@pytest.fixture
def world() -> Iterator[MoneyWorld]:
    """Round 0 has taken its commitments; all work was prepared for games."""
    made = MoneyWorld(label=3)
    with with_work_prepared(made):
        yield made


def everybody(world: MoneyWorld) -> list[Digest]:
    """All tickets that are drawn in one epoch accuse all work of round 0: those of one tenure, at least two."""
    lies = {Seat(seat) for seat in range(4)}
    books = world.run.duties.attestations
    while not books.accusations:
        assert world.epoch < 4
        world.play_epoch(dict.fromkeys(world.chains, lies))
    tenures = [made.accused for made in books.accusations.values()]
    most = max(tenures, key=tenures.count)
    found = [name for name, made in books.accusations.items() if made.accused == most]
    assert len(found) >= 2
    return found


def convict(world: MoneyWorld, accusation: Digest) -> tuple[int, Address]:
    """The accuser's game is opened and won; the tenure."""
    made = world.run.duties.attestations.accusations[accusation]
    who = world.run.tickets.tickets[made.ticket].owner
    seat = world.model.tenures.tenures[made.accused].seat
    ref = (int(ClaimKind.INTERVAL), 0, seat, 0, bytes(20), accusation)
    assert world.open_verdict(ref, who) == ""
    world.tick(1)
    world.end_verdict(ref, True, True, who)
    return made.accused, who


def late(world: MoneyWorld, accusation: Digest) -> int:
    """An epoch that began after the conviction, at the last second before its pot can be closed."""
    made = world.run.duties.attestations.accusations[accusation]
    convicted_at = world.model.tenures.tenures[made.accused].convicted_at
    while world.run.duties.epochs[-1].start <= convicted_at:
        world.play_epoch()
    first = world.epoch
    while not world.run.duties.over_since(first + 2):
        assert world.close_pot(accusation, first) == "PotOpen"
        world.play_epoch()
    world.at(max(world.now, world.run.duties.over_since(first + 2) + world.run.bounties.time))
    return first


def test_drawn_accusers_of_one_epoch_share_a_pot_to_the_wei(world: MoneyWorld) -> None:
    accusations = everybody(world)
    tenure, _ = convict(world, accusations[0])
    lock = ids.tenure_lock(tenure)
    pot = world.run.bounties.left(lock)
    assert pot == world.charter.economics.seat_lock * 97 // 100
    assert world.enter(accusations[1]) == "NotRight"
    for accusation in accusations[1:]:
        assert world.lapse(accusation) == ""
    assert world.enter(accusations[0]) == "AttestationOpen"
    epoch = late(world, accusations[0])
    assert world.close_pot(accusations[0], epoch) == "PotOpen"
    for accusation in accusations:
        assert world.enter(accusation) == ""
    assert world.enter(accusations[0]) == "AlreadyEntered"
    assert world.take(accusations[0]) == "PotOpen"
    world.tick(1)
    assert world.close_pot(accusations[0], epoch) == ""
    assert world.enter(accusations[0]) == "PotClosed"
    paid = 0
    for accusation in accusations:
        who = world.run.tickets.tickets[world.run.duties.attestations.accusations[accusation].ticket].owner
        before = world.vault.free_of(who)
        assert world.take(accusation) == ""
        assert world.take(accusation) == "NoPart"
        paid += world.vault.free_of(who) - before
    assert paid == pot
    assert world.run.bounties.left(lock) == 0


def test_a_part_is_paid_to_an_accuser_whose_ticket_has_left_since(world: MoneyWorld) -> None:
    accusations = everybody(world)
    tenure, who = convict(world, accusations[0])
    for accusation in accusations[1:]:
        assert world.lapse(accusation) == ""
    epoch = late(world, accusations[0])
    books = world.run.duties.attestations
    ticket = books.accusations[accusations[0]].ticket
    # Nothing of the ticket can be refuted any more; the pot is open for a dispute and an epoch yet.
    assert leave(world, ticket) == who and ticket not in world.run.tickets.tickets
    assert world.enter(accusations[0]) == ""
    world.at(max(world.now, world.run.duties.over_since(epoch + 2) + world.run.bounties.time + 1))
    assert world.close_pot(accusations[0], epoch) == ""
    before, pot = world.vault.free_of(who), world.run.bounties.left(ids.tenure_lock(tenure))
    assert world.take(accusations[0]) == ""
    assert world.vault.free_of(who) - before == pot > 0


def test_a_pot_that_nobody_enters_burns(world: MoneyWorld) -> None:
    (accusation, *_) = everybody(world)
    convict(world, accusation)
    epoch = late(world, accusation)
    world.tick(1)
    burned = world.vault.burned
    tenure = world.run.duties.attestations.accusations[accusation].accused
    pot = world.run.bounties.left(ids.tenure_lock(tenure))
    assert world.close_pot(accusation, epoch) == ""
    assert world.vault.burned - burned == pot > 0
    assert world.enter(accusation) == "PotClosed"


def test_who_is_convicted_after_it_entered_gets_nothing(world: MoneyWorld) -> None:
    (accusation, *_) = everybody(world)
    convict(world, accusation)
    epoch = late(world, accusation)
    assert world.enter(accusation) == ""
    made = world.run.duties.attestations.accusations[accusation]
    # It is convicted of another wrong: two epochs in a row it shows no secret.
    first, second = (world.play_epoch(silent=made.ticket) for _ in range(2))
    said = world.do(
        lambda: world.run.duties.forfeit(made.ticket, first, second, world.now),
        "Duties", "forfeit", made.ticket, first, second,
    )  # fmt: skip
    assert said == ""
    world.tick(1)
    assert world.close_pot(accusation, epoch) == ""
    burned = world.vault.burned
    pot = world.run.bounties.left(ids.tenure_lock(made.accused))
    assert world.take(accusation) == ""
    assert world.vault.burned - burned == pot > 0


def test_an_accusation_that_lapsed_owns_no_bounty_of_a_later_lie(world: MoneyWorld) -> None:
    (accusation, *_) = everybody(world)
    made = world.run.duties.attestations.accusations[accusation]
    while world.epoch <= made.epoch + 1:
        world.play_epoch()
    for name in list(world.run.duties.attestations.accusations):
        assert world.lapse(name) == ""
    assert made.status is AccusationStatus.LAPSED
    nobody = world.people[-1]
    ref = (int(ClaimKind.INTERVAL), 0, world.model.tenures.tenures[made.accused].seat, 0, bytes(20), ZERO)
    assert world.open_verdict(ref, nobody) == ""
    world.tick(1)
    world.end_verdict(ref, True, True, nobody)
    assert world.enter(accusation) == "NotRight"


def test_an_accusation_kept_in_its_game_owns_the_pot_of_a_later_lie() -> None:
    """What a puppet's accusation insures, and the price of stakes must therefore cover (`stake_if_insured`)."""
    world = MoneyWorld(label=3)
    people = world.start(tickets=8)
    world.play_round(people)
    for seat in range(len(people)):
        world.prepare_work(Round(0), Seat(seat))
    puppet, books = next(iter(world.chains)), world.run.duties.attestations
    while not books.accusations:
        assert world.epoch < 8
        world.play_epoch({puppet: {Seat(seat) for seat in range(4)}})
    first, made = next(iter(books.accusations.items()))
    seat = world.model.tenures.tenures[made.accused].seat
    kept = (int(ClaimKind.INTERVAL), 0, seat, 0, bytes(20), first)
    assert world.open_verdict(kept, world.run.tickets.tickets[made.ticket].owner) == ""
    assert world.restart() == ""
    r = world.round
    world.commit_all(people)
    world.prepare_work(r, seat)
    others = {ticket: {seat} for ticket in world.chains if ticket != puppet}
    digest = world.model.commitments.works[r, seat].digest
    while not (later := [name for name, a in books.accusations.items() if a.against == digest]):
        assert world.epoch < 12
        world.play_epoch(others)
    honest = books.accusations[later[0]]
    assert honest.accused == made.accused
    who = world.run.tickets.tickets[honest.ticket].owner
    ref = (int(ClaimKind.INTERVAL), r, seat, 0, bytes(20), later[0])
    assert world.open_verdict(ref, who) == ""
    world.tick(1)
    world.end_verdict(ref, True, True, who)
    # Its accomplice has nothing more to lose, and lets it win.
    world.end_verdict(kept, True, True, who)
    assert made.status is AccusationStatus.UPHELD
    while not (books.window_of(made.by) and books.window_of(honest.by)):
        world.play_epoch()
    assert world.enter(first) == ""
    assert world.enter(later[0]) == "LaterAccusation"
    world.check_money()
    world.end()


def test_only_the_game_fills_a_pot(world: MoneyWorld) -> None:
    assert world.refusal("Bounties", "onBounty", ZERO, 1, who=world.people[0]) == "NotTheGame"
    assert world.refusal("Bounties", "enter", ZERO, who=world.people[0]) == "PotClosed"


def test_nothing_of_an_accused_seat_is_paid_and_a_conviction_voids_its_work(world: MoneyWorld) -> None:
    accusations = everybody(world)
    made = world.run.duties.attestations.accusations[accusations[0]]
    seat = world.model.tenures.tenures[made.accused].seat
    assert world.settle_work(0, seat, world.own_epoch(0)) == "StillDisputed"
    tenure, _ = convict(world, accusations[0])
    for name in accusations[1:]:
        assert world.lapse(name) == ""
    holder = world.model.tenures.tenures[tenure].holder
    before = world.vault.free_of(holder)
    assert world.settle_work(0, seat, world.own_epoch(0)) == ""
    assert world.vault.free_of(holder) == before
