"""Arbiter and model open nodes with damaged descriptors alike, and agree on what input, const and output must equal."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from assay.protocol.digests import ZERO, digest_list_hash, keccak, leaf_digest, state_digest
from assay.protocol.game.descent import open_node, prove_root
from assay.protocol.game.errors import GameError
from assay.protocol.game.header import parse_head
from assay.protocol.game.moves import OpenNode, ProveRoot
from assay.protocol.game.state import DisputedClaim, GameState, ProgramHeader, Rules
from assay.protocol.game.table import Side, Stage
from assay.protocol.program.encoding import encode_node
from assay.protocol.program.nodes import Const, Input, Node, Output
from assay.protocol.trees import merkle, prefix
from assay.protocol.trees.state import list_root
from assay.protocol.trees.tensors import TensorSpec
from assay.protocol.types import Address, Digest, DType
from tests.harness.contracts.harness import EvmContract
from tests.harness.games import config
from tests.second import fuzzing

CASES = 300
NOBODY = Address(bytes(20))
CLAIM = DisputedClaim(ZERO, NOBODY, ZERO, ZERO, ZERO, 1, ZERO)
SETTINGS = config(4)


def digests(rng: Random, count: int) -> tuple[Digest, ...]:
    return tuple(Digest(rng.randbytes(32)) for _ in range(count))


def shortened(path: tuple[Digest, ...], rng: Random) -> tuple[Digest, ...]:
    """The same, or rarely one entry less, more or another."""
    other = digests(rng, 1)
    return path if rng.random() < 0.9 else rng.choice((path[:-1], path + other, path[:-1] + other))


def test_nodes_with_damaged_descriptors_are_opened_alike(arbiter: EvmContract) -> None:
    open_nodes(arbiter, CASES)


def open_nodes(arbiter: EvmContract, count: int) -> None:
    """As many openings of nodes on both."""
    seen = set()
    for case in range(count):
        rng = Random(f"open {case}")
        descriptor = fuzzing.descriptor(rng)
        head = parse_head(descriptor)
        nodes = rng.choice((1, 2, 5, 9))
        k = rng.randrange(nodes)
        tree = merkle.Tree([leaf_digest(descriptor) if j == k else d for j, d in enumerate(digests(rng, nodes))])
        _, first, end = merkle.opening_range(head.leaf_count, merkle.height(head.leaf_count), 0, SETTINGS.levels)
        shown = digests(rng, end - first)
        value = head.tensor_root(merkle.root(shown))
        append = digests(rng, prefix.DEPTH)
        agreed, disputed = (prefix.root_from_path(d, k, append) for d in (ZERO, value))
        assert agreed is not None and disputed is not None
        move = OpenNode(descriptor, *(shortened(p, rng) for p in (tree.path(k), append, shown)))
        rules = Rules(SETTINGS, ProgramHeader(ZERO, tree.root, nodes, (), ()))
        state = GameState(
            1, CLAIM, NOBODY, Stage.NODE, Side.DEFENDER, 0, 0, (0, 0), node=k, agreed=agreed, disputed=disputed
        )
        place = (tree.root, nodes, k, agreed, disputed, SETTINGS.levels)
        answer = fuzzing.called(
            arbiter, "openNode", place, descriptor, move.program_path, move.append_path, move.digests
        )
        try:
            after = open_node(state, move, rules)
        except GameError as error:
            assert answer == error.code, descriptor.hex()
            seen.add(error.code)
            continue
        assert answer == (after.family, after.value, after.level, after.count, after.last), descriptor.hex()
        assert after.posted == digest_list_hash(shown) and after.index == 0
        seen.add(str(after.stage))
    assert seen >= {"WrongCount", "WrongDigest", str(Stage.ROOT), str(Stage.TENSOR)}


def _root_node(rng: Random) -> Node:
    spec = TensorSpec(rng.choice(list(DType)), rng.choice(((), (3,), (2, 2))))
    return rng.choice(
        (
            Input(spec, rng.choice((0, 1, 1, 2)), rng.choice((0, 1, 2, 3))),
            Const(spec, Digest(rng.randbytes(32))),
            Output(spec, 0, 0, rng.choice((0, 1, 4, (1 << 20) + 1))),
        )
    )


def test_what_a_damaged_input_const_or_output_must_equal_is_the_same(arbiter: EvmContract) -> None:
    prove_roots(arbiter, CASES)


def prove_roots(arbiter: EvmContract, count: int) -> None:
    """As many proofs of roots on both."""
    seen: set[Any] = set()
    for case in range(count):
        rng = Random(f"root {case}")
        descriptor = encode_node(_root_node(rng))
        if rng.random() < 0.4:
            descriptor = rng.choice((descriptor[: rng.randrange(len(descriptor))], fuzzing.damaged(descriptor, rng)))
        head = parse_head(descriptor)
        if head.family not in (0, 1, 11):
            continue
        sizes = rng.choice(((2, 3), (1, 4), (3,)))
        lists = [digests(rng, size) for size in sizes]
        roots = [list_root(slots) for slots in lists]
        siblings, source = digests(rng, prefix.DEPTH), Digest(rng.randbytes(32))
        body = descriptor[head.body :].ljust(9, b"\0")
        at, index = body[0], int.from_bytes(body[1:5], "big")
        node = int.from_bytes(body[5:9], "big") % (1 << prefix.DEPTH)
        agreed = prefix.root_from_path(source, node, siblings)
        assert agreed is not None
        path: tuple[Digest, ...] = ()
        opening = b""
        if head.family == 0:
            slots = lists[at] if at < len(lists) else lists[0]
            there = index if index < len(slots) else 0
            path, opening = merkle.path(slots, there), b"".join(roots) + slots[there]
        elif head.family == 11:
            path, opening = siblings, source
        if rng.random() < 0.15:
            opening = fuzzing.damaged(opening, rng)
        move = ProveRoot(descriptor, shortened(path, rng), opening)
        rules = Rules(SETTINGS, ProgramHeader(ZERO, ZERO, 20, sizes, ()))
        state = GameState(
            1, CLAIM, NOBODY, Stage.ROOT, Side.CHALLENGER, 0, 0, (0, 0), agreed=agreed, before=state_digest(roots)
        )
        state = replace(state, node_hash=keccak(descriptor), family=head.family)
        answer = fuzzing.called(arbiter, "rootOf", descriptor, move.path, opening, sizes, state.before, agreed)
        try:
            after = prove_root(state, move, rules)
        except GameError as error:
            assert answer == error.code, descriptor.hex()
            seen.add(error.code)
            continue
        assert after.verdict is not None
        assert int.from_bytes(answer, "big") == after.verdict.expected % (1 << 256), descriptor.hex()
        seen.add(head.family)
    assert seen >= {0, 1, 11, "WrongCount", "WrongDigest", "IndexOutOfRange"}


@pytest.mark.long
def test_many_nodes_with_damaged_descriptors_are_opened_alike(arbiter: EvmContract) -> None:
    open_nodes(arbiter, 20 * CASES)
    prove_roots(arbiter, 20 * CASES)
