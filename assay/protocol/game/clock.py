"""Chess clocks, and how long a game can last.

Each side has a budget for the whole game, which is all that a chain may keep it waiting, at whichever moves. A turn
ends at its start + budget left + extension of the stage, and only the time used above the extension is taken from the
budget. While the base fee is above the run's cap the side to move may defer: its turn then counts from an hour later.
All times are seconds of chain time.
Source: docs/protocol.md, section 5; notes: an opening may need a whole step to be executed again with its trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from assay.protocol.game.table import Side, Stage, Turn

MAX_ARITY = 64

DEFERRALS = 3
"""How often each side may defer in a game while the base fee is above the cap."""

DEFERRAL = 3600
"""Seconds by which a deferral moves a turn on."""


def needs_replay(turn: Turn) -> bool:
    """Whether the mover must execute a step (or all steps) again: both sides at STEPS and NODES, then the defender."""
    return turn.stage in (Stage.STEPS, Stage.NODES) or turn.side is Side.DEFENDER


@dataclass(frozen=True, slots=True)
class Clocks:
    """Seconds: each side's budget for a whole game, and the extension of a turn with and without a re-execution."""

    budget: int
    replay: int
    move: int

    def extension(self, turn: Turn) -> int:
        """What a turn may take without using the budget."""
        return self.replay if needs_replay(turn) else self.move

    def deadline(self, started: int, budget_left: int, turn: Turn) -> int:
        """The last second in which the turn may be taken."""
        return started + budget_left + self.extension(turn)

    def budget_after(self, budget_left: int, used: int, turn: Turn) -> int:
        """The budget left after a turn that took `used` seconds and was in time."""
        return budget_left - max(0, used - self.extension(turn))


class Timing(Enum):
    """What the side to move does at some fee."""

    MOVE = "move"
    WAIT = "wait"
    DEFER = "defer"


def nearing(deadline: int, turn: Turn, clocks: Clocks) -> int:
    """From when on a deadline is near: what is left is the turn's extension and half of the budget.

    The extension alone suffices for every turn, so a side that waits for a lower fee until then is late for none.
    """
    return deadline - clocks.extension(turn) - clocks.budget // 2


def timing(turn: Turn, deadline: int, deferred: int, now: int, is_expensive: bool, clocks: Clocks) -> Timing:
    """When to move while the base fee `is_expensive`, above the cap; `deferred`: how often this side has deferred.

    A move above the cap costs more gas than it is refunded; a missed clock costs the game. So it waits, then defers,
    then moves at any fee. With only the turn's extension left it moves whatever is left to defer: a fee that goes up
    and down around the cap gets one deferral after the other refused, and must not use up the clock by that.
    """
    if not is_expensive or now >= deadline - clocks.extension(turn):
        return Timing.MOVE
    if now < nearing(deadline, turn, clocks):
        return Timing.WAIT
    return Timing.DEFER if deferred < DEFERRALS else Timing.MOVE


@dataclass(frozen=True, slots=True)
class Shape:
    """How large a claim is: what bounds the number of moves of a game on it.

    Counts: steps of the claim, nodes of the program, leaves of its largest tensor, terms of its longest reduction,
    slots of its longest output list.
    """

    steps: int
    nodes: int
    leaves: int
    terms: int
    slots: int


LARGEST = Shape(steps=(1 << 32) - 1, nodes=1 << 20, leaves=1 << 57, terms=(1 << 64) - 1, slots=(1 << 32) - 1)
"""No claim is larger: what the widths of the fields admit."""


def bisections(width: int, arity: int) -> int:
    """Rounds of posting and bisection until an interval of `width` positions has become one of 1."""
    rounds = 0
    while width > 1:
        # floor(w (i+1) / m) - floor(w i / m) is at most ceil(w / m), and reaches it.
        width = -(-width // min(arity, width))
        rounds += 1
    return rounds


def openings(count: int, arity: int) -> int:
    """Openings of log2(arity) levels each until a tree over `count` digests is open at level 0; at least 1."""
    levels = arity.bit_length() - 1
    height = max(count - 1, 0).bit_length()
    return max(1, -(-height // levels))


Leg = tuple[Stage, int, int]
"""A stage with the most moves that the defender and the challenger can make in it."""


def legs(shape: Shape, arity: int) -> tuple[tuple[Leg, ...], tuple[tuple[Leg, ...], ...]]:
    """The legs that every game begins with, and the ways on: to an element, to an input or output, to a slot of Y."""
    steps, nodes = bisections(shape.steps, arity), bisections(shape.nodes + 1, arity)
    tensor, parts, slots = openings(shape.leaves, arity), bisections(shape.terms, arity), openings(shape.slots, arity)
    begin = ((Stage.STEPS, steps, steps), (Stage.NODES, nodes, nodes))
    element = (
        (Stage.NODE, 1, 0),
        (Stage.TENSOR, tensor - 1, tensor),
        (Stage.LEAF, 1, 1),
        (Stage.PARTS, parts, parts),
        (Stage.TERM, 0, 1),
    )
    root = ((Stage.NODE, 1, 0), (Stage.ROOT, 0, 1))
    slot = ((Stage.STATE, 1, 1), (Stage.LIST, slots, slots), (Stage.SLOT, 0, 1))
    return begin, (element, root, slot)


def longest_game(shape: Shape, arity: int, clocks: Clocks) -> int:
    """Seconds from the opening of a game until it can be ended, whatever both sides do.

    Every turn takes at most its extension beyond the budgets and the deferrals of both sides; the last second is what
    a timeout waits for.
    """
    begin, ways = legs(shape, arity)

    def total(way: tuple[Leg, ...]) -> int:
        return sum(
            d * clocks.extension(Turn(stage, Side.DEFENDER)) + c * clocks.extension(Turn(stage, Side.CHALLENGER))
            for stage, d, c in way
        )

    return 2 * (clocks.budget + DEFERRALS * DEFERRAL) + total(begin) + max(total(way) for way in ways) + 1


def most_moves(shape: Shape, arity: int) -> tuple[int, int]:
    """The most moves that the defender and the challenger can make in one game."""
    begin, ways = legs(shape, arity)

    def count(side: int) -> int:
        return sum(leg[side] for leg in begin) + max(sum(leg[side] for leg in way) for way in ways)

    return count(1), count(2)
