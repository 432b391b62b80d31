"""The headline test: whatever anybody plays, in whatever order, the honest never lose a bond and the truth wins.

Tournaments of many games at once, drawn by hypothesis: true and false claims, some under one lock; challengers that are
right, wrong, silent, misled or damaged in transit; moves interleaved and delayed at random.
"""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.protocol.game.table import Side
from tests.harness.games import ETHER, GameWorld, address, config, honest_trace, lie_at, player
from tests.harness.programs import Example, counting, every_family
from tests.harness.tournaments import Tournament, TournamentGame, check, tournament


def games(examples: int) -> settings:
    """Settings of a property over whole tournaments; a failure prints what reproduces it."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)


def hold(example: Example, steps: int, seed: int, claims: int, arity: int = 4, bounty_ppm: int = 500_000) -> None:
    """One tournament, and all that must hold after it."""
    bond = random.Random(seed).choice((640, 6400)) * ETHER
    t = tournament(GameWorld(example.program, config(arity, bond, bounty_ppm)), example, steps, seed, claims)
    t.run()
    check(t, example)


@games(150)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 9), claims=st.integers(1, 4))
def test_the_honest_never_lose_on_the_counting_program(seed: int, steps: int, claims: int) -> None:
    hold(counting(), steps, seed, claims)


@games(60)
@given(seed=st.integers(0, 2**32), arity=st.sampled_from((2, 4, 64)))
def test_the_honest_never_lose_on_the_program_of_every_family(seed: int, arity: int) -> None:
    hold(every_family(), 1, seed, 2, arity)


@games(60)
@given(seed=st.integers(0, 2**32), bounty_ppm=st.sampled_from((0, 1, 100_000, 999_999, 1_000_000)))
def test_the_honest_never_lose_at_any_bounty(seed: int, bounty_ppm: int) -> None:
    hold(counting(), 2, seed, 3, 4, bounty_ppm)


@pytest.mark.long
@games(600)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 3), claims=st.integers(1, 5), arity=st.sampled_from((2, 4, 64)))
def test_the_honest_never_lose_in_long_tournaments(seed: int, steps: int, claims: int, arity: int) -> None:
    hold(every_family() if steps == 1 else counting(), steps, seed, claims, arity)


def test_no_refund_is_lost_when_several_honest_challengers_win_at_different_times() -> None:
    example = counting()
    world = GameWorld(example.program)
    ref = world.claim(lie_at(example, 1), address("liar"), 3000 * ETHER)
    games = [world.challenge(ref, address(f"honest {i}")) for i in range(3)]
    players = {
        Side.DEFENDER: player(Side.DEFENDER, lie_at(example, 1)),
        Side.CHALLENGER: player(Side.CHALLENGER, honest_trace(example)),
    }
    seats = [TournamentGame(g, ref, False, True, players) for g in games]
    t = Tournament(world, random.Random(1), 1, seats)
    t.run()
    wealth = [world.vault.wealth(address(f"honest {i}")) for i in range(3)]
    assert sorted(wealth)[:2] == [world.settings.bond] * 2
    # The winner's bounty is smaller by what all three had advanced: its own came back in it, the others' was set aside.
    assert max(wealth) == world.settings.bond + 1500 * ETHER - sum(world.state(g).advanced for g in games)
    assert world.vault.burned == 1500 * ETHER
    assert all(world.state(g).advanced > 0 for g in games)
