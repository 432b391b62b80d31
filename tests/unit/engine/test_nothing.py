"""Products and sums over no terms are zero, as in PyTorch; what has no value over nothing is refused by name."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from assay.engine.compiler.capture import CannotLowerError
from tests.harness.engine.helpers import captured, differing_nodes, run_captured


def x(*shape: int) -> Tensor:
    return torch.linspace(-1.0, 1.0, max(torch.Size(shape).numel(), 1))[: torch.Size(shape).numel()].reshape(shape)


def grad_of_no_rows(a: Tensor, w: Tensor) -> tuple[Tensor, ...]:
    """The gradient of a layer on an empty batch: a product over its rows."""
    leaf = w.detach().requires_grad_()
    with torch.enable_grad():
        loss = (a @ leaf).sum() + (leaf * leaf).sum()
    return torch.autograd.grad(loss, leaf)


NOTHING = {
    "a product": lambda: (lambda a, b: (a @ b,), x(3, 0), x(0, 2)),
    "a product of slices": lambda: (lambda a, b: (a[:, :0] @ b[:0],), x(3, 4), x(4, 2)),
    "a batch of products": lambda: (lambda a, b: (torch.bmm(a, b),), x(2, 3, 0), x(2, 0, 2)),
    "a product with a bias": lambda: (lambda a, b, c: (F.linear(a, b, c),), x(3, 0), x(2, 0), x(2)),
    "a softmax's product": lambda: (lambda a, b: (torch.softmax(a, 1)[:, :0] @ b,), x(3, 4), x(0, 2)),
    "a product of vectors": lambda: (lambda a, b: (torch.dot(a, b), x(3, 0) @ a), x(0), x(0)),
    "a gradient": lambda: (grad_of_no_rows, x(0, 4), x(4, 2)),
    "sums": lambda: (lambda a: (a.sum(), a.sum(1), a.sum(1, keepdim=True), a.cumsum(1)), x(3, 0)),
    "a mean": lambda: (lambda a: (a.mean(1),), x(3, 0)),
}


@pytest.mark.parametrize("name", NOTHING)
def test_over_nothing_a_program_computes_what_pytorch_does(name: str):
    function, *tensors = NOTHING[name]()
    eager = function(*tensors)
    ours = run_captured(function, *tensors)
    assert len(ours) == len(eager)
    for a, b in zip(ours, eager, strict=True):
        assert a.shape == b.shape
        assert torch.allclose(a, b, atol=1e-3, equal_nan=True)
    assert differing_nodes(captured(function, *tensors).program, [tensors]) == []


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda a: (torch.softmax(a, 1),), "a maximum over no elements"),
        (lambda a: (a.bool().any(1),), "a maximum over no elements"),
        (lambda a: (F.conv1d(x(1, 0, 4), a[:, :, None]),), "a convolution without channels"),
    ],
)
def test_what_has_no_form_over_nothing_is_refused_at_the_users_line(function, words: str):
    with pytest.raises(CannotLowerError, match=words) as caught:
        captured(function, x(3, 0))
    assert f"test_nothing.py:{function.__code__.co_firstlineno}" in caught.value.message
