"""The state of one dispute game, and what it is judged by.

Everything is a frozen value; `game.process_move` makes the next one. Field for field the state is what `Game.sol`
stores, and an actor fills it from the chain. Source: docs/protocol.md, section 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final

from assay.protocol.digests import ZERO
from assay.protocol.errors import InvariantError
from assay.protocol.game.clock import LARGEST, MAX_ARITY, Clocks, most_moves
from assay.protocol.game.table import Side, Stage, Turn
from assay.protocol.program.program import Program
from assay.protocol.run.run_charter import RunChain
from assay.protocol.types import Address, Digest, Wei


class Outcome(IntEnum):
    """How a game ended; the integers equal Solidity's `Outcome`."""

    NONE = 0
    LEAF = 1
    DEFAULT = 2


REVEAL_BLOCKS: Final = 2
"""A committed challenge is revealed no earlier: a copy of the reveal from the mempool is late."""

REVEAL_WINDOW: Final = 3600
"""Seconds, beyond reorg depth and inclusion delay, after which an unrevealed challenge has lost its deposit."""

NO_FAMILY: Final = 255
"""The family in the verdict of a game that ended before a node was opened."""

NO_WEI: Final = Wei(0)


def reveal_window(chain: RunChain) -> int:
    """Seconds in which a committed challenge must be revealed: an hour beyond the chain's own delays."""
    return REVEAL_WINDOW + chain.reorg_depth + chain.inclusion_delay


@dataclass(frozen=True, slots=True)
class GameConfig:
    """What a run's charter says of its games. Amounts in wei, times in seconds, `bounty_ppm` in parts per million.

    `clocks`: the budget is all that a chain may keep a side waiting in a game. `bond` is what a challenger locks
    per game; `commit_deposit` what a committed challenge locks until it is revealed, at least `REVEAL_BLOCKS`
    blocks and the chain's reorg depth, and at most `reveal_window` seconds later.
    """

    arity: int
    clocks: Clocks
    bond: Wei
    commit_deposit: Wei
    bounty_ppm: int
    """Of a third party: half of it backs advances."""
    chain: RunChain
    kept: Wei = NO_WEI
    """What pays for a winner's gas at the cap, where the bounty is not its own."""

    def __post_init__(self) -> None:
        """Refuses what the contract's constructor refuses."""
        if not 2 <= self.arity <= MAX_ARITY or self.arity & (self.arity - 1):
            raise InvariantError(f"The arity is a power of two in 2..{MAX_ARITY}, not {self.arity}.", code="WrongArity")

    @property
    def reveal_window(self) -> int:
        """See `reveal_window`."""
        return reveal_window(self.chain)

    @property
    def levels(self) -> int:
        """Levels of a tree that one opening shows."""
        return self.arity.bit_length() - 1

    @property
    def move_refund(self) -> Wei:
        """What a reply of the defender is paid from the bond, rounded down.

        Half of the bond survives the longest defence that the encodings admit: a lost challenge always burns something.
        """
        replies, _ = most_moves(LARGEST, self.arity)
        return Wei(self.bond // (2 * replies))


@dataclass(frozen=True, slots=True)
class ProgramHeader:
    """What the game knows of a program: counts, list sizes of X and Y, the root of the tree over its descriptors."""

    root: Digest
    tree: Digest
    nodes: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @classmethod
    def of(cls, program: Program) -> ProgramHeader:
        """The header of a whole program."""
        return cls(program.root, program.tree.root, len(program.nodes), program.inputs, program.outputs)

    def output_node(self, list_index: int, index: int) -> int:
        """The node whose value is slot `index` of a list of Y."""
        return self.nodes - sum(self.outputs) + sum(self.outputs[:list_index]) + index


@dataclass(frozen=True, slots=True)
class Rules:
    """What a move is judged by besides the state; `lists` holds K(list) of every list known, by its position's key."""

    config: GameConfig
    program: ProgramHeader
    position_cache: Mapping[Digest, Digest] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DisputedClaim:
    """What a game knows of its claim (`ClaimView`): X and Y are state roots."""

    id: Digest
    claimant: Address
    x: Digest
    y: Digest
    program: Digest
    steps: int
    lock_id: Digest


@dataclass(frozen=True, slots=True)
class Verdict:
    """Who lost, how, and where; `expected` and `claimed` are int256 words. It convicts the loser and no other party."""

    loser: Address
    side: Side
    outcome: Outcome
    family: int = NO_FAMILY
    node: int = 0
    element: int = 0
    term: int = 0
    expected: int = 0
    claimed: int = 0


@dataclass(frozen=True, slots=True)
class GameState:
    """One game. Meaning of the fields by stage:

    - STEPS, NODES: (lo, hi] is disputed, `agreed` stands at lo, `disputed` at hi.
    - `posted` is K(list) of the last list posted, in this game or at the same position of another; with the defender
      to move no bisection reads it any more.
    - from NODES: step t is disputed, `before` and `after` are s_(t-1) and s_t.
    - from NODE, STATE: `agreed` is P_k, `node` is k.
    - from openNode: `family`, `node_hash` = K(descriptor); `value` is T.
    - TENSOR, LIST: `disputed` is entry (`level`, `index`) of the tree over `count` digests (LIST: the slots of list
      `list_index`; the list root itself while `whole`); with the challenger to move, (`level`, `index`) is the first
      digest of the list posted. LEAF: `disputed` is the digest of leaf `index`; `last` is the length of the last leaf.
    - PARTS, TERM: `element` is disputed with value `claimed` (while `whole`), or its terms [lo, hi) with part
      `claimed`; `heads` are the words opened with the element.
    - SLOT: `index` is the slot, `disputed` its tensor root in s_t.

    `turn_started` is when the mover's clock began to run, an hour later for every deferral of the turn; `deferrals`
    counts those of each side in the whole game.
    """

    game_id: int
    claim: DisputedClaim
    challenger: Address
    stage: Stage
    turn: Side
    turn_started: int
    deadline: int
    budget_left: tuple[int, int]
    advanced: Wei = NO_WEI
    held: Wei = NO_WEI
    lo: int = 0
    hi: int = 0
    agreed: Digest = ZERO
    disputed: Digest = ZERO
    posted: Digest = ZERO
    before: Digest = ZERO
    after: Digest = ZERO
    step: int = 0
    node: int = 0
    family: int = NO_FAMILY
    node_hash: Digest = ZERO
    value: Digest = ZERO
    level: int = 0
    index: int = 0
    count: int = 0
    last: int = 0
    list_index: int = 0
    whole: bool = False
    element: int = 0
    claimed: int = 0
    heads: tuple[int, ...] = ()
    deferrals: tuple[int, int] = (0, 0)
    verdict: Verdict | None = None

    @property
    def defender(self) -> Address:
        """The claimant; only it opens in its own game."""
        return self.claim.claimant

    @property
    def whose(self) -> Turn:
        """The turn that the game stands at."""
        return Turn(self.stage, self.turn)

    def party(self, side: Side) -> Address:
        """The address that plays a side."""
        return self.defender if side is Side.DEFENDER else self.challenger

    @property
    def is_over(self) -> bool:
        """Whether the game has a verdict."""
        return self.stage is Stage.OVER
