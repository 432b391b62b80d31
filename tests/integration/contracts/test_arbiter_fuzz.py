"""The arbiter and the model decide elements of damaged descriptors alike: heads, values, terms, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from assay.protocol.digests import ZERO, keccak, leaf_digest
from assay.protocol.game.element import prove_term, select_element
from assay.protocol.game.errors import GameError
from assay.protocol.game.header import parse_head
from assay.protocol.game.moves import ProveTerm, SelectElement
from assay.protocol.game.openings import NOTHING, Opening
from assay.protocol.game.state import DisputedClaim, GameState, ProgramHeader, Rules
from assay.protocol.game.table import Side, Stage
from assay.protocol.program import leaf as families
from assay.protocol.program.encoding import MalformedError, decode_node
from assay.protocol.program.leaf import Read
from assay.protocol.trees.prefix import PrefixTree
from assay.protocol.trees.tensors import TensorSpec, TensorTree
from assay.protocol.types import Address, DType
from tests.harness.contracts.harness import EvmContract
from tests.harness.games import config
from tests.harness.programs import counting
from tests.second import fuzzing

K = 5
CASES = 400
SPECS = (
    TensorSpec(DType.F32, (3000,)),
    TensorSpec(DType.I32, (5,)),
    TensorSpec(DType.I8, (7, 9)),
    TensorSpec(DType.BOOL, (4,)),
    TensorSpec(DType.I64, (0,)),
)
RULES = Rules(config(4), ProgramHeader.of(counting().program))
NOBODY = Address(bytes(20))


class Sources:
    """Values of nodes 0..K-1, and honest openings of them."""

    def __init__(self) -> None:
        rng = Random(11)
        self.trees = [TensorTree(spec, rng.randbytes(spec.nbytes)) for spec in SPECS]
        self.prefix = PrefixTree([tree.root for tree in self.trees])
        self.root = self.prefix.roots[K]

    def open(self, read: Read) -> Opening:
        """The opening of a read; nothing where nothing is opened."""
        if read.is_fill or read.node >= K:
            return NOTHING
        tree, siblings = self.trees[read.node], self.prefix.path(K, read.node)
        spec = tree.spec
        if read.address >= spec.numel:
            return Opening(spec.dtype, spec.dims, b"", (tree.tree.root,), siblings)
        index = spec.locate(read.address)[0]
        return Opening(spec.dtype, spec.dims, tree.leaf(index), tree.path(index), siblings)


@pytest.fixture(scope="module")
def sources() -> Sources:
    return Sources()


def standing(descriptor: bytes, leaf: bytes, index: int, root: Any) -> GameState:
    """A game at a leaf of node K's value."""
    claim = DisputedClaim(ZERO, NOBODY, ZERO, ZERO, ZERO, 1, ZERO)
    state = GameState(
        1, claim, NOBODY, Stage.LEAF, Side.CHALLENGER, 0, 0, (0, 0), agreed=root, disputed=leaf_digest(leaf)
    )
    return replace(state, node=K, node_hash=keccak(descriptor), index=index, family=descriptor[0] if descriptor else 0)


def fields(openings: tuple[Opening, ...]) -> list[Any]:
    return [(o.dtype, o.dims, o.leaf, o.path, o.prefix_path) for o in openings]


def decided(state: GameState) -> tuple[Any, ...]:
    """What the arbiter's answer to selectElement says of a state after it."""
    verdict = state.verdict
    if verdict is not None:
        return verdict.element, verdict.claimed, True, verdict.expected, 0
    return state.element, state.claimed, False, 0, state.hi


def test_elements_of_damaged_descriptors_are_decided_alike(arbiter: EvmContract, sources: Sources) -> None:
    decide(arbiter, sources, 0, CASES)


@pytest.mark.long
def test_elements_of_many_damaged_descriptors_are_decided_alike(arbiter: EvmContract, sources: Sources) -> None:
    decide(arbiter, sources, 1_000_000, 50 * CASES)


def decide(arbiter: EvmContract, sources: Sources, first: int, count: int) -> None:
    """Elements, and terms, of as many descriptors by arbiter and model."""
    seen: set[str] = set()
    for number in range(first, first + count):
        rng = Random(f"arbiter {number}")
        descriptor = fuzzing.descriptor(rng)
        head = parse_head(descriptor)
        index, leaf = rng.choice((0, 0, 1, 1 << 40)), rng.randbytes(rng.choice((1024, 1024, 17)))
        offset = rng.choice((0, 1, 3, len(leaf) // head.width - 1, len(leaf) // head.width))
        element = index * (1024 // head.width) + offset
        try:
            node = decode_node(descriptor)
            heads = tuple(map(sources.open, families.head_reads(node, element)))
        except MalformedError:
            node, heads = None, ()
        if rng.random() < 0.1:
            heads = (*heads, NOTHING)
        state = standing(descriptor, leaf, index, sources.root)
        answer = fuzzing.called(arbiter, "start", descriptor, leaf, index, offset, fields(heads), sources.root, K)
        try:
            after = select_element(state, SelectElement(offset, leaf, descriptor, heads), RULES)
        except GameError as error:
            assert answer == error.code, descriptor.hex()
            seen.add(error.code)
            continue
        got = (*answer[:4], 0 if answer[2] else answer[4])
        assert got == decided(after), descriptor.hex()
        if after.verdict is not None:
            seen.add("decided" if node is not None else "malformed")
            continue
        assert answer[5] == after.heads
        seen.add("terms")
        assert node is not None
        term(arbiter, sources, replace(after, stage=Stage.TERM, turn=Side.CHALLENGER), descriptor, rng)
    assert seen >= {"decided", "malformed", "terms", "WrongCount", "IndexOutOfRange"}


def term(arbiter: EvmContract, sources: Sources, state: GameState, descriptor: bytes, rng: Random) -> None:
    """One of the element's terms, disputed alone or whole, is the same on both."""
    k = rng.randrange(state.hi)
    state = replace(state, lo=k, whole=rng.random() < 0.5)
    node = decode_node(descriptor)
    reads = tuple(map(sources.open, families.term_reads(node, state.element, k, state.heads)))
    if rng.random() < 0.1 and reads:
        reads = (replace(reads[0], leaf=reads[0].leaf + b"\0"), *reads[1:])
    arguments = descriptor, state.element, k, list(state.heads), fields(reads), sources.root, K, state.whole
    answer = fuzzing.called(arbiter, "computeTerm", *arguments)
    try:
        after = prove_term(state, ProveTerm(descriptor, reads), RULES)
    except GameError as error:
        assert answer == error.code, descriptor.hex()
        return
    assert after.verdict is not None and answer == after.verdict.expected, descriptor.hex()
