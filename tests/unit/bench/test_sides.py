"""Sides on a device that is not the CPU, as far as one without it can show."""

from __future__ import annotations

import pytest
import torch

from assay.bench import sides
from assay.bench.models import recipe_of
from assay.bench.sides import CPU, default_variant, indexed_there, program_of
from assay.bench.tried_small import TriedSmall
from assay.engine.compiler.capture import capture
from assay.programs.capture import tier_of
from assay.protocol.errors import ConfigError

SMALL = "gpt-2x96"
META = torch.device("meta")


def test_data_in_u16_are_the_same_numbers_where_torch_indexes_no_u16() -> None:
    tokens = torch.tensor([0, 1, 50_256, 65_535], dtype=torch.int32).to(torch.uint16)
    assert indexed_there(tokens, CPU) is tokens
    moved = indexed_there(tokens, META)
    assert (moved.dtype, moved.device.type) == (torch.int32, "meta")
    assert tokens.to(torch.int32).tolist() == tokens.tolist() == [0, 1, 50_256, 65_535]
    pixels = torch.zeros(3, dtype=torch.uint8)
    assert indexed_there(pixels, META).dtype is torch.uint8


def test_an_eager_side_on_a_device_holds_what_it_indexes() -> None:
    """Every tensor that a step indexes lies there, in a type that has an index there."""
    side = sides.Eager("gpt2-12x768-short", META)
    assert {t.device.type for t in (*side._data, *side.recipe.module.parameters())} == {"meta"}
    assert [t.dtype for t in side._data] == [torch.int32]
    assert side.recipe.data[0].dtype is torch.uint16


def test_a_step_that_was_tried_on_one_example_has_the_same_program() -> None:
    small = TriedSmall(recipe_of(SMALL))
    assert capture(small, small.state(), tier_of("fixed14")).program.root == program_of(SMALL, "fixed14").root


def test_programs_on_a_gpu_run_by_triton_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stock torch computes wide products by what CUDA does not have."""
    monkeypatch.setattr(sides, "usable_triton", lambda: "")
    assert default_variant(torch.device("cuda")) == "triton"
    monkeypatch.setattr(sides, "usable_triton", lambda: "Triton is not installed")
    with pytest.raises(ConfigError) as refused:
        default_variant(torch.device("cuda"))
    assert refused.value.code == "NoDevice"
    assert default_variant() in ("fused", "stock")
