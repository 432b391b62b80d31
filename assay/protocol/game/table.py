"""The transition table of the dispute game: which side moves in which stage, by which move, and what may follow.

The one place that says so: `game.process_move` obeys it, `Game.sol` is tested against it pair by pair, and the diagram
in docs/game.md is drawn from it. Normative text: docs/protocol.md, section 5.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class Stage(IntEnum):
    """Where a game stands; the integers equal Solidity's `Stage`."""

    NONE = 0
    STEPS = 1
    NODES = 2
    NODE = 3
    ROOT = 4
    TENSOR = 5
    LEAF = 6
    PARTS = 7
    TERM = 8
    STATE = 9
    LIST = 10
    SLOT = 11
    OVER = 12


class Side(IntEnum):
    """The two sides of a game; the integers equal Solidity's `Side`."""

    NONE = 0
    DEFENDER = 1
    CHALLENGER = 2

    @property
    def other(self) -> Side:
        """The opponent."""
        return Side.DEFENDER if self is Side.CHALLENGER else Side.CHALLENGER


class Move(IntEnum):
    """The moves; every move belongs to one side."""

    POST_DIGESTS = 1
    BISECT_DIGESTS = 2
    OPEN_NODE = 3
    PROVE_ROOT = 4
    SELECT_SUBTREE = 5
    OPEN_SUBTREE = 6
    OPEN_LEAF = 7
    SELECT_ELEMENT = 8
    POST_PARTS = 9
    SELECT_PART = 10
    PROVE_TERM = 11
    OPEN_STATE = 12
    SELECT_LIST = 13

    @property
    def function(self) -> str:
        """The name of the contract's function."""
        return _MOVES[self][0]

    @property
    def side(self) -> Side:
        """Who makes this move."""
        return _MOVES[self][1]


_D, _C = Side.DEFENDER, Side.CHALLENGER

