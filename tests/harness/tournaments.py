"""Many games at once: true and false claims, challengers of every character, moves interleaved and delayed at random.

`check` says what must hold after every tournament, on the pure model and on the contracts alike.
"""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

from assay.protocol.game.clock import DEFERRALS
from assay.protocol.game.descent import position_key
from assay.protocol.game.moves import PostDigests
from assay.protocol.game.players import Posted, posted_by
from assay.protocol.game.state import GameState
from assay.protocol.game.table import Side
from assay.protocol.program.trace import Trace
from assay.protocol.run.claims import ClaimRef
from assay.protocol.types import Address
from tests.harness.games import (
    ETHER,
    EXPENSIVE,
    GameWorld,
    address,
    bound_of,
    corrupted,
    honest_player,
    honest_trace,
    lie_at,
    lie_in_slot,
    misled,
    player,
    silent_after,
    try_move,
)
from tests.harness.honest_rules import (
    Left,
    hp2_is_never_refused,
    hp4_the_truth_wins,
    hp5_a_verdict_convicts_a_party_to_its_own_game,
    hp6_a_game_ends_within_its_bound,
    hp7_the_honest_lose_nothing,
    hp8_an_honest_claimant_is_paid_for_its_trouble,
    hp9_no_token_appears_or_vanishes,
    hp10_nothing_is_left_behind,
    hp11_coalitions_lose_what_burns,
    hp12_bystanders_are_untouched,
)
from tests.harness.programs import Example

CHARACTERS = ("stubborn", "silent", "misled", "damaged")


@dataclass
class TournamentGame:
    """One game of a tournament: who plays it, and how."""

    game_id: int
    ref: ClaimRef
    truth: bool  # the claim is true
    honest_challenger: bool
    players: dict[Side, object]
    posted: Posted = field(default_factory=Posted)
    opened: int = 0
    ended: int = 0

    @property
    def honest(self) -> Side:
        """The side that plays the true run; NONE where both lie."""
        if self.truth:
            return Side.DEFENDER
        return Side.CHALLENGER if self.honest_challenger else Side.NONE


@dataclass
class Tournament:
    """Games played side by side on one chain."""

    world: GameWorld
    rng: random.Random
    steps: int
    seats: list[TournamentGame] = field(default_factory=list)
    honest: set[Address] = field(default_factory=set)
    paid_in: dict[Address, int] = field(default_factory=dict)

    def run(self) -> None:
        """Until no game is open; a side that is late or has no legal move is timed out as soon as possible."""
        queue: list[tuple[int, int, int]] = []
        spacing = self.world.seconds_per_block
        now = spacing + max((seat.opened for seat in self.seats), default=0)
        for i, seat in enumerate(self.seats):
            self._schedule(queue, i, seat)
        while queue:
            soonest, _, i = heapq.heappop(queue)
            now = max(soonest, now + 1) if spacing else soonest
            seat = self.seats[i]
            state = self.world.state(seat.game_id)
            if now > state.deadline:
                self.world.book.timeout(seat.game_id, now)
            elif self.rng.random() < self.world.spikes and state.deferrals[state.turn - 1] < DEFERRALS:
                self.world.book.defer(seat.game_id, state.party(state.turn), now, EXPENSIVE)
            elif not self._move(seat, state, now):
                heapq.heappush(queue, (state.deadline + 1, self.rng.getrandbits(16), i))
                continue
            seat.ended = now
            if not self.world.state(seat.game_id).is_over:
                self._schedule(queue, i, seat)

    def _schedule(self, queue: list[tuple[int, int, int]], i: int, seat: TournamentGame) -> None:
        state = self.world.state(seat.game_id)
        slack = state.deadline - state.turn_started
        delay = self.rng.choice((0, 1, self.rng.randint(0, slack), slack))
        heapq.heappush(queue, (state.turn_started + delay, self.rng.getrandbits(16), i))

    def _move(self, seat: TournamentGame, state: GameState, now: int) -> bool:
        posted = seat.posted if state.turn is Side.DEFENDER else self.world.posted(state, seat.posted)
        move = seat.players[state.turn](state, posted)  # type: ignore[operator]
        # Where its list is known a defender may say so in short.
        if (
            isinstance(move, PostDigests)
            and position_key(state) in self.world.book.position_cache
            and self.rng.random() < 0.5
        ):
            move = PostDigests(())
        accepted = try_move(self.world, seat.game_id, move, now)
        if state.turn is seat.honest:
            hp2_is_never_refused(state, move, accepted)
        if not accepted:
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


