"""The moves of the dispute game down to a leaf: bisection, openings of nodes, trees and states, equalities of roots.

Each function judges one well-timed move of the right side: it returns the next state (with stage and turn set) or
raises the named error of a malformed move. `judge` sets a verdict. Source: docs/protocol.md, section 5.
"""

from __future__ import annotations

from dataclasses import replace

from assay.protocol import abi
from assay.protocol.arithmetic.words import signed
from assay.protocol.digests import ZERO, digest_list_hash, keccak, leaf_digest, list_digest, state_digest
from assay.protocol.game.errors import IndexOutOfRange, ListMismatch
from assay.protocol.game.header import Header, parse_head, take
from assay.protocol.game.moves import (
    BisectDigests,
    OpenLeaf,
    OpenNode,
    OpenState,
    OpenSubtree,
    PostDigests,
    ProveRoot,
    SelectList,
    SelectSubtree,
)
from assay.protocol.game.openings import check_count, check_digest, path_root
from assay.protocol.game.state import GameState, Outcome, Rules, Verdict
from assay.protocol.game.table import POSTINGS, Side, Stage
from assay.protocol.program.nodes import Family
from assay.protocol.trees import merkle, prefix
from assay.protocol.trees.tensors import LEAF_SIZE
from assay.protocol.types import Digest

_D, _C = Side.DEFENDER, Side.CHALLENGER
_ROOT_FAMILIES = (Family.INPUT, Family.CONST, Family.OUTPUT)


def to(state: GameState, stage: Stage, side: Side) -> GameState:
    """The state with the next turn set; the clock is the caller's business."""
    return replace(state, stage=stage, turn=side)


def judge(state: GameState, expected: int, claimed: int, *, element: int = 0, term: int = 0) -> GameState:
    """The verdict of the contract's own value: the defender lost if its claim differs, else the challenger did."""
    side = _D if expected != claimed else _C
    verdict = Verdict(
        state.party(side),
        side,
        Outcome.LEAF,
        state.family,
        state.node,
        element,
        term,
        signed(expected),
        signed(claimed),
    )
    return replace(state, verdict=verdict)


def check_posted(state: GameState, posted: Digest) -> None:
    """Raises ListMismatch when the list given again is not the one posted."""
    if posted != state.posted:
        raise ListMismatch("The list is not the one posted.", got=posted, wanted=state.posted)


def check_index(index: int, count: int) -> None:
    """Raises IndexOutOfRange."""
    if not 0 <= index < count:
        raise IndexOutOfRange(f"There is no entry {index} of {count}.", index=index, count=count)


def check_node(state: GameState, node: bytes) -> None:
    """Raises WrongDigest when a descriptor given again is not the one that was opened."""
    check_digest(keccak(node), state.node_hash)


# --- bisection: STEPS, NODES


def position(lo: int, hi: int, i: int, m: int) -> int:
    """The position of digest i = 0..m of a list over (lo, hi]; i = 0 is lo itself."""
    return lo + (hi - lo) * i // m


def position_key(state: GameState) -> Digest:
    """What a list is known by: K(claim id, program, stage, step, lo, hi, agreed, disputed), 32-byte words.

    The claim id does not bind the program: an attestation's depends on the kind of duty that it is about.
    """
    numbers = b"".join(abi.uint(n) for n in (state.stage, state.step, state.lo, state.hi))
    return keccak(state.claim.id + state.claim.program + numbers + state.agreed + state.disputed)


def begin_nodes(state: GameState, rules: Rules, step: int, before: Digest, after: Digest) -> GameState:
    """One disputed step: its prefix roots are bisected next, P_0 agreed, s_t disputed at n + 1."""
    state = replace(state, step=step, before=before, after=after, lo=0, hi=rules.program.nodes + 1)
    return to(replace(state, agreed=prefix.EMPTY, disputed=after), Stage.NODES, _D)


