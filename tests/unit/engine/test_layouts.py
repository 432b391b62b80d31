"""Results of convolutions lie with their channels innermost, and so does what is computed from them.

Values and gradients are PyTorch's, every node is the reference's on every bit, and nothing large is turned around.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.protocol.program.nodes import Const, Dot, Map, Sum
from assay.protocol.program.program import Program
from tests.harness.engine.helpers import captured
from tests.unit.engine.test_layers import POOLS, X, assert_computes, drawn, with_gradients

W, HEAD, MIX = drawn(4, 4, 3, 3, seed=1), drawn(4 * 5 * 4, 3, seed=2), drawn(4, 3, seed=2)


def _block(x: Tensor, w: Tensor) -> Tensor:
    y = F.relu(F.batch_norm(F.conv2d(x, w, padding=1), None, None, training=True))
    return y + F.conv2d(y, w, padding=1)


CHAINS = {
    "residual": _block,
    "strided twice": lambda x, w: F.conv2d(F.conv2d(x, w, stride=2, padding=1), w, stride=2, padding=2),
    "there and back": lambda x, w: F.conv_transpose2d(F.conv2d(x, w, stride=2), w, stride=2),
    "grouped between": lambda x, w: F.conv2d(F.conv2d(F.conv2d(x, w), w[:, :1], groups=4, padding=1), w, padding=1),
    "flattened": lambda x, w: F.conv2d(x, w).flatten(1) @ HEAD,
    "tokens": lambda x, w: F.layer_norm(F.conv2d(x, w).flatten(2).transpose(1, 2), (4,)) @ MIX,
    "squeezed": lambda x, w: F.conv2d(x, w) * torch.sigmoid(F.conv2d(x, w).mean((2, 3), keepdim=True)),
    "cut, turned and joined": lambda x, w: torch.cat([F.conv2d(x, w)[:, 1:, 1:].flip(2), x[:, :2, :4, :4]], 1),
    "strided, cut and turned": lambda x, w: F.pad(F.conv2d(x, w, stride=2)[:, :, 1:].flip(3), (1, 0, 0, 2)),
    "lone channel": lambda x, w: F.max_pool2d(F.conv2d(F.conv2d(x, w[:1], padding=1), w[:, :1], padding=1), 2),
}


@pytest.mark.gate_takes(4)
@pytest.mark.parametrize("name", CHAINS)
def test_chains_of_convolutions_and_their_gradients(name: str):
    assert_computes(with_gradients(CHAINS[name]), X, W)


@pytest.mark.gate_takes(4)
@pytest.mark.parametrize("name", POOLS)
def test_pools_behind_a_convolution_and_their_gradients(name: str):
    assert_computes(with_gradients(lambda x, w: POOLS[name](F.conv2d(x, w, padding=1))), X, W)


def _network(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    for weights in (w, v):
        x = F.conv2d(x, weights, padding=1)
        x = F.max_pool2d(F.relu(F.batch_norm(x, None, None, training=True)), 2)
    return x.mean((2, 3))


def _turned(program: Program, least: int) -> list[str]:
    """Maps and sums of so many elements that read a value of as many with steps above 1 along their last dimension."""
    return [
        f"{k} {node.family.name} {node.spec.dims}"
        for k, node in enumerate(program.nodes)
        if isinstance(node, Map) and node.spec.numel >= least
        for operand in node.operands
        if program.specs[operand.node].numel >= least and abs(operand.view.strides[-1]) > 1
    ]


def test_no_map_of_a_step_turns_a_convolutions_result_around():
    w, v = drawn(16, 3, 3, 3, seed=1), drawn(32, 16, 3, 3, seed=2)
    program = captured(with_gradients(_network), drawn(8, 3, 16, 16), w, v).program
    # Larger than the images, whose channels come outermost and are turned around once.
    assert _turned(program, 8 * 16 * 8 * 8) == []
    sums = [n for n in program.nodes if isinstance(n, Sum) and program.specs[n.x.node].numel >= 8 * 16 * 8 * 8]
    assert sums and all(n.x.view.strides[0] == 1 for n in sums), "sums over batch and places read whole columns"


def test_terms_of_a_convolution_are_read_with_channels_side_by_side():
    w = drawn(16, 8, 3, 3, seed=1)
    program = captured(with_gradients(lambda x, w: F.conv2d(x, w, padding=1)), drawn(4, 8, 6, 6), w).program
    forward, *_ = [n for n in program.nodes if isinstance(n, Dot)]
    assert forward.a.view.strides[-1] == 1 and forward.red[-1] % 8 == 0


def test_a_softmax_behind_a_convolution_still_marks_the_dimension_that_it_runs_along():
    w, v = drawn(5, 3, 1, seed=1), drawn(7, 2, seed=2)

    def is_folded(dim: int, other: Tensor) -> bool:
        program = captured(lambda x, w: (F.conv1d(x, w).softmax(dim) @ other,), drawn(2, 3, 7), w).program
        last = [n for n in program.nodes if isinstance(n, Dot)][-1]
        return isinstance(program.nodes[last.exponent_b.node], Const)

    # The result lies as [2, 7, 5]: both dimensions have changed places.
    assert is_folded(2, v)
    assert not is_folded(1, v)
