"""Whole programs against the leaves: elements of every computed node of the example programs, from openings of a trace.

This is what the contract does at the end of a game: reads from the descriptor, words from openings under P_k, the
element from heads and terms. It must give the bytes that the reference executor wrote.
"""

from __future__ import annotations

from random import Random

import pytest

from assay.protocol.program.nodes import Family
from assay.protocol.trees.tensors import element_word
from tests.harness import programs
from tests.harness.contracts.harness import EvmContract
from tests.harness.contracts.leaf_cases import CONTRACTS
from tests.harness.contracts.leaf_openings import Opener, computed

ELEMENTS = 3
TERMS = 40


@pytest.mark.parametrize("example", (*programs.all_examples(), programs.witnessed_mlp()), ids=lambda e: e.name)
def test_leaves_give_the_bytes_of_the_reference(
    example: programs.Example, leaf_harness: EvmContract, leaves: dict[Family, EvmContract]
) -> None:
    trace, rng = example.trace(), Random(example.name)
    compared: set[Family] = set()
    for k, node in enumerate(example.program.nodes):
        if node.family not in CONTRACTS:
            continue
        opener = Opener(trace, k, leaf_harness)
        for element in rng.sample(range(node.spec.numel), min(ELEMENTS, node.spec.numel)):
            word = computed(leaves[node.family], opener, example.program.descriptors[k], element, TERMS)
            if word is None:
                continue
            index, _ = node.spec.locate(element)
            written = element_word(node.spec, element, trace.node_bytes(1, k)[1024 * index : 1024 * (index + 1)])
            assert word == written, (k, node.family, element)
            compared.add(node.family)
    if example.name == "every_family":
        assert compared == set(CONTRACTS) - {Family.DOT}, "dots of this program have 60 terms"
    if example.name == "mlp_step":
        assert Family.DOT in compared
