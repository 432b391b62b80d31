"""An arena for dispute games: a vault, a book of claims, players of every character, and a clock that jumps.

Shared by the tests of the pure state machine and those that play the same games on the contract.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache

from assay.protocol.digests import digest_list_hash, keccak
from assay.protocol.game.book import GameBook
from assay.protocol.game.clock import DEFERRALS, Clocks, Shape, longest_game
from assay.protocol.game.errors import GameError
from assay.protocol.game.moves import AnyMove
from assay.protocol.game.players import Challenger, Defender, Posted, posted_by
from assay.protocol.game.state import DisputedClaim, GameConfig, GameState, ProgramHeader
from assay.protocol.game.table import POSTINGS, Side, Turn
from assay.protocol.program.program import Program
from assay.protocol.program.trace import ReferenceTrace, Trace, flip_bit
from assay.protocol.run.claims import ClaimKind, ClaimRef
from assay.protocol.run.run_charter import RunChain
from assay.protocol.types import Address, Digest, Round, Seat, Wei
from tests.harness import honest_rules
from tests.harness.damage import damage, flip
from tests.harness.game_books import BenchClaims, BenchVault
from tests.harness.programs import Example

ETHER = 10**18
ARITY = 4
CLOCKS = Clocks(budget=1000, replay=300, move=60)
CHAIN = RunChain(0, 0, 0, fee_cap=100 * 10**9, gas_price=Wei(0), data_price=Wei(0))
EXPENSIVE = CHAIN.fee_cap + 1
GAME = Address(b"game".ljust(20, b"\0"))


def address(name: str) -> Address:
    """A party's account."""
    return Address(name.encode().ljust(20, b"\0"))


def config(
    arity: int = ARITY, bond: int = 640 * ETHER, bounty_ppm: int = 500_000, chain: RunChain = CHAIN
) -> GameConfig:
    """The games' parameters."""
    clocks = Clocks(CLOCKS.budget + chain.inclusion_delay, CLOCKS.replay, CLOCKS.move)
    return GameConfig(arity, clocks, Wei(bond), Wei(ETHER), bounty_ppm, chain)


@dataclass
class GameWorld:
    """A vault, a book and the games of one program."""

    program: Program
    settings: GameConfig = field(default_factory=config)
    vault: BenchVault = field(default_factory=BenchVault)
    spikes: float = 0.1
    """How often, in a tournament, the base fee is above the cap when somebody is to move, which then defers."""
    seconds_per_block: int = 0

    def __post_init__(self) -> None:
        self.claims = BenchClaims(self.vault, self.settings.bounty_ppm)
        header = ProgramHeader.of(self.program)
        self.book = GameBook(GAME, self.settings, {header.root: header}, self.vault, lambda ref: self.claims)
        self.shown: dict[Digest, Posted] = {}

    def claim(
        self, trace: Trace, claimant: Address, lock: int, number: int = 1, lock_name: str = "", now: int = 0
    ) -> ClaimRef:
        """Put up a claim that the trace's run ends where the trace ends; locks of one name are one lock."""
        ref = ClaimRef(ClaimKind.INTERVAL, Round(1), Seat(1), number)
        lock_id = keccak((lock_name or f"lock {number}").encode())
        if lock and not self.vault.lock_amount(lock_id):
            self.vault.deposit(claimant, lock)
            self.vault.lock(lock_id, claimant, Wei(lock))
        x, y = trace.state_root(0), trace.state_root(trace.steps)
        name = keccak(f"claim {number}".encode())
        self.claims.add(ref, DisputedClaim(name, claimant, x, y, self.program.root, trace.steps, lock_id), now)
        return ref

    def challenge(self, ref: ClaimRef, who: Address, now: int = 0) -> int:
        """Fund a challenger with a bond and open a game."""
        self.vault.deposit(who, self.settings.bond)
        self.claims.direct.add((ref, who))
        return self.book.challenge(who, ref, now)

    def state(self, game_id: int) -> GameState:
        """A game as it stands."""
        return self.book.games[game_id].state

    def posted(self, state: GameState, last: Posted) -> Posted:
        """What a challenger selects from: what this game's defender showed last, or a list that was shown elsewhere."""
        return self.shown.get(state.posted, last) if Turn(state.stage, Side.DEFENDER) in POSTINGS else last


# --- players

Player = Callable[[GameState, Posted], AnyMove | None]
"""A side's next move; None says nothing, until the clock runs out."""


def player(side: Side, trace: Trace, arity: int = ARITY) -> Player:
    """The protocol's own strategy over a trace, true or false."""
    return Defender(trace, arity).next_move if side is Side.DEFENDER else Challenger(trace, arity).next_move


