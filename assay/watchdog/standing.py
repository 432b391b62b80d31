"""Whom a game favours where it stands now, by a true trace of the claim: pure.

A move is judged by what it showed: the side whose last word contradicts the trace is losing, however the game goes on,
if the other side plays on from the truth. Source: docs/protocol.md, section 5.
"""

from __future__ import annotations

from assay.protocol.arithmetic.words import canonical, signed
from assay.protocol.game.descent import position
from assay.protocol.game.player_values import Position
from assay.protocol.game.players import Posted
from assay.protocol.game.state import GameState
from assay.protocol.game.table import Side, Stage
from assay.protocol.program import leaf
from assay.protocol.program.trace import Trace
from assay.protocol.trees import merkle
from assay.protocol.types import Digest

BISECTING = (Stage.STEPS, Stage.NODES)


def favoured(state: GameState, posted: Posted, trace: Trace, arity: int) -> Side:
    """The side that wins from here over a true trace; NONE when what both agreed on is itself untrue, or it is over.

    posted: what the defender's last move showed. With the defender to move, the digest in dispute decides; with the
    challenger to move, the whole list posted does, since any wrong entry in it can be selected.
    """
    if state.is_over or not _agreed_is_true(state, trace):
        return Side.NONE
    true = _disputed_is_true(state, trace, arity)
    if state.turn is Side.CHALLENGER:
        true = true and _posted_is_true(state, posted, trace, arity)
    return Side.DEFENDER if true else Side.CHALLENGER


def _digest(state: GameState, trace: Trace, at: int) -> Digest:
    """What the trace has at a position of the bisection."""
    if state.stage is Stage.STEPS:
        return trace.state_root(at)
    if at > len(trace.program.nodes):
        return trace.state_root(state.step)
    return trace.prefix_root(state.step, at)


def _agreed_is_true(state: GameState, trace: Trace) -> bool:
    # From NODES on the state that a step begins with is agreed on too: what its input nodes are proven by.
    if state.stage is not Stage.STEPS and state.before != trace.state_root(state.step - 1):
        return False
    if state.stage in BISECTING:
        return state.agreed == _digest(state, trace, state.lo)
    end_of_step = state.stage in (Stage.STATE, Stage.LIST, Stage.SLOT)
    k = len(trace.program.nodes) if end_of_step else state.node
    return state.agreed == trace.prefix_root(state.step, k)


def _disputed_is_true(state: GameState, trace: Trace, arity: int) -> bool:
    """Whether the claim in dispute, narrowed this far, is what the trace has there."""
    t, k = state.step, state.node
    match state.stage:
        case Stage.STEPS | Stage.NODES:
            return state.disputed == _digest(state, trace, state.hi)
        case Stage.NODE:
            return state.disputed == trace.prefix_root(t, k + 1)
        case Stage.ROOT:
            return state.value == trace.node_root(t, k)
        case Stage.STATE:
            return state.disputed == trace.state_root(t)
        case Stage.LIST if state.whole:
            return state.disputed == trace.list_roots(t)[state.list_index]
        case Stage.SLOT:
            return state.disputed == trace.slot_roots(t, state.list_index)[state.index]
        case Stage.TENSOR | Stage.LIST | Stage.LEAF if state.turn is Side.DEFENDER or state.stage is Stage.LEAF:
            return state.disputed == _tree(state, trace).levels[state.level][state.index]
        case Stage.PARTS | Stage.TERM:
            return state.claimed == _claim_of_terms(state, trace)
        case _:
            # TENSOR and LIST with the challenger to move: nothing is in dispute but the list posted.
            return True


def _posted_is_true(state: GameState, posted: Posted, trace: Trace, arity: int) -> bool:
    """Whether everything that the defender's last move showed is what the trace has there."""
    match state.stage:
        case Stage.STEPS | Stage.NODES:
            m = len(posted.digests)
            own = [_digest(state, trace, position(state.lo, state.hi, i, m)) for i in range(1, m + 1)]
            return list(posted.digests) == own
        case Stage.TENSOR | Stage.LIST:
            entries = _tree(state, trace).levels[state.level]
            return tuple(posted.digests) == tuple(entries[state.index : state.index + len(posted.digests)])
        case Stage.STATE:
            return tuple(posted.digests) == trace.list_roots(state.step)
        case Stage.LEAF:
            return posted.leaf == Position(trace, state.step, state.node).value.leaf(state.index)
        case Stage.PARTS:
            place = Position(trace, state.step, state.node)
            return list(posted.parts) == place.parts(state.element, state.lo, state.hi, state.heads, arity)
        case _:
            return True


def _tree(state: GameState, trace: Trace) -> merkle.Tree:
    """The tree that is being opened."""
    if state.stage is Stage.LIST:
        return merkle.Tree(trace.slot_roots(state.step, state.list_index))
    return Position(trace, state.step, state.node).value.tree


def _claim_of_terms(state: GameState, trace: Trace) -> int:
    """What the element, or the part over terms [lo, hi), is in the trace, as an int256."""
    place = Position(trace, state.step, state.node)
    if state.whole:
        dtype = place.value.spec.dtype
        return signed(canonical(dtype, place.value.word(state.element)))
    each = [
        leaf.part_of(place.node, state.element, term, state.heads, place.load) for term in range(state.lo, state.hi)
    ]
    return leaf.combine(place.node, each) if len(each) > 1 else each[0]