def post_digests(state: GameState, move: PostDigests, rules: Rules) -> GameState:
    """STEPS, NODES: the count is exact, the last digest is the disputed one, and no other list is known here.

    An empty list stands for the one that is known.
    """
    known = rules.position_cache.get(position_key(state))
    if known is not None and not move.digests:
        return to(replace(state, posted=known), state.stage, _C)
    check_count(len(move.digests), min(rules.config.arity, state.hi - state.lo))
    check_digest(move.digests[-1], state.disputed)
    posted = digest_list_hash(move.digests)
    state = replace(state, posted=posted if known is None else known)
    # Else a claimant could answer two challengers differently.
    check_posted(state, posted)
    return to(state, state.stage, _C)


def reuse_list(state: GameState, rules: Rules) -> GameState:
    """STEPS, NODES, the defender to move: a list known at this position counts as posted, the challenger is to move."""
    if state.whose not in POSTINGS:
        return state
    known = rules.position_cache.get(position_key(state))
    return state if known is None else to(replace(state, posted=known), state.stage, _C)


def bisect_digests(state: GameState, move: BisectDigests, rules: Rules) -> GameState:
    """STEPS, NODES: the digest before the one named becomes agreed."""
    check_posted(state, digest_list_hash(move.digests))
    m = len(move.digests)
    check_index(move.index, m)
    agreed = move.digests[move.index - 1] if move.index else state.agreed
    disputed = move.digests[move.index]
    lo, hi = (position(state.lo, state.hi, i, m) for i in (move.index, move.index + 1))
    state = replace(state, lo=lo, hi=hi, agreed=agreed, disputed=disputed)
    if hi - lo > 1:
        return to(state, state.stage, _D)
    if state.stage is Stage.STEPS:
        return begin_nodes(state, rules, hi, agreed, disputed)
    state = replace(state, node=lo)
    return to(state, Stage.NODE if lo < rules.program.nodes else Stage.STATE, _D)


# --- one node: NODE, ROOT, and the trees below


def open_node(state: GameState, move: OpenNode, rules: Rules) -> GameState:
    """NODE: descriptor, header, value and append path are bound to the program and to P_k, P_(k+1)."""
    program, k = rules.program, state.node
    # Another node's descriptor: a false value could be justified by another computation.
    check_digest(path_root(leaf_digest(move.node), k, program.nodes, move.program_path), program.tree)
    head = parse_head(move.node)
    height = merkle.height(head.leaf_count)
    below, first, end = merkle.opening_range(head.leaf_count, height, 0, rules.config.levels)
    check_count(len(move.digests), end - first)
    # Type and dims come from the descriptor: a value of another shape has no root here.
    value = head.tensor_root(merkle.root(move.digests))
    # One path, two roots: with a second path an earlier value could be exchanged between P_k and P_(k+1).
    check_count(len(move.append_path), prefix.DEPTH)
    check_digest(prefix.root_from_path(ZERO, k, move.append_path), state.agreed)
    check_digest(prefix.root_from_path(value, k, move.append_path), state.disputed)
    state = replace(state, family=head.family, node_hash=keccak(move.node), value=value)
    last = head.nbytes - (head.leaf_count - 1) * LEAF_SIZE if head.leaf_count else 0
    state = replace(state, level=below, index=first, count=head.leaf_count, last=last)
    state = replace(state, posted=digest_list_hash(move.digests))
    return to(state, Stage.ROOT if head.family in _ROOT_FAMILIES else Stage.TENSOR, _C)


def prove_root(state: GameState, move: ProveRoot, rules: Rules) -> GameState:
    """ROOT, SLOT: the root that is there against the root that belongs there."""
    if state.stage is Stage.SLOT:
        return _prove_slot(state, move, rules)
    check_node(state, move.node)
    head = parse_head(move.node)
    if head.family == Family.INPUT:
        wanted = _input_root(state, move, rules, head)
    elif head.family == Family.CONST:
        check_count(len(move.path), 0)
        check_count(len(move.opening), 0)
        wanted = Digest(take(move.node, head.body, 32))
    else:
        wanted = _source_root(state, move, int.from_bytes(take(move.node, head.body + 5, 4), "big"))
    return judge(state, int.from_bytes(wanted, "big"), int.from_bytes(state.value, "big"))


