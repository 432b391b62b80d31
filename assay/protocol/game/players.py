"""How both sides of a dispute game play, as pure functions of the game's state and what was last posted.

A `Defender` and a `Challenger` answer from their own trace. Played over a true trace they win against anybody; played
over a false one they are the most stubborn liars there can be: consistent to the last move. Neither knows which it is.
Source: docs/protocol.md, section 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from assay.protocol.game.descent import position
from assay.protocol.game.moves import (
    AnyMove,
    BisectDigests,
    OpenLeaf,
    OpenNode,
    OpenState,
    OpenSubtree,
    PostDigests,
    PostParts,
    ProveRoot,
    ProveTerm,
    SelectElement,
    SelectList,
    SelectPart,
    SelectSubtree,
)
from assay.protocol.game.player_values import Position, defend_parts
from assay.protocol.game.state import GameState
from assay.protocol.game.table import Side, Stage
from assay.protocol.program import leaf
from assay.protocol.program.nodes import Const, Input, Output
from assay.protocol.program.trace import Trace
from assay.protocol.trees import merkle
from assay.protocol.trees.tensors import LEAF_SIZE
from assay.protocol.types import Digest


@dataclass(frozen=True, slots=True)
class Posted:
    """What the defender's last move showed: digests (also list roots), a leaf, or parts."""

    digests: tuple[Digest, ...] = ()
    leaf: bytes = b""
    parts: tuple[int, ...] = ()


def posted_by(move: AnyMove) -> Posted:
    """What a move of the defender leaves for the challenger to select from; nothing for a challenger's move."""
    match move:
        case PostDigests() | OpenNode() | OpenSubtree():
            return Posted(digests=move.digests)
        case OpenState():
            return Posted(digests=move.list_roots)
        case OpenLeaf():
            return Posted(leaf=move.leaf)
        case PostParts():
            return Posted(parts=move.parts)
        case _:
            return Posted()


class _Player:
    """What both sides can look up."""

    side: Side

    def __init__(self, trace: Trace, arity: int) -> None:
        self.trace = trace
        self.arity = arity
        self._levels = arity.bit_length() - 1
        self._at = lru_cache(maxsize=2)(lambda t, k: Position(trace, t, k))

    def _digest(self, state: GameState, at: int) -> Digest:
        """The digest that this trace has at a position of the bisection."""
        if state.stage is Stage.STEPS:
            return self.trace.state_root(at)
        if at > len(self.trace.program.nodes):
            return self.trace.state_root(state.step)
        return self.trace.prefix_root(state.step, at)

    def _place(self, state: GameState) -> Position:
        """The node in dispute in this trace."""
        return self._at(state.step, state.node)

    def _slots(self, state: GameState) -> merkle.Tree:
        """The tree over the slots of the list in dispute."""
        return merkle.Tree(self.trace.slot_roots(state.step, state.list_index))

    def _tree(self, state: GameState) -> merkle.Tree:
        """The tree that is being opened."""
        return self._slots(state) if state.stage is Stage.LIST else self._place(state).value.tree


class Defender(_Player):
    """Opens what it claimed, from its own trace."""

    side = Side.DEFENDER

    def next_move(self, state: GameState, posted: Posted = Posted()) -> AnyMove | None:
        """The defender's move; None when it is not to move, or when nothing could stand for what it claimed."""
        if state.turn is not self.side:
            return None
        match state.stage:
            case Stage.STEPS | Stage.NODES:
                m = min(self.arity, state.hi - state.lo)
                places = [position(state.lo, state.hi, i, m) for i in range(1, m + 1)]
                return PostDigests(tuple(self._digest(state, at) for at in places))
            case Stage.NODE:
                return self._open_node(state)
            case Stage.TENSOR | Stage.LIST:
                return OpenSubtree(self._tree(state).open_entry(state.level, state.index, self._levels))
            case Stage.LEAF:
                return OpenLeaf(self._place(state).value.leaf(state.index))
            case Stage.PARTS:
                return self._post_parts(state)
            case Stage.STATE:
                return OpenState(self.trace.list_roots(state.step))
            case _:
                return None

    def _open_node(self, state: GameState) -> OpenNode:
        place = self._place(state)
        tree = place.value.tree
        return OpenNode(
            place.descriptor,
            place.program.tree.path(state.node),
            self.trace.prefix_path(state.step, state.node, state.node),
            tree.open_entry(len(tree.levels) - 1, 0, self._levels),
        )

    def _post_parts(self, state: GameState) -> PostParts | None:
        place = self._place(state)
        parts = place.parts(state.element, state.lo, state.hi, state.heads, self.arity)
        found = defend_parts(place.node, state.heads, parts, state.claimed, state.whole)
        return None if found is None else PostParts(place.descriptor, tuple(found))


