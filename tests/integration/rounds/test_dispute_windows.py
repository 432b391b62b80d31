"""Until when games open: time alone decides, on model and contracts, whatever games are open."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from assay.protocol.digests import ZERO
from assay.protocol.rounds import ids as ids
from assay.protocol.run.claims import ClaimKind
from assay.protocol.types import Address, Digest, Round, Seat
from tests.harness.rounds.duties import finding_tuple
from tests.harness.rounds.money_scenes import with_work_prepared
from tests.harness.rounds.money_world import MoneyWorld
from tests.integration.rounds.test_bounties import convict, everybody, late

UPDATE = 1
"""The part of a finding after its only key."""


@pytest.fixture
def world() -> Iterator[MoneyWorld]:
    """Round 0 is played; its work was prepared for games, and its base, the genesis, is final."""
    made = MoneyWorld(label=3)
    with with_work_prepared(made, merged=True):
        yield made


def work_ref(round_: int = 0, accusation: Digest = ZERO, seat: int = 0) -> tuple[Any, ...]:
    """A seat's work, as games take it."""
    return int(ClaimKind.INTERVAL), round_, seat, 0, bytes(20), accusation


def finding_ref(world: MoneyWorld, name: Digest) -> tuple[Any, ...]:
    """The update that an attestation says, as games take it, prepared; named by the attestation or an accusation."""
    books = world.run.duties.attestations
    attestation = books.named(name)
    finding, made = books.findings[attestation], books.attestations[attestation]
    said = world.do(
        lambda: books.prepare(attestation, finding, UPDATE),
        "Attestations", "prepare", attestation, finding_tuple(finding), UPDATE,
    )  # fmt: skip
    assert said == ""
    return int(ClaimKind.ATTESTATION), made.round, made.seat, UPDATE, bytes(20), name


def puppet(world: MoneyWorld) -> Address:
    """Somebody who plays games to lose them."""
    return world.people[-1]


def shown_until(world: MoneyWorld, ref: tuple[Any, ...]) -> int:
    """`challengeableUntil` of a claim, as the contract shows it."""
    book = "Attestations" if ref[0] == ClaimKind.ATTESTATION else "Commitments"
    return int(world.call(book, "claimOf", ref)[7])


def lose(world: MoneyWorld, ref: tuple[Any, ...]) -> None:
    """A puppet's game ends, and the claim stands."""
    world.end_verdict(ref, False, False, puppet(world))


def last_second(world: MoneyWorld, epoch: int) -> None:
    """The epoch can be closed in this second, and is not yet."""
    while world.epoch < epoch:
        world.play_epoch()
    world.seed()
    for ticket in world.chains:
        if world.run.duties._is_called(ticket, world.run.duties.epochs[-1], world.now):  # type: ignore[arg-type]
            assert world.open_call(ticket) == ""
    world.at(world.run.duties.epochs[-1].deadline + 1)


def test_games_that_overlap_keep_no_work_from_its_pay(world: MoneyWorld) -> None:
    """Attack: each game of a puppet is opened before the last one ends, until the run is wound down."""
    while world.own_epoch(0) > world.epoch:
        world.play_epoch()
    own, ref = world.own_epoch(0), work_ref()
    open_games = 0
    for epoch in range(world.epoch, own + 3):
        last_second(world, epoch)
        assert shown_until(world, ref) == 2**64 - 1
        assert world.open_verdict(ref, puppet(world)) == ""
        open_games += 1
        world.close_epoch()
    # Closed in the same second.
    assert world.run.duties.over_since(own) == world.now
    assert world.open_verdict(ref, puppet(world)) == "ClaimSettled"
    assert shown_until(world, ref) == 0
    assert world.settle_work(0, 0, own) == "StillDisputed"
    for _ in range(open_games):
        lose(world, ref)
    assert world.settle_work(0, 0, own) == ""


def test_work_can_be_challenged_as_long_as_its_base_is_open(world: MoneyWorld) -> None:
    """What was audited before its base is final is not paid yet: it can still be false."""
    people = world.people[:4]
    world.play_round(people)
    world.prepare_work(Round(1), Seat(0))
    while not world.run.duties.over_since(world.own_epoch(1)):
        world.play_epoch()
    ref = work_ref(1)
    assert world.open_verdict(ref, puppet(world)) == ""
    lose(world, ref)
    world.tick(world.charter.timing.challenge + 1)
    assert world.open_verdict(ref, puppet(world)) == ""
    lose(world, ref)
    assert world.finalize(1) == ""
    assert world.open_verdict(ref, puppet(world)) == "ClaimSettled"


def test_who_accused_in_time_opens_its_game_when_others_cannot_any_more(world: MoneyWorld) -> None:
    (accusation, *_) = everybody(world)
    made = world.run.duties.attestations.accusations[accusation]
    seat = world.model.tenures.tenures[made.accused].seat
    while not world.run.duties.over_since(world.own_epoch(0)):
        world.play_epoch()
    assert world.open_verdict(work_ref(seat=seat), puppet(world)) == "ClaimSettled"
    assert world.open_verdict(work_ref(accusation=accusation, seat=seat), puppet(world)) == "NotYourAccusation"
    convict(world, accusation)


def test_games_that_overlap_keep_no_pot_from_who_accused_rightly(world: MoneyWorld) -> None:
    """Attack: puppets of the convict dispute the accuser's attestation, so that a puppet's accusation enters alone."""
    (accusation, *others) = everybody(world)
    tenure, accuser = convict(world, accusation)
    for name in others:
        assert world.lapse(name) == ""
    by = world.run.duties.attestations.accusations[accusation].by
    ref, own = finding_ref(world, by), world.run.duties.attestations.attestations[by].epoch
    open_games = 0
    for epoch in range(world.epoch, own + 4):
        last_second(world, epoch)
        assert shown_until(world, ref) == 2**64 - 1
        assert world.open_verdict(ref, puppet(world)) == ""
        open_games += 1
        world.close_epoch()
    assert world.run.duties.over_since(own + 1) == world.now
    assert world.open_verdict(ref, puppet(world)) == "ClaimSettled"
    assert shown_until(world, ref) == 0
    assert world.enter(accusation) == "AttestationOpen"
    world.tick(world.charter.timing.longest_dispute)
    for _ in range(open_games):
        lose(world, ref)
    # The longest game that was opened in time is over before the pot can be closed.
    convicted_at = world.model.tenures.tenures[tenure].convicted_at
    first = next(n for n, epoch in enumerate(world.run.duties.epochs) if epoch.start > convicted_at)
    assert world.close_pot(accusation, first) == "PotOpen"
    assert world.enter(accusation) == ""
    first = late(world, accusation)
    world.tick(1)
    assert world.close_pot(accusation, first) == ""
    before = world.vault.free_of(accuser)
    assert world.take(accusation) == ""
    assert world.vault.free_of(accuser) - before == world.charter.economics.seat_lock * 97 // 100
    assert world.run.bounties.left(ids.tenure_lock(tenure)) == 0