def _prove_slot(state: GameState, move: ProveRoot, rules: Rules) -> GameState:
    """SLOT: a slot of s_t against the value of its output node under P_n."""
    check_count(len(move.node), 0)
    node = rules.program.output_node(state.list_index, state.index)
    wanted = _source_root(state, move, node)
    state = replace(state, node=node, family=Family.OUTPUT)
    return judge(
        state,
        int.from_bytes(wanted, "big"),
        int.from_bytes(state.disputed, "big"),
        element=state.index,
        term=state.list_index,
    )


def _input_root(state: GameState, move: ProveRoot, rules: Rules, head: Header) -> Digest:
    """The tensor root of an input node's slot in s_(t-1)."""
    list_index = int.from_bytes(take(move.node, head.body, 1), "big")
    index = int.from_bytes(take(move.node, head.body + 1, 4), "big")
    sizes = rules.program.inputs
    check_count(len(move.opening), 32 * (len(sizes) + 1))
    *roots, slot = (Digest(move.opening[i : i + 32]) for i in range(0, len(move.opening), 32))
    check_digest(state_digest(roots), state.before)
    check_index(list_index, len(sizes))
    check_index(index, sizes[list_index])
    tree = path_root(slot, index, sizes[list_index], move.path)
    check_digest(list_digest(sizes[list_index], tree), roots[list_index])
    return slot


def _source_root(state: GameState, move: ProveRoot, node: int) -> Digest:
    """The tensor root of an earlier node under the agreed prefix root."""
    check_count(len(move.opening), 32)
    root = Digest(bytes(move.opening))
    check_count(len(move.path), prefix.DEPTH)
    check_digest(prefix.root_from_path(root, node % (1 << prefix.DEPTH), move.path), state.agreed)
    return root


# --- trees: TENSOR and LIST


def open_subtree(state: GameState, move: OpenSubtree, rules: Rules) -> GameState:
    """TENSOR, LIST: exactly the entries that the disputed one covers, some levels lower."""
    below, first, end = merkle.opening_range(state.count, state.level, state.index, rules.config.levels)
    check_count(len(move.digests), end - first)
    opened = merkle.root(move.digests)
    check_digest(list_digest(state.count, opened) if state.whole else opened, state.disputed)
    state = replace(state, level=below, index=first, whole=False, posted=digest_list_hash(move.digests))
    return to(state, state.stage, _C)


def select_subtree(state: GameState, move: SelectSubtree, rules: Rules) -> GameState:
    """TENSOR, LIST: the entry named is disputed; on level 0 it is a leaf, or a slot."""
    check_posted(state, digest_list_hash(move.digests))
    check_index(move.index, len(move.digests))
    state = replace(state, index=state.index + move.index, disputed=move.digests[move.index])
    if state.level:
        return to(state, state.stage, _D)
    return to(state, Stage.LEAF, _D) if state.stage is Stage.TENSOR else to(state, Stage.SLOT, _C)


def open_leaf(state: GameState, move: OpenLeaf, rules: Rules) -> GameState:
    """LEAF: the bytes, in exactly the length that the shape demands: padding would belong to no element."""
    check_count(len(move.leaf), state.last if state.index + 1 == state.count else LEAF_SIZE)
    check_digest(leaf_digest(move.leaf), state.disputed)
    return to(state, Stage.LEAF, _C)


# --- the end of a step: STATE


def open_state(state: GameState, move: OpenState, rules: Rules) -> GameState:
    """STATE: the list roots of s_t."""
    check_count(len(move.list_roots), len(rules.program.outputs))
    check_digest(state_digest(move.list_roots), state.disputed)
    return to(replace(state, posted=digest_list_hash(move.list_roots)), Stage.STATE, _C)


def select_list(state: GameState, move: SelectList, rules: Rules) -> GameState:
    """STATE: the list named is disputed; its number of slots comes from the program's header."""
    check_posted(state, digest_list_hash(move.list_roots))
    check_index(move.index, len(move.list_roots))
    count = rules.program.outputs[move.index]
    state = replace(state, list_index=move.index, disputed=move.list_roots[move.index])
    state = replace(state, count=count, level=merkle.height(count), index=0, whole=True)
    return to(state, Stage.LIST, _D)