def tournament(world: GameWorld, example: Example, steps: int, seed: int, claims: int, now: int = 0) -> Tournament:
    """Claims and challengers in a fresh world, drawn from a seed."""
    rng = random.Random(seed)
    arity = world.settings.arity
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
                honest_player(Side.CHALLENGER, own, arity)
                if honest
                else characters(Side.CHALLENGER, character, own, arity, rng)
            )
            defender = (
                honest_player(Side.DEFENDER, trace, arity)
                if truth
                else characters(Side.DEFENDER, rng.choice(CHARACTERS), trace, arity, rng)
            )
            game_id = world.challenge(ref, who, now)
            players = {Side.DEFENDER: defender, Side.CHALLENGER: challenger}
            t.seats.append(TournamentGame(game_id, ref, truth, honest, players, opened=now))
            # On a node every transaction is a block, and a block a second.
            now += world.seconds_per_block
            if honest:
                t.honest.add(who)
    dishonest = {world.claims.views[s.ref].claim.claimant for s in t.seats if not s.truth}
    t.honest |= {world.claims.views[s.ref].claim.claimant for s in t.seats if s.truth} - dishonest
    parties = {p for s in t.seats for p in (world.state(s.game_id).challenger, world.state(s.game_id).defender)}
    t.paid_in = {p: world.vault.wealth(p) for p in parties}
    return t


def check(t: Tournament, example: Example) -> None:
    """What must hold after every tournament: HP-4 to HP-12."""
    world, vault = t.world, t.world.vault
    for seat in t.seats:
        state = world.state(seat.game_id)
        assert state.verdict is not None
        if seat.honest is not Side.NONE:
            hp4_the_truth_wins(state.verdict, seat.honest)
        hp5_a_verdict_convicts_a_party_to_its_own_game(state, state.verdict)
        hp6_a_game_ends_within_its_bound(seat.ended - seat.opened, bound_of(example.program, t.steps, world.settings))
    gains = {p: vault.wealth(p) - before for p, before in t.paid_in.items()}
    claimants = {world.claims.views[seat.ref].claim.claimant for seat in t.seats}
    hp7_the_honest_lose_nothing(gains, t.honest)
    hp8_an_honest_claimant_is_paid_for_its_trouble(gains, claimants & t.honest)
    hp9_no_token_appears_or_vanishes(sum(t.paid_in.values()), vault.total())
    fallen = world.claims.fallen
    standing = frozenset(v.claim.lock_id for v in world.claims.views.values()) - fallen
    advanced = sum(world.book.advanced.values())
    hp10_nothing_is_left_behind(Left(vault.wealth(world.book.address), advanced, frozenset(vault.locks), standing))
    least = sum(
        lock - lock * world.settings.bounty_ppm // 10**6
        for lock in (_lock_amount(t, lock_id) for lock_id in sorted(fallen))
    )
    hp11_coalitions_lose_what_burns(gains, t.honest, vault.burned, least)
    hp12_bystanders_are_untouched(vault.free.keys() - {world.book.address}, t.paid_in.keys())


def _lock_amount(t: Tournament, lock_id: object) -> int:
    return next(v.lock_amount for v in t.world.claims.views.values() if v.claim.lock_id == lock_id)
