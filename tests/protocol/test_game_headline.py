"""The headline test: whatever anybody plays, in whatever order, the honest never lose a bond and the truth wins.

Tournaments of many games at once, drawn by hypothesis: true and false claims, some under one lock; challengers that are
right, wrong, silent, misled or damaged in transit; moves interleaved and delayed at random.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assay.protocol.claims import ClaimRef
from assay.protocol.game_state import GameState, Outcome
from assay.protocol.game_table import Side
from assay.protocol.play import Posted, posted_by
from assay.protocol.trace import Trace
from assay.protocol.types import Address
from tests.games import (
    ETHER,
    GAME,
    World,
    address,
    bound_of,
    config,
    corrupted,
    honest_trace,
    lie_at,
    lie_in_slot,
    misled,
    player,
    silent_after,
    try_move,
)
from tests.programs import Example, counting, every_family

CHARACTERS = ("stubborn", "silent", "misled", "damaged")


@dataclass
class Seat:
    """One game of a tournament: who plays it, and how."""

    game_id: int
    ref: ClaimRef
    truth: bool  # the claim is true
    honest_challenger: bool
    players: dict[Side, object]
    posted: Posted = field(default_factory=Posted)
    opened: int = 0
    ended: int = 0


@dataclass
class Tournament:
    """Games played side by side on one chain."""

    world: World
    rng: random.Random
    steps: int
    seats: list[Seat] = field(default_factory=list)
    honest: set[Address] = field(default_factory=set)
    paid_in: dict[Address, int] = field(default_factory=dict)

    def run(self) -> None:
        """Until no game is open; whoever is late or has no legal move is timed out as soon as possible."""
        queue: list[tuple[int, int, int]] = []
        for i, seat in enumerate(self.seats):
            self._schedule(queue, i, seat)
        while queue:
            now, _, i = heapq.heappop(queue)
            seat = self.seats[i]
            state = self.world.state(seat.game_id)
            if now > state.deadline:
                self.world.book.timeout(seat.game_id, now)
            elif not self._move(seat, state, now):
                heapq.heappush(queue, (state.deadline + 1, self.rng.getrandbits(16), i))
                continue
            seat.ended = now
            if not self.world.state(seat.game_id).is_over:
                self._schedule(queue, i, seat)

    def _schedule(self, queue: list[tuple[int, int, int]], i: int, seat: Seat) -> None:
        state = self.world.state(seat.game_id)
        slack = state.deadline - state.turn_started
        delay = self.rng.choice((0, 1, self.rng.randint(0, slack), slack))
        heapq.heappush(queue, (state.turn_started + delay, self.rng.getrandbits(16), i))

    def _move(self, seat: Seat, state: GameState, now: int) -> bool:
        move = seat.players[state.turn](state, seat.posted)  # type: ignore[operator]
        if not try_move(self.world, seat.game_id, move, now):
            return False
        if state.turn is Side.DEFENDER:
            seat.posted = posted_by(move)
        return True


def characters(side: Side, name: str, trace: Trace, arity: int, rng: random.Random) -> object:
    """A dishonest player over a trace."""
    inner = player(side, trace, arity)
    match name:
        case "silent":
            return silent_after(inner, rng.randrange(8))
        case "misled":
            return misled(inner, rng, 0.4)
        case "damaged":
            return corrupted(inner, rng, 0.3)
        case _:
            return inner


def lies(example: Example, steps: int) -> list[Trace]:
    """False traces of an example, a few of each kind."""
    program = example.program
    nodes = range(len(program.nodes)) if len(program.nodes) < 6 else range(0, len(program.nodes), 3)
    found = [lie_at(example, k, step, steps) for k in nodes for step in {1, steps}]
    slots = [lie_in_slot(example, number, 0, steps, steps) for number in range(len(program.outputs))]
    return [trace for trace in (*found, *slots) if trace is not None]


def tournament(
    example: Example, steps: int, arity: int, seed: int, claims: int, bounty_ppm: int = 500_000
) -> Tournament:
    """Claims and challengers drawn from a seed."""
    rng = random.Random(seed)
    world = World(example.program, config(arity, bond=rng.choice((640, 6400)) * ETHER, bounty_ppm=bounty_ppm))
    t = Tournament(world, rng, steps)
    true, false = honest_trace(example, steps), lies(example, steps)
    for c in range(claims):
        # Two claims may stand under one lock (a commitment's intervals); then they are one claimant's.
        owner = rng.randrange(max(1, claims - 1))
        claimant = address(f"claimant {owner}")
        truth = rng.random() < 0.4
        trace = true if truth else rng.choice(false)
        lock = rng.choice((100, 3000)) * ETHER
        ref = world.claim(trace, claimant, lock, c + 1, f"lock {owner}")
        for g in range(rng.randint(1, 3)):
            who = address(f"challenger {c}.{g}")
            honest = not truth and rng.random() < 0.6
            own = true if honest else rng.choice([x for x in (true, *false) if x is not trace])
            character = rng.choice(CHARACTERS)
            challenger = (
                player(Side.CHALLENGER, own, arity)
                if honest
                else characters(Side.CHALLENGER, character, own, arity, rng)
            )
            defends = player(Side.DEFENDER, trace, arity)
            defender = defends if truth else characters(Side.DEFENDER, rng.choice(CHARACTERS), trace, arity, rng)
            game_id = world.challenge(ref, who)
            players = {Side.DEFENDER: defender, Side.CHALLENGER: challenger}
            t.seats.append(Seat(game_id, ref, truth, honest, players))
            if honest:
                t.honest.add(who)
    dishonest = {world.claims.views[s.ref].claim.claimant for s in t.seats if not s.truth}
    t.honest |= {world.claims.views[s.ref].claim.claimant for s in t.seats if s.truth} - dishonest
    parties = {p for s in t.seats for p in (world.state(s.game_id).challenger, world.state(s.game_id).defender)}
    t.paid_in = {p: world.vault.wealth(p) for p in parties}
    return t


def check(t: Tournament, example: Example) -> None:
    """What must hold after every tournament."""
    world, vault = t.world, t.world.vault
    total = sum(t.paid_in.values())
    for seat in t.seats:
        state = world.state(seat.game_id)
        verdict = state.verdict
        assert verdict is not None
        # A verdict convicts a party to its own game, on the side that it names.
        assert verdict.loser == state.party(verdict.side)
        assert verdict.outcome in (Outcome.LEAF, Outcome.DEFAULT)
        # The truth wins where an honest party plays it.
        if seat.truth:
            assert verdict.side is Side.CHALLENGER
        if seat.honest_challenger:
            assert verdict.side is Side.DEFENDER
        assert seat.ended <= seat.opened + bound_of(example.program, t.steps, world.settings)
    # No token appears or vanishes, and no lock of the games is left behind.
    assert vault.total() == total
    assert vault.wealth(GAME) == 0
    assert all(world.book.advanced[account] == 0 for account in world.book.advanced)
    fallen = world.claims.fallen
    assert set(vault.locks) == {v.claim.lock_id for v in world.claims.views.values()} - fallen
    # The honest never lose; all others together lose at least what burned.
    gains = {p: vault.wealth(p) - before for p, before in t.paid_in.items()}
    assert all(gains[p] >= 0 for p in sorted(t.honest)), gains
    assert sum(gains[p] for p in gains if p not in t.honest) <= -vault.burned
    burnt_locks = sum(
        lock - lock * world.settings.bounty_ppm // 10**6
        for lock in (_lock_amount(t, lock_id) for lock_id in sorted(fallen))
    )
    assert vault.burned >= burnt_locks
    # Nobody who only stood by is touched: everyone else's wealth is unchanged by construction of `gains`.
    assert set(vault.free) <= set(t.paid_in) | {GAME}


def _lock_amount(t: Tournament, lock_id: object) -> int:
    return next(v.lock_amount for v in t.world.claims.views.values() if v.claim.lock_id == lock_id)


def games(examples: int) -> settings:
    """Settings of a property over whole tournaments; a failure prints what reproduces it."""
    return settings(max_examples=examples, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)


@games(150)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 9), claims=st.integers(1, 4))
def test_the_honest_never_lose_on_the_counting_program(seed: int, steps: int, claims: int) -> None:
    t = tournament(counting(), steps, 4, seed, claims)
    t.run()
    check(t, counting())


@games(60)
@given(seed=st.integers(0, 2**32), arity=st.sampled_from((2, 4, 64)))
def test_the_honest_never_lose_on_the_program_of_every_family(seed: int, arity: int) -> None:
    t = tournament(every_family(), 1, arity, seed, 2)
    t.run()
    check(t, every_family())


@games(60)
@given(seed=st.integers(0, 2**32), bounty_ppm=st.sampled_from((0, 1, 100_000, 999_999, 1_000_000)))
def test_the_honest_never_lose_at_any_bounty(seed: int, bounty_ppm: int) -> None:
    t = tournament(counting(), 2, 4, seed, 3, bounty_ppm)
    t.run()
    check(t, counting())


@pytest.mark.long
@games(600)
@given(seed=st.integers(0, 2**32), steps=st.integers(1, 3), claims=st.integers(1, 5), arity=st.sampled_from((2, 4, 64)))
def test_the_honest_never_lose_in_long_tournaments(seed: int, steps: int, claims: int, arity: int) -> None:
    t = tournament(every_family() if steps == 1 else counting(), steps, arity, seed, claims)
    t.run()
    check(t, every_family() if steps == 1 else counting())


def test_no_refund_is_lost_when_several_honest_challengers_win_at_different_times() -> None:
    example = counting()
    world = World(example.program)
    ref = world.claim(lie_at(example, 1), address("liar"), 3000 * ETHER)
    games = [world.challenge(ref, address(f"honest {i}")) for i in range(3)]
    players = {
        Side.DEFENDER: player(Side.DEFENDER, lie_at(example, 1)),
        Side.CHALLENGER: player(Side.CHALLENGER, honest_trace(example)),
    }
    seats = [Seat(g, ref, False, True, players) for g in games]
    t = Tournament(world, random.Random(1), 1, seats)
    t.run()
    wealth = [world.vault.wealth(address(f"honest {i}")) for i in range(3)]
    assert sorted(wealth)[:2] == [world.settings.bond] * 2
    # The winner's bounty is smaller by what all three had advanced: its own came back in it, the others' was set aside.
    assert max(wealth) == world.settings.bond + 1500 * ETHER - sum(world.state(g).advanced for g in games)
    assert world.vault.burned == 1500 * ETHER
    assert all(world.state(g).advanced > 0 for g in games)
