"""Functions written out where they are called: sampling at grids, alignments, distances, medians; as in PyTorch."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from assay.engine.compiler.lowering.registry import FIXED22
from assay.protocol.errors import UserError
from tests.harness.engine.helpers import captured, run_captured
from tests.unit.engine.test_layers import assert_computes, drawn, with_gradients

X = drawn(1, 2, 4, 3)
GRID = torch.rand(1, 2, 3, 2, generator=torch.Generator().manual_seed(3)) * 3 - 1.5
M = drawn(4, 6)
PADDINGS = ["zeros", "border", "reflection"]


@pytest.mark.parametrize("padding", PADDINGS)
def test_images_read_at_grids_inside_and_outside_and_their_gradients(padding: str):
    assert_computes(
        with_gradients(lambda x, g: F.grid_sample(x, g, padding_mode=padding, align_corners=False)), X, GRID
    )


def test_corners_cubics_and_nearest_places_are_read_as_pytorch_reads_them():
    ways = [("bilinear", p, True) for p in PADDINGS]
    ways += [("nearest", "reflection", False), ("bicubic", "reflection", True), ("bicubic", "zeros", False)]

    def function(x: Tensor, g: Tensor) -> tuple[Tensor, ...]:
        return tuple(F.grid_sample(x, g, mode=m, padding_mode=p, align_corners=c) for m, p, c in ways)

    for ours, theirs in zip(run_captured(function, X, GRID), function(X, GRID), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_volumes_and_places_without_a_gradient():
    volume = torch.rand(1, 1, 2, 2, 3, generator=torch.Generator().manual_seed(0)) * 2 - 1
    assert_computes(lambda x, g: (F.grid_sample(x[None], g, align_corners=True),), X, volume.reshape(1, 1, 2, 2, 3))
    assert_computes(with_gradients(lambda x, g: F.grid_sample(x, g, mode="nearest", align_corners=False)), X, GRID)


LABELS = torch.tensor([[1, 1, 2], [3, 2, 1], [2, 1, 3], [1, 1, 1]])
STEPS, SIZES = (5, 4, 5, 3), (3, 2, 0, 3)
"""A label twice, a shorter sequence, no labels, and three equal ones that three steps have no room for."""


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_alignments_and_their_gradients(reduction: str):
    def function(x: Tensor) -> Tensor:
        logs = F.log_softmax(x, 2)
        return F.ctc_loss(logs, LABELS, STEPS, SIZES, reduction=reduction, zero_infinity=True).reshape(-1)

    assert_computes(with_gradients(function), drawn(5, 4, 4))


def test_gradients_of_alignments_are_pytorchs_also_where_no_softmax_comes_before():
    def function(x: Tensor) -> Tensor:
        return F.ctc_loss(F.logsigmoid(x), LABELS, STEPS, SIZES, reduction="none", zero_infinity=True)

    assert_computes(with_gradients(function), drawn(5, 4, 4))


def test_alignments_by_tensors_of_lengths_and_of_labels_in_a_row():
    def function(x: Tensor, labels: Tensor, steps: Tensor, sizes: Tensor) -> tuple[Tensor, ...]:
        logs = F.log_softmax(x, 2)
        return nn.CTCLoss(blank=0, reduction="none")(logs, labels, steps, sizes), F.ctc_loss(
            logs[:, 0], labels[:3], (5,), (3,)
        )

    given = (torch.tensor([1, 1, 2, 3, 2, 1, 1, 1]), torch.tensor(STEPS), torch.tensor(SIZES))
    tensors = (drawn(5, 4, 4), *(t.to(torch.int32) for t in given))
    for ours, theirs in zip(run_captured(function, *tensors, precision=FIXED22), function(*tensors), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_a_loss_without_an_alignment_is_infinite():
    (ours,) = run_captured(
        lambda x: (F.ctc_loss(F.log_softmax(x, 2), LABELS[3:], (3,), (3,), reduction="none"),), drawn(3, 1, 4)
    )
    assert ours.tolist() == [float("inf")]


def test_distances_and_their_gradients_also_where_they_are_zero():
    y = torch.cat([M[:1], drawn(2, 6, seed=1)])
    assert_computes(with_gradients(lambda x, y: torch.cdist(x, y) + torch.cdist(x, y, p=1.0)), M, y)


def test_middle_elements_and_their_gradients():
    assert_computes(with_gradients(lambda x: x.median(1)[0] * x.kthvalue(2, 1)[0] * x.median()), M)
    rows = torch.tensor([[3.0, 1.0, float("nan"), 2.0], [4.0, 3.0, 2.0, 1.0]])
    values, total = run_captured(lambda x: (x.median(1)[0], x.median()), rows)
    assert torch.equal(values.isnan(), torch.tensor([True, False]))
    assert float(values[1]) == 2.0
    assert bool(total.isnan())


class Converting(nn.Module):
    """Converts its own layer whenever it is called, as routers of experts do."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        self.dtype, self.layer = dtype, nn.Linear(6, 2)

    def forward(self, x: Tensor) -> Tensor:
        self.layer = self.layer.to(self.dtype)
        return self.layer(x.to(self.dtype)).float()


def converted(dtype: torch.dtype):
    module = Converting(dtype)
    return lambda x, w: torch.func.functional_call(module, {"layer.weight": w, "layer.bias": torch.ones(2)}, (x,))


def test_a_layer_converted_to_what_it_is_already_computes_as_it_is():
    assert_computes(with_gradients(converted(torch.float32)), M, drawn(2, 6))


def test_a_layer_converted_to_something_else_in_a_step_is_refused_by_name():
    with pytest.raises(UserError, match=r"A Linear is converted by the step itself at .*test_called\.py") as caught:
        captured(lambda x, w: (converted(torch.bfloat16)(x, w),), M, drawn(2, 6))
    assert caught.value.code == "NotCapturable"
