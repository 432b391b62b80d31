"""Whole programs against the leaves: elements of every computed node of the example programs, from openings of a trace.

This is what the contract does at the end of a game: reads from the descriptor, words from openings under P_k, the
element from heads and terms. It must give the bytes that the reference executor wrote.
"""

from __future__ import annotations

from random import Random

import pytest

from assay.protocol.leaf import Read
from assay.protocol.nodes import Family
from assay.protocol.openings import NOTHING, Opening
from assay.protocol.tensors import TensorTree, element_word
from assay.protocol.trace import ReferenceTrace
from tests import programs
from tests.contracts.harness import Chain, Contract
from tests.contracts.leaf_cases import CONTRACTS, deploy_leaves

ELEMENTS = 3
TERMS = 40


@pytest.fixture(scope="module")
def chain() -> Chain:
    return Chain()


@pytest.fixture(scope="module")
def harness(chain: Chain) -> Contract:
    return chain.deploy("LeafHarness")


@pytest.fixture(scope="module")
def leaves(chain: Chain) -> dict[Family, Contract]:
    return deploy_leaves(chain)


class Opener:
    """Opens reads of node k under P_k of a trace's first step."""

    def __init__(self, trace: ReferenceTrace, k: int, harness: Contract) -> None:
        self._trace, self._k, self._harness = trace, k, harness

    def words(self, returned: tuple[tuple[int, int, bool, int], ...]) -> list[int]:
        """The words that the contract loads from honest openings."""
        openings = [self._open(Read(*read)) for read in returned]
        fields = [(o.dtype, o.dims, o.leaf, o.path, o.prefix_path) for o in openings]
        return list(self._harness.call("load", returned, fields, self._trace.prefix_root(1, self._k), self._k))

    def _open(self, read: Read) -> Opening:
        if read.is_fill:
            return NOTHING
        tree = TensorTree(self._trace.program.specs[read.node], self._trace.node_bytes(1, read.node))
        leaf = tree.spec.locate(read.address)[0]
        siblings = self._trace.prefix_path(1, self._k, read.node)
        return Opening(tree.spec.dtype, tree.spec.dims, tree.leaf(leaf), tree.path(leaf), siblings)


def _element(leaf: Contract, opener: Opener, node: bytes, element: int) -> int | None:
    """The element's word as the contract computes it; None when it has too many terms for a test."""
    heads = opener.words(leaf.call("headReads", node, element))
    done, value, terms = leaf.call("start", node, element, heads)
    if done:
        return int(value)
    if terms > TERMS:
        return None
    parts = []
    for k in range(terms):
        values = opener.words(leaf.call("termReads", node, element, k, heads))
        parts.append(leaf.call("term", node, element, k, heads, values))
    return int(leaf.call("fold", node, heads, parts))


@pytest.mark.parametrize("example", programs.all_examples(), ids=lambda e: e.name)
def test_leaves_give_the_bytes_of_the_reference(
    example: programs.Example, harness: Contract, leaves: dict[Family, Contract]
) -> None:
    trace, rng = example.trace(), Random(example.name)
    compared: set[Family] = set()
    for k, node in enumerate(example.program.nodes):
        if node.family not in CONTRACTS:
            continue
        opener = Opener(trace, k, harness)
        for element in rng.sample(range(node.spec.numel), min(ELEMENTS, node.spec.numel)):
            computed = _element(leaves[node.family], opener, example.program.descriptors[k], element)
            if computed is None:
                continue
            index, _ = node.spec.locate(element)
            written = element_word(node.spec, element, trace.node_bytes(1, k)[1024 * index : 1024 * (index + 1)])
            assert computed == written, (k, node.family, element)
            compared.add(node.family)
    if example.name == "every_family":
        assert compared == set(CONTRACTS) - {Family.DOT}, "dots of this program have 60 terms"
    if example.name == "mlp_step":
        assert Family.DOT in compared