class Challenger(_Player):
    """Bisects and selects what differs from its own trace, and proves by it what belongs there."""

    side = Side.CHALLENGER

    def next_move(self, state: GameState, posted: Posted) -> AnyMove | None:
        """The challenger's move after the defender posted; None when it is not to move."""
        if state.turn is not self.side:
            return None
        match state.stage:
            case Stage.STEPS | Stage.NODES:
                m = len(posted.digests)
                own = [self._digest(state, position(state.lo, state.hi, i, m)) for i in range(1, m + 1)]
                return BisectDigests(_first_difference(posted.digests, own), posted.digests)
            case Stage.TENSOR | Stage.LIST:
                opened = self._opened(state, len(posted.digests))
                return SelectSubtree(_first_difference(posted.digests, opened), posted.digests)
            case Stage.STATE:
                return SelectList(_first_difference(posted.digests, self.trace.list_roots(state.step)), posted.digests)
            case Stage.LEAF:
                return self._select_element(state, posted.leaf)
            case Stage.PARTS:
                place = self._place(state)
                parts = place.parts(state.element, state.lo, state.hi, state.heads, self.arity)
                return SelectPart(_first_difference(posted.parts, parts), posted.parts)
            case Stage.TERM:
                place = self._place(state)
                reads = leaf.term_reads(place.node, state.element, state.lo, state.heads)
                return ProveTerm(place.descriptor, tuple(place.open(read) for read in reads))
            case Stage.ROOT:
                return self._prove_root(state)
            case Stage.SLOT:
                return self._prove_source(state, self._output_node(state), b"", len(self.trace.program.nodes))
            case _:
                return None

    def _opened(self, state: GameState, count: int) -> Sequence[Digest]:
        """This trace's entries where the posted ones stand."""
        return self._tree(state).levels[state.level][state.index : state.index + count]

    def _select_element(self, state: GameState, leaf_: bytes) -> SelectElement:
        place = self._place(state)
        own, size = place.value.leaf(state.index), place.value.spec.dtype.size
        offset = _first_difference(_cut(leaf_, size), _cut(own, size))
        element = state.index * (LEAF_SIZE // size) + offset
        reads = leaf.head_reads(place.node, element)
        return SelectElement(offset, leaf_, place.descriptor, tuple(place.open(read) for read in reads))

    def _prove_root(self, state: GameState) -> ProveRoot:
        place = self._place(state)
        match place.node:
            case Input(list_index=number, index=index):
                slots = self.trace.slot_roots(state.step - 1, number)
                roots = self.trace.list_roots(state.step - 1)
                return ProveRoot(place.descriptor, merkle.path(slots, index), b"".join(roots) + slots[index])
            case Output(node=source):
                return self._prove_source(state, source, place.descriptor, state.node)
            case Const():
                return ProveRoot(place.descriptor, (), b"")
            case _:
                return ProveRoot(place.descriptor, (), b"")

    def _prove_source(self, state: GameState, source: int, descriptor: bytes, k: int) -> ProveRoot:
        """The tensor root of an earlier node under P_k."""
        siblings = self.trace.prefix_path(state.step, k, source)
        return ProveRoot(descriptor, siblings, self.trace.node_root(state.step, source))

    def _output_node(self, state: GameState) -> int:
        return self.trace.program.output_nodes[state.list_index][state.index]


def _first_difference(posted: Sequence[object], own: Sequence[object]) -> int:
    """Where two lists first differ; the last entry when they do not, since something there must be selected."""
    for i, entry in enumerate(posted):
        if i >= len(own) or entry != own[i]:
            return i
    return max(len(posted) - 1, 0)


def _cut(data: bytes, size: int) -> list[bytes]:
    """Elements of a leaf."""
    return [data[i : i + size] for i in range(0, len(data), size)]
