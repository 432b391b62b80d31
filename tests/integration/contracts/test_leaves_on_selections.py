"""A captured sort, a topk with its gradient and a cumulative sum: the contract settles each node by one element."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.engine.runtime.values.dtypes import to_bytes
from assay.protocol.program.nodes import Family
from assay.protocol.trees.tensors import element_word
from tests.harness.contracts.harness import EvmContract
from tests.harness.contracts.leaf_cases import CONTRACTS
from tests.harness.contracts.leaf_openings import Opener, computed
from tests.harness.engine.helpers import captured
from tests.harness.programs import Example

N = 12
HOSTILE = torch.tensor([2.0, float("nan"), -0.0, 0.0, 2.0, float("inf"), -1.0, 2.0, 1e-45, -float("inf"), 7.0, -0.0])


def selections(x: Tensor) -> tuple[Tensor, ...]:
    leaf = x.detach().requires_grad_()
    best, places = torch.topk(leaf, 4)
    (gradient,) = torch.autograd.grad((best * best).sum(), leaf)
    return (*torch.sort(x), places, gradient, x.cumsum(0))


def test_leaves_settle_orders_and_prefix_sums_by_one_element(
    leaf_harness: EvmContract, leaves: dict[Family, EvmContract]
) -> None:
    program = captured(selections, HOSTILE).program
    trace = Example("selections", program, ((to_bytes(HOSTILE),),)).trace()
    compared: set[Family] = set()
    for k, node in enumerate(program.nodes):
        if node.family not in CONTRACTS:
            continue
        opener = Opener(trace, k, leaf_harness)
        for element in (0, node.spec.numel // 2, node.spec.numel - 1):
            word = computed(leaves[node.family], opener, program.descriptors[k], element, N)
            assert word is not None, "an element takes at most one term per input"
            assert word == element_word(node.spec, element, trace.node_bytes(1, k))
            compared.add(node.family)
    assert {Family.RANK, Family.SCATTER_SUM, Family.GATHER, Family.MAP} <= compared
