"""The moves of the dispute game about one element: its computation from openings under the agreed prefix root.

The contract computes: the whole element where its heads decide it, otherwise one term after the parts of a reduction
have been bisected. Source: docs/protocol.md, sections 3 and 5; `leaf` is the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from assay.protocol.arithmetic.words import Word, from_bytes, signed
from assay.protocol.digests import integer_list_hash, leaf_digest
from assay.protocol.game.descent import check_index, check_node, check_posted, judge, to
from assay.protocol.game.errors import PartsMismatch
from assay.protocol.game.header import parse_head
from assay.protocol.game.moves import PostParts, ProveTerm, SelectElement, SelectPart
from assay.protocol.game.openings import check_count, check_digest, load
from assay.protocol.game.state import GameState, Rules
from assay.protocol.game.table import Side, Stage
from assay.protocol.program import leaf as families
from assay.protocol.program.encoding import MalformedError, decode_node
from assay.protocol.program.nodes import Node
from assay.protocol.trees.tensors import LEAF_SIZE

_D, _C = Side.DEFENDER, Side.CHALLENGER


def select_element(state: GameState, move: SelectElement, rules: Rules) -> GameState:
    """LEAF: the element named, and its heads; it is decided, or its terms are disputed."""
    check_node(state, move.node)
    check_digest(leaf_digest(move.leaf), state.disputed)
    head = parse_head(move.node)
    check_index(move.offset, len(move.leaf) // head.width)
    element = state.index * (LEAF_SIZE // head.width) + move.offset
    at = move.offset * head.width
    # The bits as they stand: a NaN with a payload or a bool of 2 is not what a store writes, hence wrong.
    claimed = from_bytes(head.element, move.leaf[at : at + head.width])[0]
    node = _decode(move.node)
    reads = families.head_reads(node, element) if node else ()
    heads = load(reads, move.heads, state.agreed, state.node)
    start = families.start(node, element, heads) if node else families.Start(True, 0, 0)
    if start.done:
        return judge(state, start.value, claimed, element=element)
    state = replace(state, element=element, claimed=signed(claimed), heads=tuple(heads))
    state = replace(state, lo=0, hi=start.terms, whole=True)
    return to(state, Stage.TERM, _C) if start.terms == 1 else to(state, Stage.PARTS, _D)


def chunk(terms: int, arity: int) -> int:
    """Terms that one part stands for: the smallest power of the arity that leaves at most `arity` parts."""
    size = 1
    while size * arity < terms:
        size *= arity
    return size


def part_count(terms: int, arity: int) -> int:
    """Number of parts that `terms` terms are posted in."""
    return -(-terms // chunk(terms, arity))


def post_parts(state: GameState, move: PostParts, rules: Rules) -> GameState:
    """PARTS: the parts stand for what is disputed.

    Raises:
        PartsMismatch: they stand for something else. A true reply to another selection, mined again after a
            reorganization, convicts nobody.
    """
    check_node(state, move.node)
    check_count(len(move.parts), part_count(state.hi - state.lo, rules.config.arity))
    expected = _stands_for(state, move.node, move.parts)
    if expected != state.claimed:
        raise PartsMismatch(
            f"The parts stand for {expected}, in dispute is {state.claimed}.", expected=expected, claimed=state.claimed
        )
    return to(replace(state, posted=integer_list_hash(move.parts)), Stage.PARTS, _C)


def select_part(state: GameState, move: SelectPart, rules: Rules) -> GameState:
    """PARTS: the part named is disputed, down to one term."""
    check_posted(state, integer_list_hash(move.parts))
    check_index(move.index, len(move.parts))
    size = chunk(state.hi - state.lo, rules.config.arity)
    lo = state.lo + move.index * size
    hi = min(lo + size, state.hi)
    state = replace(state, lo=lo, hi=hi, claimed=move.parts[move.index], whole=False)
    return to(state, Stage.TERM, _C) if hi - lo == 1 else to(state, Stage.PARTS, _D)


def prove_term(state: GameState, move: ProveTerm, rules: Rules) -> GameState:
    """TERM: the contract computes one term from its openings."""
    check_node(state, move.node)
    node = _node(move.node)
    reads = families.term_reads(node, state.element, state.lo, state.heads)
    values = load(reads, move.reads, state.agreed, state.node)
    part = families.term(node, state.element, state.lo, state.heads, values)
    expected = _stands_for(state, move.node, (part,)) if state.whole else part
    return judge(state, expected, state.claimed, element=state.element, term=state.lo)


def _stands_for(state: GameState, descriptor: bytes, parts: Sequence[int]) -> int:
    """The element, or the part, that parts over all disputed terms stand for, as an int256."""
    node = _node(descriptor)
    word: Word = families.fold(node, state.heads, parts) if state.whole else families.combine(node, parts)
    return signed(word)


def _node(descriptor: bytes) -> Node:
    """The node of a descriptor whose element has terms: a malformed one is decided at its element."""
    node = _decode(descriptor)
    assert node is not None
    return node


def _decode(descriptor: bytes) -> Node | None:
    """The node of a descriptor; None for a malformed one, whose every element is 0 without heads and terms."""
    try:
        return decode_node(descriptor)
    except MalformedError:
        return None
