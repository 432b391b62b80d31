"""Pots of a run that was wound down, and of epochs that fine nobody: who enters, and when they close."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.rounds import ids as ids
from assay.protocol.rounds.duty_types import AccusationStatus
from assay.protocol.rounds.epochs import last_drawn
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Round, Seat
from tests.harness.rounds.money_scenes import with_work_prepared
from tests.harness.rounds.money_world import MoneyWorld
from tests.integration.rounds.test_bounties import convict, everybody

LABEL = 4
"""At which two accuse one tenure in the last epoch before the stop."""


@pytest.fixture
def world() -> Iterator[MoneyWorld]:
    """Round 0 has taken its commitments; all work was prepared for games. No generation becomes final."""
    made = MoneyWorld(label=LABEL)
    with with_work_prepared(made):
        yield made


def accused_before_the_stop(world: MoneyWorld) -> list[Digest]:
    """All that is drawn accuses in the last epoch before the run can be wound down: accusations of one tenure."""
    stops = world.run.escrow.launched_at + world.charter.timing.stall
    world.seed()
    for ticket in world.chains:
        if world.run.duties._is_called(ticket, world.run.duties.epochs[-1], world.now):  # type: ignore[arg-type]
            assert world.open_call(ticket) == ""
    world.at(stops - 2 * world.charter.timing.epoch)
    world.close_epoch()
    found = everybody(world)
    assert world.now <= stops
    return found


def stop(world: MoneyWorld) -> int:
    """The run is wound down in the first second in which it can be."""
    world.at(world.run.escrow.launched_at + world.charter.timing.stall)
    assert world.wind_down() == "RunMoves"
    world.tick(1)
    assert world.wind_down() == ""
    return world.now


def game_of(world: MoneyWorld, accusation: Digest, named: Digest) -> tuple[int, Round, Seat, int, bytes, Digest]:
    """A game on the work that is accused, in the name of an accusation or of nobody's."""
    made = world.run.duties.attestations.accusations[accusation]
    seat = world.model.tenures.tenures[made.accused].seat
    return int(ClaimKind.INTERVAL), Round(0), seat, 0, bytes(20), named


def owner(world: MoneyWorld, accusation: Digest) -> Address:
    """Whose accusation it is."""
    made = world.run.duties.attestations.accusations[accusation]
    return world.run.tickets.tickets[made.ticket].owner


def test_whoever_was_right_gets_its_part_though_no_epoch_ends_after_a_stop(world: MoneyWorld) -> None:
    accusation, *_ = accused_before_the_stop(world)
    accuser, ref = owner(world, accusation), game_of(world, accusation, accusation)
    assert world.open_verdict(ref, accuser) == ""
    stopped = stop(world)
    assert world.refusal("Duties", "seedEpoch", who=accuser) == "RunStopped"
    assert world.enter(accusation) == "PotClosed"
    world.at(stopped + world.charter.timing.longest_dispute)
    world.end_verdict(ref, True, True, accuser)
    pot = world.run.bounties.left(ids.tenure_lock(world.run.duties.attestations.accusations[accusation].accused))
    assert world.enter(accusation) == ""
    world.at(stopped + world.run.bounties.time)
    assert world.close_pot(accusation, 0) == "PotOpen"
    world.tick(1)
    assert world.close_pot(accusation, 0) == ""
    before = world.vault.free_of(accuser)
    assert world.take(accusation) == ""
    assert world.vault.free_of(accuser) - before == pot == world.charter.economics.seat_lock * 97 // 100