_MOVES: Final = MappingProxyType(
    {
        Move.POST_DIGESTS: ("postDigests", _D),
        Move.BISECT_DIGESTS: ("bisectDigests", _C),
        Move.OPEN_NODE: ("openNode", _D),
        Move.PROVE_ROOT: ("proveRoot", _C),
        Move.SELECT_SUBTREE: ("selectSubtree", _C),
        Move.OPEN_SUBTREE: ("openSubtree", _D),
        Move.OPEN_LEAF: ("openLeaf", _D),
        Move.SELECT_ELEMENT: ("selectElement", _C),
        Move.POST_PARTS: ("postParts", _D),
        Move.SELECT_PART: ("selectPart", _C),
        Move.PROVE_TERM: ("proveTerm", _C),
        Move.OPEN_STATE: ("openState", _D),
        Move.SELECT_LIST: ("selectList", _C),
    }
)
"""Each move's function in `Game.sol`, and the side that makes it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """A stage and the side whose clock runs."""

    stage: Stage
    side: Side


@dataclass(frozen=True, slots=True)
class Transition:
    """The one move of a turn, the turns that may follow, and whether the move can decide the game."""

    move: Move
    next: tuple[Turn, ...]
    decides: bool = False


def _turns(*pairs: tuple[Stage, Side]) -> tuple[Turn, ...]:
    return tuple(Turn(stage, side) for stage, side in pairs)


TABLE: Final = MappingProxyType(
    {
        Turn(Stage.STEPS, _D): Transition(Move.POST_DIGESTS, _turns((Stage.STEPS, _C))),
        Turn(Stage.STEPS, _C): Transition(
            Move.BISECT_DIGESTS,
            _turns((Stage.STEPS, _D), (Stage.STEPS, _C), (Stage.NODES, _D), (Stage.NODES, _C)),
        ),
        Turn(Stage.NODES, _D): Transition(Move.POST_DIGESTS, _turns((Stage.NODES, _C))),
        Turn(Stage.NODES, _C): Transition(
            Move.BISECT_DIGESTS, _turns((Stage.NODES, _D), (Stage.NODES, _C), (Stage.NODE, _D), (Stage.STATE, _D))
        ),
        Turn(Stage.NODE, _D): Transition(Move.OPEN_NODE, _turns((Stage.ROOT, _C), (Stage.TENSOR, _C))),
        Turn(Stage.ROOT, _C): Transition(Move.PROVE_ROOT, (), decides=True),
        Turn(Stage.TENSOR, _C): Transition(Move.SELECT_SUBTREE, _turns((Stage.TENSOR, _D), (Stage.LEAF, _D))),
        Turn(Stage.TENSOR, _D): Transition(Move.OPEN_SUBTREE, _turns((Stage.TENSOR, _C))),
        Turn(Stage.LEAF, _D): Transition(Move.OPEN_LEAF, _turns((Stage.LEAF, _C))),
        Turn(Stage.LEAF, _C): Transition(
            Move.SELECT_ELEMENT, _turns((Stage.PARTS, _D), (Stage.TERM, _C)), decides=True
        ),
        Turn(Stage.PARTS, _D): Transition(Move.POST_PARTS, _turns((Stage.PARTS, _C))),
        Turn(Stage.PARTS, _C): Transition(Move.SELECT_PART, _turns((Stage.PARTS, _D), (Stage.TERM, _C))),
        Turn(Stage.TERM, _C): Transition(Move.PROVE_TERM, (), decides=True),
        Turn(Stage.STATE, _D): Transition(Move.OPEN_STATE, _turns((Stage.STATE, _C))),
        Turn(Stage.STATE, _C): Transition(Move.SELECT_LIST, _turns((Stage.LIST, _D))),
        Turn(Stage.LIST, _D): Transition(Move.OPEN_SUBTREE, _turns((Stage.LIST, _C))),
        Turn(Stage.LIST, _C): Transition(Move.SELECT_SUBTREE, _turns((Stage.LIST, _D), (Stage.SLOT, _C))),
        Turn(Stage.SLOT, _C): Transition(Move.PROVE_ROOT, (), decides=True),
    }
)
"""Every turn that a game can stand at. A timeout ends any of them, a deferral delays any; OVER has no turns."""

POSTINGS: Final = _turns((Stage.STEPS, _D), (Stage.NODES, _D))
"""Turns that a game skips when the list to be posted is known already: the challenger is to move in the same stage."""


def stages_of(move: Move) -> frozenset[Stage]:
    """The stages in which a move is made."""
    return frozenset(turn.stage for turn, transition in TABLE.items() if transition.move is move)


def to_mermaid() -> str:
    """The table as a Mermaid state diagram: one state per turn, one edge per move and outcome."""

    def name(turn: Turn) -> str:
        return f"{turn.stage.name}_{turn.side.name[0]}"

    def edge(source: str, follower: Turn, label: str) -> str:
        skips = label != Move.POST_DIGESTS.function and follower.side is _C and Turn(follower.stage, _D) in POSTINGS
        return f"    {source} --> {name(follower)}: {label}{', list known' if skips else ''}"

    lines = ["stateDiagram-v2"]
    for stage, steps in ((Stage.STEPS, "steps > 1"), (Stage.NODES, "steps = 1")):
        lines += [edge("[*]", Turn(stage, side), f"challenge, {steps}") for side in (_D, _C)]
    for turn in TABLE:
        side = turn.side.name.lower()
        lines.append(f"    {name(turn)}: {turn.stage.name} ({side} to move)")
    for turn, transition in TABLE.items():
        for follower in transition.next:
            lines.append(edge(name(turn), follower, transition.move.function))
        if transition.decides:
            lines.append(f"    {name(turn)} --> [*]: {transition.move.function}, verdict")
    lines += [
        "    note right of STEPS_D",
        "        Every turn: defer, above the fee cap, to the same turn an hour later",
    ]
    lines += ["        Every turn: timeout, after its deadline, verdict", "    end note"]
    return "\n".join(lines) + "\n"
