"""Writes into parts of tensors, and readings of memory by strides: values and gradients as in PyTorch.

Every case is also computed by the reference, node by node, bit by bit.
"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.capture import CannotLowerError
from tests.harness.engine.helpers import captured, run_captured
from tests.unit.engine.test_layers import assert_computes, drawn, with_gradients

M = drawn(4, 6)
X = drawn(2, 4, 7, 6)


def swapped_halves(x: Tensor) -> Tensor:
    z = x * 1.0
    h = z.clone()
    z[:, :3] = h[:, 3:]
    return z


def every_other(x: Tensor) -> Tensor:
    z = x * 1.0
    z[:, 1::2] = x[:, ::2] * 2
    z[1, ::3] = 5.0
    return z


def last_of_thirds(x: Tensor) -> Tensor:
    z = torch.zeros(4, 6)
    z[:, 2::3] = x[:, :2]
    return z


def filled_by_a_loop(x: Tensor) -> Tensor:
    out = x.new_empty(4, 6)
    for i in range(4):
        out[i] = x[i] * i
    return out


def through_a_view(x: Tensor) -> Tensor:
    y = x * 1.0
    flat = y.view(2, -1)
    flat.mul_(2.0)
    flat[:, :5] = 0
    return y


def diagonal_set(x: Tensor) -> Tensor:
    y = x * 1.0
    torch.diagonal(y)[:] = x[0, :4]
    return y


def rows_written(x: Tensor) -> Tensor:
    y = x * 1.0
    y[torch.tensor([2, -4])] = x[:2] * 3
    return y


def cells_written(x: Tensor) -> Tensor:
    y = x * 1.0
    y[[0, 1, -1], [2, 3, -6]] = x[0, :3] * 3
    y[:, [1, 1]] = 7.0
    return y


def where_positive(x: Tensor) -> Tensor:
    y = x * 1.0
    y[x > 0] = 0.5
    y[x[:, 0] > 1] = -1.0
    return y


def in_order(x: Tensor) -> Tensor:
    y = x * 1.0
    y[torch.argsort(x[:, 0])] = x * 3
    y[:, torch.topk(x[1], 3)[1]] = y[:, :3] * 2
    y[:, x[2].argsort()] += 5.0
    y[x[:, 1].topk(2)[1]] = -1.0
    return y


def turned_back(x: Tensor) -> tuple[Tensor, ...]:
    groups = (x.flatten() * 1e5).long() % 5 - 2
    order = torch.sort(groups, stable=True)[1]
    back = torch.empty_like(order)
    back[order] = torch.arange(order.numel())
    return back, x.flatten()[order][back]


def in_another_order(x: Tensor) -> Tensor:
    """PyTorch's normalization keeps channels last where ours, written out, does not; the product asks for a view."""
    y = F.silu(F.group_norm(x.reshape(2, 2, 21, 4).permute(0, 3, 1, 2), 2))
    return F.linear(y.reshape(2, 4, 42).transpose(1, 2), x[0, 0, :5, :4]).mul_(2.0)


WRITES = {
    "what lies in another order": (in_another_order, X),
    "halves of a tensor": (swapped_halves, M),
    "every other element": (every_other, M),
    "the last of every three": (last_of_thirds, M),
    "a loop that fills": (filled_by_a_loop, M),
    "a view": (through_a_view, X),
    "the diagonal": (diagonal_set, M),
    "a number on the diagonal": (lambda x: (x * 1.0).fill_diagonal_(2.0), M),
    "dropout in place after flatten": (lambda x: F.relu((x * 1.0).flatten(1), inplace=True), X),
    "constant rows": (rows_written, M),
    "constant cells": (cells_written, M),
    "rows and columns in an order": (in_order, M),
    "a number under a mask": (where_positive, M),
    "index_copy": (lambda x: x.index_copy(1, torch.tensor([5, 0]), x[:, 1:3]), M),
    "index_fill": (lambda x: x.index_fill(0, torch.tensor([0, 2]), 3.0), M),
    "scatter at constant indices": (
        lambda x: x.scatter(1, torch.tensor([[0, 2], [1, 3], [1, 0], [5, 4]]), x[:, :2] * 2),
        M,
    ),
}


@pytest.mark.gate_takes(4)
@pytest.mark.parametrize("name", WRITES)
def test_writes_and_their_gradients(name: str):
    function, x = WRITES[name]
    assert_computes(with_gradients(function), x)


