"""Interpolation, adaptive averages and repeated edges for any sizes: values and gradients as in PyTorch."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as F

from assay.engine.compiler.lowering.registry import FIXED22
from tests.harness.engine.helpers import run_captured
from tests.unit.engine.test_layers import assert_computes, drawn, with_gradients

X = drawn(1, 2, 5, 4)

CASES = {
    "bilinear": lambda x: F.interpolate(x, size=(7, 3), mode="bilinear"),
    "bilinear from corner to corner": lambda x: F.interpolate(x, size=(7, 1), mode="bilinear", align_corners=True),
    "bilinear by a factor": lambda x: F.interpolate(x, scale_factor=1.7, mode="bilinear", recompute_scale_factor=False),
    "bilinear without aliasing": lambda x: F.interpolate(x, size=(3, 6), mode="bilinear", antialias=True),
    "bicubic": lambda x: F.interpolate(x, size=(7, 3), mode="bicubic"),
    "bicubic without aliasing": lambda x: F.interpolate(x, size=(2, 3), mode="bicubic", antialias=True),
    "of lines": lambda x: F.interpolate(x[:, :, 0], size=9, mode="linear"),
    "of volumes": lambda x: F.interpolate(x[None], size=(3, 7, 3), mode="trilinear"),
    "nearest": lambda x: F.interpolate(x, size=(7, 3)),
    "exactly nearest": lambda x: F.interpolate(x, size=(7, 3), mode="nearest-exact"),
    "adaptive averages": lambda x: F.adaptive_avg_pool2d(x, (3, 3)) * F.adaptive_avg_pool2d(x[..., 1:], (3, 3)),
    "area": lambda x: F.interpolate(x, size=(7, 3), mode="area"),
    "repeated edges": lambda x: F.pad(x, (1, 2, 3, 0), mode="replicate"),
}


@pytest.mark.gate_takes(4)
@pytest.mark.parametrize("name", CASES)
def test_resampling_and_its_gradients(name: str):
    assert_computes(with_gradients(CASES[name]), X)


@given(size=st.integers(1, 12), out=st.integers(1, 12), how=st.sampled_from(["bilinear", "bicubic", "nearest", "area"]))
@settings(max_examples=8, deadline=None, derandomize=True)
def test_every_pair_of_sizes_is_resampled_as_pytorch_does(size: int, out: int, how: str):
    x = drawn(1, 1, size, 2)
    function = with_gradients(lambda x: F.interpolate(x, size=(out, 2), mode=how))
    for ours, theirs in zip(run_captured(function, x, precision=FIXED22), function(x), strict=True):
        torch.testing.assert_close(ours, theirs.detach(), rtol=1e-5, atol=1e-5)


def test_weights_of_a_place_sum_to_one_so_a_constant_stays():
    def function(x: Tensor) -> tuple[Tensor, ...]:
        return tuple(F.interpolate(x, size=(11, 3), mode=mode) for mode in ("bilinear", "bicubic", "area"))

    for found in run_captured(function, torch.full((1, 1, 5, 4), 3.0)):
        torch.testing.assert_close(found, torch.full((1, 1, 11, 3), 3.0), rtol=1e-6, atol=0)