@pytest.mark.parametrize("is_lapsed", [True, False])
def test_an_accusation_that_nobody_could_try_shares_nothing_an_older_game_takes(
    world: MoneyWorld, is_lapsed: bool
) -> None:
    """Attack: accuse falsely just before a stop, after which nothing is tried and no result replayed again."""
    third, (accusation, other, *_) = world.people[-1], accused_before_the_stop(world)
    ref = game_of(world, accusation, ZERO)
    assert world.open_verdict(ref, third) == ""
    stopped = stop(world)
    if is_lapsed:
        assert world.lapse(accusation) == ""
    world.tick(1)
    world.end_verdict(ref, True, True, third)
    made = world.run.duties.attestations.accusations[accusation]
    if not is_lapsed:
        assert world.lapse(accusation) == ""
    assert made.status is (AccusationStatus.LAPSED if is_lapsed else AccusationStatus.EXCUSED)
    # Its window is over by the stop alone.
    assert world.run.duties.attestations.window_of(made.by) >= stopped
    assert world.enter(accusation) == ("NotRight" if is_lapsed else "AttestationOpen")
    world.at(stopped + world.run.bounties.time + 1)
    assert world.enter(accusation) == ("NotRight" if is_lapsed else "AttestationOpen")
    burned, pot = world.vault.burned, world.run.bounties.left(ids.tenure_lock(made.accused))
    assert world.close_pot(other, 0) == ""
    assert world.vault.burned - burned == pot > 0


def test_who_was_excused_and_stood_before_the_stop_shares_after_it(world: MoneyWorld) -> None:
    first, other, *_ = everybody(world)
    convict(world, first)
    assert world.lapse(other) == ""
    made = world.run.duties.attestations.accusations[other]
    while not world.run.duties.over_since(made.epoch + 1):
        world.play_epoch()
    stopped = stop(world)
    assert made.status is AccusationStatus.EXCUSED
    assert world.enter(other) == ""
    over = world.run.duties.over_since(made.epoch + 3)
    world.at(max(stopped, (over or stopped) + world.run.bounties.time + 1))
    assert world.close_pot(other, made.epoch + 1) == ""
    assert world.take(other) == ""


def test_a_pot_waits_for_what_an_epoch_without_fines_lets_be_tried_later(world: MoneyWorld) -> None:
    books = world.run.duties.attestations
    while True:
        world.seed()
        for ticket in world.chains:
            if world.run.duties._is_called(ticket, world.run.duties.epochs[-1], world.now):  # type: ignore[arg-type]
                assert world.open_call(ticket, {Seat(seat) for seat in range(4)}) == ""
        if books.accusations:
            break
        world.close_epoch()
    # Convicted in the epoch of the accusation, whose attestation is drawn for as long as any before a conviction.
    accusation, made = next(iter(books.accusations.items()))
    tenure, _ = convict(world, accusation)
    world.close_epoch()
    for name in books.accusations:
        if name != accusation and books.accusations[name].accused == made.accused:
            assert world.lapse(name) == ""
    assert made.epoch + 1 == world.epoch
    convicted_at = world.model.tenures.tenures[tenure].convicted_at
    while world.run.duties.epochs[-1].start <= convicted_at:
        world.play_epoch()
    first = world.epoch
    world.play_epoch()
    world.seed()
    while world.epoch == first + 1:  # nobody opens, until it closes without fines
        world.close_epoch()
    epochs = world.run.duties.epochs
    assert not epochs[first + 1].fines
    while not world.run.duties.over_since(first + 2):
        assert world.close_pot(accusation, first) == "PotOpen"
        world.play_epoch()
    # Of the epoch of the accusation, what was missed is drawn again in this one, and accused until the next is over.
    last = last_drawn(epochs, made.epoch + 1)
    tried = epochs[last + 2].start
    assert world.run.duties.over_since(first + 1) < tried <= world.run.duties.over_since(first + 2)
    assert world.enter(accusation) == ""
    # The game of who was accused last is over, at the latest, and there is an epoch's time to enter.
    world.at(world.run.duties.over_since(first + 2) + world.run.bounties.time)
    assert world.close_pot(accusation, first) == "PotOpen"
    world.tick(1)
    assert world.close_pot(accusation, first) == ""