STRIDES = {
    "rows apart": lambda x: torch.as_strided(x * 1.0, (3, 3), (6, 1), 1),
    "overlapping": lambda x: torch.as_strided(x * 1.0, (3, 4), (2, 1), 0),
    "of a transposed tensor": lambda x: torch.as_strided((x * 1.0).t(), (2, 6), (6, 1), 6),
    "of a slice": lambda x: torch.as_strided((x * 1.0)[1:], (2, 3), (6, 2)),
    "repeated": lambda x: torch.as_strided(x * 1.0, (2, 6), (0, 1), 6),
    "of a constant": lambda x: x[:2] * torch.as_strided(torch.ones(3, 6), (2, 6), (6, 1), 6),
    "pooled after a permutation": lambda x: nn.AdaptiveAvgPool2d(1)(x.reshape(1, 2, 2, 6).permute(0, 3, 1, 2)),
    "embedded in a diagonal": torch.diag_embed,
}


@pytest.mark.parametrize("name", STRIDES)
def test_memory_read_by_strides_and_its_gradients(name: str):
    assert_computes(with_gradients(STRIDES[name]), M)


@given(
    size=st.integers(1, 9),
    start=st.integers(-9, 9),
    stop=st.integers(-9, 9),
    step=st.integers(1, 9),
    is_blank=st.booleans(),
)
@settings(max_examples=12, deadline=None, derandomize=True)
def test_slices_of_every_start_stop_and_step_are_written_as_pytorch_writes_them(
    size: int, start: int, stop: int, step: int, is_blank: bool
):
    x = drawn(2, size)

    def function(x: Tensor) -> tuple[Tensor]:
        y = torch.full((2, size), 9.0) if is_blank else x * 2.0
        y[:, start:stop:step] = x[:, : len(range(size)[start:stop:step])]
        return (y,)

    assert torch.equal(run_captured(function, x)[0], function(x)[0])


@pytest.mark.parametrize("x", [M, torch.zeros(4, 6), torch.full((1, 2), -3.0)], ids=["drawn", "all alike", "two"])
def test_an_order_is_turned_back_by_writing_at_its_positions_as_layers_of_experts_do(x: Tensor):
    assert_computes(turned_back, x)
    assert torch.equal(run_captured(turned_back, x)[1], x.flatten())


def test_what_was_never_written_is_zero_and_never_what_memory_held():
    def function(x: Tensor) -> tuple[Tensor, ...]:
        out = x.new_empty(3, 2)
        out[0] = x
        counts = torch.arange(4).new_empty(4)
        counts[:2] = 7
        return out, counts

    torch.full((1 << 12,), 0x55, dtype=torch.int64)  # memory that is free again holds something else than zeros
    out, counts = run_captured(function, torch.ones(2))
    assert out.tolist() == [[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]
    assert counts.tolist() == [7, 7, 0, 0]


def write(*indices: object, value: object):
    def function(x: Tensor) -> tuple[Tensor]:
        y = x * 1.0
        y[indices] = value(x) if callable(value) else value
        return (y,)

    return function


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (write(torch.tensor([0, 0]), value=lambda x: x[:2]), "two values at one place"),
        (lambda x: (x.scatter(1, torch.tensor([[0, 0]] * 4), x[:, :2]),), "two values at one place"),
        (lambda x: write((x[0] > 0).long(), value=1.0)(x), "may repeat"),
        (lambda x: write(x[0].argsort() // 2, value=lambda x: x)(x), "may repeat"),
        (lambda x: write(x.argsort(0)[0], value=1.0)(x), "may repeat"),
        (lambda x: write(x.argsort(1), value=1.0)(x.T), "may repeat"),
        (lambda x: write(x[:, 0].argsort(), value=1.0)(x.T), "may repeat"),
    ],
    ids=[
        "rows twice",
        "cells twice",
        "rows by value",
        "halves of an order",
        "the first of several orders",
        "several orders",
        "an order of fewer",
    ],
)
def test_a_write_without_an_order_is_refused_by_name(function, words: str):
    with pytest.raises(CannotLowerError, match=words):
        captured(function, M)


EDGES = torch.tensor([[0, 1, 2, 0, 3], [1, 1, 3, 0, 0]])
ONES = torch.ones(5)


def normalized_over_neighbours(x: Tensor) -> Tensor:
    degree = ONES.new_zeros(4).scatter_add_(0, EDGES[1], ONES)
    rate = degree.pow_(-0.5)
    rate = rate.masked_fill_(rate == float("inf"), 0)
    weights = rate[EDGES[0]] * rate[EDGES[1]]
    weighted = ONES.new_zeros(4).scatter_add_(0, EDGES[1], x[0, :5])
    return x.new_zeros(4, 6).index_add_(0, EDGES[1], x[EDGES[0]] * weights[:, None]) * weighted[:, None]


def test_what_is_made_of_constants_is_written_in_place_as_graph_layers_do():
    assert_computes(with_gradients(normalized_over_neighbours), M)


def test_one_number_may_be_written_twice_at_a_place():
    function = write(torch.tensor([1, 1, 3]), value=2.5)
    assert torch.equal(run_captured(function, M)[0], function(M)[0])
