"""What the game pays where a bounty belongs to drawn accusers, on its contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

import pytest

from assay.protocol.economics.run_times import min_kept
from assay.protocol.rounds.bounties import pot_lock
from assay.protocol.rounds.ids import tenure_lock
from assay.protocol.rounds.run_terms import game_config
from assay.protocol.run.claims import ClaimKind
from assay.protocol.run.program_ref import ProgramRef
from assay.protocol.run.run_charter import RunCharter
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from tests.harness.programs import counting
from tests.harness.rounds.charters import changed
from tests.harness.rounds.money_chain import CONTRACTS, DENSE, MoneyChain
from tests.harness.rounds.money_world import MoneyWorld
from tests.harness.rounds.run_limits import staked

PPM = 1_000_000
NOBODY = "0x" + "00" * 20
BACKING = 24
"""Its place in GameState."""


def _charter() -> RunCharter:
    """Programs that the game can read, and gas so dear that half of a third party's bounty just pays for a game's."""
    program = ProgramRef.of(counting().program)
    paid = staked(changed(DENSE, "economics", challenge_bond=DENSE.economics.ticket_bond))
    half = min(paid.economics.seat_lock, paid.economics.ticket_bond) * paid.economics.third_bounty_ppm // (2 * PPM)
    dear = changed(paid, "chain", gas_price=Wei(half // min_kept(replace(paid.chain, gas_price=Wei(1)), 64)))
    return replace(dear, step=program, update=program, merge=program, witness=program)


class GameChain(MoneyChain):
    """The game is real; without an arbiter's leaves, since no game here reaches an element."""

    contracts_of = CONTRACTS | {"game": "Game"}

    def prepare(self) -> None:
        self.arbiter = self.evm.deploy("Arbiter", [NOBODY] * 9)

    def more_arguments(self, name: str) -> tuple[str, ...]:
        return (self.arbiter.address,) if name == "Game" else ()


@cache
def _chain(charter: RunCharter) -> GameChain:
    return GameChain(charter)


class PricedGameWorld(MoneyWorld):
    """A run in which games are opened on the contract."""

    chain_of = staticmethod(_chain)


@pytest.fixture
def world() -> Iterator[PricedGameWorld]:
    """Round 0 has taken its commitments; everybody that was drawn accuses all work."""
    made = PricedGameWorld(_charter(), label=3)
    people = made.start(tickets=8)
    made.commit_all(people)
    for seat in range(len(people)):
        made.prepare_work(Round(0), Seat(seat))
    while not made.run.duties.attestations.accusations:
        assert made.epoch < 4
        made.play_epoch({ticket: {Seat(seat) for seat in range(4)} for ticket in made.chains})
    try:
        yield made
    finally:
        made.end()


def open_game(world: PricedGameWorld) -> tuple[Address, Digest, int]:
    """A drawn accuser opens its game; who, the accused tenure's lock, and what it held."""
    accusation, made = next(iter(world.run.duties.attestations.accusations.items()))
    who = world.run.tickets.tickets[made.ticket].owner
    seat, lock = world.model.tenures.tenures[made.accused].seat, tenure_lock(made.accused)
    ref = (int(ClaimKind.INTERVAL), 0, seat, 0, bytes(20), accusation)
    assert world.refusal("Game", "challenge", ref, who=who) == ""
    _, held = world.call("Vault", "lockOf", lock)
    return who, lock, held


def test_who_wins_under_an_accusation_is_paid_its_gas_before_the_pot(world: PricedGameWorld) -> None:
    """However short the window is, a false claim is worth a challenge."""
    e, kept = world.charter.economics, game_config(world.charter).kept
    assert kept == min_kept(world.charter.chain, 64) > 0
    who, lock, held = open_game(world)
    before = world.call("Vault", "free", "0x" + who.hex())
    assert held == e.seat_lock
    world.at(world.now + world.charter.clocks.budget + world.charter.clocks.replay + 3600)
    assert world.refusal("Game", "timeout", 1) == ""
    assert world.call("Vault", "free", "0x" + who.hex()) - before == e.challenge_bond + kept
    _, pot = world.call("Vault", "lockOf", pot_lock(lock))
    assert pot == held * e.drawn_bounty_ppm // PPM - kept


def test_advances_are_backed_by_a_third_partys_bounty_whoever_accused(world: PricedGameWorld) -> None:
    """Half of a drawn accuser's would be 48 % of the lock, which puppets' games take out of the pot."""
    _, _, held = open_game(world)
    backing = world.call("Game", "gameOf", 1)[BACKING]
    assert backing == held * world.charter.economics.third_bounty_ppm // (2 * PPM)