def honest_player(side: Side, truth: Trace, arity: int = ARITY) -> Player:
    """The protocol's own strategy over the true run, held at each move to what an honest player does."""
    inner = player(side, truth, arity)

    def play(state: GameState, posted: Posted) -> AnyMove | None:
        honest_rules.hp3_is_favoured(state, posted, truth, arity)
        move = inner(state, posted)
        honest_rules.hp1_is_never_silent(state, move)
        return move

    return play


def silent_after(inner: Player, moves: int) -> Player:
    """A player that stops answering after some moves."""
    left = [moves]

    def play(state: GameState, posted: Posted) -> AnyMove | None:
        left[0] -= 1
        return inner(state, posted) if left[0] >= 0 else None

    return play


def corrupted(inner: Player, rng: random.Random, rate: float) -> Player:
    """A player whose moves are damaged now and then, in any field."""

    def play(state: GameState, posted: Posted) -> AnyMove | None:
        move = inner(state, posted)
        return damage(move, rng) if move is not None and rng.random() < rate else move

    return play


def misled(inner: Player, rng: random.Random, rate: float) -> Player:
    """A player that selects something at random in well-formed moves."""

    def play(state: GameState, posted: Posted) -> AnyMove | None:
        move = inner(state, posted)
        if move is None or not hasattr(move, "index") or rng.random() >= rate:
            return move
        count = len(posted.digests) or len(posted.parts)
        return replace(move, index=rng.randrange(count)) if count else move

    return play


# --- lies


@cache
def lie_at(example: Example, node: int, step: int = 1, steps: int = 1) -> ReferenceTrace | None:
    """A trace whose lie begins in exactly this node of this step and reaches the end state; None if no bit does."""
    honest = honest_trace(example, steps)
    size = 8 * example.program.specs[node].nbytes
    # Low bits first: they are the smallest lies; of later elements too, since a later node may not read the first.
    for bit in [b + 8 * at for at in range(0, size // 8, max(1, size // 64)) for b in range(8)]:
        trace = example.trace(steps, flip_bit(step, node, bit))
        if trace.state_root(steps) != honest.state_root(steps):
            return trace
    return None


@cache
def honest_trace(example: Example, steps: int = 1) -> ReferenceTrace:
    """The true trace."""
    return example.trace(steps)


@cache
def lie_in_slot(example: Example, number: int, index: int, step: int = 1, steps: int = 1) -> ReferenceTrace:
    """A trace whose state after a step has a slot that is not its output node's value."""

    def tamper(t: int, at_list: int, at: int, data: bytes) -> bytes:
        return flip(data, 0) if (t, at_list, at) == (step, number, index) else data

    return example.trace(steps, tamper_slot=tamper)


# --- playing


@dataclass
class Log:
    """What happened in one game."""

    moves: list[tuple[GameState, AnyMove]] = field(default_factory=list)
    started: int = 0
    ended: int = 0


def play_out(
    world: GameWorld,
    game_id: int,
    defender: Player,
    challenger: Player,
    now: int = 0,
    delay: Callable[[GameState], int] = lambda state: 1,
    log: Log | None = None,
    defer: bool = False,
) -> GameState:
    """Play one game to its end; a side that says nothing or only nonsense loses by its clock.

    With `defer` every side defers as long as it may, in the last second of each deadline.
    """
    posted = Posted()
    log = log if log is not None else Log()
    log.started = now
    while not (state := world.state(game_id)).is_over:
        if defer and state.deferrals[state.turn - 1] < DEFERRALS:
            world.book.defer(game_id, state.party(state.turn), state.deadline, EXPENSIVE)
            continue
        mover = defender if state.turn is Side.DEFENDER else challenger
        move = mover(state, posted if state.turn is Side.DEFENDER else world.posted(state, posted))
        at = min(state.turn_started + delay(state), state.deadline)
        moved = try_move(world, game_id, move, at)
        if moved:
            assert move is not None
            log.moves.append((state, move))
            if state.turn is Side.DEFENDER:
                posted = posted_by(move)
        else:
            at = state.deadline + 1
            world.book.timeout(game_id, at)
        log.ended = at
    return state


def try_move(world: GameWorld, game_id: int, move: AnyMove | None, now: int) -> bool:
    """Whether the side to move made this move."""
    if move is None:
        return False
    state = world.state(game_id)
    try:
        world.book.move(game_id, state.party(state.turn), move, now)
    except GameError:
        return False
    posted = posted_by(move)
    if posted.digests:
        world.shown[digest_list_hash(posted.digests)] = posted
    return True


def shape_of(program: Program, steps: int) -> Shape:
    """What bounds the games on claims of this program."""
    terms = max((getattr(node, "terms", 1) for node in program.nodes), default=1)
    leaves = max(spec.leaf_count for spec in program.specs)
    return Shape(steps, len(program.nodes), leaves, terms, max(program.outputs))


def bound_of(program: Program, steps: int, settings: GameConfig) -> int:
    """The longest that a game on such a claim can last, in seconds."""
    return longest_game(shape_of(program, steps), settings.arity, settings.clocks)
